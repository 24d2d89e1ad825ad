from __future__ import annotations

import functools
import re
from typing import Any

import pytest
from cases import for_each

from trio_crawler import (
    ArgumentError,
    Job,
    Reason,
    all_of,
    any_of,
    excluding,
    including,
    same_site,
    with_prefix,
)
from trio_crawler.policy.scope import is_of_urls, refusal, seeds_only

SEED = "https://example.org/"


def admits(scope, url: str) -> bool:
    return scope(Job(url)) is True


@for_each(
    "seed, url, admitted",
    [
        ("http://example.com/", "http://example.com/a", True),
        ("http://example.com/", "http://www.example.com/a", True),
        ("http://www.example.com/", "http://example.com/a", True),
        ("http://example.com/", "https://example.com/a", True),
        ("http://example.com:8080/", "http://example.com/a", True),
        ("http://EXAMPLE.com/", "http://example.com:81/a", True),
        ("http://example.com/", "http://docs.example.com/", False),
        ("http://example.com/", "http://www.www.example.com/", False),
        ("http://example.com/", "http://example.org/", False),
        ("http://example.com/", "http://notexample.com/", False),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:9000/", True),
        ("http://127.0.0.1/", "http://127.0.0.2/", False),
        ("http://[::1]:80/", "http://[::1]:9/a", True),
    ],
)
def test_the_strict_rule_is_the_same_host_with_or_without_www(seed, url, admitted):
    assert admits(same_site([seed]), url) is admitted


@for_each(
    "seed, url, admitted",
    [
        ("http://example.com/", "http://docs.example.com/", True),
        ("http://a.b.example.com/", "http://example.com/", True),
        ("http://example.com/", "http://example.org/", False),
        ("http://www.bbc.co.uk/", "http://news.bbc.co.uk/", True),
        ("http://www.bbc.co.uk/", "http://www.other.co.uk/", False),
        ("http://exam.plecom/", "http://example.com/", False),
        ("http://me.github.io/", "http://you.github.io/", False),
        ("http://example.com/", "http://a.example.com./", True),
        ("http://example.com./", "http://a.example.com/", True),
        ("http://localhost/", "http://localhost:81/", True),
        ("http://127.0.0.1/", "http://9.0.0.1/", False),
    ],
)
def test_the_lenient_rule_is_the_same_registrable_domain(seed, url, admitted):
    assert admits(same_site([seed], lenient=True), url) is admitted


def test_of_a_list_only_the_seeds_are_admitted() -> None:
    verdicts = [seeds_only(Job(SEED, depth)) for depth in (0, 1, 2)]
    assert verdicts == [True, Reason.OTHER_SITE, Reason.OTHER_SITE]
    with pytest.raises(TypeError, match=f"job must be a Job, not '{SEED}'"):
        seeds_only(SEED)  # type: ignore[arg-type]


def test_a_refusal_has_a_reason():
    assert same_site(["http://e.test/"])(Job("http://f.test/")) is Reason.OTHER_SITE
    assert excluding("/old/")(Job("http://e.test/old/a")) is Reason.EXCLUDED
    assert including("/new/")(Job("http://e.test/old/a")) is Reason.NOT_INCLUDED
    assert with_prefix("http://e.test/docs/")(Job("http://e.test/blog/")) is Reason.NOT_INCLUDED


def test_a_prefix_admits_what_begins_with_it():
    scope = with_prefix("http://e.test/docs/", "HTTP://e.test/api")
    assert admits(scope, "http://e.test/docs/a")
    assert admits(scope, "http://e.test/api/b")
    assert not admits(scope, "http://e.test/")


def test_expressions_are_searched_for_anywhere_in_the_url():
    assert not admits(excluding(r"\.pdf$", "print=1"), "http://e.test/a.pdf")
    assert not admits(excluding(r"\.pdf$", "print=1"), "http://e.test/?print=1&a")
    assert admits(excluding(r"\.pdf$"), "http://e.test/a.pdf?x")
    assert admits(including("a", "b"), "http://x.test/b")
    assert admits(excluding(), "http://e.test/")


def test_filters_compose():
    docs = same_site(["http://e.test/"], excluding("draft"))
    assert admits(docs, "http://e.test/a")
    assert docs(Job("http://e.test/draft")) is Reason.EXCLUDED
    assert docs(Job("http://f.test/draft")) is Reason.OTHER_SITE
    either = any_of(docs, with_prefix("http://f.test/"))
    assert admits(either, "http://f.test/draft")
    assert either(Job("http://g.test/")) is Reason.NOT_INCLUDED
    assert admits(any_of(docs, lambda job: True), "http://anywhere.test/")


def alone(scope: Any) -> Any:
    return scope


@pytest.mark.parametrize("by", [alone, all_of, any_of])
@for_each("verdict", [None, 1, "excluded", Reason, object()])
def test_any_other_verdict_than_true_false_and_a_reason_is_named_with_its_scope_and_url(
    verdict, by
):
    def odd(job):
        return verdict

    job = Job("http://e.test/a")
    message = r"the scope .*odd returned .* for http://e.test/a: return True"
    with pytest.raises(TypeError, match=message):
        refusal(by(odd)(job), by(odd), job)
    with pytest.raises(TypeError, match=r"the scope functools\.partial"):
        refusal(by(functools.partial(odd))(job), by(functools.partial(odd)), job)


def test_false_excludes_and_a_reason_rejects():
    job = Job("http://e.test/")
    assert refusal(False, lambda job: False, job) is Reason.EXCLUDED
    assert refusal(Reason.TOO_DEEP, lambda job: Reason.TOO_DEEP, job) is Reason.TOO_DEEP


@pytest.mark.parametrize("make", [all_of, any_of])
def test_a_scope_that_is_no_function_is_named_at_the_call(make):
    with pytest.raises(TypeError, match="each of scopes must be a function of a job, not 'x'"):
        make(lambda job: True, "x")


@for_each("make", [including, excluding])
@for_each("pattern", ["", re.compile(""), re.compile("", re.IGNORECASE)])
def test_an_empty_pattern_is_refused(make: Any, pattern: Any) -> None:
    wrong = "^patterns: an empty regular expression is found in every URL$"
    with pytest.raises(ArgumentError, match=wrong):
        make("a", pattern)


@pytest.mark.parametrize(("make", "named"), [(including, "patterns"), (with_prefix, "prefixes")])
def test_a_scope_that_would_admit_nothing_is_refused(make: Any, named: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{named} must not be empty: no URL would be adm"):
        make()


def by_depth(job: Job) -> bool:
    return job.depth < 2


def test_scopes_made_here_look_at_nothing_but_the_url():
    site, docs = same_site([SEED]), with_prefix(SEED + "docs/")
    for scope in (site, docs, including("a"), excluding("b"), all_of(site, docs), any_of(docs)):
        assert is_of_urls(scope)


def test_a_scope_of_a_caller_may_look_at_all_of_a_job():
    site = same_site([SEED])
    wrapped = functools.wraps(site)(lambda job: by_depth(job) and site(job))
    for scope in (by_depth, seeds_only, wrapped, all_of(site, by_depth), any_of(by_depth, site)):
        assert not is_of_urls(scope)
