"""Write a frontier: this one keeps what became of each URL in a mapping of yours."""

import sys
from collections import Counter
from collections.abc import Collection, Iterable, MutableMapping, Sequence

import trio
from trio_crawler import Crawler, Job, Outcome, Reason
from trio_crawler.frontier import Attempt, Hosts, Join, Plan, Seen, Settlement
from trio_crawler.frontier import FrontierStatistics as Counts


class MappingFrontier:
    def __init__(self, ends: MutableMapping[str, Outcome]) -> None:
        self.ends, self.join, self.plan = ends, Join(), None

    @property
    def jobs(self) -> trio.abc.ReceiveChannel[Job]:
        return self.hosts.jobs

    async def open(self, plan: Plan) -> None:
        if self.plan is not None:
            raise RuntimeError("a frontier serves one crawl")
        self.plan, self.hosts = plan, Hosts(plan, end=self.end)
        self.seen = Seen(plan.limits.max_redirects)

    async def run(self) -> None:
        self.admit(self.plan.first_jobs())
        self.join.done()  # the join begins with one unit, for the seeds
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.hosts.keep_time)
            await self.join.wait()
            nursery.cancel_scope.cancel()
        self.hosts.jobs.end()

    def known(self, urls: Collection[str]) -> set[str]:
        return self.seen.known(urls)

    def admit(self, jobs: Iterable[Job]) -> int:
        new = self.seen.admit_all(jobs)
        self.join.add(len(new))
        self.hosts.admit(new)  # also of none: what the budget held may go now
        return len(new)

    async def add(self, jobs: Sequence[Job]) -> int:
        await trio.lowlevel.checkpoint()  # a cancellation changes nothing
        return 0 if self.join.is_over else self.admit(jobs)

    async def settle(self, settlement: Settlement) -> None:
        await trio.lowlevel.checkpoint()
        counts = self.hosts.settled(settlement)
        if not self.join.is_over:  # a robots.txt that names sitemaps may come late
            self.admit(self.seen.successors(settlement))
        if settlement.outcome is not None:
            self.ends[settlement.job.url] = settlement.outcome
        if counts:  # a robots.txt was never admitted
            self.join.done()  # after its successors are counted in

    async def retry(self, attempt: Attempt, seconds: float) -> None:
        await trio.lowlevel.checkpoint()
        self.hosts.retry(attempt, seconds)

    def end(self, reason: Reason) -> None:
        self.hosts.end(reason)

    def statistics(self) -> Counts:
        counts = len(self.seen), self.hosts.waiting, self.join.unfinished
        return Counts(*counts, retries=self.hosts.retries)


if __name__ == "__main__":
    ends: dict[str, Outcome] = {}
    trio.run(Crawler([sys.argv[1]], frontier=MappingFrontier(ends)).crawl)
    print(Counter(type(outcome).__name__ for outcome in ends.values()))
