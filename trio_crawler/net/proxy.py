"""Proxies: which one an origin has, and how it is asked, by HTTP, by CONNECT and by SOCKS5.

A proxy of SOCKS5 (RFC 1928) looks up names, also for the scheme socks5: so that is the same as
socks5h.
"""

from __future__ import annotations

import errno
import os
import re
from base64 import b64encode
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any
from urllib.request import getproxies_environment

import httpx
import msgspec

from trio_crawler.arguments import ArgumentError
from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.addresses import parse_address, server_name
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import FetchError, one_line
from trio_crawler.net.http1.connection import DEFAULT_PORTS, Connection, Origin
from trio_crawler.net.http1.message import MAX_HEAD_BYTES, Head
from trio_crawler.net.request import Target
from trio_crawler.net.turn import Progress

_SEPARATORS = re.compile(r"[,\s]+")
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
# RFC 1929, 2: each is preceded by its length, in one byte.
_MAX_LOGIN = 255


def bypass(listed: str) -> Callable[[str, int], bool]:
    """Return whether a host, without brackets, is requested at a port without a proxy.

    `listed` is a NO_PROXY, a list that commas or spaces separate, as most programs read it.

    An entry is one of these:

    - `*`: every host;
    - `e.org`, `.e.org` or `*.e.org`: this name and its subdomains;
    - `127.0.0.1`, `::1` or `[::1]`: an address;
    - `10.0.0.0/8` or `fe80::/10`: the addresses of a network. A name is not looked up for it.

    All but a network may have a port (`e.org:8080`), and count only for that port then. The case
    of letters, and a dot at the end of a name, do not count. Any other entry is ignored.
    """

    words = [word.lower() for word in _SEPARATORS.split(listed) if word]
    networks: list[IPv4Network | IPv6Network] = []
    names: list[str] = []
    for word in words:
        address, slash, length = word.partition("/")
        try:
            networks.append(ip_network(address.strip("[]") + slash + length, strict=False))
        except ValueError:
            if not slash:
                names.append(word.removesuffix(".").removeprefix("*").removeprefix("."))

    def bypasses(host: str, port: int) -> bool:
        host = host.lower().removesuffix(".")
        server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        address = parse_address(host)
        return (
            "*" in words
            or (address is not None and any(address in network for network in networks))
            or any(
                name in (host, server) or host.endswith(f".{name}") or server.endswith(f".{name}")
                for name in filter(None, names)
            )
        )

    return bypasses


