"""A server in virtual time that limits its clients as nginx does: by their rate, or at once."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

import httpx
import trio

from trio_crawler import Job, Response
from trio_crawler.testing import html

SITE = "http://limited.test/"


@dataclass
class Limited:
    """A fetch of a site with so many `pages`, which the first page links to.

    At most `rate` requests a second are answered, and `burst` more at once. With a `window` so
    many are answered in each second, by the clock ("fixed") or in any ("sliding"). At most
    `at_once` are in flight. The others are refused with `status`. Nothing is limited after the
    time `until`.
    """

    pages: int = 300
    rate: float = float("inf")
    burst: int = 0
    window: str = ""
    at_once: int = 1_000
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)
    latency: float = 0.001
    until: float = float("inf")
    refused: Counter[str] = field(default_factory=Counter)
    requests: int = 0

    def __post_init__(self) -> None:
        self._excess, self._last, self._in_flight = 0.0, -1e9, 0
        self._answered = deque[float]()

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
        if self.window:
            since = int(now) if self.window == "fixed" else now - 1
            while self._answered and self._answered[0] < since:
                self._answered.popleft()
            if len(self._answered) >= self.rate:
                return False
            self._answered.append(now)
            return True
        excess = max(0.0, self._excess - (now - self._last) * self.rate + 1)
        if excess > self.burst + 1e-9 or self._in_flight > self.at_once:
            return False
        self._excess, self._last = excess, now
        return True
