"""Filed jobs: those whose URL has a number in a crawl directory."""

from __future__ import annotations

from dataclasses import dataclass

from trio_crawler.model import SLOTS, Fault, Job, Purpose, Reason, Validator

_url, _depth, _redirects = SLOTS["url"], SLOTS["depth"], SLOTS["redirects"]
_referrer, _tries, _purpose = SLOTS["referrer"], SLOTS["tries"], SLOTS["purpose"]
_priority, _validator, _refused = SLOTS["priority"], SLOTS["validator"], SLOTS["refused"]


@dataclass(frozen=True, slots=True, init=False)
class Filed(Job):
    """Hold a job and the `number` under which its URL is filed."""

    number: int = 0

    # ▶ For the same reason as that of Job; to call that one takes a quarter longer.
    def __init__(
        self,
        url: str,
        depth: int = 0,
        redirects: int = 10,
        referrer: str | None = None,
        tries: int = 0,
        purpose: Purpose = Purpose.PAGE,
        priority: float | None = None,
        validator: Validator | None = None,
        refused: Reason | Fault | None = None,
        number: int = 0,
    ) -> None:
        _url(self, url)
        _depth(self, depth)
        _redirects(self, redirects)
        _referrer(self, referrer)
        _tries(self, tries)
        _purpose(self, purpose)
        _priority(self, priority)
        _validator(self, validator)
        _refused(self, refused)
        _number(self, number)

    @classmethod
    def of(cls, job: Job, number: int) -> Filed:
        """Make one of a job."""
        return cls(
            job.url,
            job.depth,
            job.redirects,
            job.referrer,
            job.tries,
            job.purpose,
            job.priority,
            job.validator,
            job.refused,
            number,
        )


_number = vars(Filed)["number"].__set__