class Proxy(msgspec.Struct, frozen=True):
    """A proxy: `scheme` is http, https, socks5 or socks5h; `host` is without brackets.

    A proxy without credentials has an empty user and password. `source` is the option or the
    variable that names it.
    """

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    source: str = "--proxy"

    def __repr__(self) -> str:
        return f"<{self.label}>"

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
    program, where a client can set it. For NO_PROXY see `bypass`. It is read once.

    Raises TypeError or ValueError, naming the argument or variable, for an invalid proxy.
    """

    def __init__(self, proxy: str | httpx.URL | None = None, *, trust_env: bool = False) -> None:
        if proxy is not None and trust_env:
            raise ValueError("proxy and trust_env exclude each other: give one of them")
        self._named: dict[str, Proxy] = {}
        self._bypass = bypass("")
        if proxy is not None:
            # The value may have a password, so it is not shown.
            if not isinstance(proxy, str | httpx.URL):
                kind = type(proxy).__name__
                raise TypeError(f"proxy must be a URL as a str or httpx.URL, not {kind}")
            self._named = {"all": _parsed("proxy", str(proxy), whole=True)}
        elif trust_env:
            named = getproxies_environment()
            self._bypass = bypass(named.get("no", ""))
            for scheme in named.keys() & {"http", "https", "all"}:
                url = named[scheme].strip()
                lower = f"{scheme}_proxy"
                name = lower if lower in os.environ else lower.upper()
                # As in curl, http:// may be left out.
                self._named[scheme] = _parsed(name, url if "://" in url else f"http://{url}")

    def __call__(self, origin: Origin) -> Proxy | None:
        """Return the proxy for an origin, or None."""
        scheme, host, port = origin
        found = self._named.get(scheme) or self._named.get("all")
        return None if found is None or self._bypass(host, port) else found


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
        # httpx leaves out a port that is the usual one of its scheme, and no other.
        port = _PORTS[url.scheme] if url.port is None else url.port
        # httpx decodes the name only at this access; UnicodeError is a ValueError. A character
        # that no host has is escaped by it.
        if "%" in url.host or not port:
            raise ValueError("not the name of a host, or not a port")
        host, source = url.raw_host.decode("ascii"), "--proxy" if name == "proxy" else name
        Target.of(f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/")
        proxy = Proxy(url.scheme, host, port, url.username, url.password, source)
        # RFC 7617, 2; RFC 1929, 2.
        login = (proxy.user, proxy.password)
        if proxy.is_socks:
            if proxy.has_login and not all(0 < len(part.encode()) <= _MAX_LOGIN for part in login):
                raise ValueError("a user or a password with no or too many bytes")
        elif ":" in proxy.user or not all(part.isprintable() for part in login):
            raise ValueError("a user with a colon, or a control character")
    except (ValueError, httpx.InvalidURL, FetchError):
        wanted = "a URL such as http://127.0.0.1:3128"
        hidden = "the given one is not shown, as it may hold a password"
        raise ArgumentError(name, f" must be {wanted}; {hidden}") from None
    return proxy


# How it is asked.

# Statuses with which proxies say that a site cannot be reached, or not now.
_UNREACHED = frozenset({404, 429}) | (frozenset(range(500, 600)) - {501, 505})
_REASONS = {
    # squid: the name of the page, and the number of the system's error.
    b"ERR_DNS_FAIL": Reason.DNS,
    b"ERR_CONNECT_FAIL %d" % errno.ECONNREFUSED: Reason.CONNECTION_REFUSED,
    # RFC 9209, 2.3.
    b"dns_error": Reason.DNS,
    b"connection_refused": Reason.CONNECTION_REFUSED,
}
_ERROR = re.compile(rb";[ \t]*error[ \t]*=[ \t]*\"?([a-z_]+)")
_VERSION, _CONNECT = 5, 1
_NO_LOGIN, _PASSWORD, _NO_METHOD = 0, 2, 0xFF
_IPV4, _NAME, _IPV6 = 1, 3, 4
_MAX_NAME = 255
# RFC 1928, 6.
_REPLIES = {
    1: (Reason.UNREACHABLE, "the proxy failed"),
    2: (Reason.PROXY, "its rules do not allow that"),
    3: (Reason.UNREACHABLE, "the network is unreachable"),
    4: (Reason.UNREACHABLE, "the host is unreachable"),
    5: (Reason.CONNECTION_REFUSED, "the connection was refused"),
    6: (Reason.UNREACHABLE, "the way to the host is too long"),
    7: (Reason.PROXY, "it makes no connections for others"),
    8: (Reason.PROXY, "it does not support this kind of address"),
}


def proxy_fault(detail: str) -> FetchError:
    """Return the error for a proxy that refuses, or that cannot be used."""
    return FetchError(Reason.PROXY, detail, Phase.CONNECT)


def lost(proxy: Proxy, site: str) -> FetchError:
    """Return the error for a connection to a proxy that ends before the site is reached."""
    detail = f"{proxy.label} closed the connection before it had connected to {site}"
    return FetchError(Reason.RESET, detail, Phase.CONNECT)


def refusal(proxy: Proxy, site: str, head: Head) -> FetchError:
    """Return the error for a head with which a proxy itself answers a request for a site."""
    # Some answer a wrong password with 401.
    if head.status in (401, 407):
        schemes = head.values.get(b"proxy-authenticate", b"basic").decode("latin-1")
        if "basic" in schemes.lower():
            return login_refused(proxy)
        scheme = one_line(schemes.partition(",")[0].partition(" ")[0])
        return proxy_fault(f"{proxy.label} wants a login by {scheme}; only Basic is supported")
    answer = one_line(f"{head.status} {head.phrase.decode('latin-1')}".strip())
    # squid: the name of the page, which may come with the number of the system's error.
    page = head.values.get(b"x-squid-error")
    named = (page, page.partition(b" ")[0]) if page is not None else (_error(head),)
    reason = next(filter(None, map(_REASONS.get, named)), None)
    if reason is None and head.status not in _UNREACHED:
        return proxy_fault(f"{proxy.label} refuses to ask {site}: {answer}")
    detail = f"{proxy.label} cannot reach {site}: {answer}"
    return FetchError(reason or Reason.UNREACHABLE, detail, Phase.CONNECT)


def login_refused(proxy: Proxy) -> FetchError:
    """Return the error for a proxy that wants a user and a password, or other ones."""
    source = proxy.source
    if proxy.has_login:
        detail = f"{proxy.label} does not accept the user and the password in {source}"
    else:
        # Only the option asks the terminal for a password.
        user = "USER" if source == "--proxy" else "USER:PASSWORD"
        as_in = f"{proxy.scheme}://{user}@HOST:PORT"
        detail = f"{proxy.label} wants a user and a password: give them in {source}, as {as_in}"
    return proxy_fault(detail)


def is_of_proxy(head: Head) -> bool:
    """Whether a proxy that forwards requests has made this response itself.

    A site may stand behind proxies of its own, which also mark their errors. Their responses have
    a Via for each proxy on the way.
    """
    if head.status < 300:
        return False
    if head.status == 407:
        return True
    # squid's deny_info leads to a page about the refusal.
    if b"x-squid-error" not in head.values and (head.status < 400 or not _error(head)):
        return False
    return b"," not in head.values.get(b"via", b"")


def _error(head: Head) -> bytes:
    """Return the error of the last proxy, which is the nearest one (RFC 9209, 2); else nothing."""
    found = _ERROR.search(head.values.get(b"proxy-status", b"").rpartition(b",")[2])
    return found[1] if found else b""


async def tunnel(stream: Stream, proxy: Proxy, host: str, port: int) -> None:
    """Ask the proxy at the other end of `stream` to connect it to a host.

    The caller closes the stream, also if this raises. Raises FetchError.
    """
    site = server_name(host, port)
    name = f"[{host}]" if ":" in host else host
    authority = f"{name}:{port}".encode()
    request = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n"
    request %= (authority, authority, proxy.authorization())
    talk = Connection(("https", host, port), stream)
    try:
        # Not the progress of the fetch, whose request has not started yet.
        head = await talk.ask(request, Progress(proxy.label), 2 * MAX_HEAD_BYTES, bodiless=True)
    except FetchError as error:
        if error.fault.reason is Reason.BAD_REPLY:
            why = f"does not answer in valid HTTP: {error.fault.detail}"
            raise proxy_fault(f"{proxy.label} {why}") from error
        raise lost(proxy, site) from error
    if not 200 <= head.status < 300:
        raise refusal(proxy, site, head)
    # A 2xx has no body, whatever its fields say. A server of TLS does not speak first, so these
    # bytes would be the proxy's own.
    if not talk.is_clean:
        raise proxy_fault(f"{proxy.label} sends bytes of its own to those of {site}")


class ForwardedConnection(Connection):
    """A connection to a proxy that is used for one origin.

    Requests are given in origin form, as to the site itself. Each is sent with the whole URL and
    with the credentials for the proxy. `known` has the proxies that have answered in HTTP before.
    """

    __slots__ = ("_authorization", "_known", "_proxy", "_server", "_site", "_target")

    def __init__(self, origin: Origin, stream: Stream, proxy: Proxy, known: set[Proxy]) -> None:
        super().__init__(origin, stream)
        self._proxy = proxy
        self._known = known
        scheme, host, port = origin
        self._site = server_name(host, port)
        # The client cannot know which of the two ends a connection.
        self._server = f"{self._site} through {proxy.label}"
        name = f"[{host}]" if ":" in host else host
        authority = name if port == DEFAULT_PORTS[scheme] else f"{name}:{port}"
        self._target = f"{scheme}://{authority}".encode()
        self._authorization = proxy.authorization()

    # Not `async`: ▶ each coroutine around another one takes 1 us.
    def ask(
        self, request: bytes, progress: Progress, max_bytes: int, *, bodiless: bool = False
    ) -> Coroutine[Any, Any, Head]:
        """Send a request and return the head of its response; see `Connection.ask`.

        Raises FetchError also for a response that the proxy has made instead of the site.
        """
        progress.server = self._server
        request = request.replace(b" ", b" " + self._target, 1)
        request = request.replace(b"\r\n", b"\r\n" + self._authorization, 1)
        return super().ask(request, progress, max_bytes, bodiless=bodiless)

    def _check_start(self) -> None:
        # A proxy that has answered in HTTP before may also pass on what a site says.
        if self._proxy not in self._known and not b"HTTP/1.".startswith(self._buffer[:7]):
            raise proxy_fault(f"{self._proxy.label} does not speak HTTP on this port")
        super()._check_start()

    def _begin(self, head: Head) -> None:
        if self.asked == 1:
            self._known.add(self._proxy)
        if is_of_proxy(head):
            raise refusal(self._proxy, self._site, head)
        super()._begin(head)


async def socks_tunnel(stream: Stream, proxy: Proxy, host: str, port: int) -> None:
    """Ask the proxy at the other end of `stream` to connect it to a host.

    The caller closes the stream, also if this raises. Raises FetchError.
    """
    site, name, address, rest = server_name(host, port), host.encode(), parse_address(host), b""
    if address is not None:
        target = bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed
    elif len(name) > _MAX_NAME:
        raise proxy_fault(f"{proxy.label} cannot be asked for a name of {len(name)} characters")
    else:
        target = bytes([_NAME, len(name)]) + name
    odd = proxy_fault(f"{proxy.label} does not speak SOCKS5 on this port")

    async def exactly(count: int) -> bytes:
        """Return the next bytes of the proxy, so many."""
        nonlocal rest
        while len(rest) < count:
            data = await stream.receive()
            if not data:
                raise lost(proxy, site)
            rest += data
        found, rest = rest[:count], rest[count:]
        return found

    async def code_of_reply() -> int:
        """Return the code alone, since some proxies close after it."""
        if await exactly(1) != bytes([_VERSION]):
            raise odd
        return (await exactly(1))[0]

    try:
        methods = [_NO_LOGIN, _PASSWORD] if proxy.has_login else [_NO_LOGIN]
        await stream.send(bytes([_VERSION, len(methods), *methods]))
        method = await code_of_reply()
        if method == _NO_METHOD:
            raise login_refused(proxy)
        if method not in methods:
            raise odd
        if method == _PASSWORD:
            login = (proxy.user.encode(), proxy.password.encode())
            await stream.send(b"\x01" + b"".join(bytes([len(each)]) + each for each in login))
            # Some proxies have another version here, which no client looks at.
            if (await exactly(2))[1]:
                raise login_refused(proxy)
        await stream.send(bytes([_VERSION, _CONNECT, 0]) + target + port.to_bytes(2))
        if code := await code_of_reply():
            reason, why = _REPLIES.get(code, (Reason.UNREACHABLE, f"the unknown code {code}"))
            does = "refuses to ask" if reason is Reason.PROXY else "cannot reach"
            raise FetchError(reason, f"{proxy.label} {does} {site}: {why}", Phase.CONNECT)
        _, kind = await exactly(2)
        if kind not in (_IPV4, _IPV6, _NAME):
            raise odd
        length = (await exactly(1))[0] if kind == _NAME else 4 if kind == _IPV4 else 16
        await exactly(length + 2)
    except OSError as error:
        raise lost(proxy, site) from error
    if rest:
        # No server speaks before it is asked, so these bytes would be the proxy's own.
        raise proxy_fault(f"{proxy.label} sends bytes of its own to those of {site}")
