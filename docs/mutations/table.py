"""Lines of the crawler, what each is changed to, and the probe that shows what breaks then."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """Name a line of trio_crawler/ that is there once, what it becomes, and what it is for."""

    question: str
    file: str
    line: str
    becomes: str
    probe: str
    answer: str


MUTATIONS = (
    Mutation(
        "Why does the count begin at one?",
        "frontier/memory.py",
        "self.unfinished = 1",
        "self.unfinished = 0",
        "seeded",
        "The one stands for the seeding: while it goes on, nothing is at its end.",
    ),
    Mutation(
        "Why are links counted in where they are admitted?",
        "frontier/memory.py",
        "self._join.add(len(successors))",
        "pass",
        "seeded",
        "Zero means that nothing can follow, so what follows is counted in first.",
    ),
    Mutation(
        "What ends the loops of the workers?",
        "frontier/memory.py",
        "self.hosts.jobs.end()",
        "pass",
        "small",
        "The end of the channel does. No task is cancelled.",
    ),
    Mutation(
        "Who tells the reader that it was the last outcome?",
        "engine/outbox.py",
        "self._workers -= 1",
        "pass",
        "small",
        "The last worker that leaves closes the channel of outcomes.",
    ),
    Mutation(
        "What keeps a URL from being fetched twice?",
        "frontier/memory.py",
        "self._done.add(key)",
        "pass",
        "small",
        "It is noted when it is admitted, before anybody waits for anything.",
    ),
    Mutation(
        "Why are the hops of a redirect kept?",
        "frontier/memory.py",
        "self._hops[key] = job.url",
        "pass",
        "redirects",
        "So that a path with more redirects left can go on where the first was cut short.",
    ),
    Mutation(
        "What happens when the reader leaves?",
        "crawler.py",
        'nursery.cancel_scope.cancel("the caller has left the block")',
        "pass",
        "leaves",
        "The block is the crawl: to leave it ends the workers.",
    ),
    Mutation(
        "Why does the reader's own exception come out bare?",
        "crawler.py",
        "with bare.carried:",
        "with nullcontext():",
        "reader_raises",
        "It is carried past the nursery, which would make a group of it.",
    ),
    Mutation(
        "How does a bug say where it happened?",
        "crawler.py",
        "with url_noted(job):",
        "with nullcontext():",
        "scope_bug",
        "The URL is added as a note; the exception is not caught.",
    ),
    Mutation(
        "Who waits for the next try?",
        "crawler.py",
        "await self.frontier.retry(settled.attempt, settled.seconds)",
        "await trio.sleep(settled.seconds); await self.frontier.retry(settled.attempt, 0.0)",
        "slow_host",
        "The frontier does. A worker that waits is taken from all other hosts.",
    ),
    Mutation(
        "What brings a retry back in time?",
        "schedule/hosts.py",
        "with trio.move_on_at(self._wakes):",
        "with trio.CancelScope():",
        "again",
        "A deadline over the wait for news: what comes first, the time or the event.",
    ),
    Mutation(
        "What lies between two tries?",
        "schedule/hosts.py",
        "heapq.heappush(self._delayed, (now + seconds, self._number, job))",
        "heapq.heappush(self._delayed, (now, self._number, job))",
        "again",
        "Time, more of it after each try.",
    ),
    Mutation(
        "When is a try the last one?",
        "engine/handler.py",
        "if job.tries >= plan.limits.max_tries or not is_transient(answer, job.tries):",
        "if not is_transient(answer, job.tries):",
        "again",
        "A page that will never come is asked for four times.",
    ),
    Mutation(
        "What does Retry-After hold back?",
        "schedule/host_scheduler.py",
        "state.finish(now + asked if asked else now)",
        "state.finish(now)",
        "retry_after",
        "All pages of the host, not only the one that was refused.",
    ),
    Mutation(
        "What keeps ten workers from asking one host at once?",
        "policy/host_load.py",
        "self.limit: float = politeness.per_host",
        "self.limit: float = math.inf",
        "gentle",
        "The limit of the host: while as many requests are in flight, it has no turn.",
    ),
    Mutation(
        "What ends a crawl in time?",
        "schedule/hosts.py",
        "self._end(Reason.TIME_BUDGET)",
        "pass",
        "deadline",
        "A task of the frontier, for a crawl whose other tasks all wait.",
    ),
    Mutation(
        "What slows the fetching down to the reading?",
        "engine/outbox.py",
        "self._sender, self._receiver = trio.open_memory_channel[Settlement](workers)",
        "self._sender, self._receiver = trio.open_memory_channel[Settlement](inf)",
        "slow_reader",
        "The bound of the channel: one outcome for each worker.",
    ),
    Mutation(
        "How can a budget of three pages be exact?",
        "schedule/queues.py",
        "while self._current and self._released < self._budget:",
        "while self._current:",
        "budget",
        "No more jobs are out than pages are left.",
    ),
    Mutation(
        "Whose depth does a page have?",
        "schedule/queues.py",
        "self._by_level = plan.limits.max_depth < math.inf",
        "self._by_level = False",
        "depth",
        "That of the shortest way, not of the quickest: a level waits for the one above it.",
    ),
    Mutation(
        "What becomes of links that are found after the end?",
        "engine/links.py",
        "return hosts.ended",
        "return None",
        "stops",
        "They are rejected, as the page says of each, and never admitted.",
    ),
)
