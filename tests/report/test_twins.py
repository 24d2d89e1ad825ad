"""Links to https at a port that speaks HTTP without TLS."""

from __future__ import annotations

from itertools import permutations

import httpx
from cases import for_each
from cli.command import here
from sites.raw import html, threaded_raw_server

from trio_crawler.model import Failure, Outcome, Page, Phase, Purpose, Reason, Redirect, Statistics
from trio_crawler.report import CrawlFacts, Report

SITE, TWIN = "http://h.test:8080/", "https://h.test:8080/"
SETUP = f"{TWIN}setup"


def page(url: str, *links: str, status: int = 200) -> Page:
    return Page(url, status, httpx.Headers(), b"", links=links)


def failed(url: str, reason: Reason = Reason.TLS) -> Failure:
    no_tls = "h.test:8080 does not speak TLS on this port"
    return Failure(url, reason, no_tls, tries=0, phase=Phase.TLS, about=Purpose.ROBOTS)


def report_of(*outcomes: Outcome) -> Report:
    report = Report()
    for outcome in outcomes:
        report.add(outcome)
    return report


def told(report: Report) -> str:
    return report.text(CrawlFacts(Statistics(), 1, seeds=[SITE]))


@for_each("outcomes", list(permutations([page(SITE, SETUP, TWIN), failed(SETUP), failed(TWIN)])))
def test_an_https_link_to_a_port_that_speaks_http_is_told_and_no_problem(outcomes) -> None:
    report = report_of(*outcomes)
    section = f"""
Links to https at a port that speaks HTTP (2)
  tls {TWIN}
      robots.txt: h.test:8080 does not speak TLS on this port
      from {SITE}
  tls {SETUP}
      robots.txt: h.test:8080 does not speak TLS on this port
      from {SITE}

"""
    text = told(report)
    assert section in text
    assert not any(words in text for words in ("Broken links", "given up", "--ignore-robots"))
    assert "2 fail_tls" in text
    assert report.problems == 0


def test_a_page_that_has_not_changed_speaks_for_its_port() -> None:
    assert report_of(page(SITE, SETUP, status=304), failed(SETUP)).problems == 0


def test_a_redirect_to_it_is_named() -> None:
    old = f"{SITE}old"
    report = report_of(page(SITE, old), Redirect(old, 302, SETUP), failed(SETUP))
    assert f"\n      from {SITE} via {old}\n" in told(report)
    assert report.problems == 0


@for_each(
    "outcomes",
    [
        [page("http://h.test/", SETUP), failed(SETUP)],
        [page("http://h.test:8081/", SETUP), failed(SETUP)],
        [page(SITE, SETUP, status=404), failed(SETUP)],
        [page(SITE, SETUP), failed(SETUP, Reason.RESET)],
        [page("http://h.test/", "https://h.test/"), failed("https://h.test/")],
    ],
    ids=["another port", "yet another", "no page by http", "no TLS fault", "default ports"],
)
def test_any_other_https_link_that_fails_is_a_broken_link(outcomes) -> None:
    report = report_of(*outcomes)
    text = told(report)
    assert report.problems == 1 + (outcomes[0].status == 404)
    assert "Broken links" in text
    assert "Hosts given up (1)" in text
    assert "speaks HTTP" not in text


def test_the_command_tells_it_and_ends_as_for_a_site_that_is_well(tmp_path, capsys):
    site: dict[str, bytes] = {"/a": html("/")}
    with threaded_raw_server(site) as server:
        secure = server.url.replace("http:", "https:") + "login"
        site["/"] = html("/a", secure)
        for words in ([], ["--ignore-robots"], ["-o", str(tmp_path)]):
            assert here(*words, server.url) == 0
            out = capsys.readouterr().out
            assert f"a port that speaks HTTP (1)\n  tls {secure}\n" in out
            assert "does not speak TLS on this port" in out
            assert "Hosts given up" not in out
            assert "2 pages + 0 redirects + 1 failure + 0 skipped" in out
