"""A server in virtual time that limits its clients as nginx does: by their rate, or at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import httpx
import trio

from trio_crawler import Job, Response
from trio_crawler.testing import html

SITE = "http://limited.test/"


@dataclass
class Limited:
    """A fetch of a site with so many `pages`, which the first page links to.

    At most `rate` requests a second are answered, and `burst` more at once; at most `at_once` are
    in flight. The others are refused with `status`. Nothing is limited after the time `until`.
    """

    pages: int = 300
    rate: float = float("inf")
    burst: int = 0
    at_once: int = 1_000
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)
    latency: float = 0.001
    until: float = float("inf")
    refused: Counter[str] = field(default_factory=Counter)
    requests: int = 0

    def __post_init__(self) -> None:
        self._excess, self._last, self._in_flight = 0.0, -1e9, 0

    async def __call__(self, job: Job) -> Response:
        """Answer, or refuse, one request."""
        self.requests += 1
        self._in_flight += 1
        try:
            allowed = self._allows(trio.current_time())
            await trio.sleep(self.latency if allowed else min(self.latency, 0.001))
        finally:
            self._in_flight -= 1
        if not allowed:
            self.refused[job.url] += 1
            return Response(self.status, httpx.Headers(self.headers))
        if job.url.endswith("robots.txt"):
            return Response(404)
        links = [f"{SITE}{number}" for number in range(1, self.pages)]
        return html(*(links if job.url == SITE else ()))

    def _allows(self, now: float) -> bool:
        if now >= self.until:
            return True
        excess = max(0.0, self._excess - (now - self._last) * self.rate + 1)
        if excess > self.burst + 1e-9 or self._in_flight > self.at_once:
            return False
        self._excess, self._last = excess, now
        return True
