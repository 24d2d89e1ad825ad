from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.arguments import ArgumentError
from trio_crawler.model import (
    REDIRECTS,
    Failure,
    Page,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.policy.verdict import (
    BROKEN,
    BY_REASON,
    CHOSEN,
    DOUBTFUL,
    GIVEN_UP,
    NOTED,
    Defect,
    Rule,
    Verdict,
    Verdicts,
    parse_patterns,
    parse_statuses,
)

URL = "https://a.test/x"
FINE, NOTE, FAULT = Verdict.FINE, Verdict.NOTE, Verdict.FAULT


def three(reason: Reason | Defect | None = None, status: int | None = None) -> Rule:
    """Return the verdicts of the default policy on an own and an external link, and the strict."""
    usual, strict = Verdicts(), Verdicts(strict_status=True)
    return Rule(
        usual.of(URL, reason=reason, status=status),
        usual.of(URL, reason=reason, status=status, external=True),
        strict.of(URL, reason=reason, status=status, external=True),
    )


DECIDED = {
    CHOSEN: "other_site other_scheme excluded not_included too_deep rel_nofollow meta_nofollow "
    "header_nofollow side_effect check_budget not_read",
    NOTED: "robots long_url deep_path repeated_path permuted_query too_many_hops nothing_new "
    "barren_query pattern_budget host_budget too_many_hosts too_many_ports waiting_budget "
    "duplicate page_budget time_budget stopped blocked_address proxy no_sockets too_large "
    "too_many_links bad_charset too_many_entries too_many_levels bad_scheme",
    GIVEN_UP: "host_given_up robots_unavailable",
    DOUBTFUL: "timeout connect_timeout reset incomplete missing_fragment",
    BROKEN: "bad_url dns no_such_host connection_refused unreachable tls bad_reply "
    "too_many_redirects bad_location bad_sitemap bad_status bad_mailto",
}


@for_each("reason", [*Reason, *Defect])
def test_every_reason_is_decided_here_as_well_as_in_the_table(reason: Reason | Defect) -> None:
    (rule,) = [rule for rule, names in DECIDED.items() if reason.value in names.split()]
    assert three(reason) == rule


def test_the_table_has_no_reason_that_no_longer_exists() -> None:
    assert set(BY_REASON) == {*Reason, *Defect}


def test_a_limit_of_the_crawl_is_never_a_fault_even_when_strict() -> None:
    limits = {Reason.TOO_LARGE, Reason.NOT_READ, Reason.ROBOTS, Reason.TOO_MANY_LINKS}
    limits |= {reason for reason in Reason if "budget" in reason}
    assert len(limits) == 10
    assert all(FAULT not in three(reason) for reason in limits)


LATER = (401, 403, 408, 429, 502, 503, 504, 999)


@pytest.mark.parametrize(
    ("rule", "statuses"),
    [
        (CHOSEN, [200, 204, 206, 299, 304, 300, 302, 303, 307]),
        (NOTED, [301, 308]),
        (DOUBTFUL, LATER),
        (BROKEN, [100, 305, 400, 402, 404, 405, 406, 407, 410, 418, 451, 500, 501, 505, 599, 600]),
    ],
)
def test_a_status_is_judged_by_what_it_says(rule: Rule, statuses: list[int]) -> None:
    assert {status: three(status=status) for status in statuses} == dict.fromkeys(statuses, rule)


@given(st.integers(100, 999))
def test_an_accepted_status_is_fine_and_no_other_verdict_changes(status: int) -> None:
    for external, strict in itertools.product((False, True), repeat=2):
        policy = Verdicts(accept={status}, strict_status=strict)
        assert policy.of(URL, status=status, external=external) is FINE
        other = 404 if status != 404 else 410
        assert policy.of(URL, status=other, external=external) is FAULT


@pytest.mark.parametrize("redirects", list(Verdict))
def test_one_verdict_may_be_for_all_redirects(redirects: Verdict) -> None:
    policy = Verdicts(redirects=redirects)
    assert {policy.of(URL, status=status) for status in REDIRECTS} == {redirects}
    assert policy.of(URL, status=404) is FAULT
    assert policy.of(URL, status=200) is FINE


def test_an_accepted_redirect_is_fine_whatever_the_others_are() -> None:
    policy = Verdicts(accept=(200, 301), redirects=FAULT)
    assert [policy.of(URL, status=status) for status in (301, 308)] == [FINE, FAULT]


def test_a_pattern_makes_fine_what_it_is_found_in() -> None:
    policy = Verdicts(ignore=[r"^https://a\.test/old/", re.compile("#L[0-9]+$")])
    assert policy.of("https://a.test/old/1", status=404) is FINE
    assert policy.of("https://a.test/new/1", status=404) is FAULT
    assert policy.of("https://b.test/?u=https://a.test/old/1", status=404) is FAULT
    missing = Defect.MISSING_FRAGMENT
    assert policy.of("https://a.test/x#L12", reason=missing) is FINE
    assert policy.of("https://a.test/x#l12", reason=missing) is FAULT
    assert policy.ignores("https://a.test/old/")


@dataclass
class Checked:
    """An outcome of a URL outside of the crawl."""

    url: str
    status: int | None
    reason: Reason | None
    detail: str = ""


@for_each(
    "outcome, verdicts",
    [
        (Page(URL, 200, httpx.Headers(), b""), CHOSEN),
        (Page(URL, 404, httpx.Headers(), b""), BROKEN),
        (Page(URL, 403, httpx.Headers(), b""), DOUBTFUL),
        (Page(URL, 200, httpx.Headers(), b"", flaws=(Reason.TOO_LARGE,)), CHOSEN),
        (
            Page(URL, 200, httpx.Headers(), b"", rejected=(RejectedLink("x:", Reason.BAD_URL),)),
            CHOSEN,
        ),
        (Redirect(URL, 302, "https://a.test/"), CHOSEN),
        (Redirect(URL, 308, "https://a.test/"), NOTED),
        (Redirect(URL, 302, "https://b.test/", rejected=Reason.OTHER_SITE), CHOSEN),
        (Redirect(URL, 302, "https://b.test/", rejected=Reason.ROBOTS), NOTED),
        (Failure(URL, Reason.NO_SUCH_HOST), BROKEN),
        (Failure(URL, Reason.TIMEOUT), DOUBTFUL),
        (Skipped(URL, Reason.PAGE_BUDGET), NOTED),
        (Skipped(URL, Reason.HOST_GIVEN_UP), GIVEN_UP),
        (Checked(URL, 200, None), CHOSEN),
        (Checked(URL, 999, None), DOUBTFUL),
        (Checked(URL, None, Reason.TLS), BROKEN),
        (Checked(URL, 301, Reason.TOO_MANY_REDIRECTS), BROKEN),
    ],
)
def test_every_kind_of_outcome_is_judged_the_worse_of_two_counts(
    outcome: Any, verdicts: Rule
) -> None:
    strict = Verdicts(strict_status=True)
    assert verdicts == (
        Verdicts()(outcome),
        Verdicts()(outcome, external=True),
        strict(outcome, external=True),
    )


def test_strictness_changes_nothing_on_the_own_site() -> None:
    strict = Verdicts(strict_status=True)
    for reason in Reason:
        assert strict.of(URL, reason=reason) is Verdicts().of(URL, reason=reason)


def test_an_end_without_status_and_reason_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^status or reason must be given$"):
        Verdicts().of(URL)


def test_verdicts_are_ordered_by_weight_and_not_by_the_alphabet() -> None:
    assert sorted([FAULT, FINE, NOTE]) == [FINE, NOTE, FAULT]
    assert max(NOTE, FAULT, FINE) is FAULT
    for (low, first), (high, second) in itertools.product(enumerate(Verdict), repeat=2):
        found = (first < second, first <= second, first > second, first >= second)
        assert found == (low < high, low <= high, low > high, low >= high)
    assert FAULT == "fault"


def test_a_policy_is_a_value_that_cannot_be_changed() -> None:
    given = [200]
    policy = Verdicts(accept=given, ignore=["x"])
    given.append(404)
    assert policy == Verdicts(accept=range(200, 201), ignore=[re.compile("x")])
    assert hash(policy) == hash(Verdicts(accept=[200], ignore=["x"]))
    with pytest.raises(AttributeError):
        policy.accept = frozenset()  # type: ignore[misc]


@for_each(
    "arguments, kind, sentence",
    [
        ({"accept": "200"}, TypeError, "accept must be several statuses: write ['200']"),
        ({"accept": 200}, TypeError, "accept must be several statuses, not 200"),
        ({"accept": [True]}, TypeError, "each of accept must be a whole number, not True"),
        ({"accept": [99]}, ValueError, "each of accept must be 100 or more, not 99"),
        ({"accept": [1000]}, ValueError, "each of accept must be 999 or less, not 1,000"),
        ({"ignore": "x"}, TypeError, "ignore must be several regular expressions: write ['x']"),
        ({"ignore": [1]}, TypeError, "each of ignore must be a regular expression, not 1"),
        ({"ignore": [""]}, ValueError, "ignore: an empty regular expression is found in every"),
        ({"ignore": ["("]}, ValueError, "ignore: not a regular expression: '(' (missing ), "),
        ({"redirects": "note"}, TypeError, "redirects must be a Verdict or None, not 'note'"),
        ({"strict_status": 1}, TypeError, "strict_status must be True or False, not 1"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(
    arguments: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as refused:
        Verdicts(**arguments)
    assert str(refused.value).startswith(sentence)


# The texts of options and files.


@for_each(
    "text, statuses",
    [
        ("200", {200}),
        ("200..203,403", {200, 201, 202, 203, 403}),
        (" 200 , 999 ", {200, 999}),
        ("404..404,404", {404}),
        ("100..999", set(range(100, 1000))),
    ],
)
def test_statuses_are_read_from_a_list_with_ranges(text: str, statuses: set[int]) -> None:
    assert parse_statuses(text) == statuses


@for_each(
    "text, sentence",
    [
        ("", "--accept must be a list such as 200..299,403, not nothing between two commas"),
        ("200,,403", "--accept must be a list such as 200..299,403, not nothing between two"),
        ("2xx", "--accept must be a list such as 200..299,403, not '2xx'"),
        ("200-299", "--accept must be a list such as 200..299,403, not '200-299'"),
        ("..299", "--accept must be a list such as 200..299,403, not '..299'"),
        ("-200", "--accept must be a list such as 200..299,403, not '-200'"),
        ("\u0662\u0660\u0660", "--accept must be a list such as 200..299,403, not '\u0662"),
        ("299..200", "--accept: 299..200 ends before it begins"),
        ("99", "--accept: a status is from 100 to 999, not 99"),
        ("200..1000", "--accept: a status is from 100 to 999, not 200..1000"),
        ("1" * 5_000, "--accept must be a list such as 200..299,403, not '111"),
    ],
)
def test_any_other_text_is_refused_and_the_option_is_named(text: str, sentence: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        parse_statuses(text)
    assert refused.value.argument == "accept"
    assert refused.value.named("--accept").startswith(sentence)


def test_a_file_of_patterns_has_comments_and_blank_lines() -> None:
    lines = [
        "\ufeff# Pages that want a login",
        "",
        "  ^https://a\\.test/  # all of them",
        "#L[0-9]+$",
        "x#y\t# a tab",
        "[#]L[0-9]+$\r\n",
        "   # only a comment",
    ]
    found = [pattern.pattern for pattern in parse_patterns(lines, "ignore.txt")]
    assert found == [r"^https://a\.test/", "x#y", "[#]L[0-9]+$"]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["a", "", "("], "ignore.txt, line 3: not a regular expression: '(' (missing ), "),
        (["a"] * 10_001, "ignore.txt, line 10001: more than 10,000 patterns"),
    ],
)
def test_a_bad_file_of_patterns_is_named_with_the_line(lines: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as refused:
        parse_patterns(lines, "ignore.txt")
    assert str(refused.value).startswith(sentence)
