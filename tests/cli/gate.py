"""A page that comes when the test says so."""

from __future__ import annotations

import threading

import trio
from sites.raw import Request, html


class Gate:
    """Answer with a page once `open` was called; `came` is set by the request for it."""

    def __init__(self, *links: str) -> None:
        self.came = threading.Event()
        self._open = threading.Event()
        self._page = html(*links, title="at last")

    def open(self) -> None:
        """Let the page go."""
        self._open.set()

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        self.came.set()
        await trio.to_thread.run_sync(self._open.wait, abandon_on_cancel=True)
        await stream.send_all(self._page)
