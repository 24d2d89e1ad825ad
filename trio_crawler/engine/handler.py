"""Tries: what is asked for once more, and by which answer a URL ends that is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from trio_crawler.engine.counters import Tally
from trio_crawler.engine.rules import Admission
from trio_crawler.model import Fault, Job, Purpose, Response
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.retry import delay_after, passing


class Tries:
    """Decide which answers are the last, and keep those that were not, without their bodies.

    With a `lasting` frontier the end of a run is not the end of a URL's tries.
    """

    def __init__(self, limits: Limits, admission: Admission, tally: Tally, lasting: bool) -> None:
        self._limits = limits
        self._admission = admission
        self._tally = tally
        self._lasting = lasting
        self._last: dict[str, tuple[Response | Fault, float]] = {}

    def delay(self, job: Job, answer: Response | Fault) -> float | None:
        """Return the seconds until the next try; None when this answer is the last."""
        if job.purpose in (Purpose.ROBOTS, Purpose.PROBE) or not passing(answer, job.tries):
            # When it is time to ask for a robots.txt again, is for its host to say.
            return None
        if job.tries >= self._limits.max_tries or (self._admission.over() and not self._lasting):
            return None
        delay = delay_after(answer, job.tries, datetime.now(UTC))
        # What would come after the end of the crawl is not waited for.
        in_time = self._tally.seconds + delay < self._limits.max_seconds
        return delay if in_time or self._lasting else None

    def keep(self, job: Job, answer: Response | Fault, seconds: float) -> None:
        """Keep an answer, which took so long, until the next one."""
        # Any number of URLs may wait for their next try.
        bare = replace(answer, body=b"") if isinstance(answer, Response) else answer
        self._last[job.url] = bare, seconds

    def last(self, job: Job) -> tuple[Response | Fault, float] | None:
        """Take the last answer that a URL had, if it had one and waited to be tried again."""
        return self._last.pop(job.url, None)


def tried(job: Job) -> Job:
    """Count one more try of a job."""
    # Not dataclasses.replace, which takes ten times as long.
    about = (job.purpose, job.priority, job.validator)
    return Job(job.url, job.depth, job.redirects, job.referrer, job.tries + 1, *about)
