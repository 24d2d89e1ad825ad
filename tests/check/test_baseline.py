from __future__ import annotations

import json
import random
import re

import pytest
from cases import for_each
from check.findings import MOVED, NAMELESS, SEED, SEVERAL, finding, several
from hypothesis import given

from trio_crawler.check.facts import Baseline, read_baseline, write_baseline
from trio_crawler.check.finding import Finding, Identity

HEAD = b'{"trio_crawler_baseline":1}\n'
ENTRY = b'{"page":"/docs/","target":"/gone","code":"404"}\n'


def test_a_baseline_is_one_sorted_line_for_each_distinct_finding() -> None:
    assert b"".join(write_baseline(SEVERAL)) == (
        HEAD
        + b'{"page":"","target":"https://seed.test/","code":"500"}\n'
        + b'{"page":"/","target":"https://x.test/","code":"no_such_host"}\n'
        + ENTRY
        + b'{"page":"/docs/","target":"https://b.test/old","code":"301"}\n'
    )


@given(several)
def test_what_was_written_is_known_when_it_is_read(found: list[Finding]) -> None:
    lines = list(write_baseline(found))
    known = read_baseline(lines, "b.jsonl")
    assert known.known == {each.identity for each in found}
    assert all(each in known for each in found)
    shuffled = random.Random(1).sample(found, len(found))
    assert list(write_baseline(shuffled)) == lines
    assert b"".join(lines).decode("ascii").count("\n") == len(lines)
    for line in lines:
        json.loads(line)


def test_a_check_is_compared_new_known_and_mended() -> None:
    known = Baseline(each.identity for each in (finding(), NAMELESS, MOVED))
    compared = known.compare([SEED, finding(line=70), NAMELESS, finding(line=9)])
    assert compared.new == (SEED,)
    assert compared.known == (NAMELESS, finding(line=9), finding(line=70))
    assert compared.mended == (Identity("/docs/", "https://b.test/old", "301"),)


def test_another_code_at_the_same_link_is_new() -> None:
    assert finding(code="410") not in Baseline([finding().identity])


def test_order_blank_lines_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    lines = [b"\xef\xbb\xbf" + HEAD, b"\n", ENTRY.replace(b"\n", b"\r\n"), b"  \n", ENTRY]
    assert read_baseline(lines, "b").known == {Identity("/docs/", "/gone", "404")}


@for_each(
    "lines, sentence",
    [
        ([], "b.jsonl, line 1: no baseline: the file is empty"),
        ([b"\n"], "b.jsonl, line 1: no baseline: the file is empty"),
        ([b"<html>\n"], "b.jsonl, line 1: no JSON"),
        ([b"\xff\xfe{\n"], "b.jsonl, line 1: no JSON"),
        ([b"[" * 100_000], "b.jsonl, line 1: no JSON"),
        ([ENTRY], 'b.jsonl, line 1: no baseline: it does not begin with {"trio_crawler_base'),
        ([b"[]"], "b.jsonl, line 1: an object in braces is expected"),
        ([b'{"trio_crawler_baseline":2}'], "b.jsonl, line 1: version 2 of the format, and only 1"),
        ([b'{"trio_crawler_baseline":true}'], "b.jsonl, line 1: version True of the format, and"),
        ([HEAD, ENTRY, b"<<<<<<< HEAD\n"], "b.jsonl, line 3: no JSON"),
        ([HEAD, b"\n", b'{"page":"/"}'], "b.jsonl, line 3: an entry has the strings page, target"),
        (
            [HEAD, ENTRY.replace(b'"404"', b"404")],
            "b.jsonl, line 2: an entry has the strings",
        ),
        ([HEAD, b'{"page":"","target":"","code":"","x":""}'], "b.jsonl, line 2: an entry has the"),
    ],
)
def test_a_bad_file_is_named_with_the_line(lines: list[bytes], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as refused:
        read_baseline(lines, "b.jsonl")
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_a_file_has_a_bound() -> None:
    assert len(read_baseline([HEAD, ENTRY, ENTRY], "b", most=1).known) == 1
    with pytest.raises(ValueError, match=r"^b, line 3: more than 1 entries$"):
        read_baseline([HEAD, ENTRY, ENTRY.replace(b"404", b"410")], "b", most=1)


def test_only_identities_are_known() -> None:
    with pytest.raises(TypeError, match="each of known must be a Identity, not 'x'"):
        Baseline(["x"])  # type: ignore[list-item]
