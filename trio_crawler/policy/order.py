"""The order in which the jobs of one host start."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

from typing import Any, Protocol

from trio_crawler.arguments import check_kind
from trio_crawler.model import Job


class Order(Protocol):
    """Rank a job: any `(job) -> rank`.

    Among the jobs of one host that may start, the one with the least rank starts; among equal
    ranks the oldest. Ranks must compare with `<`. The crawl calls it once for each job that is
    admitted. An order must not block.
    """

    def __call__(self, job: Job, /) -> Any: ...


Order.__module__ = "trio_crawler"


def breadth_first(job: Job) -> float:
    """Rank by the number of links from a seed: pages near a seed start before deep ones."""
    check_kind("job", job, Job, "a Job")
    return job.depth


def depth_first(job: Job) -> float:
    """Rank deep pages first: a crawl then follows one branch to its end."""
    check_kind("job", job, Job, "a Job")
    return -job.depth


def by_sitemap(job: Job) -> tuple[float, int]:
    """Rank by the priority in a sitemap, highest first (0.5 if there is none), then by depth."""
    check_kind("job", job, Job, "a Job")
    return (-0.5 if job.priority is None else -job.priority), job.depth


for _function in (breadth_first, depth_first, by_sitemap):
    _function.__module__ = "trio_crawler"
