"""The report in HTML in Chromium: filters, search, sorting, keys, and nothing that leaves it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import AXE, PHONE, chromium, needs_axe, needs_chromium
from check.findings import FACTS, HOSTILE, MOVED, finding
from report.crawls import HOME, page, redirect
from report.pages import html_of
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from trio_crawler.check import Verdict, to_json
from trio_crawler.facts import PageFacts
from trio_crawler.model import Failure, Listing, Outcome, Reason, RejectedLink, Sitemap
from trio_crawler.store import Change

pytestmark = [pytest.mark.real, needs_chromium]

EVIL = f"</script><img src=x onerror=alert(1)><b>{HOSTILE}"
# More than two pages of a table, in sections.
PAGES: list[Outcome] = [
    page(
        f"/{'abc'[at % 3]}/{at:03}",
        *("/old", "/a/000"),
        size=at * 100,
        seconds=at / 100,
        depth=at % 5,
        title=f"Page {at}",
        referrer=HOME,
        duplicate_of=HOME if at % 40 == 39 else None,
        facts=PageFacts(h1=(f"Heading {at}",), h1_count=1, description=f"About {at}", words=at),
    )
    for at in range(130)
]
OUTCOMES = [
    page(
        "/",
        title=EVIL,
        rejected=(RejectedLink(f"{HOME}{EVIL}", Reason.EXCLUDED),),
        facts=PageFacts(lang=EVIL, h1=(EVIL, EVIL), h1_count=2, json_ld=(EVIL,)),
    ),
    *PAGES,
    redirect("/old", "/older"),
    redirect("/older", "/a/000"),
    Failure(f"{HOME}down", Reason.TIMEOUT, EVIL, seconds=3.0),
    page("/gone", status=404),
]
FINDINGS = [
    *(finding(url=f"{HOME}gone", page=f"{HOME}a/{at:03}", line=at + 1) for at in range(0, 120, 3)),
    finding(url=f"{HOME}down", code="timeout", page=HOME, text=EVIL, as_written=EVIL),
    finding(url=HOME, code="missing_fragment", fragment="x", page=f"{HOME}b/001", kind="image"),
    finding(url=f"javascript:alert(1)//{EVIL}", code="bad_url", page=HOME),
    MOVED,
]
CHANGES = [Change(f"{HOME}a/000", "changed", EVIL), Change(f"{HOME}new", "new")]


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a report that has every section, with hostile texts; give its URL."""
    document = json.loads(b"".join(to_json(FINDINGS, FACTS)))
    given = {"check": document, "changes": CHANGES, "command": EVIL}
    facts = {"sitemaps": [Sitemap(f"{HOME}map", "urlset", 1, detail=EVIL)]}
    listing = {f"{HOME}a/000": Listing(f"{HOME}map")}
    path = tmp_path_factory.mktemp("html") / "report.html"
    path.write_bytes(html_of(OUTCOMES, given, listing=listing.get, **facts))
    return path.as_uri()


@pytest.fixture
def opened(browser: webdriver.Chrome, report: str) -> webdriver.Chrome:
    browser.get_log("performance")
    browser.get(report)
    until(browser, lambda: browser.execute_script("return document.documentElement.dataset.ready"))
    return browser


def until(browser: webdriver.Chrome, true: Callable[[], Any]) -> None:
    WebDriverWait(browser, 20).until(lambda _: true())


def texts(browser: webdriver.Chrome, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent.trim())"
    return browser.execute_script(script, selector)


def choose(browser: webdriver.Chrome, section: str, name: str, option: str) -> None:
    found = browser.find_element(By.CSS_SELECTOR, f"#{section} select[aria-label='{name}']")
    Select(found).select_by_visible_text(option)


