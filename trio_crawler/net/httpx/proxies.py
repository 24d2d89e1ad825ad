"""Proxies: by which of them an origin is asked."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.request import getproxies, proxy_bypass

import httpx

from trio_crawler.net.connection import Origin

_SCHEMES = ("http", "https", "all")


class Proxies:
    """Choose a proxy: `proxy` for everything or, with `trust_env`, those of the environment.

    The environment's are HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, in either case. NO_PROXY lists
    names, with all that end in them, and addresses (`::1` or `[::1]`), with a port or without;
    networks such as 10.0.0.0/8 are not understood, as by Python itself.

    Raises ValueError for a proxy that cannot be meant, and for packages that are missing.
    """

    def __init__(self, proxy: str | None = None, *, trust_env: bool = False) -> None:
        self._by_environment = trust_env and not proxy
        self._named = {"all": proxy} if proxy else _of_environment() if trust_env else {}
        for url in self._named.values():
            _check(url)

    def __call__(self, origin: Origin) -> str | None:
        """Return the URL of the proxy for an origin, None if it needs none."""
        scheme, host, port = origin
        if self._by_environment and _is_bypassed(host, port):
            return None
        return self._named.get(scheme) or self._named.get("all")


def need(package: str, what: str, extra: str) -> None:
    """Raise ValueError, with a remedy, if a package is missing."""
    if find_spec(package) is None:
        raise ValueError(
            f"{what} needs the package {package}: pip install 'trio-crawler[{extra}]'"
        )


def _is_bypassed(host: str, port: int) -> bool:
    spellings = (host, f"[{host}]") if ":" in host else (host,)
    return any(proxy_bypass(f"{spelling}:{port}") for spelling in spellings)


def _of_environment() -> dict[str, str]:
    """Return the proxies that the environment names; http:// may be left out, as in curl."""
    named = {scheme: url for scheme, url in getproxies().items() if scheme in _SCHEMES}
    return {scheme: url if "://" in url else f"http://{url}" for scheme, url in named.items()}


def _check(url: str) -> None:
    try:
        parsed = httpx.Proxy(url).url
        _check_host(parsed)
    except (ValueError, httpx.InvalidURL):
        # The URL may hold a password, so it is not shown.
        raise ValueError("a proxy has to be a URL such as http://127.0.0.1:3128") from None
    if parsed.scheme.startswith("socks"):
        need("socksio", "a SOCKS proxy", "socks")


def _check_host(url: httpx.URL) -> None:
    """Refuse what would fail when it is looked up or shown. Raises ValueError."""
    # httpx decodes the name only when asked for it; UnicodeError is a ValueError.
    labels = url.host.removesuffix(".").split(".")
    if not url.raw_host.isascii() or not all(0 < len(label) < 64 for label in labels):
        raise ValueError("not the name of a host")
