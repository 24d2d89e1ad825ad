"""CookieStore: what the hosts of a crawl ask to be told again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple

import httpx
import trio

from trio_crawler.page.urls import host
from trio_crawler.policy.http_dates import moment

MOST_COOKIES = 50
MOST_BYTES = 8 * 1024
"""Bytes of names, values and paths that one host may have kept."""
MOST_HOSTS = 10_000
MOST_IN_ALL = 64 * 1024 * 1024
"""Bytes of memory, roughly, that all cookies together may take."""

# RFC 6265bis, 5.6: a longer cookie is refused, a longer attribute is as if it were not there.
_MOST_PAIR = 4096
_MOST_ATTRIBUTE = 1024
_MOST_SECONDS = 400 * 86_400

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_MAX_AGE = re.compile("-?[0-9]+")
_BLANK = " \t"
# Bytes that Python needs for a cookie besides its text, measured.
_OVERHEAD = 350


class CookieStatistics(NamedTuple):
    """Count a store: the hosts that have cookies, and the cookies."""

    hosts: int
    cookies: int


@dataclass(frozen=True, slots=True)
class _Cookie:
    """One cookie; `ends` is on the store's clock, `born` its place in the order of creation."""

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
    """Hold the cookies of one host by name and path; those not set for longest come first."""

    __slots__ = ("cookies", "size")

    def __init__(self) -> None:
        self.cookies: dict[tuple[str, str], _Cookie] = {}
        self.size = 0

    def put(self, cookie: _Cookie) -> None:
        """Keep a cookie in the place of the one it replaces, the oldest going if need be."""
        self.drop((cookie.name, cookie.path))
        self.cookies[cookie.name, cookie.path] = cookie
        self.size += cookie.size
        while len(self.cookies) > MOST_COOKIES or self.size > MOST_BYTES:
            self.drop(next(iter(self.cookies)))

    def drop(self, key: tuple[str, str]) -> None:
        """Forget the cookie under this key, if there is one."""
        if cookie := self.cookies.pop(key, None):
            self.size -= cookie.size

    @property
    def weight(self) -> int:
        """Return roughly how many bytes of memory the cookies take."""
        return self.size + _OVERHEAD * len(self.cookies)

    def expire(self, now: float) -> None:
        """Forget what has ended."""
        for cookie in [cookie for cookie in self.cookies.values() if cookie.ends <= now]:
            self.drop((cookie.name, cookie.path))


