"""Pages whose bodies are not whole: their links count, they are no copies and no problems."""

from __future__ import annotations

import httpx
import pytest
from cases import for_each
from msgspec.structs import replace

from trio_crawler import Crawler, Fault, Job, Page, Politeness, Reason, Response
from trio_crawler.page.read import read
from trio_crawler.report import CSV_HEAD, CrawlFacts, Report, csv_row, to_jsonl

HOME = "http://e.org/"
HTML = httpx.Headers({"Content-Type": "text/html"})
CUT = Response(200, HTML, b"<a href=/a><a href=/b><a href='/c", flaw=Reason.TOO_LARGE)
IMAGE = Response(
    200,
    httpx.Headers({"Content-Type": "image/png", "Content-Length": "70000"}),
    flaw=Reason.NOT_READ,
)


async def pages(answers: dict[str, Response]) -> tuple[dict[str, Page], Report, Crawler]:
    async def fetch(job: Job) -> Response | Fault:
        return answers.get(job.url.removeprefix(HOME), Response(404))

    report, found = Report(), {}
    crawler = Crawler([HOME], fetch=fetch, politeness=Politeness(robots=False))
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            report.add(outcome)
            assert isinstance(outcome, Page)
            found[outcome.url.removeprefix(HOME)] = outcome
    return found, report, crawler


async def test_the_links_of_a_cut_page_are_followed_and_it_is_no_copy() -> None:
    found, report, crawler = await pages({"": CUT, "a": CUT, "b": replace(CUT)})
    assert set(found) == {"", "a", "b"}
    for page in found.values():
        assert (page.status, page.flaws, page.duplicate_of) == (200, (Reason.TOO_LARGE,), None)
        assert page.links == (HOME + "a", HOME + "b")
        assert page.size == len(CUT.body)
    assert report.problems == 0
    assert crawler.statistics().bytes == 3 * len(CUT.body)
    text = report.text(CrawlFacts(crawler.statistics(), 10, seeds=[HOME]))
    assert "Not read whole (3): --max-bytes sets the limit\n  33 B read of http://e.org/\n" in text
    assert "Flaws" not in text
    assert "Duplicates" not in text


async def test_a_whole_page_is_no_copy_of_a_cut_one() -> None:
    home = Response(200, HTML, b"<a href=/a><a href=/b>")
    whole = Response(200, HTML, CUT.body)
    found, _, _ = await pages({"": home, "a": CUT, "b": whole})
    assert found["b"].duplicate_of is None


async def test_a_page_that_was_not_read_has_its_announced_size_and_no_fault() -> None:
    home = Response(200, HTML, b"<a href=/a><a href=/b>")
    coded = httpx.Headers({**IMAGE.headers, "Content-Encoding": "gzip"})
    found, report, crawler = await pages(
        {"": home, "a": IMAGE, "b": replace(IMAGE, headers=coded)}
    )
    assert (found["a"].size, found["b"].size) == (70_000, 0)
    assert found["a"].flaws == found["b"].flaws == (Reason.NOT_READ,)
    assert (found["a"].content_type, found["a"].body) == ("image/png", b"")
    assert report.problems == 0
    text = report.text(CrawlFacts(crawler.statistics(), 10, seeds=[HOME]))
    assert " 2 not_read\n" in text
    assert "Flaws" not in text
    assert "Not read whole" not in text
    assert crawler.statistics().bytes == len(home.body)
    assert b'"size":70000' in to_jsonl(found["a"])
    assert b'"flaws":["not_read"]' in to_jsonl(found["a"])
    columns = CSV_HEAD.decode().strip().split(",")
    assert csv_row(found["a"]).decode().split(",")[columns.index("flaws")] == "not_read"


@pytest.mark.parametrize("status", [404, 500])
async def test_an_error_with_a_huge_body_stays_a_broken_link(status: int) -> None:
    home = Response(200, HTML, b"<a href=/a>")
    found, report, _ = await pages({"": home, "a": replace(CUT, status=status)})
    assert found["a"].status == status
    assert found["a"].links == ()
    assert report.problems == 1


@for_each("encoding", ["utf-8", "shift_jis", "gb18030", "utf-16le", "euc-kr"])
def test_a_body_that_is_cut_within_a_character_has_no_other_flaw(encoding: str) -> None:
    body = ("<a href=/a>" + "本" * 9).encode(encoding)
    for end in range(len(body) - 8, len(body) + 1):
        facts = read(body[:end], f"text/html; charset={encoding}", HOME, cut=True)
        assert facts.flaws == ()
        assert facts.links == (HOME + "a",)
    bad = b"<a href=/a>\xff" + body
    assert read(bad, "text/html; charset=utf-8", HOME, cut=True).flaws == (Reason.BAD_CHARSET,)


def test_a_response_has_only_a_flaw_of_its_body() -> None:
    with pytest.raises(ValueError, match="must be TOO_LARGE or NOT_READ"):
        Response(200, flaw=Reason.DNS)
    with pytest.raises(TypeError, match="the flaw of a Response must be a Reason or None"):
        Response(200, flaw="too_large")  # type: ignore[arg-type]
