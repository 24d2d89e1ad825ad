from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from cases import for_each
from check.findings import FACTS, MOVED, SEVERAL, finding, path_of, several
from hypothesis import given

from trio_crawler.check.facts import CheckFacts, command_line
from trio_crawler.check.files import to_json
from trio_crawler.check.finding import Finding, Identity


def read(found: list[Finding] | tuple[Finding, ...], facts: CheckFacts = FACTS) -> Any:
    return json.loads(b"".join(to_json(found, facts, path_of=path_of)))


def test_a_summary_has_a_head_counts_and_what_was_not_checked() -> None:
    told = read(SEVERAL)
    del told["findings"]
    assert told == {
        "trio_crawler_check": 1,
        "date": "2026-11-23T13:00:00Z",
        "version": "0.1.0",
        "command": "trio-crawler check ./public",
        "ended": "",
        "checked": {"a": 120, "image": 7},
        "not_checked": [
            {
                "kind": "a",
                "reason": "robots",
                "number": 1,
                "says": "link, disallowed by robots.txt (--ignore-robots checks such links)",
            },
            {
                "kind": "mailto",
                "reason": "other_scheme",
                "number": 3,
                "says": "mailto: link, only the syntax of the address is checked",
            },
        ],
        "listed": None,
        "recalled": 0,
        "unlinked": None,
        "unread": 0,
        "counts": {
            "verdict": {"fault": 4, "note": 1},
            "code": {"301": 1, "404": 2, "500": 1, "no_such_host": 1},
            "kind": {"": 1, "a": 4},
            "host": {"a.test": 2, "b.test": 1, "seed.test": 1, "x.test": 1},
        },
        "mended": None,
    }


def test_a_finding_has_all_its_fields() -> None:
    (told,) = read([MOVED])["findings"]
    assert told == {
        "verdict": "note",
        "code": "301",
        "says": "The server redirects for good (301) to https://b.test/new: update the link",
        "url": "https://b.test/old",
        "fragment": "",
        "kind": "a",
        "external": True,
        "page": "https://a.test/docs/",
        "path": "public/docs/index.html",
        "line": 1,
        "column": 7,
        "text": "gone",
        "as_written": "/gone",
        "detail": "",
        "chain": [{"status": 301, "url": "https://b.test/new"}],
        "fingerprint": MOVED.fingerprint,
    }
    assert set(msgspec.structs.asdict(MOVED)) < set(told)


def test_mended_findings_are_named_and_an_empty_baseline_is_no_missing_one() -> None:
    known = Identity("/", "/x", "404")
    facts = CheckFacts(FACTS.date, mended=[known], ended="stopped by Ctrl-C")
    assert read([], facts)["mended"] == [{"page": "/", "target": "/x", "code": "404"}]
    assert read([], facts)["ended"] == "stopped by Ctrl-C"
    assert read([], CheckFacts(FACTS.date, mended=[]))["mended"] == []


def test_at_most_a_thousand_hosts_are_counted_those_with_the_most_findings() -> None:
    found = [finding(url=f"https://{at}.test/") for at in range(1_500)]
    hosts = read([*found, *[finding(url="https://999999.test/")] * 2])["counts"]["host"]
    assert len(hosts) == 1_000
    assert hosts["999999.test"] == 2


@given(several)
def test_any_text_can_be_read_back_and_every_finding_is_one_line(found: list[Finding]) -> None:
    encoded = b"".join(to_json(found, FACTS)).decode("ascii")
    told = json.loads(encoded)["findings"]
    assert sorted((each["fingerprint"], each["text"], each["url"]) for each in told) == sorted(
        (each.fingerprint, paired(each.text), paired(each.url)) for each in found
    )
    assert len(encoded.splitlines()) == 14 + len(found) + 1
    assert encoded.isascii()
    assert not any(letter in encoded for letter in "\x00\x1b\x7f\r")


def paired(text: str) -> str:
    return str(json.loads(json.dumps(text)))


@for_each(
    "words, shown",
    [
        (["check", "./public"], "check ./public"),
        (["--auth", "u:p", "x"], "--auth *** x"),
        (["--auth=u:p"], "'--auth=***'"),
        (["-H", "X: y", "-Hx:y"], "-H *** '-H***'"),
        (["--auth", "@file", "--auth=@-"], "--auth @file --auth=@-"),
        (["https://u:p@h.test/a?b"], "'https://***@h.test/a?b'"),
        (["https://token@h.test/"], "'https://***@h.test/'"),
        (["--prefix=https://u:p@h.test/"], "'--prefix=https://***@h.test/'"),
        (["u:p@h.test"], "'***@h.test'"),
        (["https://h.test/@x", "mailto:a@b.test"], "https://h.test/@x mailto:a@b.test"),
        (["--ignore", "a b"], "--ignore 'a b'"),
        (["--auth", "--auth", "x"], "--auth *** x"),
    ],
)
def test_a_command_line_is_shown_without_secrets(words: list[str], shown: str) -> None:
    assert command_line(words, ["--auth", "-H"]) == shown


def test_the_date_is_in_utc() -> None:
    there = datetime(2026, 11, 23, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    assert CheckFacts(there).when == "2026-11-23T12:30:00Z"


@for_each(
    "fields, kind, sentence",
    [
        ({"date": 0}, TypeError, "date must be a datetime, not 0"),
        ({"date": datetime(2026, 1, 1)}, ValueError, "date must have a time zone"),
        ({"command": ["x"]}, TypeError, "command must be a str, not ['x']"),
        ({"ended": None}, TypeError, "ended must be a str, not None"),
        ({"version": 1}, TypeError, "version must be a str, not 1"),
        ({"checked": 1}, TypeError, "checked must be numbers by kind, not 1"),
        ({"checked": {"a": -1}}, ValueError, "each number of checked must be 0 or more, not -1"),
        ({"not_checked": {("a", "x"): "1"}}, TypeError, "each number of not_checked must be a wh"),
        ({"recalled": -1}, ValueError, "recalled must be 0 or more, not -1"),
        ({"unlinked": "x"}, TypeError, "unlinked must be several strings"),
        ({"unread": {".md": -1}}, ValueError, "each number of unread must be 0 or more, not -1"),
        ({"mended": ["x"]}, TypeError, "each of mended must be a Identity, not 'x'"),
    ],
)
def test_a_fact_of_a_wrong_kind_is_refused_by_its_name(
    fields: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as refused:
        CheckFacts(**({"date": datetime(2026, 1, 1, tzinfo=UTC)} | fields))
    assert str(refused.value).startswith(sentence)
