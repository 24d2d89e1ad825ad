"""Run a crawl in virtual time, on asyncio or on Trio: an hour of waiting takes no time at all.

Trio ships a clock for this, `trio.testing.MockClock`. For asyncio the same is made here from two
public things, the loop's `time()` and the selector that it is given.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import httpx
import trio
import trio.testing

from sites.serving import Answer, Answerer, Site

if TYPE_CHECKING:
    from lanes import Log

T = TypeVar("T")
DAY = 86_400


class Stuck(Exception):
    """Every task waits, and nothing will ever wake one."""


class JumpingSelector(selectors.SelectSelector):
    """Let the time pass at once when nothing is ready."""

    now = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events:
            return events
        if timeout is None:
            raise Stuck
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def be_busy(self, seconds: float) -> None:
        """Let time pass in which no other task runs."""
        self._jumping.now += seconds


def run_asyncio(
    main: Callable[..., Awaitable[T]], *args: Any, log: Log | None = None
) -> T:
    """Run an asyncio program in virtual time; raise Stuck when it would wait for ever.

    A `log` gets the records of its tasks, until the program ends or is stuck.
    """

    async def call() -> T:
        return await main(*args)

    call.__name__ = main.__name__
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        if log is not None:
            runner.get_loop().set_task_factory(log.factory)
        try:
            return runner.run(call())
        finally:
            if log is not None:
                log.closed = True


def run_trio(
    main: Callable[..., Awaitable[T]], *args: Any, log: Log | None = None
) -> T:
    """Run a Trio program in virtual time; raise Stuck when it takes more than a day.

    A `log` gets the records of its tasks.
    """

    async def call() -> T:
        with trio.move_on_after(DAY):
            return await main(*args)
        raise Stuck

    call.__name__ = main.__name__
    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(call, clock=clock, instruments=[log] if log else [])


def visitor(answer: Answerer) -> tuple[httpx.AsyncClient, Site]:
    """Return a client to which the web is this site, on both, and the site's counts."""
    site = Site(answer)
    site.url = "http://site/"

    async def reply(request: httpx.Request) -> httpx.Response:
        if not request.url.host:  # as httpx says of it on a network
            raise httpx.UnsupportedProtocol("no host to ask", request=request)
        site.hit(request.url.path)
        said: Answer = answer(request.url.path)
        await anyio.sleep(said.wait)
        if said.hang_up:
            raise httpx.RemoteProtocolError(
                "Server disconnected without sending a response.", request=request
            )
        headers = {"Content-Type": "text/html; charset=utf-8", **said.headers}
        return httpx.Response(said.status, headers=headers, content=said.body)

    return httpx.AsyncClient(transport=httpx.MockTransport(reply)), site
