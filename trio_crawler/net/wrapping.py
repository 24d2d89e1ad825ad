"""Fetches that call another fetch, and have its optional attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from trio_crawler.arguments import check_function
from trio_crawler.model import Fetch

_Function = TypeVar("_Function", bound=Fetch)

OPTIONAL = (
    *("user_agent", "random", "cookies_for", "sends_credentials"),
    *("lookup", "addresses"),
)
"""The attributes of a fetch that a crawl reads, if it has them: see `Fetch`."""


def wrapping(fetch: Fetch) -> Callable[[_Function], _Function]:
    """Decorate a function that calls `fetch` with the optional attributes of that.

    ::

        inner = HttpFetch(seeds=seeds, auth=("me", password))

        @wrapping(inner)
        async def fetch(job: Job) -> Answer:
            async with limit:
                return await inner(job)

    Without it a crawl does not know whether `fetch` sends credentials, and follows no links with
    side effects; and it looks no name up before a worker needs it, so that it does not know which
    names share a server. See `Fetch`. The caller still
    closes `inner`. Raises TypeError if `fetch` is no function.
    """
    check_function("fetch", fetch, "a fetch, such as HttpFetch()")

    def decorated(function: _Function) -> _Function:
        carry(fetch, function)
        return function

    return decorated


wrapping.__module__ = "trio_crawler.net"


def carry(fetch: Fetch, other: object) -> None:
    """Copy the optional attributes of a fetch to another one."""
    for name in OPTIONAL:
        if hasattr(fetch, name):
            setattr(other, name, getattr(fetch, name))
