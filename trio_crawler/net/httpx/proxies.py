"""The choice of a proxy for an origin."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.request import getproxies, proxy_bypass

import httpx

from trio_crawler.arguments import ArgumentError
from trio_crawler.net.connection import Origin

_SCHEMES = ("http", "https", "all")


class Proxies:
    """The choice of a proxy: `proxy` for all origins, or one of the environment with `trust_env`.

    The environment names proxies in HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, in upper or lower case.
    NO_PROXY lists names, which include their subdomains, and addresses (`::1` or `[::1]`), with or
    without a port; networks such as 10.0.0.0/8 are not supported, as in Python itself.

    Raises TypeError or ValueError, naming the argument or variable, for an invalid proxy, and
    ValueError for a missing package.
    """

    def __init__(self, proxy: str | httpx.URL | None = None, *, trust_env: bool = False) -> None:
        if proxy is not None and trust_env:
            raise ValueError("proxy and trust_env exclude each other: give one of them")
        self._by_environment = trust_env
        if proxy is not None:
            # The value may have a password, so it is not shown.
            if not isinstance(proxy, str | httpx.URL):
                kind = type(proxy).__name__
                raise TypeError(f"proxy must be a URL as a str or httpx.URL, not {kind}")
            self._named = {"all": _checked("proxy", str(proxy), whole=True)}
        else:
            self._named = _of_environment() if trust_env else {}

    def __call__(self, origin: Origin) -> str | None:
        """Return the URL of the proxy for an origin, or None."""
        scheme, host, port = origin
        if self._by_environment and _is_bypassed(host, port):
            return None
        return self._named.get(scheme) or self._named.get("all")


def require_package(argument: str, package: str, what: str, extra: str) -> None:
    """Raise ArgumentError, with a remedy, if an argument needs a package that is missing."""
    if find_spec(package) is None:
        remedy = f"pip install 'trio-crawler[{extra}]'"
        raise ArgumentError(argument, f": {what} needs the package {package}: {remedy}")


def _is_bypassed(host: str, port: int) -> bool:
    spellings = (host, f"[{host}]") if ":" in host else (host,)
    return any(proxy_bypass(f"{spelling}:{port}") for spelling in spellings)


def _of_environment() -> dict[str, str]:
    """Return the proxies of the environment, by scheme; http:// may be left out, as in curl."""
    named = {scheme: url for scheme, url in getproxies().items() if scheme in _SCHEMES}
    return {
        scheme: _checked(f"{scheme}_proxy", url if "://" in url else f"http://{url}")
        for scheme, url in named.items()
    }


def _checked(name: str, url: str, *, whole: bool = False) -> str:
    """Return the URL of a proxy. Raises ValueError if it is invalid.

    Only a proxy of the environment may have a path, which has no effect.
    """
    try:
        parsed = httpx.Proxy(url).url
        _check_host(parsed)
        if whole and (parsed.raw_path != b"/" or parsed.fragment):
            raise ValueError("a path, a query or a fragment")
    except (ValueError, httpx.InvalidURL):
        wanted = "a URL such as http://127.0.0.1:3128"
        hidden = "the given one is not shown, as it may hold a password"
        raise ArgumentError(name, f" must be {wanted}; {hidden}") from None
    if parsed.scheme.startswith("socks"):
        require_package(name, "socksio", "a SOCKS proxy", "socks")
    return url


def _check_host(url: httpx.URL) -> None:
    """Raise ValueError for a host or port with which a lookup or a message would fail."""
    # httpx decodes the name only at this access; UnicodeError is a ValueError.
    labels = url.host.removesuffix(".").split(".")
    # A character that no host has is escaped by httpx.
    escaped = "%" in url.host or not url.raw_host.isascii()
    if escaped or not all(0 < len(label) < 64 for label in labels):
        raise ValueError("not the name of a host")
    if url.port is not None and not 0 < url.port <= 65535:
        raise ValueError("not a port")
