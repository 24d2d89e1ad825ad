"""Meet a server that behaves in some way: what came of it, what it cost, and what came next.

    met = await meet(reply(body=b"page"))
    assert met.body == b"page" and met.kept

The behaviour is asked for once, as `/first`; then `/next` is asked for by the same HttpFetch,
which must give the page that belongs to it, whatever came before. Whatever the behaviour is,
`meet` asserts the promises that hold for all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from sites.raw import Handler, Request, raw_server, reply

from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.statistics import WireStatistics

KIB = 1024
MIB = 1024 * KIB
NEXT = b"the page that was asked for next"


@dataclass(frozen=True)
class Met:
    """Say what a behaviour gave, and what the client spent on it.

    `kept`: the next request went over the same connection. `asked` and `made` count requests
    for it, and connections, `bytes_in` what was taken from the socket, `seconds` the clock's.
    """

    answer: Response | Fault
    kept: bool
    asked: int
    made: int
    bytes_in: int
    seconds: float

    @property
    def body(self) -> bytes:
        """Return the body of the response, which there must be."""
        assert isinstance(self.answer, Response), self.answer
        return self.answer.body

    @property
    def status(self) -> int:
        """Return the status of the response, which there must be."""
        assert isinstance(self.answer, Response), self.answer
        return self.answer.status

    @property
    def flaw(self) -> Reason | None:
        """Return why the body of the response, which there must be, is not whole."""
        assert isinstance(self.answer, Response), self.answer
        return self.answer.flaw

    @property
    def fault(self) -> tuple[Reason, Phase | None]:
        """Return the reason and phase of the fault, which there must be."""
        assert isinstance(self.answer, Fault), self.answer
        return self.answer.reason, self.answer.phase

    @property
    def detail(self) -> str:
        """Return the fault's sentence."""
        assert isinstance(self.answer, Fault), self.answer
        return self.answer.detail


async def meet(
    behaviour: bytes | Handler,
    *,
    closes: bool = False,
    meanwhile: Callable[[trio.abc.Stream], Awaitable[object]] | None = None,
    max_bytes: int = 100 * KIB,
    deadline: float = 10.0,
) -> Met:
    """Ask for a behaviour, and then for another page.

    The server closes the connection afterwards if it `closes`; `meanwhile` is what it does to it
    between the two requests. A client that waits where it need not ends with TIMEOUT, after
    `deadline` seconds.
    """
    streams: list[trio.abc.Stream] = []
    behaved = trio.Event()

    async def site(request: Request, stream: trio.abc.Stream) -> None:
        if request.target == "/next":
            await stream.send_all(reply(body=NEXT))
            return
        streams.append(stream)
        if callable(behaviour):
            await behaviour(request, stream)
        else:
            await stream.send_all(behaviour)
        if closes:
            await stream.aclose()
        behaved.set()

    async with raw_server(site) as server:
        fetch = HttpFetch(max_bytes=max_bytes, timeout=deadline, seeds=[server.url])
        async with fetch:
            started = trio.current_time()
            answer = await fetch(Job(server.url + "first"))
            seconds = trio.current_time() - started
            spent = _wire(fetch)
            if meanwhile is not None:
                await behaved.wait()
                await meanwhile(streams[-1])
            after = await fetch(Job(server.url + "next"))
            wire = _wire(fetch)
    assert _wire(fetch).open == 0
    _check(answer, after, spent, max_bytes)
    assert seconds <= deadline + 1, f"the deadline was {deadline} s, it took {seconds}"
    assert server.targets.count("/next") == 1, server.targets
    assert server.connections == wire.made, "the client counts its connections"
    kept = wire.made == spent.made
    return Met(answer, kept, server.targets.count("/first"), wire.made, spent.bytes_in, seconds)


def table(rows: Mapping[str, Any]) -> list[Any]:
    """Make the rows of a parametrised test, each with the sentence that names it."""
    return [
        pytest.param(*(row if isinstance(row, tuple) else (row,)), id=sentence)
        for sentence, row in rows.items()
    ]


def _wire(fetch: HttpFetch) -> WireStatistics:
    wire = fetch.statistics().wire
    assert wire is not None
    return wire


def _check(
    answer: Response | Fault, after: Response | Fault, spent: WireStatistics, max_bytes: int
) -> None:
    assert isinstance(after, Response), f"the next page was lost: {after}"
    assert (after.status, after.body) == (200, NEXT), "an answer came to another request"
    assert spent.bytes_in <= max_bytes + 256 * KIB, f"took {spent.bytes_in} bytes"
    assert spent.open == spent.idle <= 1, "a connection is neither idle nor closed"
    if isinstance(answer, Fault):
        assert answer.detail
        assert answer.detail.isprintable()
        assert len(answer.detail) < 300
        assert spent.open == 0 or answer.phase is Phase.READ
    else:
        assert len(answer.body) <= max_bytes
