"""The pages as they are built: without a warning, without a broken link, and in a real browser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from browser import PHONE, chromium, needs_chromium
from selectolax.lexbor import LexborHTMLParser
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from trio_crawler import Crawler, Page, Politeness

pytestmark = pytest.mark.real

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the pages by the command of the page for contributors; a warning is an error."""
    out = tmp_path_factory.mktemp("docs") / "built"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return out


class Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(built))) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with chromium() as driver:
        yield driver


def pages(built: Path) -> list[str]:
    found = [path.relative_to(built) for path in sorted(built.rglob("*.html"))]
    # The sample of a report is no page of these.
    return [str(path) for path in found if path.parts[0] != "_downloads"]


async def test_our_own_crawler_finds_every_page_and_no_broken_link(built: Path, address: str):
    crawler = Crawler([address], politeness=Politeness(per_host=8))
    async with crawler.outcomes() as outcomes:
        found = [outcome async for outcome in outcomes]
    assert [o.url for o in found if not (isinstance(o, Page) and o.status == 200)] == []
    crawled = {outcome.url.removeprefix(address) for outcome in found}
    assert set(pages(built)) - crawled == {"search.html"}  # a form leads there, no link


def test_our_own_check_of_the_pages_finds_no_fault_fragments_included(built: Path):
    command = [sys.executable, "-m", "trio_crawler", "check", str(built)]
    given = ["--base-url", "https://docs.example.org/", "--check", "assets,fragments"]
    done = subprocess.run([*command, *given], capture_output=True, text=True)
    assert "0 faults, 0 notes" in done.stdout.splitlines()[-1], done.stdout
    assert done.returncode == 0


def test_an_option_a_name_and_a_reason_lead_to_their_place_but_not_those_of_another_tool(
    built: Path,
):
    def places(page: str, words: str) -> list[str]:
        nodes = LexborHTMLParser((built / page).read_text()).css("a code")
        return [node.parent.attributes["href"] for node in nodes if node.text() == words]

    assert places("guide/rules.html", "--depth") == ["reference/options.html#cmdoption-depth"]
    reason = "reference/reasons.html#trio_crawler.Reason.SIDE_EFFECT"
    assert places("guide/rules.html", "side_effect") == [reason]
    assert "reference/outcomes.html#trio_crawler.Failure" in places(
        "guide/tutorial.html", "Failure"
    )
    assert len(places("guide/coming.html", "--clean-urls")) == 2
    assert not places("guide/coming.html", "--accept 200..=299,429")


def test_a_promise_shows_the_tests_that_prove_it_in_its_place(built: Path):
    page = LexborHTMLParser((built / "guide/promises.html").read_text())
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "guide/promises.md").read_text()))
    assert {each.text() for each in page.css(".proofs .fold summary")} == named
    for fold in page.css(".proofs .fold"):
        assert f"def {fold.css_first('summary').text()}(" in fold.css_first("pre").text()
    assert not page.css("a.download")


SCREEN = 900


# A phone has no scroll bar, of 15 pixels. Four pages are loaded at a time, and have each width.
SIZES = """
const [names, widths, done] = arguments, found = {};
const sizes = (name) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.style = `width: ${widths[0]}px; height: 900px; border: 0`;
    frame.onload = () => {
        const root = frame.contentDocument.documentElement;
        resolve(widths.map((width) => {
            frame.style.width = `${width}px`;
            const articles = root.querySelectorAll("article").length;
            return [articles, root.scrollHeight, root.scrollWidth - root.clientWidth];
        }));
        frame.remove();
    };
    frame.src = name;
    document.body.append(frame);
});
const some = async () => {
    for (let name; name = names.pop();)
        found[name] = await sizes(name);
};
Promise.all([some(), some(), some(), some()]).then(() => done(found));
"""


@needs_chromium
def test_every_page_opens_without_a_complaint_fits_a_phone_and_has_at_most_twelve_screens(
    built: Path, address: str, browser: webdriver.Chrome
):
    browser.set_window_size(1800, SCREEN)
    browser.set_script_timeout(120)
    browser.get(f"{address}search.html")
    widths = [1300, PHONE["width"] + 15]
    found = browser.execute_async_script(SIZES, pages(built), widths)
    assert found.keys() == set(pages(built))
    most = {name: (3 if name.startswith("failures/") else 12) * SCREEN for name in found}
    assert [name for name, [wide, _] in found.items() if not wide[0]] == []
    assert [name for name, [_, phone] in found.items() if phone[2] > 0] == []
    assert {name for name, [wide, _] in found.items() if wide[1] > most[name]} <= {"genindex.html"}
    assert browser.get_log("browser") == []


EXPLAINED = {
    "checkpoint": "Trio in ten minutes",
    "nursery": "Trio in ten minutes",
    "resume": "A crawl that lasts",
    "login": "What a crawl asks for",
    "junit": "Check a site in CI",
    "no_such_host": "trio_crawler.Reason.NO_SUCH_HOST",
}


