"""The plan of one crawl: its settings. A `Crawler` makes it once and passes it to each part."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import math
import random
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import httpx
from msgspec.structs import replace

from trio_crawler.arguments import (
    ArgumentError,
    check_flag,
    check_function,
    check_kind,
    check_methods,
    check_whole,
    public,
)
from trio_crawler.model import Job, Purpose
from trio_crawler.page.urls import web_urls
from trio_crawler.policy.scope import Scope, any_of, same_site, seeds_only
from trio_crawler.policy.settings import Checks, Limits, Order, Politeness, breadth_first
from trio_crawler.policy.traps import Traps

MAX_WORKERS = 100_000
"""The most workers of a crawl."""

SEEDING = Job("about:seeds", purpose=Purpose.SEEDS)
"""The job that stands for a stream of seeds: admitted with the seeds, settled after its end."""

_T = TypeVar("_T")


@public("trio_crawler")
@dataclass(frozen=True, slots=True, init=False)
class Sitemaps:
    """The sitemaps that a crawl reads.

    With `follow` it reads those that robots.txt names. It always reads the URLs in `also`, so
    `Sitemaps(follow=False)` reads none. The sitemaps that an index lists are read too. With `only`
    no link is followed: the crawl fetches the seeds, what the sitemaps list, and what these
    redirect to. A link that is not followed is rejected as `NOT_INCLUDED`.

    Raises TypeError or ValueError if an element of `also` is not an http or https URL, and
    ValueError for `only` if no sitemap is read.

    >>> Sitemaps(also=["https://e.org/news.xml"], only=True).follow
    True
    """

    follow: bool
    also: tuple[str, ...]
    only: bool

    def __init__(
        self, follow: bool = True, also: Iterable[str | httpx.URL] = (), *, only: bool = False
    ) -> None:
        check_flag("follow", follow)
        check_flag("only", only)
        urls = web_urls("also", also)
        if only and not (follow or urls):
            raise ArgumentError(
                "only", " needs a sitemap: follow those of robots.txt, or name one"
            )
        object.__setattr__(self, "follow", follow)
        object.__setattr__(self, "also", urls)
        object.__setattr__(self, "only", only)


def _chance(generator: Random) -> Callable[..., float]:
    """Return a function of a key that returns a number in [0, 1), in whatever order it is called.

    The same state of the generator gives the same numbers.
    """
    salt = generator.getrandbits(64)
    return lambda *key: Random(f"{salt} {key}").random()  # noqa: S311 - nothing is secret


@public("trio_crawler.frontier")
@dataclass(frozen=True, slots=True, init=False)
class Plan:
    """The settings of one crawl; `Crawler` documents each argument. None means the default.

    `seeds`, `seed_stream`, `scope`, `limits`, `politeness`, `traps`, `sitemaps`, `checks`,
    `order`, `fold_canonical`, `anchors`, `facts`, `workers` and `random` are those of the
    `Crawler`. `agent` is the product token to look for in robots.txt. `chance` returns the jitter
    of retries and rests.

    Raises TypeError or ValueError, naming the argument, for an invalid value.
    """

    seeds: tuple[str, ...]
    seed_stream: AsyncIterable[str | httpx.URL] | None
    scope: Scope
    limits: Limits
    politeness: Politeness
    traps: Traps
    sitemaps: Sitemaps
    checks: Checks
    order: Order
    fold_canonical: bool
    anchors: bool
    facts: bool
    workers: int
    agent: str
    chance: Callable[..., float]

    def __init__(
        self,
        seeds: Iterable[str | httpx.URL] = (),
        *,
        seed_stream: AsyncIterable[str | httpx.URL] | None = None,
        scope: Scope | None = None,
        limits: Limits | None = None,
        politeness: Politeness | None = None,
        traps: Traps | None = None,
        sitemaps: Sitemaps | None = None,
        checks: Checks | None = None,
        order: Order | None = None,
        fold_canonical: bool = False,
        anchors: bool = False,
        facts: bool = False,
        workers: int = 10,
        agent: str = "",
        random: random.Random | None = None,
    ) -> None:
        urls = web_urls("seeds", seeds)
        limits, traps = _kind("limits", limits, Limits), _kind("traps", traps, Traps)
        if traps.max_hops is None and limits.max_depth < math.inf:
            # An explicit depth takes precedence over the default of the traps.
            traps = replace(traps, max_hops=math.inf)
        site = same_site(urls)
        if seed_stream is not None:
            wanted = "an async iterable of URLs"
            check_methods("seed_stream", seed_stream, ("__aiter__",), wanted)
            # The redirects of a listed URL are followed wherever they lead, its links are not.
            site = any_of(seeds_only, site)
        parts = {
            "seeds": urls,
            "seed_stream": seed_stream,
            "scope": _function("scope", scope, site, "a function of a job"),
            "limits": limits,
            "politeness": _kind("politeness", politeness, Politeness),
            "traps": traps,
            "sitemaps": _kind("sitemaps", sitemaps, Sitemaps),
            "checks": Checks.off() if checks is None else _kind("checks", checks, Checks),
            "order": _function("order", order, breadth_first, "a function that ranks a job"),
            "fold_canonical": fold_canonical,
            "anchors": anchors,
            "facts": facts,
            "workers": workers,
            "agent": agent,
            "chance": _chance(_kind("random", random, Random)),
        }
        check_flag("fold_canonical", fold_canonical)
        check_flag("anchors", anchors)
        check_flag("facts", facts)
        check_whole("workers", workers, least=1, most=MAX_WORKERS)
        check_kind("agent", agent, str, "a str")
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def first_jobs(self) -> Iterator[Job]:
        """Yield the jobs that a crawl begins with: the seeds and the sitemaps in `also`.

        The last one stands for the stream of seeds, if there is one.
        """
        redirects = self.limits.max_redirects
        for url in self.seeds:
            yield Job(url, redirects=redirects)
        for url in self.sitemaps.also:
            yield Job(url, redirects=redirects, purpose=Purpose.SITEMAP)
        if self.seed_stream is not None:
            yield SEEDING


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
