"""The cookies of a crawl, by host."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

import httpx
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


@dataclass(frozen=True, slots=True)
class _Cookie:
    """One cookie: it expires at `ends`, by the clock of the store; `born` orders by creation."""

    name: str
    value: str
    path: str
    secure: bool
    ends: float
    born: int

    @property
    def size(self) -> int:
        return len(self.name) + len(self.value) + len(self.path)


class _Jar:
    """The cookies of one host, by name and path, in the order in which they were last set."""

    __slots__ = ("cookies", "size")

    def __init__(self) -> None:
        self.cookies: dict[tuple[str, str], _Cookie] = {}
        self.size = 0

    def put(self, cookie: _Cookie) -> None:
        """Store or replace a cookie; evict the oldest cookies beyond the bounds."""
        self.drop((cookie.name, cookie.path))
        self.cookies[cookie.name, cookie.path] = cookie
        self.size += cookie.size
        while len(self.cookies) > MAX_COOKIES or self.size > MAX_BYTES:
            self.drop(next(iter(self.cookies)))

    def drop(self, key: tuple[str, str]) -> None:
        """Remove the cookie under a key, if there is one."""
        if cookie := self.cookies.pop(key, None):
            self.size -= cookie.size


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
        self._jars: dict[str, _Jar] = {}
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
            for cookie in jar.cookies.values()
            if _covers(cookie.path, path) and cookie.ends > now and (secure or not cookie.secure)
        ]
        sent.sort(key=lambda cookie: (-len(cookie.path), cookie.born))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in sent) or None

    def store(self, url: str, headers: httpx.Headers) -> None:
        """Store the cookies in `headers` of a response from `url`, unless they break a rule."""
        check_kind("url", url, str, "a normalised URL as a str")
        check_kind("headers", headers, httpx.Headers, "httpx.Headers")
        fields = [value for name, value in headers.raw if name.lower() == b"set-cookie"]
        for field in fields:
            if not _CONTROL.search(field):
                self._store(url, _SetCookie(field.decode("latin-1")))

    def _store(self, url: str, parsed: _SetCookie) -> None:
        name = urls.host(url)
        jar = self._jars.pop(name, None) or _Jar()
        now = self._clock()
        for cookie in [cookie for cookie in jar.cookies.values() if cookie.ends <= now]:
            jar.drop((cookie.name, cookie.path))
        if _permitted(url, parsed):
            self._put(jar, url, parsed, now)
        if jar.cookies:
            # At the end of the dict: the first host is the one that set cookies least recently.
            self._jars[name] = jar
        if len(self._jars) > MAX_HOSTS:
            del self._jars[next(iter(self._jars))]

    def _put(self, jar: _Jar, url: str, parsed: _SetCookie, now: float) -> None:
        # The default is the directory of the URL (RFC 6265, 5.1.4).
        asked = urls.path(url)
        path = parsed.path or asked[: asked.rindex("/")] or "/"
        # One that was set without TLS would be sent instead of a secure one.
        hides = not url.startswith("https:") and any(
            cookie.secure and cookie.name == parsed.name and _covers(cookie.path, path)
            for cookie in jar.cookies.values()
        )
        if hides or len(path) > _MAX_ATTRIBUTE:
            return
        known = jar.cookies.get((parsed.name, path))
        born = known.born if known else next(self._births)
        ends = now + parsed.seconds(self._today)
        if ends <= now:
            jar.drop((parsed.name, path))
        else:
            jar.put(_Cookie(parsed.name, parsed.value, path, parsed.secure, ends, born))


class _SetCookie:
    """A parsed Set-Cookie field (RFC 6265, 5.2); the last one of repeated attributes counts."""

    __slots__ = ("domain", "expires", "max_age", "name", "path", "secure", "value")

    def __init__(self, field: str) -> None:
        pair, *attributes = field.split(";")
        name, equals, value = pair.partition("=")
        self.name = name.strip(_BLANK) if equals else ""
        self.value = value.strip(_BLANK)
        self.domain = ""
        self.path = ""
        self.secure = False
        self.max_age: int | None = None
        self.expires: datetime | None = None
        for attribute in attributes:
            key, _, value = (part.strip(_BLANK) for part in attribute.partition("="))
            if len(value) > _MAX_ATTRIBUTE:
                continue
            match key.lower():
                case "domain":
                    self.domain = value.removeprefix(".").lower()
                case "path":
                    self.path = value if value.startswith("/") else ""
                case "secure":
                    self.secure = True
                case "max-age" if _MAX_AGE.fullmatch(value):
                    self.max_age = int(value)
                case "expires":
                    self.expires = parse_http_date(value) or self.expires

    def seconds(self, today: Callable[[], datetime]) -> float:
        """Return the lifetime in seconds: by Max-Age, else by Expires, else infinite."""
        if self.max_age is not None:
            return max(0, min(self.max_age, _MAX_SECONDS))
        if self.expires is not None:
            return min((self.expires - today()).total_seconds(), _MAX_SECONDS)
        return float("inf")


def _permitted(url: str, parsed: _SetCookie) -> bool:
    if not parsed.name or len(parsed.name) + len(parsed.value) > _MAX_PAIR:
        return False
    # RFC 6265, 5.1.3. A host with a number as its last part is an address (URL Standard), and
    # matches only itself.
    host = urls.host(url)
    below = host.endswith(f".{parsed.domain}") and not host.rpartition(".")[2].isdigit()
    other_host = parsed.domain and host != parsed.domain and not below
    if other_host or (parsed.secure and not url.startswith("https:")):
        return False
    # The prefixes of names: RFC 6265bis, 4.1.3.
    name = parsed.name.lower()
    if name.startswith("__host-"):
        return parsed.secure and not parsed.domain and parsed.path == "/"
    return parsed.secure or not name.startswith("__secure-")


def _covers(path: str, requested: str) -> bool:
    """Whether the path of a request matches the path of a cookie (RFC 6265, 5.1.4)."""
    if not requested.startswith(path):
        return False
    return len(requested) == len(path) or path.endswith("/") or requested[len(path)] == "/"
