"""Fixtures of the tests of TLS, HTTP/2 and proxies."""

from __future__ import annotations

import os
import ssl
from contextlib import asynccontextmanager

import httpx
import pytest
from sites.raw import raw_server

from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.httpx_fetch import HttpxFetch


@pytest.fixture(scope="module")
def authority():
    return pytest.importorskip("trustme").CA()


@pytest.fixture
def client_tls(authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
def server_tls(authority):
    """A context for servers on 127.0.0.1, of h.test and of the names below it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "h.test", "*.h.test").configure_cert(context)
    return context


@pytest.fixture(autouse=True)
def no_proxies_around(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture(params=["wire", "client", "proxy"])
def asked(request):
    """Open a raw server, and a fetch that asks it by one of the three ways there are.

    async with asked(site, timeout=...) as (server, url, fetch): ...
    """

    @asynccontextmanager
    async def opened(site, **options):
        # Nothing is asked by TLS, whose certificates would take 30 ms to read.
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        async with raw_server(site) as server, httpx.AsyncClient(verify=tls) as client:
            ways = {
                "wire": lambda: HttpFetch(seeds=[server.url], **options),
                "client": lambda: HttpxFetch(client, **options),
                "proxy": lambda: HttpFetch(proxy=server.url, tls=tls, **options),
            }
            url = "http://h.test/" if request.param == "proxy" else server.url
            async with ways[request.param]() as fetch:
                yield server, url, fetch

    opened.way = request.param
    return opened
