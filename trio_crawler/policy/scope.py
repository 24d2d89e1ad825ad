"""Scopes: which URLs belong to a crawl. A scope is a function; scopes compose."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Protocol, TypeAlias
from weakref import WeakSet

import httpx

from trio_crawler.arguments import (
    ArgumentError,
    check_flag,
    check_function,
    check_kind,
    checked_pattern,
    public,
)
from trio_crawler.model import Job, Reason
from trio_crawler.page.urls import host, web_urls

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

Pattern: TypeAlias = str | re.Pattern[str]

_MOST_ORIGINS = 10_000

# The scopes made here that look at nothing of a job but its URL.
_OF_URLS: "WeakSet[Scope]" = WeakSet()


@public("trio_crawler")
class Scope(Protocol):
    """Decide which URLs belong to a crawl, in place of `same_site(seeds)`.

    A scope of your own leaves the site, unless you pass it to that: `same_site(seeds, scope)`. It
    is any function `(job) -> bool | Reason`. True admits the job, False rejects it as
    `Reason.EXCLUDED`, a `Reason` rejects it for that reason. Any other value raises TypeError with
    the name of the scope and the URL. The crawl calls it for each new link, redirect and sitemap
    entry, but not for seeds. A scope must be quick and must not block.

    >>> def without_parameters(job: Job) -> bool | Reason:
    ...     return "?" not in job.url
    >>> scope: Scope = same_site(["https://e.org/"], without_parameters)
    >>> [scope(Job(url)) for url in ("https://e.org/a", "https://e.org/a?b=1", "https://f.org/")]
    [True, False, <Reason.OTHER_SITE: 'other_site'>]
    """

    def __call__(self, job: Job, /) -> bool | Reason: ...


def same_site(seeds: Iterable[str | httpx.URL], *scopes: Scope, lenient: bool = False) -> Scope:
    """Return a scope that admits the hosts of the seeds, on any port, by http or https.

    With `scopes` it admits the URLs there that all of these admit.

    By default the host must be the same, with or without one leading `www.`. With `lenient` the
    registrable domain must be the same by the public suffix list (https://publicsuffix.org/):
    the seed `www.example.co.uk` admits `a.example.co.uk`, but not `other.co.uk`. An IP address
    matches only itself.

    Raises TypeError or ValueError, naming the seed, if it is not an http or https URL.

    >>> scope = same_site(["https://e.org/"])
    >>> scope(Job("http://www.e.org/a")), scope(Job("https://docs.e.org/"))
    (True, <Reason.OTHER_SITE: 'other_site'>)
    >>> same_site(["https://e.org/"], lenient=True)(Job("https://docs.e.org/"))
    True
    """
    check_flag("lenient", lenient)
    site_of = registrable if lenient else _without_www
    sites = frozenset(site_of(host(seed)) for seed in web_urls("seeds", seeds))
    inside: dict[str, bool] = {}

    def same_site(job: Job) -> bool | Reason:
        url = job.url
        origin = url[: url.index("/", 8)]
        if (known := inside.get(origin)) is None:
            if len(inside) >= _MOST_ORIGINS:
                inside.clear()
            known = inside[origin] = site_of(host(url)) in sites
        return known or Reason.OTHER_SITE

    of_site = _of_urls(same_site)
    return all_of(of_site, *scopes) if scopes else of_site


def seeds_only(job: Job) -> bool | Reason:
    """Admit a `job` of a seed or of what it redirects to; a scope for a list of URLs.

    >>> seeds_only(Job("https://e.org/", depth=0)), seeds_only(Job("https://e.org/a", depth=1))
    (True, <Reason.OTHER_SITE: 'other_site'>)
    """
    check_kind("job", job, Job, "a Job")
    return job.depth == 0 or Reason.OTHER_SITE


def with_prefix(*prefixes: str | httpx.URL) -> Scope:
    """Return a scope that admits URLs with one of these prefixes, such as `https://e.org/docs/`.

    Raises TypeError or ValueError, naming the prefix, if it is not an http or https URL, and
    ValueError without a prefix: no URL would be admitted.

    >>> scope = with_prefix("https://e.org/docs/")
    >>> scope(Job("https://e.org/docs/a")), scope(Job("https://e.org/blog/"))
    (True, <Reason.NOT_INCLUDED: 'not_included'>)
    """
    wanted = web_urls("prefixes", prefixes)
    _refuse_none("prefixes", wanted)

    def with_prefix(job: Job) -> bool | Reason:
        return job.url.startswith(wanted) or Reason.NOT_INCLUDED

    return _of_urls(with_prefix)


def including(*patterns: Pattern) -> Scope:
    r"""Return a scope that admits URLs in which `re.search` finds at least one of the patterns.

    Raises TypeError or ValueError, naming the pattern, if it is not a regular expression or empty,
    and ValueError without a pattern: no URL would be admitted.

    >>> scope = including(r"/docs/", r"\.html$")
    >>> scope(Job("https://e.org/docs/a")), scope(Job("https://e.org/a.png"))
    (True, <Reason.NOT_INCLUDED: 'not_included'>)
    """
    _refuse_none("patterns", patterns)
    found = _finder(patterns)

    def including(job: Job) -> bool | Reason:
        return found(job.url) or Reason.NOT_INCLUDED

    return _of_urls(including)


def excluding(*patterns: Pattern) -> Scope:
    r"""Return a scope that admits URLs in which `re.search` finds none of the patterns.

    Raises TypeError or ValueError, naming the pattern, if it is not a regular expression or empty.

    >>> scope = excluding(r"\.pdf$", r"[?&]print=")
    >>> scope(Job("https://e.org/a")), scope(Job("https://e.org/a.pdf"))
    (True, <Reason.EXCLUDED: 'excluded'>)
    """
    found = _finder(patterns)

    def excluding(job: Job) -> bool | Reason:
        return Reason.EXCLUDED if found(job.url) else True

    return _of_urls(excluding)


def all_of(*scopes: Scope) -> Scope:
    r"""Return a scope that admits what all `scopes` admit; the first rejection is the reason.

    >>> scope = all_of(same_site(["https://e.org/"]), excluding(r"\.pdf$"))
    >>> [scope(Job(url)) for url in ("https://e.org/a", "https://e.org/a.pdf", "https://f.org/")]
    [True, <Reason.EXCLUDED: 'excluded'>, <Reason.OTHER_SITE: 'other_site'>]
    """
    for scope in scopes:
        check_function("each of scopes", scope, "a function of a job")

    def all_of(job: Job) -> bool | Reason:
        for scope in scopes:
            if (verdict := scope(job)) is not True:
                return _checked(verdict, scope, job)
        return True

    return _of_urls(all_of) if all(map(is_of_urls, scopes)) else all_of


def any_of(*scopes: Scope) -> Scope:
    """Return a scope that admits what one of `scopes` admits; the last rejection is the reason.

    >>> scope = any_of(with_prefix("https://e.org/docs/"), including(r"/manual/"))
    >>> [scope(Job(f"https://e.org{path}")) for path in ("/docs/a", "/manual/b", "/")]
    [True, True, <Reason.NOT_INCLUDED: 'not_included'>]
    """
    for scope in scopes:
        check_function("each of scopes", scope, "a function of a job")

    def any_of(job: Job) -> bool | Reason:
        verdict: bool | Reason = Reason.NOT_INCLUDED
        for scope in scopes:
            if (verdict := scope(job)) is True:
                return True
            _checked(verdict, scope, job)
        return verdict

    return _of_urls(any_of) if all(map(is_of_urls, scopes)) else any_of


def is_of_urls(scope: Scope) -> bool:
    """Whether a scope is made of those of this module, and looks at nothing of a job but its URL.

    It returns the same for a URL each time.
    """
    # Another callable may have no hash.
    return isinstance(scope, FunctionType) and scope in _OF_URLS


def refusal(verdict: bool | Reason, scope: Scope, job: Job) -> Reason:
    """Return the reason of a verdict of a scope that does not admit a job.

    Raises TypeError, with the name of the scope and the URL, if the verdict is anything but False
    or a Reason.
    """
    reason = _checked(verdict, scope, job)
    return reason if isinstance(reason, Reason) else Reason.EXCLUDED


def _of_urls(scope: Scope) -> Scope:
    _OF_URLS.add(scope)
    return scope


def _checked(verdict: bool | Reason, scope: Scope, job: Job) -> bool | Reason:
    """Return the verdict of a scope that does not admit a job; raise TypeError for any other."""
    if isinstance(verdict, Reason) or verdict is False:
        return verdict
    name = getattr(scope, "__qualname__", None) or repr(scope)
    raise TypeError(
        f"the scope {name} returned {verdict!r} for {job.url}: "
        "return True to admit it, False or a Reason to reject it"
    )


def _finder(patterns: Iterable[Pattern]) -> Callable[[str], bool]:
    compiled = [checked_pattern("patterns", pattern) for pattern in patterns]
    return lambda url: any(pattern.search(url) for pattern in compiled)


def _refuse_none(name: str, given: Collection[object]) -> None:
    if not given:
        raise ArgumentError(name, " must not be empty: no URL would be admitted")


def _without_www(host: str) -> str:
    return host.removeprefix("www.")


def registrable(host: str) -> str:
    """Return the registrable domain of a host by the public suffix list; else the host itself."""
    if ":" in host or host.rpartition(".")[2].isdigit():
        # An address.
        return host
    return _suffixes().privatesuffix(host.removesuffix(".")) or host


@cache
def _suffixes() -> "PublicSuffixList":
    # The list that comes with the package: nothing is fetched and nothing is written to disk.
    # Imported late because it costs 0.1 s, and only a lenient scope needs it.
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


for _function in (same_site, seeds_only, with_prefix, including, excluding, all_of, any_of):
    _function.__module__ = "trio_crawler"
