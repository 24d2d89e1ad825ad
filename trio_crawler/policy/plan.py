"""The plan of one crawl: its settings. A `Crawler` makes it once and passes it to each part."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

import httpx

from trio_crawler.arguments import check_flag, check_function, check_kind, check_whole
from trio_crawler.model import Job, Purpose
from trio_crawler.page.urls import web_urls
from trio_crawler.policy.checks import Checks
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.order import Order, breadth_first
from trio_crawler.policy.politeness import Politeness
from trio_crawler.policy.scope import Scope, same_site
from trio_crawler.policy.traps.watch import Traps

MAX_WORKERS = 100_000
"""The most workers of a crawl."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, init=False)
class Sitemaps:
    """The sitemaps that a crawl reads.

    With `follow` it reads those that robots.txt names. It always reads the URLs in `also`, so
    `Sitemaps(follow=False)` reads none. The sitemaps that an index lists are read too.

    Raises TypeError or ValueError if an element of `also` is not an http or https URL.
    """

    __module__ = "trio_crawler"

    follow: bool
    also: tuple[str, ...]

    def __init__(self, follow: bool = True, also: Iterable[str | httpx.URL] = ()) -> None:
        check_flag("follow", follow)
        object.__setattr__(self, "follow", follow)
        object.__setattr__(self, "also", web_urls("also", also))


class Chance:
    """A source of random numbers: one number for each key, independent of the order of the calls.

    The same state of the generator gives the same numbers.
    """

    __slots__ = ("_salt",)

    def __init__(self, generator: random.Random) -> None:
        self._salt = generator.getrandbits(64)

    def __call__(self, *key: object) -> float:
        """Return a number in [0, 1)."""
        return random.Random(f"{self._salt} {key}").random()  # noqa: S311 - nothing is secret


@dataclass(frozen=True, slots=True, init=False)
class Plan:
    """The settings of one crawl; `Crawler` documents each argument. None means the default.

    `agent` is the product token to look for in robots.txt. `chance` returns the jitter of retries
    and rests.

    Raises TypeError or ValueError, naming the argument, for an invalid value.
    """

    __module__ = "trio_crawler.frontier"

    seeds: tuple[str, ...]
    scope: Scope
    limits: Limits
    politeness: Politeness
    traps: Traps
    sitemaps: Sitemaps
    checks: Checks
    order: Order
    fold_canonical: bool
    anchors: bool
    workers: int
    agent: str
    chance: Chance

    def __init__(
        self,
        seeds: Iterable[str | httpx.URL] = (),
        *,
        scope: Scope | None = None,
        limits: Limits | None = None,
        politeness: Politeness | None = None,
        traps: Traps | None = None,
        sitemaps: Sitemaps | None = None,
        checks: Checks | None = None,
        order: Order | None = None,
        fold_canonical: bool = False,
        anchors: bool = False,
        workers: int = 10,
        agent: str = "",
        random: random.Random | None = None,
    ) -> None:
        urls = web_urls("seeds", seeds)
        limits, traps = _kind("limits", limits, Limits), _kind("traps", traps, Traps)
        if traps.max_hops is None and limits.max_depth < math.inf:
            # An explicit depth takes precedence over the default of the traps.
            traps = replace(traps, max_hops=math.inf)
        parts = {
            "seeds": urls,
            "scope": _function("scope", scope, same_site(urls), "a function of a job"),
            "limits": limits,
            "politeness": _kind("politeness", politeness, Politeness),
            "traps": traps,
            "sitemaps": _kind("sitemaps", sitemaps, Sitemaps),
            "checks": Checks.off() if checks is None else _kind("checks", checks, Checks),
            "order": _function("order", order, breadth_first, "a function that ranks a job"),
            "fold_canonical": fold_canonical,
            "anchors": anchors,
            "workers": workers,
            "agent": agent,
            "chance": Chance(_kind("random", random, Random)),
        }
        check_flag("fold_canonical", fold_canonical)
        check_flag("anchors", anchors)
        check_whole("workers", workers, least=1, most=MAX_WORKERS)
        check_kind("agent", agent, str, "a str")
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def first_jobs(self) -> list[Job]:
        """Return the jobs that a crawl begins with: the seeds and the sitemaps in `also`."""
        redirects = self.limits.max_redirects
        pages = [Job(url, redirects=redirects) for url in self.seeds]
        return pages + [
            Job(url, redirects=redirects, purpose=Purpose.SITEMAP) for url in self.sitemaps.also
        ]


def _kind(name: str, value: _T | None, kind: type[_T]) -> _T:
    """Return `value`, or the default of its kind for None; raise TypeError for another kind."""
    if value is None:
        return kind()
    check_kind(name, value, kind, f"a {kind.__name__}")
    return value


def _function(name: str, value: _T | None, default: _T, wanted: str) -> _T:
    if value is None:
        return default
    check_function(name, value, wanted)
    return value
