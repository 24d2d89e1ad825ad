"""The choice of a proxy for an origin, and the hosts that are requested without one."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.request import getproxies_environment

import httpx

from trio_crawler.arguments import ArgumentError
from trio_crawler.net.dial.addresses import parse_address
from trio_crawler.net.dial.resolve import server_name
from trio_crawler.net.http1.connection import Origin

_SEPARATORS = re.compile(r"[,\s]+")
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
# RFC 1929, 2: each is preceded by its length, in one byte.
_MAX_LOGIN = 255


class Bypass:
    """The hosts of a NO_PROXY, a list that commas or spaces separate, as most programs read it.

    An entry is one of these:

    - `*`: every host;
    - `e.org`, `.e.org` or `*.e.org`: this name and its subdomains;
    - `127.0.0.1`, `::1` or `[::1]`: an address;
    - `10.0.0.0/8` or `fe80::/10`: the addresses of a network. A name is not looked up for it.

    All but a network may have a port (`e.org:8080`), and count only for that port then. The case
    of letters, and a dot at the end of a name, do not count. Any other entry is ignored.
    """

    def __init__(self, listed: str) -> None:
        words = [word.lower() for word in _SEPARATORS.split(listed) if word]
        self._all = "*" in words
        self._networks: list[IPv4Network | IPv6Network] = []
        self._names: list[str] = []
        for word in words:
            address, slash, length = word.partition("/")
            with suppress(ValueError):
                network = ip_network(address.strip("[]") + slash + length, strict=False)
                self._networks.append(network)
                continue
            name = word.removesuffix(".").removeprefix("*").removeprefix(".")
            if name and not slash:
                self._names.append(name)

    def __call__(self, host: str, port: int) -> bool:
        """Whether `host`, without brackets, is requested at `port` without a proxy."""
        host = host.lower().removesuffix(".")
        address = parse_address(host)
        if self._all or (address and any(address in network for network in self._networks)):
            return True
        server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return any(
            name in (host, server) or host.endswith(f".{name}") or server.endswith(f".{name}")
            for name in self._names
        )


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy: `scheme` is http, https, socks5 or socks5h; `host` is without brackets.

    A proxy without credentials has an empty user and password. `source` is the option or the
    variable that names it.
    """

    scheme: str
    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    source: str = field(default="--proxy", compare=False)

    @property
    def label(self) -> str:
        """The name of the proxy in messages: "the proxy p.test:3128"."""
        return f"the proxy {server_name(self.host, self.port)}"

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS5 and not HTTP."""
        return self.scheme.startswith("socks")

    @property
    def has_login(self) -> bool:
        """Whether it has a user or a password."""
        return bool(self.user or self.password)

    def authorization(self) -> bytes:
        """Return the line of a request that has the credentials (RFC 7617); empty without any."""
        if not self.has_login:
            return b""
        login = b64encode(f"{self.user}:{self.password}".encode())
        return b"Proxy-Authorization: Basic %b\r\n" % login


class Proxies:
    """The choice of a proxy: `proxy` for all origins, or one of the environment with `trust_env`.

    The environment names proxies in HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, in lower or upper case;
    lower case comes first, and an empty value names none. HTTP_PROXY does not count in a CGI
    program, where a client can set it. For NO_PROXY see `Bypass`. It is read once.

    Raises TypeError or ValueError, naming the argument or variable, for an invalid proxy.
    """

    def __init__(self, proxy: str | httpx.URL | None = None, *, trust_env: bool = False) -> None:
        if proxy is not None and trust_env:
            raise ValueError("proxy and trust_env exclude each other: give one of them")
        self._named: dict[str, Proxy] = {}
        self._bypass: Bypass | None = None
        if proxy is not None:
            # The value may have a password, so it is not shown.
            if not isinstance(proxy, str | httpx.URL):
                kind = type(proxy).__name__
                raise TypeError(f"proxy must be a URL as a str or httpx.URL, not {kind}")
            self._named = {"all": _parsed("proxy", str(proxy), whole=True)}
        elif trust_env:
            named = getproxies_environment()
            self._bypass = Bypass(named.get("no", ""))
            for scheme in named.keys() & {"http", "https", "all"}:
                url = named[scheme].strip()
                lower = f"{scheme}_proxy"
                name = lower if lower in os.environ else lower.upper()
                # As in curl, http:// may be left out.
                self._named[scheme] = _parsed(name, url if "://" in url else f"http://{url}")

    def __call__(self, origin: Origin) -> Proxy | None:
        """Return the proxy for an origin, or None."""
        scheme, host, port = origin
        if self._bypass is not None and self._bypass(host, port):
            return None
        return self._named.get(scheme) or self._named.get("all")


def _parsed(name: str, given: str, *, whole: bool = False) -> Proxy:
    """Return the proxy that a URL names. Raises ArgumentError if it is invalid.

    Only a proxy of the environment may have a path, which has no effect.
    """
    try:
        url = httpx.URL(given)
        if whole and (url.raw_path != b"/" or url.fragment):
            raise ValueError("a path, a query or a fragment")
        if url.scheme not in _PORTS:
            raise ValueError("not a scheme of proxies")
        # httpx decodes the name only at this access; UnicodeError is a ValueError.
        labels = url.host.removesuffix(".").split(".")
        # A character that no host has is escaped by httpx.
        escaped = "%" in url.host or not url.raw_host.isascii()
        if escaped or not all(0 < len(label) < 64 for label in labels):
            raise ValueError("not the name of a host")
        port = _PORTS[url.scheme] if url.port is None else url.port
        # httpx leaves out a port that is the usual one of its scheme, and no other.
        if not 0 < port <= 65535:
            raise ValueError("not a port")
        host, source = url.raw_host.decode("ascii"), "--proxy" if name == "proxy" else name
        proxy = Proxy(url.scheme, host, port, url.username, url.password, source)
        # RFC 7617, 2; RFC 1929, 2.
        login = (proxy.user, proxy.password)
        if proxy.is_socks:
            if proxy.has_login and not all(0 < len(part.encode()) <= _MAX_LOGIN for part in login):
                raise ValueError("a user or a password with no or too many bytes")
        elif ":" in proxy.user or not all(part.isprintable() for part in login):
            raise ValueError("a user with a colon, or a control character")
    except (ValueError, httpx.InvalidURL):
        wanted = "a URL such as http://127.0.0.1:3128"
        hidden = "the given one is not shown, as it may hold a password"
        raise ArgumentError(name, f" must be {wanted}; {hidden}") from None
    return proxy
