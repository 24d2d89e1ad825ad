"""How proxies are asked: HTTP that they forward, tunnels by CONNECT and by SOCKS5.

A proxy of SOCKS5 (RFC 1928) looks up names, also for the scheme socks5: so that is the same as
socks5h.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Coroutine
from ipaddress import IPv4Address
from typing import Any

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.addresses import parse_address
from trio_crawler.net.dial.resolve import server_name
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import FetchError, one_line
from trio_crawler.net.http1.connection import DEFAULT_PORTS, Connection, Origin
from trio_crawler.net.http1.message import (
    MAX_HEAD_BYTES,
    Fields,
    Head,
)
from trio_crawler.net.proxy.choice import Proxy
from trio_crawler.net.turn import Progress

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
        schemes = [value for name, value in head.fields if name.lower() == b"proxy-authenticate"]
        if not schemes or b"basic" in b",".join(schemes).lower():
            return login_refused(proxy)
        scheme = one_line(schemes[0].decode("latin-1").partition(" ")[0])
        return proxy_fault(f"{proxy.label} wants a login by {scheme}; only Basic is supported")
    answer = one_line(f"{head.status} {head.phrase.decode('latin-1')}".strip())
    reason = _reason(head.fields)
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
    # Of several fields with one name the last one; most sites have none of these marks.
    named = {name.lower(): value for name, value in head.fields}
    # squid's deny_info leads to a page about the refusal.
    if b"x-squid-error" not in named and (head.status < 400 or not _error(head.fields)):
        return False
    vias = [value for name, value in head.fields if name.lower() == b"via"]
    return b"," not in b",".join(vias)


def _reason(fields: Fields) -> Reason | None:
    for name, value in fields:
        if name.lower() == b"x-squid-error":
            return _REASONS.get(value) or _REASONS.get(value.partition(b" ")[0])
    return _REASONS.get(_error(fields))


def _error(fields: Fields) -> bytes:
    """Return the error of the last proxy, which is the nearest one (RFC 9209, 2); else nothing."""
    statuses = b",".join(value for name, value in fields if name.lower() == b"proxy-status")
    found = _ERROR.search(statuses.rpartition(b",")[2])
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
        method, _, rest = request.partition(b" ")
        if rest.startswith(b"/"):
            request = b"%b %b%b" % (method, self._target, rest)
        elif rest.startswith(b"* "):
            # RFC 9112, 3.2.4: for OPTIONS this is a URL without a path.
            request = b"%b %b%b" % (method, self._target, rest[1:])
        if self._authorization:
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
    target = _address(host, proxy) + port.to_bytes(2, "big")
    talk = _Talk(stream, proxy, server_name(host, port))
    try:
        await _log_in(talk, stream, proxy)
        await stream.send(bytes([_VERSION, _CONNECT, 0]) + target)
        await talk.check_version()
        # The code alone, since some proxies close after it.
        (code,) = await talk.exactly(1)
        if code:
            reason, why = _REPLIES.get(code, (Reason.UNREACHABLE, f"the unknown code {code}"))
            does = "refuses to ask" if reason is Reason.PROXY else "cannot reach"
            raise FetchError(reason, f"{proxy.label} {does} {talk.site}: {why}", Phase.CONNECT)
        _, kind = await talk.exactly(2)
        if kind not in (_IPV4, _IPV6, _NAME):
            raise talk.odd()
        length = (await talk.exactly(1))[0] if kind == _NAME else 4 if kind == _IPV4 else 16
        await talk.exactly(length + 2)
    except OSError as error:
        raise lost(proxy, talk.site) from error
    if talk.rest:
        # No server speaks before it is asked, so these bytes would be the proxy's own.
        raise proxy_fault(f"{proxy.label} sends bytes of its own to those of {talk.site}")


async def _log_in(talk: _Talk, stream: Stream, proxy: Proxy) -> None:
    """Agree on a method, and send the user and the password if the proxy wants them."""
    methods = [_NO_LOGIN, _PASSWORD] if proxy.has_login else [_NO_LOGIN]
    await stream.send(bytes([_VERSION, len(methods), *methods]))
    await talk.check_version()
    (method,) = await talk.exactly(1)
    if method == _NO_METHOD:
        raise login_refused(proxy)
    if method not in methods:
        raise talk.odd()
    if method == _PASSWORD:
        user, password = proxy.user.encode(), proxy.password.encode()
        login = [b"\x01", bytes([len(user)]), user, bytes([len(password)]), password]
        await stream.send(b"".join(login))
        # Some proxies have another version here, which no client looks at.
        _, status = await talk.exactly(2)
        if status:
            raise login_refused(proxy)


class _Talk:
    """The replies of a SOCKS proxy, which are read to the byte."""

    def __init__(self, stream: Stream, proxy: Proxy, site: str) -> None:
        self.rest = b""
        self.site = site
        self._stream = stream
        self._proxy = proxy

    async def exactly(self, count: int) -> bytes:
        """Return so many bytes."""
        while len(self.rest) < count:
            data = await self._stream.receive()
            if not data:
                raise lost(self._proxy, self.site)
            self.rest += data
        found, self.rest = self.rest[:count], self.rest[count:]
        return found

    async def check_version(self) -> None:
        """Read the first byte of a reply."""
        if (await self.exactly(1))[0] != _VERSION:
            raise self.odd()

    def odd(self) -> FetchError:
        """Return the error for bytes that are no reply."""
        return proxy_fault(f"{self._proxy.label} does not speak SOCKS5 on this port")


def _address(host: str, proxy: Proxy) -> bytes:
    address = parse_address(host)
    if address is not None:
        kind = _IPV4 if isinstance(address, IPv4Address) else _IPV6
        return bytes([kind]) + address.packed
    name = host.encode("ascii")
    if len(name) > _MAX_NAME:
        raise proxy_fault(f"{proxy.label} cannot be asked for a name of {len(name)} characters")
    return bytes([_NAME, len(name)]) + name
