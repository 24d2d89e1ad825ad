"""Arguments of a wrong kind are refused at the call, by a sentence that names the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from cases import for_each

from trio_crawler.model import Page, Statistics
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.policy.settings import Politeness
from trio_crawler.report import (
    CrawlFacts,
    Report,
    Warc,
    changes,
    csv_row,
    link_rows,
    one_line,
    sitemap_entry,
    sitemap_home,
    sitemap_index,
    sitemap_parts,
    to_jsonl,
    visible,
)

PAGE = Page("https://a.test/", 200, httpx.Headers(), b"")


def facts(**changed: Any) -> CrawlFacts:
    return CrawlFacts(**{"statistics": Statistics(), "workers": 1, "seeds": [], **changed})


@for_each(
    "take",
    [
        csv_row,
        link_rows,
        one_line,
        to_jsonl,
        sitemap_entry,
        Report().add,
        Warc().records,
    ],
)
@for_each("value", [None, "https://a.test/", Page])
def test_what_takes_an_outcome_refuses_anything_else(
    take: Callable[[Any], object], value: object
) -> None:
    with pytest.raises(TypeError) as refused:
        take(value)
    assert str(refused.value) == f"outcome must be an outcome, not {value!r}"
    take(PAGE)


@for_each(
    "call, sentence",
    [
        (lambda: Report(why=1), "why must be True or False, not 1"),
        (lambda: Report(full="no"), "full must be True or False, not 'no'"),
        (
            lambda: Report().text(Statistics()),
            "crawl must be a Crawler or a CrawlFacts, not Statistics(",
        ),
        (lambda: Warc(software=None), "software must be a name and version as a str, not None"),
        (lambda: Warc(seeds="http://a/"), "seeds must be several URLs: write ['http://a/']"),
        (lambda: Warc(gzip=9), "gzip must be True or False, not 9"),
        (lambda: Warc().recording(None), "fetch must be an async function from a Job to a Resp"),
        (lambda: Warc().restore(7), "bodies must be several (URL, SHA-1, time), not 7"),
        (lambda: changes(None, None), "found must be several changes, not None"),
        (lambda: changes([], "today"), "since must be a number, not 'today'"),
        (lambda: changes([], None, full=None), "full must be True or False, not None"),
        (lambda: visible(b"text"), "text must be a string, not b'text'"),
        (lambda: sitemap_parts(b"<url>"), "entries must be several entries: write [b'<url>']"),
        (lambda: list(sitemap_parts(["<url>"])), "each of entries must be an entry as bytes, not"),
        (lambda: sitemap_home("<url>"), "line must be an entry as bytes, not '<url>'"),
        (lambda: sitemap_index("http://a/"), "urls must be several URLs: write ['http://a/']"),
        (lambda: sitemap_index([b"u"]), "each of urls must be a string, not b'u'"),
    ],
)
def test_an_argument_of_a_wrong_kind_is_refused_by_its_name(
    call: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(TypeError) as refused:
        call()
    assert str(refused.value).startswith(sentence)


@for_each(
    "name, value, sentence",
    [
        ("statistics", None, "statistics must be a Statistics, not None"),
        ("workers", "many", "workers must be a whole number, not 'many'"),
        ("workers", -1, "workers must be 0 or more, not -1"),
        ("seeds", "http://a/", "seeds must be several strings: write ['http://a/']"),
        ("seeds", [None], "each of seeds must be a string, not None"),
        ("ended", None, "ended must be a phrase, not None"),
        ("insecure", "a.test", "insecure must be several strings: write ['a.test']"),
        ("authorized", "http://a", "authorized must be several strings: write ['http://a']"),
        ("wire", 3, "wire must be a WireStatistics, not 3"),
        ("politeness", {}, "politeness must be a Politeness, not {}"),
        (
            "hosts",
            None,
            "hosts must be the hosts by name, as Crawler.hosts returns them, not None",
        ),
        (
            "hosts",
            ["a.test"],
            "hosts must be the hosts by name, as Crawler.hosts returns them, not ['a.test']",
        ),
        ("sitemaps", ["s.xml"], "each of sitemaps must be a Sitemap, not 's.xml'"),
        ("listing", {}, "listing must be a function from a URL to a Listing or None, not {}"),
        ("directory", None, "directory must be the path of a directory as a str, not None"),
        ("spent", 0, "spent must be True or False, not 0"),
        ("cookies", 0, "cookies must be True, False or None, not 0"),
    ],
)
def test_a_fact_of_a_wrong_kind_is_refused_by_its_name(
    name: str, value: object, sentence: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        facts(**{name: value})
    assert str(refused.value) == sentence


def test_facts_keep_no_list_of_the_caller() -> None:
    seeds = ["http://a/"]
    made = facts(seeds=seeds, wire=WireStatistics(), politeness=Politeness(), listing={}.get)
    seeds.append("http://b/")
    assert made.seeds == ("http://a/",)