def test_nothing_hostile_runs_or_is_asked_for_and_links_lead_only_to_the_web(
    opened: webdriver.Chrome,
) -> None:
    open_all = "for (const each of document.querySelectorAll('details')) each.open = true"
    opened.execute_script(open_all)
    until(opened, lambda: "alert(1)" in " ".join(texts(opened, "#faults .places")))
    opened.find_element(By.XPATH, "//button[text()='By page']").click()
    opened.execute_script(open_all)
    until(opened, lambda: "javascript:" in " ".join(texts(opened, "#faults .places")))
    asked = [json.loads(each["message"])["message"] for each in opened.get_log("performance")]
    urls = [
        each["params"]["request"]["url"]
        for each in asked
        if each["method"] == "Network.requestWillBeSent"
    ]
    assert urls == [opened.current_url]
    assert opened.get_log("browser") == []
    assert opened.find_elements(By.CSS_SELECTOR, "img, iframe, [onerror]") == []
    links = opened.execute_script(
        "return [...document.querySelectorAll('main a')].map(e => [e.protocol, e.rel])"
    )
    assert {tuple(each) for each in links} == {("https:", "noreferrer noopener")}
    sections = texts(opened, "#nav a")
    assert len(sections) == 15


def test_faults_are_filtered_searched_sorted_and_grouped(opened: webdriver.Chrome) -> None:
    assert texts(opened, "#faults .tools .count") == ["44 links, 5 targets"]
    assert texts(opened, "#faults summary")[0] == "404/gone40 links"
    choose(opened, "faults", "Verdict", "Notes")
    assert texts(opened, "#faults .tools .count") == ["1 of 44 links, 1 target"]
    choose(opened, "faults", "Verdict", "Faults and notes")
    choose(opened, "faults", "Code", "missing_fragment (1)")
    assert texts(opened, "#faults .why") == [
        "missing_fragment The page has no element with the id or the name after the #. "
        "Give an element of the page this id, or correct what follows the #."
    ]
    choose(opened, "faults", "Code", "Every code")
    choose(opened, "faults", "Sort by", "By code")
    first = [each[:3] for each in texts(opened, "#faults summary")]
    assert first == ["301", "404", "bad", "mis", "tim"]
    opened.find_element(By.XPATH, "//button[text()='By page']").click()
    assert texts(opened, "#faults .tools .count") == ["44 links, 43 pages"]
    search = opened.find_element(By.CSS_SELECTOR, "#faults input")
    search.send_keys("/a/003")
    until(opened, lambda: texts(opened, "#faults .tools .count") == ["1 of 44 links, 1 page"])
    opened.find_element(By.CSS_SELECTOR, "#faults summary").click()
    until(opened, lambda: texts(opened, "#faults .places li"))
    place = "404 /goneLine 4, column 7 · “gone” · written /gone"
    assert texts(opened, "#faults .places li") == [place]


def test_a_table_is_sorted_searched_filtered_and_paged_with_few_rows_at_once(
    opened: webdriver.Chrome,
) -> None:
    rows = "#pages tbody tr"
    assert len(texts(opened, rows)) == 50
    opened.find_element(By.XPATH, "//section[@id='pages']//button[text()='Size']").click()
    assert texts(opened, f"{rows} td:first-child")[0] == "/a/129Page 129"
    assert texts(opened, "#pages th[aria-sort]") == ["Size"]
    opened.find_element(By.CSS_SELECTOR, "#pages .after").click()
    assert texts(opened, f"{rows} td:first-child")[0] == "/b/079Page 79"
    opened.find_element(By.CSS_SELECTOR, "#pages input").send_keys("/b/")
    until(opened, lambda: texts(opened, "#pages .count") == ["43 of 135 URLs"])
    choose(opened, "pages", "Every result", "slower than 1 s")
    assert texts(opened, "#pages .count") == ["9 of 135 URLs"]
    assert texts(opened, "#redirects tbody tr")[0].startswith("/old301 → /older301 → /a/000")


