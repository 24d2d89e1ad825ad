"""The protocol of a frontier, and the records that it exchanges with a crawler."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Protocol, TypeVar

import msgspec
import trio

from trio_crawler.arguments import public
from trio_crawler.model import Attempt, Checked, Job, Listing, Outcome, Reason, Sitemap, Statistics
from trio_crawler.page.read import Facts
from trio_crawler.policy.plan import Plan
from trio_crawler.schedule.hosts import Hosts
from trio_crawler.settlement import Settlement


@public("trio_crawler.frontier")
class FrontierStatistics(msgspec.Struct, frozen=True):
    """The counts of a frontier at one moment.

    `admitted` counts pages, in all runs; `waiting` counts the pages among them that are neither
    settled nor with a worker. `unsettled` counts the pages and sitemaps that are not settled. Of
    the jobs that wait, `ready` wait for the turn of their host, `held` for their level or the page
    budget, `delayed` for their next try. `retries` counts the retries of this run.

    >>> FrontierStatistics(admitted=3, waiting=1).ready
    0
    """

    admitted: int = 0
    waiting: int = 0
    unsettled: int = 0
    ready: int = 0
    held: int = 0
    delayed: int = 0
    retries: int = 0


@public("trio_crawler.frontier")
class Past(msgspec.Struct, frozen=True):
    """The state that earlier runs of the same crawl have left.

    `statistics` are the counts, `sitemaps` what was read, and `listings` the entries of sitemaps
    by the seen key of their URL. `urls` yields the URLs of all pages that were admitted, in
    portions; `bodies` the URL and the SHA-1 of each HTML page that was fetched and was not a
    duplicate; `outcomes` the outcomes that were settled, with pages that have no bodies. Each may
    be iterated over once, in any thread, but not two of them at the same time. `facts` returns the
    stored facts of a page that is now answered with 304, or None. `redirected` yields URL and
    depth of each page that was answered with a redirect. `texts_before` yields URL, title and
    digest of the text of each page of the walk before, if this is a refresh, and `texts` those of
    this walk, each with whether it was fetched twice. `checked` returns what an earlier walk found
    at the URL of a job that is `recalled`; None if the frontier marks no such jobs.
    """

    statistics: Statistics
    sitemaps: Sequence[Sitemap]
    listings: Mapping[str, Listing]
    urls: Iterable[Sequence[str]]
    bodies: Iterable[tuple[str, bytes]]
    outcomes: Iterable[Outcome]
    facts: Callable[[str], Awaitable[Facts | None]]
    redirected: Iterable[tuple[str, int]] = ()
    texts_before: Iterable[tuple[str, str | None, bytes]] = ()
    texts: Iterable[tuple[str, str | None, bytes, bool]] = ()
    checked: Callable[[str], Awaitable[Checked]] | None = None


@public("trio_crawler")
class Frontier(Protocol):
    """The store of the seen URLs, the waiting jobs and the counts of one crawl.

    A crawler calls `open` and then `run`, once. Its workers receive from `jobs`. For each job that
    is not blocked the crawler calls `hosts.answered`, and then `settle`, or `retry` to receive the
    job again later; for a blocked job it calls `settle` alone. `add`, `settle` and `retry` are
    atomic: they change everything or nothing, and a call that is cancelled changes nothing.

    Each admitted page and sitemap is counted in once, before its parent is counted out. A job with
    `again` is admitted although its URL is not new, at most once a URL: `Seen` decides. The jobs
    that `hosts` makes itself (robots.txt, probes) are neither counted nor recorded as seen:
    `hosts.settled` returns whether a settlement counts. Its successors are admitted in any case:
    they are the sitemaps that a robots.txt names.

    When the crawl ends early, a frontier in memory blocks the waiting jobs, so that each URL gets
    its outcome; a frontier that lasts keeps them for a later run.
    """

    @property
    def jobs(self) -> trio.abc.ReceiveChannel[Job]:
        """The channel from which the workers receive; it ends when the crawl is over."""

    @property
    def hosts(self) -> Hosts:
        """The hosts of the crawl, which decide when each waiting job starts."""

    async def open(self, plan: Plan) -> Past | None:
        """Begin a crawl of this plan; return the state that earlier runs left, None if none.

        Jobs that earlier runs left may be received from now on. The crawler reads all of that
        state before it judges an answer, admits or settles a job, or calls `run`.

        Raises RuntimeError when called again: a frontier serves one crawl.
        """

    async def run(self) -> None:
        """Admit the first jobs of the plan; return when the crawl is over."""

    def known(self, urls: Collection[str]) -> AbstractSet[str]:
        """Return those of `urls` that were admitted, so need no judging; some may be missing."""

    async def add(self, jobs: Sequence[Job]) -> int:
        """Admit the new jobs among `jobs`, as `settle` does; return how many were new.

        The first successors of a page with many of them come here before its settlement. When the
        crawl is over nothing is admitted.
        """

    async def settle(self, settlement: Settlement) -> None:
        """Admit the new successors, then count the job out, in one atomic step."""

    async def retry(self, attempt: Attempt, seconds: float) -> None:
        """Retry the job of an `attempt`, after `seconds` or later."""

    def end(self, reason: Reason) -> None:
        """End the crawl early: fetch nothing more, for this reason. Never called before `open`."""

    def statistics(self) -> FrontierStatistics:
        """Return the counts at this moment."""


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
