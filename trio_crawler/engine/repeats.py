"""Repeats and bounces: the pages that are asked for once more, in a refresh or after a login.

A refresh asks for some pages twice, to learn what differs at each fetch. A random quotation, a
captcha or the number of a request make a page look changed. Two fetches at nearly the same moment
differ in just that, and the other pages of its shape have it as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from zlib import crc32

from msgspec.structs import replace

from trio_crawler.arguments import check_function
from trio_crawler.frontier.protocol import Frontier, Past
from trio_crawler.model import Fetch, Job, Page, Response
from trio_crawler.page.read import Facts
from trio_crawler.page.urls import is_web, seen_key
from trio_crawler.policy.url_shapes import url_shape
from trio_crawler.reason import NOT_WHOLE
from trio_crawler.settlement import Repeated, Settlement
from trio_crawler.store.compact import UrlSet

ONE_IN = 20
"""Of so many pages of a shape that seem changed, one is asked for twice."""

MOST_SHAPES = 10_000
"""The most shapes with pages that are asked for twice."""

MOST_BYTES = 200_000
"""A page with more bytes is not asked for twice: it would be kept in memory meanwhile."""

_MOST_LINKS = 20


class Repeats:
    """The pages of a refresh that seem changed, and those that are asked for twice.

    A page seems changed if its title or the digest of its text is not that of the walk before.
    The first such page of each shape is asked for twice, and then one of twenty at most. The
    settlement of the first answer is kept until the second one comes, for at most as many pages as
    the crawl has workers. It is the outcome in any case, so that a second answer can lose nothing.
    Without a walk before nothing seems changed, and `is_on` is False.

    ▶ A page of the walk before takes 28 bytes of memory.
    """

    def __init__(self, frontier: Frontier, workers: int) -> None:
        self._frontier = frontier
        self._workers = workers
        # URLs, and URLs with digests and titles: no URL has a space.
        self._texts = UrlSet()
        self.is_on = False
        # By the hash of the shape: its pages that seemed changed, and the requests for them.
        self._changed: Counter[int] = Counter()
        self._asked: Counter[int] = Counter()
        self._held: dict[str, tuple[Settlement, Facts]] = {}

    def restore(self, past: Past) -> None:
        """Record the texts of the walk before, and those that this walk has so far."""
        self._texts.update(_keys(past.texts_before))
        self.is_on = bool(self._texts)
        if self.is_on:
            for url, title, digest, twice in past.texts:
                if self._seems_changed(url, title, digest):
                    self._changed[hash(url_shape(url))] += 1
                    self._asked[hash(url_shape(url))] += twice

    def keeps(self, settlement: Settlement, facts: Facts) -> bool:
        """Keep a settlement, and return True, if its page is to be asked for once more."""
        page = settlement.outcome
        if not (
            isinstance(page, Page)
            and page.status == 200
            and len(page.body) <= MOST_BYTES
            and is_web(page.url)
            and NOT_WHOLE.isdisjoint(page.flaws)
            and self._frontier.hosts.ended is None
        ):
            return False
        # Imported late: only a refresh asks.
        from trio_crawler.page.text_digest import page_text

        text = page_text(page.body, page.content_type, page.charset)
        if text is None or not self._seems_changed(page.url, page.title, text.digest):
            return False
        shape = hash(url_shape(page.url))
        if shape not in self._changed and len(self._changed) >= MOST_SHAPES:
            return False
        self._changed[shape] += 1
        if self._asked[shape] * ONE_IN >= self._changed[shape] or len(self._held) >= self._workers:
            return False
        self._asked[shape] += 1
        self._held[page.url] = settlement, facts
        return True

    def _seems_changed(self, url: str, title: str | None, digest: bytes) -> bool:
        return url in self._texts and _key(url, title, digest) not in self._texts

    def settled(self, url: str, body: bytes = b"", facts: Facts | None = None) -> Settlement:
        """Return the settlement that was kept of a URL, with what a second answer shows.

        Without `facts` there is no good second answer.
        """
        settlement, first = self._held.pop(url)
        if facts is None:
            return settlement
        from trio_crawler.page.text_digest import page_text

        text = page_text(body, facts.content_type, facts.charset)
        if text is None:
            return settlement
        links = dict.fromkeys(map(url_shape, filter(is_web, {*first.links} ^ {*facts.links})))
        found = tuple(islice(links, _MOST_LINKS))
        repeated = Repeated(text.blocks, facts.title != first.title, found)
        return replace(settlement, repeated=repeated)


def _keys(pages: Iterable[tuple[str, str | None, bytes]]) -> Iterable[str]:
    for url, title, digest in pages:
        yield url
        yield _key(url, title, digest)


def _key(url: str, title: str | None, digest: bytes) -> str:
    return f"{url} {digest.hex()} {title or ''}"


# The cookies of a request of an earlier run. That run's session is over.
_UNKNOWN = 0
# The fingerprint of cookies and the depth are one number: ▶ two would take 60 bytes more.
_DEPTHS = 2**32


class Bounces:
    """The pages that were answered with a redirect, and the cookies that they were asked with.

    A login answers `/` with a redirect to `/login`, and `/login` with a cookie and a redirect to
    `/`. Browsers follow that, so a URL may be admitted again.

    A redirect to one of them leads back, if a request would have other cookies now. The login may
    be in another chain of redirects: two requests may be in flight when the first cookie comes.
    A page that was answered with anything else is never asked again, or each link that switches
    the language would fetch a page twice.
    """

    def __init__(self, cookies_for: Callable[[str], str | None]) -> None:
        self._cookies_for = cookies_for
        # By the hash of the seen key, as in a `UrlSet`: the cookies and the depth.
        self._redirected: dict[int, int] = {}

    @classmethod
    def of(cls, fetch: Fetch | None) -> Bounces | None:
        """Return the bounces of a fetch, None if it does not tell which cookies it sends.

        Raises TypeError if its `cookies_for` is not a function.
        """
        cookies_for = getattr(fetch, "cookies_for", None)
        if cookies_for is None:
            return None
        check_function("the cookies_for of fetch", cookies_for, "a function of a URL, or None")
        return cls(cookies_for)

    def restore(self, redirected: Iterable[tuple[str, int]]) -> None:
        """Add the pages that earlier runs found to redirect: URL and depth."""
        for url, depth in redirected:
            self._put(url, _UNKNOWN, depth)

    def record(self, job: Job, response: Response) -> None:
        """Record the redirect that answered a job."""
        if response.request:
            lines = (line.partition(b":") for line in response.request.split(b"\r\n"))
            sent = [value.strip() for name, _, value in lines if name.lower() == b"cookie"]
            self._put(job.url, _fingerprint(b"; ".join(sent)), job.depth)

    def _put(self, url: str, cookies: int, depth: int) -> None:
        """Record a URL, unless it is there."""
        self._redirected.setdefault(hash(seen_key(url)), cookies * _DEPTHS + depth)

    def judged(self, job: Job) -> Job:
        """Return the job for the target of a redirect, marked `again` if it leads back.

        The depth is that of the first admission, if that is smaller. The frontier decides whether
        the URL was admitted again before.
        """
        first = self._redirected.get(hash(seen_key(job.url)))
        if first is None:
            return job
        sent, depth = divmod(first, _DEPTHS)
        if sent == _fingerprint((self._cookies_for(job.url) or "").encode("latin-1", "replace")):
            return job
        return replace(job, depth=min(depth, job.depth), again=True)


def _fingerprint(cookies: bytes) -> int:
    """Return a number for a Cookie header; not 0, which is none."""
    return crc32(cookies) or 1
