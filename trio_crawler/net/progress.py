"""The progress of one fetch, for the detail of its fault."""

from __future__ import annotations

from trio_crawler.model import Phase


class Progress:
    """The phase of a fetch from `server` (`host` or `host:port`), and the bytes of its body.

    `received` is None until the head of the response was received. `decoding` is set when the
    whole body was received, so that the fetch does not wait for the server.
    """

    __slots__ = ("decoding", "phase", "received", "server")

    def __init__(self, server: str) -> None:
        self.server = server
        self.phase = Phase.RESOLVE
        self.received: int | None = None
        self.decoding = False

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
