"""What the tests of TLS, relays and proxies share."""

from __future__ import annotations

import os
import ssl

import pytest


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
