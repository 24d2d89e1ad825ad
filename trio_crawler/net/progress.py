"""Progress: how far one fetch has come, for the sentence that says where it ended."""

from __future__ import annotations

from trio_crawler.model import Phase


class Progress:
    """Note the phase of a fetch of `peer` (`host` or `host:port`), and the bytes of its body.

    `received` is None until the answer's head has come; `decoding` is set when the whole body
    has, and the server is no longer waited for.
    """

    __slots__ = ("decoding", "peer", "phase", "received")

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.phase = Phase.RESOLVE
        self.received: int | None = None
        self.decoding = False

    def __str__(self) -> str:
        """Say what is going on."""
        peer = self.peer
        if self.decoding:
            return f"decoding the body of {peer}, in turn with others"
        if self.phase is Phase.READ:
            return f"reading the body of {peer}, after {self.received or 0} bytes"
        doing = {
            Phase.RESOLVE: "looking up the name of",
            Phase.CONNECT: "connecting to",
            Phase.TLS: "securing the connection to",
            Phase.SEND: "sending the request to",
        }
        return f"{doing.get(self.phase, 'waiting for the answer of')} {peer}"
