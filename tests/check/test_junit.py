from __future__ import annotations

from xml.etree import ElementTree

from check.findings import FACTS, MOVED, SEVERAL, finding, path_of, several
from hypothesis import given

from trio_crawler.check.files import MOST_CASES, to_junit
from trio_crawler.check.finding import Finding
from trio_crawler.policy.verdict import Verdict
from trio_crawler.report.visible import visible


def read(found: list[Finding] | tuple[Finding, ...], **more: object) -> ElementTree.Element:
    return ElementTree.fromstring(b"".join(to_junit(found, FACTS, **more)))  # type: ignore[arg-type]


def test_a_page_is_a_suite_and_each_of_its_bad_links_is_a_case() -> None:
    root = read(SEVERAL, path_of=path_of)
    told = {
        suite.get("name"): [(case.get("name"), case.get("file")) for case in suite]
        for suite in root
    }
    assert told == {
        "check": [("links", None)],
        "(seeds)": [("https://seed.test/", None)],
        "public/index.html": [("https://x.test/", "public/index.html")],
        "public/docs/index.html": [
            ("https://a.test/gone", "public/docs/index.html"),
            ("https://b.test/old", "public/docs/index.html"),
        ],
    }


def test_a_fault_fails_and_a_note_is_skipped() -> None:
    cases = {case.get("name"): case for case in read(SEVERAL).iter("testcase")}
    failure = cases["https://a.test/gone"].find("failure")
    assert failure is not None
    assert failure.attrib == {"type": "404", "message": "The server answers 404 (Not Found)"}
    assert failure.text == (
        "line 3, column 7: The server answers 404 (Not Found) (a) '/gone'\n"
        "line 9, column 7: The server answers 404 (Not Found) (a) '/gone'"
    )
    skipped = cases["https://b.test/old"].find("skipped")
    assert skipped is not None
    assert str(skipped.get("message")).endswith("to https://b.test/new: update the link")
    assert cases["https://b.test/old"].find("failure") is None


def test_the_counts_of_suites_are_those_of_their_cases() -> None:
    root = read(SEVERAL)
    assert root.get("tests") == "5"
    for part in (root, *root):
        for count, tag in {
            "tests": "testcase",
            "failures": "failure",
            "skipped": "skipped",
        }.items():
            assert part.get(count) == str(len(list(part.iter(tag))))


def test_a_link_with_a_note_and_a_fault_fails_for_the_fault() -> None:
    note = finding(verdict=Verdict.NOTE, code="403", line=1)
    (failure,) = read([note, finding()]).iter("failure")
    assert failure.get("type") == "404"


def test_a_check_without_findings_has_a_case_that_passes() -> None:
    root = read([])
    (case,) = root.iter("testcase")
    (out,) = case
    assert (root.get("tests"), root.get("failures")) == ("1", "0")
    assert str(out.text).splitlines() == [
        "127 links checked by trio-crawler 0.1.0",
        "trio-crawler check ./public",
        "not checked: 3 mailto: links, only the syntax of the address is checked",
        "not checked: 1 link, disallowed by robots.txt (--ignore-robots checks such links)",
    ]


def test_many_places_of_one_link_are_counted() -> None:
    (failure,) = read([finding(line=number) for number in range(1, 31)]).iter("failure")
    lines = str(failure.text).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 10 more places"


def test_a_file_has_a_bound_and_keeps_what_fails() -> None:
    notes = [
        finding(url=f"https://n.test/{at}", verdict=Verdict.NOTE, code="301") for at in range(20)
    ]
    faults = [finding(url=f"https://x.test/{at}") for at in range(MOST_CASES - 5)]
    root = read([*notes, *faults])
    assert (root.get("tests"), root.get("skipped")) == (str(MOST_CASES + 1), "5")
    assert [error.text for error in root.iter("system-err")] == [
        "15 test cases more: the file has only the first 25,000"
    ]


def test_what_xml_cannot_have_is_escaped_or_replaced() -> None:
    root = read([finding(url="x:\ufffe\uffff\x00\ud800]]>", code="bad_url")])
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["links", "x:\ufffd\ufffd\\x00\\ud800]]>"]


@given(several)
def test_any_text_makes_valid_xml_with_distinct_names_and_can_be_read_back(
    found: list[Finding],
) -> None:
    root = read(found, path_of=lambda url: url)
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names)
    replaced = {ord("\ufffe"): "\ufffd", ord("\uffff"): "\ufffd"}
    targets = {visible(each.target).translate(replaced) for each in found}
    assert {name for _, name in names[1:]} == targets
    assert {case.get("file") for case in root.iter("testcase")} - {None} == {
        visible(each.page).translate(replaced) for each in found if each.page is not None
    }


def test_the_name_of_a_case_does_not_depend_on_its_line() -> None:
    first, second = (read([finding(line=line), MOVED]) for line in (3, 40))
    assert [case.attrib for case in first.iter("testcase")] == [
        case.attrib for case in second.iter("testcase")
    ]
