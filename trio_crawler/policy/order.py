"""The orders in which the jobs of one host come."""

# Annotations are objects here, not strings: strings are looked up in `__module__`, which is not
# this module.

from typing import Any, Protocol

from trio_crawler.model import Job


class Order(Protocol):
    """Rank a job: any `(job) -> rank`.

    Of the jobs of one host that may start, the one with the least rank starts; of several with the
    same rank the oldest. Ranks must compare with `<`. Called once for each job that is admitted;
    must not block.
    """

    def __call__(self, job: Job, /) -> Any: ...


Order.__module__ = "trio_crawler"


def breadth_first(job: Job) -> float:
    """Rank by the links followed from a seed: pages near a seed come before deep ones."""
    return job.depth


def depth_first(job: Job) -> float:
    """Rank the deepest first: a crawl then follows one branch to its end."""
    return -job.depth


def by_sitemap(job: Job) -> tuple[float, int]:
    """Rank by the priority that a sitemap gives (0.5 if it gives none), then by depth."""
    return (-0.5 if job.priority is None else -job.priority), job.depth


for _function in (breadth_first, depth_first, by_sitemap):
    _function.__module__ = "trio_crawler"
