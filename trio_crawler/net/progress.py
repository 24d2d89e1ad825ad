"""The progress of one fetch, for the detail of its fault."""

from __future__ import annotations

from trio_crawler.model import Phase
from trio_crawler.net.turn import Turn

MAX_REPEATS = 5
"""How often one request is sent again at once, because of others on its connection."""


class Progress:
    """The phase of a fetch from `server` (`host` or `host:port`), and the bytes of its body.

    `received` is None until the head of the response was received. `decoding` is set when the
    whole body was received, so that the fetch does not wait for the server. `turn` is that of the
    job at its host, None if the host has no delay.
    `repeats` counts how often the request was sent again because of others; with `http1` it must
    not be sent by HTTP/2.
    """

    __slots__ = (*("decoding", "http1", "phase", "received", "repeats", "server", "turn"),)

    def __init__(self, server: str) -> None:
        self.server = server
        self.phase = Phase.RESOLVE
        self.received: int | None = None
        self.decoding = False
        self.turn: Turn | None = None
        self.repeats = 0
        self.http1 = False

    @property
    def may_start(self) -> bool:
        """Whether the first byte of a request may be written at this moment."""
        return self.turn is None or self.turn.is_held

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
