"""What the tests of TLS, relays and proxies share."""

from __future__ import annotations

import os
import ssl
from contextlib import asynccontextmanager

import httpx
import pytest
from sites.raw import raw_server

from trio_crawler.net.fetch import HttpFetch


@pytest.fixture(scope="module")
def authority():
    return pytest.importorskip("trustme").CA()


@pytest.fixture
def client_tls(authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture(autouse=True)
def no_proxies_around(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture(params=["wire", "client", "proxy"])
def asked(request):
    """Open a raw server, and a fetch that asks it by one of the three ways there are.

    async with asked(site, limits=...) as (server, url, fetch): ...
    """

    @asynccontextmanager
    async def opened(site, **options):
        # Nothing is asked by TLS, whose certificates would take 30 ms to read.
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        async with raw_server(site) as server, httpx.AsyncClient(verify=tls) as client:
            ways = {
                "wire": (None, {"seeds": [server.url]}),
                "client": (client, {}),
                "proxy": (None, {"proxy": server.url, "tls": tls}),
            }
            transport, own = ways[request.param]
            url = "http://h.test/" if request.param == "proxy" else server.url
            async with HttpFetch(transport, **own, **options) as fetch:
                yield server, url, fetch

    opened.way = request.param
    return opened
