"""The cookies of a crawl, by host."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count

import httpx
import msgspec
import trio

from trio_crawler.arguments import check_function, check_kind, public
from trio_crawler.page import urls
from trio_crawler.policy.answers import parse_http_date

MAX_COOKIES = 50
"""The most cookies of one host."""

MAX_BYTES = 8 * 1024
"""The most bytes of names, values and paths of one host."""

MAX_HOSTS = 2_500
"""The most hosts that have cookies: ▶ with 350 bytes for each cookie they take 64 MiB at most."""

# A longer cookie is rejected, a longer attribute is ignored (RFC 6265bis, 5.6).
_MAX_PAIR = 4096
_MAX_ATTRIBUTE = 1024
_MAX_SECONDS = 400 * 86_400

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_MAX_AGE = re.compile("-?[0-9]+")
_BLANK = " \t"


class _Cookie(msgspec.Struct):
    """One cookie: it expires at `ends`, by the clock of the store; `born` orders by creation."""

    name: str
    value: str
    path: str
    secure: bool
    ends: float
    born: int = 0

    @property
    def size(self) -> int:
        return len(self.name) + len(self.value) + len(self.path)


@public("trio_crawler.net")
class CookieStore:
    """The cookies of a crawl, in memory, by RFC 6265 and its successor draft (6265bis).

    It is stricter than both in one point: a cookie is sent only to the host that set it, on any
    port, also if its Domain includes other hosts. A cookie with a Domain that does not include its
    host is rejected. So no list of public suffixes is needed.

    A host may have 50 cookies and 8 KiB, and 2,500 hosts may have cookies: those that were set
    least recently are evicted first. URLs must be normalised http or https URLs. Cookies expire by
    `clock`, which returns seconds from any start; Expires is compared with `today`, which returns
    the current datetime with a time zone.

    Raises TypeError, naming the argument, if `clock` or `today` is not a function.

    >>> store = CookieStore(clock=time.monotonic)
    >>> store.store("https://e.org/", httpx.Headers({"set-cookie": "session=1; Secure"}))
    >>> store.cookies_for("https://e.org/a"), store.cookies_for("http://e.org/a")
    ('session=1', None)
    >>> fetch = HttpFetch(cookies=store)
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = trio.current_time,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        check_function("clock", clock, "a function that returns seconds")
        check_function("today", today, "a function that returns a datetime")
        # By host its cookies by name and path, in the order in which they were last set.
        self._jars: dict[str, dict[tuple[str, str], _Cookie]] = {}
        self._clock = clock
        self._today = today
        self._births = count()

    def cookies_for(self, url: str) -> str | None:
        """Return the value of the Cookie header for a `url`, or None if it has no cookies.

        Longer paths come first, then older cookies (RFC 6265, 5.4). One character stands for one
        byte (Latin-1).
        """
        check_kind("url", url, str, "a normalised URL as a str")
        jar = self._jars.get(urls.host(url)) if self._jars else None
        if jar is None:
            return None
        now, secure, path = self._clock(), url.startswith("https:"), urls.path(url)
        sent = [
            cookie
            for cookie in jar.values()
            if _covers(cookie.path, path) and cookie.ends > now and (secure or not cookie.secure)
        ]
        sent.sort(key=lambda cookie: (-len(cookie.path), cookie.born))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in sent) or None

    def store(self, url: str, headers: httpx.Headers) -> None:
        """Store the cookies in `headers` of a response from `url`, unless they break a rule."""
        check_kind("url", url, str, "a normalised URL as a str")
        check_kind("headers", headers, httpx.Headers, "httpx.Headers")
        for name, field in headers.raw:
            if name.lower() == b"set-cookie" and not _CONTROL.search(field):
                self._store(url, field.decode("latin-1"))

    def _store(self, url: str, field: str) -> None:
        host, now = urls.host(url), self._clock()
        jar = {key: each for key, each in self._jars.pop(host, {}).items() if each.ends > now}
        cookie = _read(url, field, now, self._today)
        # One that was set without TLS would be sent instead of a secure one.
        if cookie is not None and (
            url.startswith("https:")
            or not any(
                each.secure and each.name == cookie.name and _covers(each.path, cookie.path)
                for each in jar.values()
            )
        ):
            key = cookie.name, cookie.path
            cookie.born = jar.pop(key).born if key in jar else next(self._births)
            if cookie.ends > now:
                jar[key] = cookie
            size = sum(each.size for each in jar.values())
            while len(jar) > MAX_COOKIES or size > MAX_BYTES:
                size -= jar.pop(next(iter(jar))).size
        if jar:
            # At the end of the dict: the first host is the one that set cookies least recently.
            self._jars[host] = jar
        if len(self._jars) > MAX_HOSTS:
            del self._jars[next(iter(self._jars))]


def _read(url: str, field: str, now: float, today: Callable[[], datetime]) -> _Cookie | None:
    """Return the cookie of a Set-Cookie field (RFC 6265, 5.2); None if it breaks a rule.

    The last one of repeated attributes counts.
    """
    pair, *attributes = field.split(";")
    name, equals, value = (part.strip(_BLANK) for part in pair.partition("="))
    domain, path, secure = "", "", False
    aged: float | None = None
    lasting: float | None = None
    for attribute in attributes:
        key, _, given = (part.strip(_BLANK) for part in attribute.partition("="))
        match key.lower() if len(given) <= _MAX_ATTRIBUTE else "":
            case "domain":
                domain = given.removeprefix(".").lower()
            case "path":
                path = given if given.startswith("/") else ""
            case "secure":
                secure = True
            case "max-age" if _MAX_AGE.fullmatch(given):
                aged = max(0, min(int(given), _MAX_SECONDS))
            case "expires" if (date := parse_http_date(given)) is not None:
                lasting = min((date - today()).total_seconds(), _MAX_SECONDS)
    seconds = lasting if aged is None else aged
    asked, host = urls.path(url), urls.host(url)
    # The default is the directory of the URL (RFC 6265, 5.1.4).
    whole = path or asked[: asked.rindex("/")] or "/"
    # RFC 6265, 5.1.3. A host with a number as its last part is an address (URL Standard), and
    # matches only itself.
    below = host.endswith(f".{domain}") and not host.rpartition(".")[2].isdigit()
    # RFC 6265bis, 4.1.3.
    prefix = name.lower()
    breaks = (
        not (name and equals)
        or len(name) + len(value) > _MAX_PAIR
        or len(whole) > _MAX_ATTRIBUTE
        or (domain and host != domain and not below)
        or (secure and not url.startswith("https:"))
        or (prefix.startswith(("__host-", "__secure-")) and not secure)
        or (prefix.startswith("__host-") and (domain or path != "/"))
    )
    ends = math.inf if seconds is None else now + seconds
    return None if breaks else _Cookie(name, value, whole, secure, ends)


def _covers(path: str, requested: str) -> bool:
    """Whether the path of a request matches the path of a cookie (RFC 6265, 5.1.4)."""
    if not requested.startswith(path):
        return False
    return len(requested) == len(path) or path.endswith("/") or requested[len(path)] == "/"
