"""What an argument does not take is refused at the call, by its name and with what it got."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from calls import ARGUMENTS, HOME, RECORDS, call, parameters
from cases import for_each

from trio_crawler import (
    Crawler,
    History,
    HttpFetch,
    Job,
    Limits,
    MemoryFrontier,
    Politeness,
    Response,
    Sitemaps,
    SqliteFrontier,
    Traps,
    all_of,
    any_of,
    excluding,
    normalise,
    same_site,
    with_prefix,
)
from trio_crawler.check import Baseline
from trio_crawler.frontier import Join, Seen
from trio_crawler.report import Warc, changes, sitemap_index, sitemap_parts
from trio_crawler.testing import Web, html, redirect

VARIABLE = inspect.Parameter.VAR_POSITIONAL
SECRET = ("headers", "auth", "proxy")
"""Their values are not shown: they may have a password."""

EACH = [
    pytest.param(name, make, argument, id=f"{name}-{argument.name}")
    for name, make, argument in ARGUMENTS
]


class Wrong:
    """What no argument takes."""

    def __repr__(self) -> str:
        return "<something wrong>"


async def made(name: str, make: Any, argument: inspect.Parameter, value: object) -> object:
    """Call with one argument of this value."""
    given = (value,) if argument.kind is VARIABLE else value
    found = call(name, make, **{argument.name: given})
    return await found if inspect.isawaitable(found) else found


@for_each("name, make, argument", EACH)
async def test_a_value_of_the_wrong_type_is_refused_by_the_name_of_the_argument(
    name: str, make: Callable[[], Any], argument: inspect.Parameter
) -> None:
    with pytest.raises(TypeError) as refused:
        await made(name, make, argument, Wrong())
    sentence = str(refused.value)
    assert argument.name in sentence
    assert "<something wrong>" in sentence or argument.name in SECRET
    assert sentence.isprintable()


@for_each("name, make, argument", EACH)
async def test_none_is_the_default_or_refused(
    name: str, make: Callable[[], Any], argument: inspect.Parameter
) -> None:
    if argument.default is None:
        await made(name, make, argument, None)
    elif (name, argument.name) not in UNKNOWN:
        with pytest.raises(TypeError, match=argument.name):
            await made(name, make, argument, None)


UNKNOWN = {("changes", "since"), ("Stream", "committed"), ("Stream", "tail")}
"""Arguments without a default for which None stands for a fact that is not known."""


async def answered(answer: Any) -> Any:
    """Crawl by a fetch that answers every job so."""

    async def guess(job: Job) -> Any:
        return answer

    return await Crawler([HOME], fetch=guess).crawl()


async def judged(*verdicts: Any, by: Callable[..., Any] = all_of) -> Any:
    """Crawl in a scope that has this verdict on every URL."""
    scopes = [lambda job, verdict=verdict: verdict for verdict in verdicts]
    return await Crawler([HOME], fetch=Web({"/": html("/a")}), scope=by(*scopes)).crawl()


def crawler(**given: Any) -> Crawler:
    return Crawler(**{"seeds": [HOME], **given})


def unfinished(job: Job) -> Response:
    return Response(200)


WRONG_TYPES: list[tuple[Callable[[], Any], str]] = [
    (lambda: crawler(seeds=HOME), f"seeds must be several URLs: write ['{HOME}']"),
    (lambda: crawler(seeds=[None]), "each of seeds must be a URL as a str or httpx.URL, not None"),
    (lambda: crawler(seeds=httpx.URL(HOME)), f"seeds must be several URLs, not URL('{HOME}')"),
    (lambda: crawler(workers="5"), "workers must be a whole number, not '5'"),
    (lambda: crawler(workers=2.5), "workers must be a whole number, not 2.5"),
    (lambda: crawler(workers=True), "workers must be a whole number, not True"),
    (lambda: crawler(limits={}), "limits must be a Limits, not {}"),
    (lambda: crawler(politeness=5), "politeness must be a Politeness, not 5"),
    (lambda: crawler(traps=True), "traps must be a Traps, not True"),
    (lambda: crawler(sitemaps=[HOME]), f"sitemaps must be a Sitemaps, not ['{HOME}']"),
    (lambda: crawler(random=7), "random must be a Random, not 7"),
    (lambda: crawler(order=5), "order must be a function that ranks a job, not 5"),
    (lambda: crawler(scope="x"), "scope must be a function of a job, not 'x'"),
    (lambda: crawler(fetch=5), "fetch must be an async function of a job, such as HttpFetch()"),
    (lambda: crawler(fetch=Web), "fetch must be an async function of a job, such as HttpFetch()"),
    (lambda: crawler(frontier="x"), "frontier must be a frontier, such as MemoryFrontier(), not"),
    (lambda: crawler(frontier=MemoryFrontier), "frontier must be a frontier, such as MemoryFront"),
    (lambda: crawler().stop("x"), "reason must be a Reason, not 'x'"),
    (lambda: crawler().listing(5), "url must be a URL as a str or httpx.URL, not 5"),
    (lambda: aiter(crawler()), "open the crawl first: async with crawler.outcomes() as outcomes"),
    (
        lambda: aiter(crawler().outcomes()),
        "open the crawl first: async with crawler.outcomes() as",
    ),
    (lambda: Limits(max_pages="5"), "max_pages must be a whole number, not '5'"),
    (lambda: Limits(max_pages=True), "max_pages must be a whole number, not True"),
    (lambda: Politeness(delay="1"), "delay must be a number, not '1'"),
    (lambda: Sitemaps(also=HOME), f"also must be several URLs: write ['{HOME}']"),
    (lambda: SqliteFrontier("x", meaning={"a": object}), "meaning must be a mapping of what JSON"),
    (lambda: SqliteFrontier("x", settings={(): 1}), "settings must be a mapping of what JSON can"),
    (lambda: Baseline("x"), "known must be several Identity: write ['x']"),
    (lambda: Baseline([5]), "each of known must be a"),
    (lambda: changes(["/a is new"], None), "each of found must be a Change, not '/a is new'"),
    (
        lambda: Web({"/": "<p>"}),
        "each answer in site must be a Response, a Fault or a function, n",
    ),
    (lambda: Web({5: html()}), "each path in site must be a path or URL as a str, not 5"),
    (lambda: Web({}, delay="1"), "delay must be a number, not '1'"),
    (
        lambda: Response(200, request="GET /"),
        "the request of a Response must be bytes, not 'GET /",
    ),
]
WRONG_VALUES: list[tuple[Callable[[], Any], str]] = [
    (lambda: crawler(workers=0), "workers must be 1 or more, not 0"),
    (lambda: crawler(seeds=["example.org"]), "seeds: not an http or https URL: 'example.org'"),
    (lambda: crawler(seeds=[HOME, "http://[x"]), "seeds: not an http or https URL: 'http://[x'"),
    (lambda: crawler(seeds=["ftp://a:b@c/"]), "seeds: not an http or https URL: 'ftp://c/'"),
    (lambda: crawler().listing("map"), "url: not a URL of the WHATWG URL Standard: 'map'"),
    (
        lambda: normalise("a", "b"),
        "url: not a URL of the WHATWG URL Standard: 'a' with the base '",
    ),
    (
        lambda: normalise("http://\ud800[x"),
        "url: not a URL of the WHATWG URL Standard: 'http://\\u",
    ),
    (lambda: excluding("("), "patterns: not a regular expression: '('"),
    (lambda: excluding(re.compile("")), "patterns: an empty regular expression is found in every"),
    (lambda: with_prefix("/docs"), "prefixes: not an http or https URL: '/docs'"),
    (lambda: Limits(max_pages=0), "max_pages must be 1 or more, not 0"),
    (lambda: Limits(max_waiting=0), "max_waiting must be 1 or more, not 0"),
    (lambda: Limits(max_hosts=0), "max_hosts must be 1 or more, not 0"),
    (lambda: Crawler([HOME], workers=100_001), "workers must be 100,000 or less, not 100,001"),
    (lambda: Politeness(per_host=0), "per_host must be 1 or more, not 0"),
    (lambda: Politeness(delay=float("inf")), "delay must be 0 or more, and finite, not inf"),
    (lambda: Traps(duplicates=False, copies=3), "copies has no effect without duplicates: leave"),
    (lambda: Join().add(-1), "cannot add -1 units: call done() to count out"),
    (lambda: Seen(-1), "max_redirects must be 0 or more, not -1"),
    (lambda: Response(99), "the status of a Response must be 100 or more, not 99"),
    (lambda: Web({}, url="site.test"), "url: not an http or https URL: 'site.test'"),
    (lambda: Web({}, delay=-1), "delay must be 0 or more, and finite, not -1"),
    (lambda: redirect("/a", 200), "status must be one of [300, 301, 302, 303, 307, 308], not 200"),
    (lambda: Warc(max_remembered=0), "max_remembered must be 1 or more, not 0"),
    (lambda: sitemap_parts([], max_urls=0), "max_urls must be 1 or more, not 0"),
    (
        lambda: SqliteFrontier("x", meaning=LOOP),
        "meaning must be a mapping of what JSON can repre",
    ),
]
LOOP: dict[str, Any] = {}
LOOP["again"] = LOOP


@for_each(
    "wrong, error, begins",
    [
        *((wrong, TypeError, begins) for wrong, begins in WRONG_TYPES),
        *((wrong, ValueError, begins) for wrong, begins in WRONG_VALUES),
    ],
)
def test_what_cannot_be_meant_is_refused_by_a_sentence_that_begins(
    wrong: Callable[[], Any], error: type[Exception], begins: str
) -> None:
    with pytest.raises(error) as refused:
        wrong()
    assert str(refused.value).startswith(begins)


IN_A_CRAWL: list[tuple[Callable[[], Any], list[str]]] = [
    (lambda: answered(None), ["guess returned None", "return a Response or a Fault"]),
    (lambda: answered("<p>"), ["guess returned '<p>'", "return a Response or a Fault"]),
    (lambda: answered(httpx.Response(200)), ["guess returned <Response [200 OK]>"]),
    (lambda: crawler(fetch=unfinished).crawl(), ["unfinished returned", "make it an async"]),
    (lambda: crawler(fetch=Web({"/": lambda job: None})).crawl(), ["<Web http://site.test/: 1 "]),
    *(
        (lambda verdicts=verdicts, by=by: judged(*verdicts, by=by), [f"returned {shown}", HOME])
        for verdicts, shown in (((1,), "1"), (("no",), "'no'"), ((None, True), "None"))
        for by in (all_of, any_of, lambda scope, *others: scope)
    ),
]


@for_each("wrong, parts", IN_A_CRAWL)
async def test_what_a_function_of_the_caller_returns_is_refused_with_its_name_and_the_url(
    autojump_clock: Any, wrong: Callable[[], Any], parts: list[str]
) -> None:
    with pytest.raises(ExceptionGroup) as refused:
        await wrong()
    (bug,) = refused.value.exceptions
    assert isinstance(bug, TypeError)
    for part in (*parts, f"for {HOME}"):
        assert part in str(bug)


async def test_a_url_may_be_an_httpx_url_wherever_one_is_taken(tmp_path: Any) -> None:
    url, job = httpx.URL("http://site.test"), Job(HOME)
    made = Crawler([url], sitemaps=Sitemaps(also=[url]))
    assert (made.plan.seeds, made.plan.sitemaps.also) == ((HOME,), (HOME,))
    assert made.listing(url) is None
    assert normalise(url) == normalise(httpx.URL("/"), url) == HOME
    assert same_site([url])(job) is with_prefix(url)(job) is True
    assert Web({}, url=url).url == HOME
    assert sitemap_index([url]) == sitemap_index([HOME])
    assert HOME.encode() in Warc(seeds=[url], gzip=False).head()
    async with HttpFetch(seeds=[url], headers={"X-A": "1"}, proxy=httpx.URL("http://p.test")):
        pass
    async with SqliteFrontier(tmp_path) as frontier:
        await Crawler([], frontier=frontier).crawl()
    with History(tmp_path) as history:
        assert history.listing(url) is None


@for_each("name", sorted(RECORDS))
def test_a_record_has_each_value_as_it_was_given(name: str) -> None:
    fields = [each.name for each in parameters(RECORDS[name])]
    values = {field: object() for field in fields}
    record = RECORDS[name](**values)
    assert {field: getattr(record, field) for field in fields} == values
    with pytest.raises((AttributeError, TypeError)):
        setattr(record, fields[0], None)
