"""Revival: what earlier runs have left in a crawl directory, as a frontier needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import trio

from trio_crawler.frontier.filed import Filed
from trio_crawler.frontier.journal import Ledger
from trio_crawler.frontier.protocol import Past
from trio_crawler.model import Job, Purpose, Response, Validator
from trio_crawler.policy.conditional import validator_of
from trio_crawler.policy.robots.store import Robots, interpret
from trio_crawler.store.store import Store

_TOO_MANY_REQUESTS = 429
# Jobs that are admitted at once, before others have their turn.
_TURN = 500


def past_of(store: Store) -> Past:
    """Say what earlier runs of this walk have left, for those who judge URLs."""
    return Past(
        statistics=store.counts(),
        sitemaps=store.sitemaps(),
        listings=store.listings(),
        urls=([url for _, url, _ in rows] for rows in store.urls()),
        bodies=((url, digest) for rows in store.bodies(originals=True) for url, digest, _ in rows),
        outcomes=store.outcomes(),
    )


def waiting(
    number: int,
    url: str,
    purpose: str,
    depth: int,
    redirects: int,
    referrer: str | None,
    priority: float | None,
    tries: int,
) -> Filed:
    """Make the job of a row that waits."""
    about = (Purpose(purpose), priority, None, None)
    return Filed(url, depth, redirects, referrer, tries, *about, number)


async def revive(ledger: Ledger, admit: Callable[[Sequence[Filed]], object]) -> None:
    """Admit what waits, in portions."""
    portions = ledger.store.waiting()
    while rows := await ledger.ask(partial(next, portions, None)):
        for start in range(0, len(rows), _TURN):
            admit([waiting(*row) for row in rows[start : start + _TURN]])
            await trio.lowlevel.checkpoint()


def lasts(answer: Response) -> bool:
    """Tell whether what a robots.txt answered needs no asking again in a later run."""
    status = answer.status
    return 200 <= status < 300 or (400 <= status < 500 and status != _TOO_MANY_REQUESTS)


def recall_robots(robots: Robots, store: Store, now: float, today: float) -> None:
    """Let the rules of an earlier run hold on for the rest of their time.

    Those of an earlier walk do not: a walk goes by the rules of its own time, and reads the
    sitemaps again that these name. `now` and `today` are the same moment, by the clock of the
    crawl and by that of the answers. Many files take long, so it is for a thread.
    """
    began = store.began()
    for origin, at, answer in store.robots():
        rules = interpret(answer, robots.token) if at >= began else None
        if rules is not None:
            # A clock that was set back must not make them last for longer.
            age = max(today - at, 0.0)
            robots.store(origin, rules, now - age, validator_of(answer.headers))


class Earlier:
    """Remember which pages came in an earlier walk, and by what they can be asked for again.

    ▶ It keeps no more than a page needs: some 230 bytes, with both validators.
    """

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        # By the hash of the URL, as the seen keys are; the validators are latin-1.
        self._pages: dict[int, tuple[int, bytes]] = {}

    def learn(self, pages: Iterable[tuple[str, int, Validator]]) -> None:
        """Take in URLs, the numbers of their pages and what these were told apart by."""
        for url, number, (etag, modified) in pages:
            packed = f"{etag or ''}\n{modified or ''}".encode("latin-1")
            self._pages[hash(url)] = number, packed

    def number(self, url: str) -> int | None:
        """Return the number of the page that came from a URL."""
        known = self._pages.get(hash(url))
        return None if known is None else known[0]

    def conditional(self, job: Filed) -> Job:
        """Return a job that asks only for what has changed, if there is anything to ask by."""
        known = self._pages.get(hash(job.url)) if self._pages else None
        if known is None or job.purpose is not Purpose.PAGE or job.refused is not None:
            return job
        etag, _, modified = known[1].decode("latin-1").partition("\n")
        return replace(job, validator=Validator(etag or None, modified or None))
