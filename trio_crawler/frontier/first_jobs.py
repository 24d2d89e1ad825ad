"""The admission of the jobs that a crawl begins with, which may be 100,000 seeds."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

import trio

from trio_crawler.model import Job
from trio_crawler.policy.plan import Plan

_PORTION = 500
_AnyJob = TypeVar("_AnyJob", bound=Job)


async def admit_first(
    plan: Plan,
    record: Callable[[Sequence[Job]], list[_AnyJob]],
    admit: Callable[[Sequence[_AnyJob]], object],
) -> None:
    """Admit the first jobs of a plan, with a checkpoint after each 500 of them.

    `record` returns the new ones among jobs, and `admit` adds these to the hosts. All are recorded
    before the first of them can start, so that a link to a seed is known.
    """
    rest = plan.first_jobs()
    fresh = record(list(islice(rest, _PORTION)))
    while jobs := list(islice(rest, _PORTION)):
        await trio.lowlevel.checkpoint()
        fresh += record(jobs)
    # No level of the crawl ends meanwhile: an outcome takes a pass of Trio, as a portion does.
    admit(fresh[:_PORTION])
    for start in range(_PORTION, len(fresh), _PORTION):
        await trio.lowlevel.checkpoint()
        admit(fresh[start : start + _PORTION])
