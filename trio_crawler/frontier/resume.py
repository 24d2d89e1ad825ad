"""Resume a crawl: read the state that earlier runs left in a crawl directory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from struct import Struct

from msgspec.structs import replace

from trio_crawler.frontier.protocol import Past
from trio_crawler.model import CHECKS, Checked, Job, Purpose, Validator
from trio_crawler.page.read import Facts
from trio_crawler.policy.headers import validator_of
from trio_crawler.policy.robots import KnownRules, interpret
from trio_crawler.store.earlier import Known
from trio_crawler.store.store import Store

_time = Struct("<d")


def past_of(
    store: Store,
    urls: Iterable[Sequence[str]],
    facts: Callable[[str], Awaitable[Facts | None]],
    checked: Callable[[str], Awaitable[Checked]],
) -> Past:
    """Return the state that earlier runs of this walk left, with these URLs and functions."""
    walk = store.walk
    return Past(
        statistics=store.statistics(),
        sitemaps=walk.sitemaps(),
        listings=walk.listings(),
        urls=urls,
        bodies=((url, digest) for rows in walk.bodies(originals=True) for url, digest, _ in rows),
        outcomes=walk.outcomes(found=False, brief=True),
        facts=facts,
        redirected=walk.redirected(),
        texts_before=walk.texts_before(),
        texts=walk.texts(),
        checked=checked,
    )


def known_rules(
    store: Store, token: str, now: float, today: float
) -> Iterator[tuple[str, KnownRules]]:
    """Yield each origin with robots.txt rules from an earlier run of this walk, and the rules.

    The rules of an earlier walk are not used: each walk reads robots.txt again, and the sitemaps
    that it names. `now` and `today` are the same moment, by Trio's clock and as Unix time. Call
    this in a thread, since many files take long.
    """
    began = store.walk.began()
    for origin, at, answer in store.robots():
        rules = interpret(answer, token) if at >= began else None
        if rules is not None:
            # If the clock was set back, the rules must not stay valid for longer.
            age = max(today - at, 0.0)
            yield origin, KnownRules(rules, now - age, validator_of(answer.headers))


class EarlierPages:
    """The pages that an earlier walk fetched, and their validators for conditional requests.

    ▶ A page with both validators takes some 260 bytes of memory.
    """

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        # By the hash of the URL, like `UrlSet`; the validators are latin-1.
        self._pages: dict[int, tuple[int, bytes]] = {}

    def add(self, pages: Iterable[tuple[str, int, Validator]]) -> None:
        """Add URLs, the numbers of their pages, and their validators."""
        for url, number, (etag, modified, digest, began) in pages:
            headers = f"{etag or ''}\n{modified or ''}\n".encode("latin-1")
            answer = _time.pack(began or 0) + (digest or b"")
            self._pages[hash(url)] = number, headers + answer

    def number(self, url: str) -> int | None:
        """Return the number of the page at a URL; None if no earlier walk fetched it."""
        known = self._pages.get(hash(url))
        return None if known is None else known[0]

    def conditional(self, job: Job) -> Job:
        """Return the job as a conditional request, if its page has a stored validator."""
        known = self._pages.get(hash(job.url)) if self._pages else None
        if known is None or job.purpose is not Purpose.PAGE or job.blocked is not None:
            return job
        *headers, answer = known[1].split(b"\n", 2)
        etag, modified = (each.decode("latin-1") or None for each in headers)
        (began,) = _time.unpack_from(answer)
        digest = answer[_time.size :] or None
        return replace(job, validator=Validator(etag, modified, digest, began))


class EarlierChecks:
    """The URLs outside the crawl that an earlier walk found fine, not long ago.

    ▶ One takes some 120 bytes of memory.
    """

    __slots__ = ("_checks",)

    def __init__(self) -> None:
        # By the hash of the URL, like `UrlSet`; negative numbers are those of URLs without places.
        self._checks: dict[int, int] = {}

    def add(self, checks: Iterable[tuple[str, Known]]) -> None:
        """Add URLs, each with the number of its check."""
        for url, (number, places) in checks:
            self._checks[hash(url)] = number if places else -number

    def number(self, url: str) -> int:
        """Return the number of the check of a URL that is known."""
        return abs(self._checks[hash(url)])

    def recalls(self, job: Job) -> bool:
        """Whether a job need not be fetched, because all that it asks for is known."""
        if job.purpose not in CHECKS or job.tries:
            return False
        number = self._checks.get(hash(job.url), 0)
        return number > 0 or (number < 0 and job.purpose is Purpose.CHECK)
