"""Lookups of names, beside the workers: a name that is slow or silent holds none of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio

from trio_crawler.arguments import check_function, check_number, several_strings
from trio_crawler.engine.exceptions import url_noted
from trio_crawler.model import Fetch, Job
from trio_crawler.schedule.hosts import Hosts

AT_ONCE = 1_000
"""The most tasks that look up names; a fetch has a bound of its own, 300 or less."""


def lookup_of(fetch: Fetch | None) -> Callable[[str], Awaitable[float]] | None:
    """Return the `lookup` of a fetch, None if it has none. Raises TypeError for a bad one."""
    lookup: Callable[[str], Awaitable[float]] | None = getattr(fetch, "lookup", None)
    if lookup is not None:
        check_function("the lookup of fetch", lookup, "an async function of a URL")
    return lookup


def addresses_of(fetch: Fetch | None) -> Callable[[str], Sequence[str]]:
    """Return the `addresses` of a fetch; without them none are known. Raises TypeError."""
    addresses: Callable[[str], Sequence[str]] = getattr(fetch, "addresses", lambda _: ())
    check_function("the addresses of fetch", addresses, "a function of a URL")
    return addresses


def start_lookups(nursery: trio.Nursery, fetch: Fetch, hosts: Hosts) -> None:
    """Let each host wait until its name is looked up, if the fetch can do that.

    Call this before the first job is received. The task that it starts ends with the nursery.
    """
    if (lookup := lookup_of(fetch)) is not None:
        addresses = addresses_of(fetch)
        nursery.start_soon(_run, nursery, lookup, addresses, hosts, hosts.await_names())


async def _run(
    nursery: trio.Nursery,
    lookup: Callable[[str], Awaitable[float]],
    addresses: Callable[[str], Sequence[str]],
    hosts: Hosts,
    urls: trio.MemoryReceiveChannel[str],
) -> None:
    slots = trio.Semaphore(AT_ONCE)

    async def look_up(url: str) -> None:
        with url_noted(Job(url)):
            coming = lookup(url)
            if not isinstance(coming, Awaitable):
                raise TypeError(f"the lookup of fetch returned {coming!r}: make it async")
            seconds = await coming
            check_number("the seconds that the lookup of fetch returns", seconds)
            found = several_strings("the addresses that fetch returns", addresses(url))
        slots.release()
        hosts.named(url, seconds, found)

    async for url in urls:
        await slots.acquire()
        nursery.start_soon(look_up, url)