def test_notes_open_to_their_pages_and_facts_are_sorted_and_searched(
    opened: webdriver.Chrome,
) -> None:
    notes = texts(opened, "#notes summary")
    assert notes[-1] == "1 page with several h1"
    opened.execute_script(
        "for (const e of document.querySelectorAll('#notes details')) e.open = true"
    )
    until(opened, lambda: texts(opened, "#notes li li"))
    assert texts(opened, "#notes li:last-child p") == [
        "Let one heading be the first, and the others h2."
    ]
    opened.find_element(By.XPATH, "//section[@id='facts']//button[text()='Words']").click()
    assert texts(opened, "#facts tbody td:nth-child(2)")[0] == "Heading 129"
    opened.find_element(By.CSS_SELECTOR, "#facts input").send_keys("about 77")
    until(opened, lambda: texts(opened, "#facts .count") == ["1 of 131 pages"])


def test_keys_reach_the_search_the_rows_the_pages_and_the_sections(
    opened: webdriver.Chrome,
) -> None:
    body = opened.find_element(By.TAG_NAME, "body")
    body.send_keys("j")
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    until(opened, lambda: texts(opened, "#faults details[open] .places li"))
    body.send_keys("2")
    until(opened, lambda: opened.execute_script("return location.hash") == "#pages")
    until(opened, lambda: texts(opened, "#nav a[aria-current]") == ["URLs135"])
    opened.find_element(By.TAG_NAME, "body").send_keys("n")
    assert texts(opened, "#pages .pager span") == ["2 of 3"]
    opened.find_element(By.TAG_NAME, "body").send_keys("/")
    opened.switch_to.active_element.send_keys("Page 77")
    until(opened, lambda: texts(opened, "#pages .count") == ["1 of 135 URLs"])
    opened.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    opened.execute_script("document.activeElement.blur()")
    opened.find_element(By.TAG_NAME, "body").send_keys("?")
    assert opened.find_element(By.ID, "keys").is_displayed()
    opened.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(opened, lambda: not opened.find_element(By.ID, "keys").is_displayed())


def test_a_section_of_the_map_opens_and_lists_its_urls(opened: webdriver.Chrome) -> None:
    assert [each[:2] for each in texts(opened, "#map .tile")[:3]] == ["a/", "b/", "c/"]
    opened.find_element(By.CSS_SELECTOR, "#map .tile").send_keys(Keys.ENTER)
    assert texts(opened, "#map .crumbs button") == ["https://a.test/", "a/"]
    opened.find_element(By.XPATH, "//button[text()='List these URLs']").send_keys(Keys.ENTER)
    assert texts(opened, "#pages .count") == ["44 of 135 URLs"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@needs_axe
def test_axe_finds_no_fault_and_a_phone_needs_no_sideways_scrolling(
    width: int, scheme: str, opened: webdriver.Chrome
) -> None:
    about = {**PHONE, "width": width, "mobile": width < 500}
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", about)
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    opened.execute_script("for (const e of document.querySelectorAll('details')) e.open = true")
    opened.execute_script(AXE.read_text())
    found = opened.execute_async_script("axe.run(document).then(arguments[0])")
    wide = opened.execute_script("return document.documentElement.scrollWidth")
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
    assert wide <= width


def test_without_a_script_the_verdict_and_the_account_are_there(
    browser: webdriver.Chrome, report: str
) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(report)
    shown = browser.find_element(By.TAG_NAME, "header").text
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "43 faults, 1 note" in shown
    assert "admitted" in shown


def test_a_report_of_nothing_has_no_empty_section(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    path = tmp_path / "none.html"
    path.write_bytes(html_of([], seeds=[]))
    browser.get(path.as_uri())
    until(browser, lambda: browser.execute_script("return document.documentElement.dataset.ready"))
    assert texts(browser, "section:not([hidden]) h2") == ["The run"]
    assert browser.get_log("browser") == []


def test_a_note_is_below_the_faults(browser: webdriver.Chrome, tmp_path: Path) -> None:
    path = tmp_path / "notes.html"
    found = [finding(verdict=Verdict.NOTE, code="301", line=at) for at in range(1, 9)]
    document = json.loads(b"".join(to_json([*found, finding()], FACTS)))
    path.write_bytes(html_of([page("/")], {"check": document}))
    browser.get(path.as_uri())
    until(browser, lambda: browser.execute_script("return document.documentElement.dataset.ready"))
    assert texts(browser, "#faults summary .code") == ["404", "301"]
