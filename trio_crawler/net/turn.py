"""The progress of one fetch, and its turn: requests to a host with a delay never start closer."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, TypeVar

import trio

from trio_crawler.model import Phase
from trio_crawler.policy.host_load import HostLoad

HOLD = 5.0
"""Seconds for which a request that has not started keeps others from their turn."""

TURN: ContextVar[Turn | None] = ContextVar("TURN", default=None)
"""The turn of the job that this task fetches; None if the host has no delay.

A context variable, so that it gets through fetches that wrap others.
"""

DEADLINES: ContextVar[Deadlines | None] = ContextVar("DEADLINES", default=None)
"""What keeps the deadlines of the requests of this task, if it is a worker of a crawl."""

_C = TypeVar("_C", bound=Hashable)

MAX_REPEATS = 5
"""How often one request is sent again at once, because of others on its connection."""


class Deadlines:
    """The deadlines of the requests of one crawl; one of its tasks drops what is late.

    ▶ A cancel scope for each request takes 14 us of 60. `are_kept` is whether the task runs.
    """

    def __init__(self) -> None:
        self.are_kept = False
        self._of: dict[Hashable, tuple[float, Callable[[Any], object]]] = {}
        self._next = math.inf
        self._sleep = trio.CancelScope()

    def add(self, connection: _C, deadline: float, drop: Callable[[_C], object]) -> None:
        """Drop a connection at its deadline, if it is not removed before."""
        self._of[connection] = deadline, drop
        if deadline < self._next:
            self._next = self._sleep.deadline = deadline

    def remove(self, connection: Hashable) -> None:
        """Leave a connection alone from now on."""
        self._of.pop(connection, None)

    async def keep(self) -> None:
        """Drop each connection at its deadline, until this is cancelled."""
        self.are_kept = True
        try:
            while True:
                self._drop(trio.current_time())
                self._next = min((end for end, _ in self._of.values()), default=math.inf)
                with trio.CancelScope(deadline=self._next) as self._sleep:
                    await trio.sleep_forever()
        finally:
            self.are_kept = False
            # A request that outlives the crawl would have no deadline any more.
            self._drop(math.inf)

    def _drop(self, now: float) -> None:
        for late in [each for each, (end, _) in self._of.items() if end <= now]:
            self._of.pop(late)[1](late)


class Pace:
    """The turns at one host with a delay: at most one request holds the next one.

    A request starts when its first byte is written. Until then it holds the turn, so that no other
    one is chosen, and the delay begins when it has started. If it has not started after some
    seconds, others may, and it waits for another turn. `moved` is called when the next start at
    the host may have become earlier or later.
    """

    def __init__(self, load: HostLoad, moved: Callable[[], None]) -> None:
        self.holder: Turn | None = None
        self.latest: Turn | None = None
        self.load = load
        self.waiting = 0
        self._until = -math.inf
        self._moved = moved
        self._lot = trio.lowlevel.ParkingLot()

    @property
    def opens(self) -> float:
        """The time from which on the next turn may be taken."""
        begins = max(self.load.last + self.load.delay, self.load.held)
        return begins if self.holder is None else max(begins, self._until)

    def hold(self, turn: Turn, seconds: float) -> None:
        """Hold the turn for a request that is about to start, within so many seconds."""
        self.holder = turn
        self._until = trio.current_time() + max(self.load.delay, seconds)
        self.change()

    def start(self, turn: Turn) -> None:
        """Record that a request starts at this moment."""
        self.load.last = trio.current_time()
        self.latest = turn
        if self.holder is turn:
            self.holder = None
        self.change()
        self._lot.unpark_all()

    def change(self) -> None:
        """Record when the scheduler may choose another job of the host."""
        until = -math.inf if self.holder is None else self._until
        self.load.taken = math.inf if self.waiting else until
        self._moved()

    async def wait(self) -> None:
        """Wait until the next turn may be taken; the scheduler chooses no job meanwhile."""
        self.waiting += 1
        self.change()
        try:
            while (opens := self.opens) > trio.current_time():
                with trio.move_on_at(opens):
                    await self._lot.park()
        finally:
            self.waiting -= 1
            self.change()


class Turn:
    """The turn of one job at its host. A fetch finds its own in `TURN`.

    Without a `pace` the host has no delay, or none that is known: then no method waits, and only
    the time of the start is recorded. `hurry` is the number of seconds after which the job is set
    aside unless its response has begun. `taken` is whether a worker has the turn: another job may
    have the same URL, a robots.txt that another host leads to.
    """

    __slots__ = ("_load", "_pace", "_scopes", "_unwritten", "hurry", "scope", "taken")

    def __init__(self, load: HostLoad, pace: Pace | None, hurry: float = math.inf) -> None:
        self.hurry = hurry
        self.taken = False
        self.scope = trio.CancelScope()
        # Their deadlines do not run while the request waits.
        self._scopes = [self.scope]
        self._load = load
        self._pace = pace
        self._unwritten = False
        if pace is not None:
            pace.hold(self, HOLD)

    @property
    def is_held(self) -> bool:
        """Whether the request may start at this moment."""
        pace = self._pace
        if pace is None:
            return True
        # Another answer may have brought a Retry-After since this request got its turn.
        return pace.holder is self and pace.load.held <= trio.current_time()

    async def wait(self) -> None:
        """Wait until the request may start; a checkpoint only if it must wait."""
        if self._pace is None or self.is_held:
            return
        now = trio.current_time()
        left = [(scope, scope.deadline - now) for scope in self._scopes]
        for scope in self._scopes:
            scope.deadline = math.inf
        if self._pace.holder is self:
            self._pace.holder = None
        await self._pace.wait()
        self._pace.hold(self, HOLD)
        for scope, seconds in left:
            scope.deadline = trio.current_time() + seconds

    def call(self) -> None:
        """Record that the fetch is called: this is the start, unless the fetch adopts the turn."""
        self.scope.deadline = trio.current_time() + self.hurry
        self._unwritten = True
        self.start()

    def adopt(self, scope: trio.CancelScope | None = None) -> None:
        """Let the fetch wait before each first byte and report that as the start, not the call.

        The deadline of its `scope` does not run meanwhile.
        """
        self._scopes = [self.scope] if scope is None else [self.scope, scope]
        first, self._unwritten = self._unwritten, False
        pace = self._pace
        if first and pace is not None and pace.holder is None and pace.latest is self:
            pace.hold(self, HOLD)

    def start(self) -> None:
        """Record that the first byte of the request was written."""
        self._load.last = trio.current_time()
        if self._pace is not None:
            self._pace.start(self)

    def answer(self) -> None:
        """Record that the response has begun: the job is not set aside any more."""
        self.scope.deadline = math.inf

    def end(self) -> None:
        """Record that the job is answered: a request that never started counts as started now."""
        if self._pace is not None and self._pace.holder is self:
            self._pace.start(self)


class Progress:
    """The phase of a fetch from `server` (`host` or `host:port`), and the bytes of its body.

    `received` is None until the head of the response was received. `decoding` is set when the
    whole body was received, so that the fetch does not wait for the server. `turn` is that of the
    job at its host, None if the host has no delay. `deadline` is that of the fetch, which
    `deadlines` keep; it is infinite, and they are None, if a cancel scope keeps it.
    `repeats` counts how often the request was sent again because of others; with `http1` it must
    not be sent by HTTP/2.
    """

    __slots__ = (
        *("deadline", "deadlines", "decoding", "http1", "phase", "received", "repeats"),
        *("server", "turn"),
    )

    def __init__(self, server: str) -> None:
        self.server = server
        self.phase = Phase.RESOLVE
        self.received: int | None = None
        self.decoding = False
        self.turn: Turn | None = None
        self.repeats = 0
        self.http1 = False
        self.deadline = math.inf
        self.deadlines: Deadlines | None = None

    async def wait_for_turn(self) -> None:
        """Wait until the first byte of a request may be written; the deadlines wait too."""
        if self.turn is not None:
            await self.turn.wait()

    def repeat(self, *, http1: bool) -> bool:
        """Prepare to send the request again. Returns False if that was done often enough."""
        if self.repeats >= MAX_REPEATS:
            return False
        self.repeats += 1
        self.http1 = self.http1 or http1
        self.phase, self.received = Phase.RESOLVE, None
        return True

    def __str__(self) -> str:
        """Return a description of the current activity: "connecting to e.org"."""
        server = self.server
        if self.decoding:
            return f"decoding the body of {server}, in turn with others"
        if self.phase is Phase.READ:
            return f"reading the body of {server}, after {self.received or 0} bytes"
        doing = {
            Phase.RESOLVE: "looking up the name of",
            Phase.CONNECT: "connecting to",
            Phase.TLS: "securing the connection to",
            Phase.SEND: "sending the request to",
        }
        return f"{doing.get(self.phase, 'waiting for the answer of')} {server}"
