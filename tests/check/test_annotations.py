from __future__ import annotations

import random

from check.findings import MOVED, PAGE, SEED, finding, path_of, several
from hypothesis import given

from trio_crawler.check.finding import Finding, in_order
from trio_crawler.check.github import to_annotations
from trio_crawler.policy.verdict import Verdict


def lines(found: list[Finding], **more: object) -> list[str]:
    text = b"".join(to_annotations(found, **more)).decode()  # type: ignore[arg-type]
    assert not text or text.endswith("\n")
    return text.split("\n")[:-1]


def test_a_fault_is_an_error_and_a_note_is_a_notice_beside_its_line() -> None:
    assert lines([finding(), MOVED], path_of=path_of) == [
        "::error file=public/docs/index.html,line=3,col=7,title=fault 404::"
        "https://a.test/gone: The server answers 404 (Not Found)",
        "::notice file=public/docs/index.html,line=1,col=7,title=note 301::"
        "https://b.test/old: "
        "The server redirects for good (301) to https://b.test/new: update the link",
    ]


def test_without_a_file_the_message_begins_with_the_page() -> None:
    assert lines([finding(), SEED]) == [
        "::error title=fault 500::https://seed.test/: "
        "The server answers 500 (Internal Server Error)",
        f"::error title=fault 404::{PAGE}:3:7: https://a.test/gone: "
        "The server answers 404 (Not Found)",
    ]


def test_a_line_without_a_column_and_a_page_without_a_line_have_none() -> None:
    one, other = lines([finding(column=0), finding(line=0)], path_of=path_of)
    assert one.startswith("::error file=public/docs/index.html,title=")
    assert other.startswith("::error file=public/docs/index.html,line=3,title=")


def test_ten_of_each_kind_are_shown_and_the_others_counted() -> None:
    faults = [finding(line=line) for line in range(1, 5_000)]
    notes = [finding(verdict=Verdict.NOTE, code="301", line=line) for line in range(1, 12)]
    random.Random(1).shuffle(faults)
    found = lines([*faults, *notes], path_of=path_of)
    assert [line.split(",")[1] for line in found[:10]] == [f"line={at}" for at in range(1, 11)]
    kinds = [line.partition(" ")[0] for line in found]
    assert kinds == ["::error"] * 10 + ["::notice"] * 10 + ["4,989"]
    assert found[-1] == (
        "4,989 faults and 1 note more: GitHub shows 10 annotations of each kind for a step"
    )
    assert len(lines(faults[:10])) == 10


def test_a_path_and_a_message_are_escaped_as_the_runner_decodes_them() -> None:
    files = {PAGE: "a:b,c%3A\r\n.html"}
    (line,) = lines([finding(detail="100%0A\n", code="tls")], path_of=files.get)
    assert line.startswith("::error file=a%3Ab%2Cc%253A%0D%0A.html,line=3,")
    assert line.endswith("::https://a.test/gone: 100%250A\\x0a")


def decoded(text: str) -> str:
    for code, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, letter)
    return text


@given(several)
def test_no_text_ends_a_command_or_begins_another_and_each_can_be_read_back(
    found: list[Finding],
) -> None:
    told = lines(found, path_of=lambda url: url)
    assert len(told) == len(found)
    ordered = sorted(in_order(found), key=lambda each: each.verdict, reverse=True)
    for each, line in zip(ordered, told, strict=True):
        assert "\r" not in line
        _, command, message = line.split("::", 2)
        kind, _, properties = command.partition(" ")
        assert kind in ("error", "notice")
        fields = dict(field.split("=", 1) for field in properties.split(","))
        assert set(fields) <= {"file", "line", "col", "title"}
        page = (each.page or "").encode(errors="replace").decode()
        assert decoded(fields.get("file", "")) == page
        assert decoded(message).endswith(f": {each.told(lambda url: url)}")
