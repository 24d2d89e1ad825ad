"""Fetches over a wire, or another network, that a test has made itself.

async with Wire(resolve=...) as wire:
    answer = await over(wire, timeout=1)(Job("http://h.test/"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trio_crawler.net.fetch import WireAdapter
from trio_crawler.net.fetcher import TIMEOUT, Fetcher, Network
from trio_crawler.net.http1.wire import MAX_BYTES, Wire
from trio_crawler.net.request import DEFAULT_USER_AGENT, Requests, default_fields


async def home(host: str, port: int) -> Sequence[str]:
    """Let every name lead to this machine."""
    return ["127.0.0.1"]


def requests(**own: Any) -> Requests:
    """Return what is sent: the default fields, and those of `seeds`, `headers`, `auth`."""
    return Requests(default_fields(None, None), **own)


def over(
    network: Wire | Network,
    *,
    timeout: float = TIMEOUT,
    max_bytes: int = MAX_BYTES,
    bodies: bool = True,
    **own: Any,
) -> Fetcher:
    """Return the fetch of an `HttpFetch`, over a given wire or network, which it does not close.

    What is sent can only be changed for a wire: another network has its requests already.
    """
    cookies_for = None
    if isinstance(network, Wire):
        sent = requests(**own)
        network, cookies_for = WireAdapter(sent, network), sent.cookies_for
    return Fetcher(
        network,
        user_agent=DEFAULT_USER_AGENT,
        cookies=own.get("cookies"),
        timeout=timeout,
        max_bytes=max_bytes,
        bodies=bodies,
        cookies_for=cookies_for,
    )
