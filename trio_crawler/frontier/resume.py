"""Resume: what earlier runs have left in a crawl directory, as a frontier needs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator

from msgspec.structs import replace

from trio_crawler.frontier.protocol import Past
from trio_crawler.model import Job, Purpose, Validator
from trio_crawler.page.read import Facts
from trio_crawler.policy.conditional import validator_of
from trio_crawler.policy.robots.store import KnownRules, interpret
from trio_crawler.store.store import Store


def past_of(store: Store, facts: Callable[[str], Awaitable[Facts | None]]) -> Past:
    """Return what earlier runs of this walk have left; `facts` answers for their pages."""
    walk = store.walk
    return Past(
        statistics=store.statistics(),
        sitemaps=walk.sitemaps(),
        listings=walk.listings(),
        urls=([url for _, url, _ in rows] for rows in walk.urls()),
        bodies=((url, digest) for rows in walk.bodies(originals=True) for url, digest, _ in rows),
        outcomes=walk.outcomes(),
        facts=facts,
    )


def known_rules(
    store: Store, token: str, now: float, today: float
) -> Iterator[tuple[str, KnownRules]]:
    """Yield the origins whose rules an earlier run of this walk read, and those rules.

    Rules of an earlier walk do not hold: a walk goes by the rules of its own time, and reads the
    sitemaps again that these name. `now` and `today` are the same moment, by the clock of the
    crawl and by that of the answers. Many files take long, so this is for a thread.
    """
    began = store.walk.began()
    for origin, at, answer in store.robots():
        rules = interpret(answer, token) if at >= began else None
        if rules is not None:
            # A clock that was set back must not make them last for longer.
            age = max(today - at, 0.0)
            yield origin, KnownRules(rules, now - age, validator_of(answer.headers))


class EarlierPages:
    """The pages that came in an earlier walk, and the validators to ask for them again.

    ▶ It keeps no more than a page needs: some 230 bytes, with both validators.
    """

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        # By the hash of the URL, as the seen keys are; the validators are latin-1.
        self._pages: dict[int, tuple[int, bytes]] = {}

    def add(self, pages: Iterable[tuple[str, int, Validator]]) -> None:
        """Add URLs, the numbers of their pages, and their validators."""
        for url, number, (etag, modified) in pages:
            packed = f"{etag or ''}\n{modified or ''}".encode("latin-1")
            self._pages[hash(url)] = number, packed

    def number(self, url: str) -> int | None:
        """Return the number of the page that came from a URL."""
        known = self._pages.get(hash(url))
        return None if known is None else known[0]

    def conditional(self, job: Job) -> Job:
        """Return a job that asks only for changes, if there is anything to ask by."""
        known = self._pages.get(hash(job.url)) if self._pages else None
        if known is None or job.purpose is not Purpose.PAGE or job.blocked is not None:
            return job
        etag, _, modified = known[1].decode("latin-1").partition("\n")
        return replace(job, validator=Validator(etag or None, modified or None))