class CookieStore:
    """Keep the cookies of a crawl by RFC 6265 and its successor draft (6265bis), in memory.

    Stricter than both in one point: a cookie goes back to exactly the host that set it, on any
    port, whatever its Domain says. A Domain that the host is not in makes the cookie refused,
    one that it is in changes nothing, so no list of public suffixes is needed.

    A host has at most 50 cookies and 8 KiB, 10,000 hosts have any, and all take 64 MiB at most:
    the ones not set for longest are forgotten first. URLs are normalised http or https ones.
    `clock` gives seconds from any start, `today` the time on the wall, by which Expires is read.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = trio.current_time,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._jars: dict[str, _Jar] = {}
        self._clock = clock
        self._today = today
        self._births = count()
        self._weight = 0

    def __repr__(self) -> str:
        figures = self.statistics()
        return f"<CookieStore: {figures.cookies} cookies of {figures.hosts} hosts>"

    def statistics(self) -> CookieStatistics:
        """Count what is kept at this moment, ended or not."""
        cookies = sum(len(jar.cookies) for jar in self._jars.values())
        return CookieStatistics(len(self._jars), cookies)

    def cookies_for(self, url: str) -> str | None:
        """Give the value of the Cookie header for a URL; None when there is nothing to send.

        Longer paths come first, then what was created first (RFC 6265, 5.4). A character stands
        for a byte, as in Latin-1: encoded so, a cookie goes back as it came.
        """
        jar = self._jars.get(host(url)) if self._jars else None
        if jar is None:
            return None
        now, secure, path = self._clock(), url.startswith("https:"), _path(url)
        sent = [
            cookie
            for cookie in jar.cookies.values()
            if _covers(cookie.path, path) and cookie.ends > now and (secure or not cookie.secure)
        ]
        sent.sort(key=lambda cookie: (-len(cookie.path), cookie.born))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in sent) or None

    def store(self, url: str, headers: httpx.Headers) -> None:
        """Take in every Set-Cookie field of an answer from a URL; what breaks a rule is left."""
        fields = [value for name, value in headers.raw if name.lower() == b"set-cookie"]
        for field in fields:
            if not _CONTROL.search(field):
                self._store(url, _Said(field.decode("latin-1")))

    def _store(self, url: str, said: _Said) -> None:
        name = host(url)
        jar = self._jars.pop(name, None) or _Jar()
        now, before = self._clock(), jar.weight
        jar.expire(now)
        if _permitted(url, said):
            self._put(jar, url, said, now)
        if jar.cookies:
            # At the end of the dict again: the first host is the one not heard of for longest.
            self._jars[name] = jar
        self._weight += jar.weight - before
        while len(self._jars) > MOST_HOSTS or self._weight > MOST_IN_ALL:
            self._weight -= self._jars.pop(next(iter(self._jars))).weight

    def _put(self, jar: _Jar, url: str, said: _Said, now: float) -> None:
        path = said.path or _directory(_path(url))
        if len(path) > _MOST_ATTRIBUTE or _before_a_secure_one(jar, url, said.name, path):
            return
        known = jar.cookies.get((said.name, path))
        born = known.born if known else next(self._births)
        ends = now + said.seconds(self._today)
        if ends <= now:
            jar.drop((said.name, path))
        else:
            jar.put(_Cookie(said.name, said.value, path, said.secure, ends, born))


class _Said:
    """Take one Set-Cookie field apart (RFC 6265, 5.2); of an attribute the last one counts."""

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
            key, _, what = (part.strip(_BLANK) for part in attribute.partition("="))
            if len(what) <= _MOST_ATTRIBUTE:
                self._heed(key.lower(), what)

    def _heed(self, attribute: str, value: str) -> None:
        match attribute:
            case "domain":
                self.domain = value.removeprefix(".").lower()
            case "path":
                self.path = value if value.startswith("/") else ""
            case "secure":
                self.secure = True
            case "max-age" if _MAX_AGE.fullmatch(value):
                self.max_age = int(value)
            case "expires":
                self.expires = moment(value) or self.expires

    def seconds(self, today: Callable[[], datetime]) -> float:
        """Return how long it is to be kept: Max-Age before Expires; infinite without either."""
        if self.max_age is not None:
            return max(0, min(self.max_age, _MOST_SECONDS))
        if self.expires is not None:
            return min((self.expires - today()).total_seconds(), _MOST_SECONDS)
        return float("inf")


def _permitted(url: str, said: _Said) -> bool:
    if not said.name or len(said.name) + len(said.value) > _MOST_PAIR:
        return False
    if said.domain and not _within(host(url), said.domain):
        return False
    if said.secure and not url.startswith("https:"):
        return False
    return _worthy(said)


def _worthy(said: _Said) -> bool:
    """Tell whether a cookie may have its prefix (RFC 6265bis, 4.1.3)."""
    name = said.name.lower()
    if name.startswith("__host-"):
        return said.secure and not said.domain and said.path == "/"
    return said.secure or not name.startswith("__secure-")


def _within(host: str, domain: str) -> bool:
    """Tell whether a host domain-matches (RFC 6265, 5.1.3); an address matches only itself."""
    # In the URL Standard a host whose last part is a number is an address.
    address = host.rpartition(".")[2].isdigit()
    return host == domain or (not address and host.endswith("." + domain))


def _before_a_secure_one(jar: _Jar, url: str, name: str, path: str) -> bool:
    """Tell whether what came in the clear would take the place of a secure cookie."""
    return not url.startswith("https:") and any(
        cookie.secure and cookie.name == name and _covers(cookie.path, path)
        for cookie in jar.cookies.values()
    )


def _path(url: str) -> str:
    start = url.index("/", url.index("//") + 2)
    return url[start:].partition("?")[0]


def _directory(path: str) -> str:
    """Return the default path of a URL's path (RFC 6265, 5.1.4)."""
    return path[: path.rindex("/")] or "/"


def _covers(path: str, asked: str) -> bool:
    """Tell whether a request's path matches a cookie's (RFC 6265, 5.1.4)."""
    if not asked.startswith(path):
        return False
    return len(asked) == len(path) or path.endswith("/") or asked[len(path)] == "/"
