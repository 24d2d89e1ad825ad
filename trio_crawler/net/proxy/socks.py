"""Connections through SOCKS5 proxies (RFC 1928), with a user and a password (RFC 1929).

The proxy looks up names, also for the scheme socks5: so it is the same as socks5h.
"""

from __future__ import annotations

from ipaddress import IPv4Address

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.addresses import parse_address
from trio_crawler.net.dial.resolve import server_name
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import FetchError
from trio_crawler.net.proxy.choice import Proxy
from trio_crawler.net.proxy.http import login_refused, lost, proxy_fault

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


async def connect(stream: Stream, proxy: Proxy, host: str, port: int) -> None:
    """Ask the proxy at the other end of `stream` to connect it to a host.

    The caller closes the stream, also if this raises. Raises FetchError.
    """
    talk = _Talk(stream, proxy, server_name(host, port))
    target = _address(host, proxy) + port.to_bytes(2, "big")
    try:
        await talk.log_in()
        await stream.send(bytes([_VERSION, _CONNECT, 0]) + target)
        await talk.check_reply()
    except OSError as error:
        raise lost(proxy, talk.site) from error
    if talk.rest:
        # No server speaks before it is asked, so these bytes would be the proxy's own.
        raise proxy_fault(f"{proxy.label} sends bytes of its own to those of {talk.site}")


class _Talk:
    """The replies of a SOCKS proxy, which are read to the byte."""

    def __init__(self, stream: Stream, proxy: Proxy, site: str) -> None:
        self.rest = b""
        self.site = site
        self._stream = stream
        self._proxy = proxy

    async def log_in(self) -> None:
        """Agree on a method, and send the user and the password if the proxy wants them."""
        proxy = self._proxy
        methods = [_NO_LOGIN, _PASSWORD] if proxy.has_login else [_NO_LOGIN]
        await self._stream.send(bytes([_VERSION, len(methods), *methods]))
        self._check_version(await self._exactly(1))
        (method,) = await self._exactly(1)
        if method == _NO_METHOD:
            raise login_refused(proxy)
        if method not in methods:
            raise self._odd()
        if method == _PASSWORD:
            user, password = proxy.user.encode(), proxy.password.encode()
            login = [b"\x01", bytes([len(user)]), user, bytes([len(password)]), password]
            await self._stream.send(b"".join(login))
            # Some proxies have another version here, which no client looks at.
            _, status = await self._exactly(2)
            if status:
                raise login_refused(proxy)

    async def check_reply(self) -> None:
        """Read the reply to the request. Raises FetchError unless the proxy has connected."""
        self._check_version(await self._exactly(1))
        # The code alone, since some proxies close after it.
        (code,) = await self._exactly(1)
        if code:
            reason, why = _REPLIES.get(code, (Reason.UNREACHABLE, f"the unknown code {code}"))
            does = "refuses to ask" if reason is Reason.PROXY else "cannot reach"
            detail = f"{self._proxy.label} {does} {self.site}: {why}"
            raise FetchError(reason, detail, Phase.CONNECT)
        _, kind = await self._exactly(2)
        if kind == _NAME:
            (length,) = await self._exactly(1)
        elif kind in (_IPV4, _IPV6):
            length = 4 if kind == _IPV4 else 16
        else:
            raise self._odd()
        await self._exactly(length + 2)

    async def _exactly(self, count: int) -> bytes:
        while len(self.rest) < count:
            data = await self._stream.receive()
            if not data:
                raise lost(self._proxy, self.site)
            self.rest += data
        found, self.rest = self.rest[:count], self.rest[count:]
        return found

    def _check_version(self, version: bytes) -> None:
        if version[0] != _VERSION:
            raise self._odd()

    def _odd(self) -> FetchError:
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
