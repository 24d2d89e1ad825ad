"""Bounces: redirects that lead back to a URL after its cookies have changed.

A login answers `/` with a redirect to `/login`, and `/login` with a cookie and a redirect to `/`.
Browsers follow that, so a URL may be admitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from zlib import crc32

from msgspec.structs import replace

from trio_crawler.arguments import check_function
from trio_crawler.model import Fetch, Job, Response
from trio_crawler.page.url_set import UrlSet
from trio_crawler.page.urls import seen_key

CookiesFor = Callable[[str], str | None]

# The cookies of a request of an earlier run. That run's session is over.
_UNKNOWN = 0
_MAX_DEPTH = 2**32 - 1


class Bounces:
    """The pages that were answered with a redirect, and the cookies that they were asked with.

    A redirect to one of them leads back, if a request would have other cookies now. The login may
    be in another chain of redirects: two requests may be in flight when the first cookie comes.
    A page that was answered with anything else is never asked again, or each link that switches
    the language would fetch a page twice.
    """

    def __init__(self, cookies_for: CookiesFor) -> None:
        self._cookies_for = cookies_for
        self._redirected = _Redirected()

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
            self._redirected.put(seen_key(url), _UNKNOWN, depth)

    def record(self, job: Job, response: Response) -> None:
        """Record the redirect that answered a job."""
        if response.request:
            sent = _fingerprint(_cookies_in(response.request))
            self._redirected.put(seen_key(job.url), sent, job.depth)

    def judged(self, job: Job) -> Job:
        """Return the job for the target of a redirect, marked `again` if it leads back.

        The depth is that of the first admission, if that is smaller. The frontier decides whether
        the URL was admitted again before.
        """
        first = self._redirected.get(seen_key(job.url))
        if first is None:
            return job
        sent, depth = first
        if sent == _fingerprint((self._cookies_for(job.url) or "").encode("latin-1", "replace")):
            return job
        return replace(job, depth=min(depth, job.depth), again=True)


class _Redirected(UrlSet):
    """URLs, each with the fingerprint of its cookies and its depth: 30 bytes for each."""

    __slots__ = ()

    # An entry is the key and two numbers.
    _width = 16
    _numbers = Struct("<II")

    def put(self, url: str, cookies: int, depth: int) -> None:
        """Add a URL, unless it is there."""
        key, index = self._place(url)
        bucket = self._buckets[index]
        if self._search_bucket(bucket, key) < 0:
            numbers = self._numbers.pack(cookies, min(depth, _MAX_DEPTH))
            self._buckets[index] = bucket + key + numbers
            self._grow()

    def get(self, url: str) -> tuple[int, int] | None:
        """Return the cookies and the depth of a URL, None if it is not there."""
        key, index = self._place(url)
        bucket = self._buckets[index]
        at = self._search_bucket(bucket, key)
        if at < 0:
            return None
        cookies, depth = self._numbers.unpack_from(bucket, at + len(key))
        return cookies, depth

    def _search_bucket(self, bucket: bytes, key: bytes) -> int:
        at = bucket.find(key)
        while at >= 0 and at % self._width:
            at = bucket.find(key, at + 1)
        return at


def _fingerprint(cookies: bytes) -> int:
    """Return a number for a Cookie header; not 0, which is none."""
    return crc32(cookies) or 1


def _cookies_in(request: bytes) -> bytes:
    """Return the value of the Cookie header in the head of a request, b"" if it has none."""
    lines = (line.partition(b":") for line in request.split(b"\r\n"))
    return b"; ".join(value.strip() for name, _, value in lines if name.lower() == b"cookie")
