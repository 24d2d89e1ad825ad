"""The turns of the jobs that workers have, at hosts with a delay and where URLs hang."""

from __future__ import annotations

import math
from collections.abc import Callable

from trio_crawler.model import Job, Purpose
from trio_crawler.net.turn import Pace, Turn
from trio_crawler.schedule.origin import Origin, Retries


class Turns:
    """The turns of the jobs that are `out`, with a worker, by purpose and URL.

    `moved` is called with an origin when the next start at its host may have become earlier or
    later. With `hurried` the first try of a page is hurried where URLs hang: it will have another.
    """

    def __init__(self, moved: Callable[[Origin], None], *, hurried: bool) -> None:
        self.out: dict[tuple[Purpose, str], Turn] = {}
        self._moved = moved
        self._hurried = hurried

    def give(self, origin: Origin, job: Job) -> None:
        """Assign the next turn of a host with a delay to a job, and hurry it where URLs hang.

        A delay that robots.txt asks for begins with the request for it.
        """
        host, hurry = origin.host, math.inf
        if self._hurried and job.purpose is Purpose.PAGE and origin.pages and not job.tries:
            hurry = origin.state.hurry
        if hurry < math.inf:
            retries = origin.retries = origin.retries or Retries()
            if not retries.hurries(job.url, origin.state.limit):
                hurry = math.inf
        if host.load.delay and host.pace is None:
            host.pace = Pace(host.load, lambda: self._moved(origin))
        if host.load.delay or hurry < math.inf or job.purpose is Purpose.ROBOTS:
            pace = host.pace if host.load.delay else None
            self.out[job.purpose, job.url] = Turn(host.load, pace, hurry)

    def end(self, job: Job) -> None:
        """Record that a job was answered."""
        turn = self.out.pop((job.purpose, job.url), None)
        if turn is not None:
            turn.end()