@needs_chromium
@pytest.mark.parametrize("word", EXPLAINED)
def test_the_search_finds_first_the_page_that_explains_a_word(
    word: str, address: str, browser: webdriver.Chrome
):
    browser.get(f"{address}search.html?q={word}")
    browser.implicitly_wait(10)
    browser.find_element(By.CSS_SELECTOR, "#search-results p.search-summary")
    first = browser.find_element(By.CSS_SELECTOR, "ul.search li a")
    assert first.text == EXPLAINED[word]


FIRST = """
return Object.fromEntries(arguments[0].map((word) => {
    document.querySelector("input[name=q]").value = word;
    const [page, , anchor] = Search._performSearch(...Search._parseQuery(word)).at(-1);
    return [word, page + ".html" + anchor];
}));"""


@needs_chromium
def test_the_search_finds_each_option_and_each_name_first_where_it_is_explained(
    built: Path, address: str, browser: webdriver.Chrome
):
    explained: dict[str, str] = {}
    for name in pages(built):
        if name.startswith("guide/reference/"):
            for entry in LexborHTMLParser((built / name).read_text()).css("dt.sig[id]"):
                place = entry.attributes["id"] or ""
                names = [each.text() for each in entry.css(".sig-name")]
                for word in [] if re.search(r"\.[A-Z]\w*\.", place) else names:  # no method
                    explained.setdefault(word, f"{name}#{place}")
    assert len(explained) > 220
    browser.get(f"{address}search.html?q=nursery")
    browser.implicitly_wait(10)
    browser.find_element(By.CSS_SELECTOR, "#search-results p.search-summary")
    assert browser.execute_script(FIRST, list(explained)) == explained


@needs_chromium
def test_a_mark_of_a_listing_leads_to_its_twin_in_the_other_column(
    address: str, browser: webdriver.Chrome
):
    browser.get(f"{address}reading/chapter.html")
    mark = browser.find_elements(By.CSS_SELECTOR, "a.mark")[0]
    twin = mark.get_attribute("href").rpartition("#")[2]
    mark.send_keys(Keys.ENTER)  # a click would have to wait until the page stands still
    own = browser.find_element(By.CSS_SELECTOR, "a.mark:target")
    assert own.get_attribute("id") == twin
    assert own.get_attribute("href").rpartition("#")[2] == mark.get_attribute("id")


@pytest.fixture
def phone(browser: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    yield browser
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def shown(browser: webdriver.Chrome) -> list[bool]:
    panels = browser.find_elements(By.CSS_SELECTOR, ".tabs:has(> input) > .panel")
    return [panel.is_displayed() for panel in panels][:2]


@needs_chromium
@pytest.mark.parametrize("page", ["reading/chapter.html", "done.html", "mutations.html"])
def test_on_a_phone_one_of_two_columns_is_shown_as_its_tab_says_and_in_print_both(
    page: str, address: str, phone: webdriver.Chrome
):
    phone.get(address + page)
    assert shown(phone) == [True, False]
    phone.find_element(By.CSS_SELECTOR, ".tabs > input").send_keys(Keys.ARROW_RIGHT)
    assert shown(phone) == [False, True]
    phone.find_element(By.CSS_SELECTOR, ".tabs > label").click()
    assert shown(phone) == [True, False]
    phone.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert shown(phone) == [True, True]


@needs_chromium
def test_on_a_phone_a_mark_is_as_large_as_a_finger_and_opens_the_tab_of_its_twin(
    address: str, phone: webdriver.Chrome
):
    phone.get(f"{address}reading/chapter.html")
    mark = phone.find_element(By.CSS_SELECTOR, "a.mark")
    assert min(mark.size["width"], mark.size["height"]) >= 24
    mark.send_keys(Keys.ENTER)
    assert phone.find_element(By.CSS_SELECTOR, "a.mark:target").is_displayed()
    assert not mark.is_displayed()


CUT = """
return [...document.querySelectorAll(".table-wrapper")]
    .filter(each => each.scrollWidth > each.clientWidth).length"""


@needs_chromium
def test_the_tables_of_the_ladder_fit_a_window_of_1300_pixels(
    address: str, browser: webdriver.Chrome
):
    browser.set_window_size(1300, SCREEN)
    browser.get(f"{address}reading/workers.html")
    assert browser.execute_script(CUT) == 0


@needs_chromium
def test_a_fold_of_a_listing_is_a_line_high_and_opens(address: str, browser: webdriver.Chrome):
    browser.get(f"{address}reading/chapter.html")
    fold = browser.find_element(By.CSS_SELECTOR, ".fold")
    assert fold.size["height"] < 28
    fold.find_element(By.CSS_SELECTOR, "summary").send_keys(Keys.ENTER)
    assert fold.size["height"] > 100


COPY = """
const ours = [...document.querySelectorAll(".pair .panel")].find(
    each => each.textContent.includes("reading/chapter.py"));
getSelection().selectAllChildren(ours.querySelector(".highlight"));
const copy = new ClipboardEvent("copy", {clipboardData: new DataTransfer(), bubbles: true});
document.dispatchEvent(copy);
return copy.clipboardData.getData("text/plain");
"""


@needs_chromium
def test_a_copy_of_a_listing_has_its_folded_lines_too(address: str, browser: webdriver.Chrome):
    browser.get(f"{address}reading/chapter.html")
    assert browser.execute_script(COPY) == (DOCS / "reading/chapter.py").read_text()
