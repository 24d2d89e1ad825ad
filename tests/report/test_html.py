"""The report in HTML: it has what the text has, and nothing in it is ever executed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest
from check.findings import FACTS, HOSTILE, MOVED, finding
from report.crawls import CRAWLS, HOME, Crawl, page, redirect
from report.pages import NOW, html_of, tables
from selectolax.lexbor import LexborHTMLParser

from trio_crawler import ArgumentError, Redirect
from trio_crawler.check import Verdict, check_report, to_json
from trio_crawler.model import Statistics
from trio_crawler.report import CrawlFacts, Report
from trio_crawler.store import Change


def headings(text: str) -> dict[str, int]:
    """Return the numbers that the sections of a report have in their headings."""
    found = re.findall(r"^([A-Z][a-z ]+?)(?: so far)? \(([\d,]+)\)", text, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in found}


@pytest.mark.parametrize("name", CRAWLS)
def test_the_tables_of_a_crawl_have_the_numbers_of_its_text(name: str) -> None:
    crawl: Crawl = CRAWLS[name]
    text, found = crawl.text(full=True), tables(html_of(crawl.outcomes, **crawl.facts))
    told, head, ends = headings(text), found["head"], found["ends"]
    broken = re.search(r"([\d,]+) broken links?", text)
    assert len(head["problems"]["list"]) == (int(broken[1].replace(",", "")) if broken else 0)
    pages = zip(ends["kind"], ends["target"], strict=True)
    assert {
        "Redirects": len(head["redirects"]),
        "Duplicates": sum(kind == 1 and target > 0 for kind, target in pages),
        "Orphans": len(head["sitemaps"]["orphans"]),
        "Unlisted": len(head["sitemaps"]["unlisted"]),
    } == {name: told.get(name, 0) for name in ("Redirects", "Duplicates", "Orphans", "Unlisted")}
    rejected = {row["reason"]: row["number"] for row in head["rejected"] if row["number"]}
    counted = {
        key.removeprefix("rejected_"): number
        for key, number in head["counts"].items()
        if key.startswith("rejected_")
    }
    assert rejected == counted
    for key, number in head["counts"].items():
        assert re.search(rf"^ +{number:,} {key}\b", text, re.MULTILINE), key


def test_the_tables_of_a_check_have_the_numbers_of_its_text() -> None:
    found = [MOVED, *(finding(url=f"https://a.test/{at % 7}", line=at) for at in range(1, 50))]
    found.append(finding(code="missing_fragment", fragment="x"))
    # Of a page that is missing, the fragment does not count.
    found.append(finding(url="https://a.test/0", fragment="y"))
    document = json.loads(b"".join(to_json(found, FACTS)))
    html = html_of([page("/")], {"check": document})
    problems = tables(html)["head"]["problems"]
    assert "51 faults, 1 note" in check_report(found, FACTS)
    assert '<p class="verdict fault">51 faults, 1 note</p>' in html.decode()
    sums = [sum(row[7] for row in problems["list"] if row[0] == note) for note in (0, 1)]
    assert sums == [51, 1]
    assert len(problems["places"]) == 52
    assert len({row[2] for row in problems["list"]}) == 9
    assert "9 targets on 1 page:" in check_report(found, FACTS)
    assert problems["codes"]["404"][0] == "The server answers 404 (Not Found)."
    assert {row["says"]: row["number"] for row in tables(html)["head"]["notChecked"]} == {
        "mailto: link, only the syntax of the address is checked": 3,
        "link, disallowed by robots.txt (--ignore-robots checks such links)": 1,
    }


def test_a_time_a_title_a_type_and_a_depth_are_those_of_the_outcomes() -> None:
    outcomes = [page("/", title="Home", seconds=0.25), page("/a", depth=3), redirect("/b", "/a")]
    found = tables(html_of(outcomes))
    ends, texts, urls = found["ends"], found["texts"], found["urls"]
    assert [urls[at] for at in ends["url"]] == [HOME, f"{HOME}a", f"{HOME}b"]
    assert [texts[at] for at in ends["title"]] == ["Home", "", ""]
    assert [texts[at] for at in ends["type"]] == ["text/html", "text/html", ""]
    assert (ends["depth"], ends["at"], ends["ms"]) == ([0, 3, 0], [1, 1001, 2001], [250, 10, 0])


def test_a_redirect_has_the_pages_that_link_to_it_and_changes_are_listed() -> None:
    changes = [Change(HOME, "changed", "the title"), Change(f"{HOME}b", "unchanged")]
    outcomes = [page("/", "/old"), page("/a", "/old"), redirect("/old", "/a")]
    found = tables(html_of(outcomes, {"changes": changes, "since": 1e9}))
    urls, (row,) = found["urls"], found["head"]["redirects"]
    assert [urls[row[0]], row[1], [urls[at] for at in row[2]]] == [
        f"{HOME}old",
        2,
        [HOME, f"{HOME}a"],
    ]
    changed = found["head"]["changes"]
    assert (changed["since"], changed["unchanged"]) == ("2001-09-09 01:46 UTC", 1)
    assert [urls[at] for _, at, _ in changed["list"]] == [HOME]


EVIL = f"</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>{HOSTILE}"


def test_no_text_of_the_web_becomes_an_element_or_a_command() -> None:
    url = f"{HOME}?{EVIL}"
    found = [finding(url=url, page=url, text=EVIL, as_written=EVIL, detail=EVIL)]
    document = json.loads(b"".join(to_json(found, FACTS)))
    outcomes = [page("/", title=EVIL), Redirect(url, 301, url)]
    html = html_of(outcomes, {"check": document, "command": EVIL, "version": EVIL}, seeds=[url])
    tree = LexborHTMLParser(html.decode())
    plain = LexborHTMLParser(html_of([page("/")]).decode())
    assert len(tree.css("script")) == len(plain.css("script")) == 5
    assert len(tree.css("*")) - len(plain.css("*")) < 12
    assert tree.css("img, iframe, [onerror], [style]") == []
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", html)
    assert not re.search("[\u2028\u2029\u202e\ud800-\udfff]", html.decode())
    texts = tables(html)["texts"]
    assert any("</script><script>alert(1)" in text for text in texts)


def test_the_file_allows_its_own_script_and_style_by_their_hashes_and_nothing_else() -> None:
    html = html_of([page("/")]).decode()
    tree = LexborHTMLParser(html)
    policy = tree.css("meta[http-equiv]")[0].attributes["content"] or ""
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for name, directive in (("style", "style-src"), ("script", "script-src")):
        text = re.findall(rf"<{name}>(.*?)</{name}>", html, re.DOTALL)[-1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(directive) == f"'sha256-{digest}'"
    assert set(rules.values()) == {"'none'"}
    assert "innerHTML" not in html
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", html)


def test_of_very_many_places_each_fault_keeps_some_and_the_number_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trio_crawler.report.html.MOST_PLACES", 40)
    monkeypatch.setattr("trio_crawler.report.html.MOST_ENDS", 2)
    found = [finding(page=f"{HOME}{at}", url=f"{HOME}gone{at % 2}") for at in range(100)]
    document = json.loads(b"".join(to_json(found, FACTS)))
    told = tables(html_of([page("/"), page("/a"), page("/b")], {"check": document}))
    problems = told["head"]["problems"]
    assert [row[7] for row in problems["list"]] == [50, 50]
    assert sum(row[8] for row in problems["list"]) == len(problems["places"]) <= 40
    assert (len(told["ends"]["url"]), told["ends"]["omitted"]) == (2, 1)


def test_a_page_takes_less_than_250_bytes() -> None:
    """So 100,000 pages take less than 25 MB."""
    paths = [f"/{at % 97}/a-page-of-a-handbook-{at}.html" for at in range(1_100)]
    pages = [page(path, title=f"The page {path} - Handbook") for path in paths]
    few, many = (len(html_of(pages[:number])) for number in (100, 1_100))
    assert (many - few) / 1_000 < 250


@pytest.mark.parametrize("outcome", [page("/"), page("/", status=404)])
def test_the_level_of_the_verdict_is_that_of_the_exit_status(outcome: Any) -> None:
    html = html_of([outcome]).decode()
    level = "fault" if outcome.status == 404 else "good"
    assert f'<p class="verdict {level}">' in html


def test_a_crawl_that_ended_early_and_its_account_are_on_the_first_screen() -> None:
    statistics = Statistics(admitted=1234, pages=1200, failures=4, waiting=30)
    html = html_of([page("/")], ended="stopped by Ctrl-C", statistics=statistics).decode()
    head = html[: html.index("<main")]
    assert "It ended early: stopped by Ctrl-C" in head
    terms = dict(re.findall(r"<dt>([\w ]+)</dt><dd>([\d,]+)</dd>", head))
    assert terms == {"admitted": "1,234", "pages": "1,200", "failures": "4", "waiting": "30"}


def test_a_ledger_without_traits_is_refused() -> None:
    with pytest.raises(ArgumentError, match="must be a Ledger\\(traits=True\\)"):
        Report().html(CrawlFacts(Statistics(), 1, seeds=[HOME]), date=NOW)


def test_a_note_alone_is_no_fault() -> None:
    note = finding(verdict=Verdict.NOTE, code="301", chain=MOVED.chain)
    document = json.loads(b"".join(to_json([note], FACTS)))
    html = html_of([page("/")], {"check": document}).decode()
    assert '<p class="verdict note">0 faults, 1 note</p>' in html
