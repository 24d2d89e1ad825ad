"""Tunnels through HTTP proxies: CONNECT (RFC 9110, 9.3.6)."""

from __future__ import annotations

from trio_crawler.net.dial.resolve import server_name
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.head import (
    MAX_HEAD_BYTES,
    MAX_INTERIM_HEADS,
    Head,
    check_start,
    end_of_head,
    parse,
)
from trio_crawler.net.proxy.choice import Proxy
from trio_crawler.net.proxy.refusal import losing, lost, not_http, proxy_fault, refusal


async def connect(stream: Stream, proxy: Proxy, host: str, port: int) -> None:
    """Ask the proxy at the other end of `stream` to connect it to a host.

    The caller closes the stream, also if this raises. Raises FetchError.
    """
    site = server_name(host, port)
    name = f"[{host}]" if ":" in host else host
    authority = f"{name}:{port}".encode()
    request = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n"
    with losing(proxy, site):
        await stream.send(request % (authority, authority, proxy.authorization()))
        head, rest = await _final_head(stream, proxy, site)
    if not 200 <= head.status < 300:
        raise refusal(proxy, site, head)
    # A 2xx has no body, whatever its fields say. A server of TLS does not speak first, so these
    # bytes would be the proxy's own.
    if rest:
        raise proxy_fault(f"{proxy.label} sends bytes of its own to those of {site}")


async def _final_head(stream: Stream, proxy: Proxy, site: str) -> tuple[Head, bytes]:
    """Return the head of the response, and the bytes that follow it; interim ones are skipped."""
    buffer = b""
    # As in a response to any request, the bounds hold for all heads together.
    room = MAX_HEAD_BYTES
    for _ in range(MAX_INTERIM_HEADS + 1):
        raw, buffer = await _raw_head(stream, buffer, room, proxy, site)
        room -= len(raw)
        try:
            head = parse(raw, bodiless=True, framed=False)
        except FetchError as error:
            raise _invalid(proxy, error.fault.detail) from error
        if head.status >= 200 or head.status == 101:
            return head, buffer
    raise _invalid(proxy, f"the answer begins with more than {MAX_INTERIM_HEADS} interim answers")


async def _raw_head(
    stream: Stream, buffer: bytes, room: int, proxy: Proxy, site: str
) -> tuple[bytes, bytes]:
    while (end := end_of_head(buffer)) is None:
        if buffer:
            _check_start(buffer, proxy)
        if len(buffer) > room:
            break
        data = await stream.receive()
        if not data:
            raise lost(proxy, site)
        buffer += data
    if end is None or end.end() > room:
        raise _invalid(proxy, f"the header of the answer has more than {MAX_HEAD_BYTES} bytes")
    _check_start(buffer, proxy)
    return buffer[: end.end()], buffer[end.end() :]


def _check_start(buffer: bytes, proxy: Proxy) -> None:
    try:
        check_start(buffer)
    except FetchError as error:
        raise not_http(proxy) from error


def _invalid(proxy: Proxy, why: str) -> FetchError:
    return proxy_fault(f"{proxy.label} does not answer in valid HTTP: {why}")
