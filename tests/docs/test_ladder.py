"""The programs of docs/reading: all find the same pages, and each has its place on the ladder."""

from __future__ import annotations

import importlib.util
import inspect
import re
import threading
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest
import run
import trio
import web
from cases import for_each
from comparative import recording
from sites import liar, plain
from sites.serving import Answer, Answerer, page, serving

READING = Path(run.__file__).parent / "reading"
PROGRAMS = sorted(p for p in READING.glob("*.py") if "sys.argv[1]" in p.read_text())
COMMANDS = sorted(
    ["plain", f"reading/{program.name}", *backend]
    for program in PROGRAMS
    for backend in ([["asyncio"], ["trio"]] if program.stem == "either" else [[]])
)
ROWS = re.findall(r"\[[^]]*\]\((\w+)\.md\)", (READING / "index.md").read_text())
RHYTHM = ["What happens", "How it works", "The line that changes next"]
AT_ONCE = ["threads", "busy", "selector", "callbacks"]


def closure(answer: Answerer, root: str = "http://site/") -> set[str]:
    """Return all that can be reached by links, asking the site itself and no program."""
    seen, todo = {root}, [root]
    for url in todo:
        new = web.links(url, bytes(str(answer(url.removeprefix("http://site")).body), "ascii"))
        todo += sorted(new - seen)
        seen |= new
    return seen


def fresh(name: str) -> ModuleType:
    """Load a program anew: some keep what they have seen in their globals."""
    spec = importlib.util.spec_from_file_location(name, READING / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def crawled(name: str, root: str) -> set[str]:
    """Crawl in this process, by whichever of their forms the program has."""
    program = fresh(name)
    if not hasattr(program, "Crawler"):
        both = trio.run(program.crawl, root) if "_trio" in name else program.crawl(root)
        return set(both)
    crawler = program.Crawler(root)
    trio.run(crawler.crawl) if "_trio" in name else crawler.crawl()
    return set(crawler.seen_urls)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_program_finds_every_page_of_the_plain_site_and_asks_for_each_once(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    shown = recording(command)  # where a page shows this run, test_runs runs it
    said = (shown.read_text() if shown.is_file() else run.run(command)).splitlines()
    found = [line for line in said if line.startswith("http")]
    assert set(found) == closure(plain.answer)
    assert len(found) == plain.SIZE
    assert said[-1] == f"site: {plain.SIZE} requests for {plain.SIZE} paths"
    assert not [line for line in said if "Warning" in line or "Traceback" in line]


@for_each("program", PROGRAMS, ids=lambda each: each.name)
def test_a_program_fits_on_a_screen_beside_another(program: Path) -> None:
    lines = program.read_text().splitlines()
    assert len(lines) <= 90
    assert len(lines[0]) <= 76  # what it shows is read without scrolling
    assert max(map(len, lines[1:])) <= 84
    assert lines[1:3] == ["", "from __future__ import annotations"]
    assert 'if __name__ == "__main__":' in lines


@for_each("number, name", list(enumerate(ROWS, 1)))
def test_a_page_has_its_number_its_programs_and_the_rhythm_of_all(number: int, name: str) -> None:
    text = (READING / f"{name}.md").read_text()
    assert re.match(rf"# {number}\. \w|# {number}\. `", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == RHYTHM
    _, result, programs, rest = re.split("^## .+$", text, flags=re.MULTILINE)
    assert f"reading/{name}.py" in programs.partition("\n:::\n")[0]
    twin = f"reading/{name}_trio.py"
    assert (READING.parent / twin).is_file() == (number <= 18 and name != "chapter")
    assert twin in programs or not (READING.parent / twin).is_file()
    assert "{run" in result
    assert ":::{step}" in rest
    blocks = r"^(`{3,}|:{3,})[`{].*?^\1$"
    words = len(re.sub(blocks, "", text, flags=re.MULTILINE | re.DOTALL).split())
    assert words <= 250 or number in (11, 20, 22)


def test_the_ladder_has_twenty_two_rows_in_the_order_of_its_pages() -> None:
    text = (READING / "index.md").read_text()
    assert re.findall(r"^(\w+)$", text.partition(":hidden:")[2], re.MULTILINE) == ROWS
    assert len(ROWS) == 22
    assert {p.stem for p in READING.glob("*.md")} == {*ROWS, "index"}
    taught = re.findall(r"\.md\) \| (.+) \|$", text, re.MULTILINE)
    assert len(taught) == 22
    assert all(len(each.split()) <= 6 for each in taught)


@for_each("name", [f"{n}{twin}" for n in AT_ONCE for twin in ("", "_trio")])
def test_from_the_threads_on_two_pages_are_under_way_at_once(name: str) -> None:
    meeting = threading.Barrier(2)

    def answer(path: str) -> Answer:
        if path == "/":
            return page("/1", "/2")
        meeting.wait(5)  # neither is answered before both are asked for
        return page("/")

    with serving(answer) as site:
        assert crawled(name, site.url) == {site.url, f"{site.url}1", f"{site.url}2"}
    assert not meeting.broken


@pytest.mark.parametrize("name", ["blocking", "generators"])
def test_the_others_ask_for_one_page_at_a_time(name: str) -> None:
    open_now, most, lock = 0, 0, threading.Lock()

    class Leaving(str):
        """A body that notes when it is taken: the page is answered then."""

        def encode(self, *_: str) -> bytes:  # type: ignore[override]
            nonlocal open_now
            with lock:
                open_now -= 1
            return str(self).encode()

    def answer(path: str) -> Answer:
        nonlocal open_now, most
        with lock:
            open_now += 1
            most = max(most, open_now)
        return Answer(Leaving(plain.answer(path).body), wait=0.002)

    program = fresh(name)
    with serving(answer) as site:
        pages = program.crawl(site.url)
        found = program.run(pages) if name == "generators" else pages
    assert len(found) == plain.SIZE
    assert most == 1


def test_a_finally_lets_the_threads_end_as_if_nothing_had_happened_a_page_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)  # what would be printed

    class Counted(fresh("threads").Crawler):  # type: ignore[misc]
        def work(self) -> None:
            while True:
                url = self.q.get()
                try:
                    self.visit(url)
                finally:
                    self.q.task_done()

    with serving(liar.answer) as site:
        crawler = Counted(site.url)
        crawler.crawl()
    assert len(crawler.seen_urls) == plain.SIZE - 1
    assert crawler.q.unfinished_tasks == 0


def test_an_error_thrown_at_the_pause_is_caught_there_and_the_crawl_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pages = fresh("generators").crawl("http://site/")
    assert pages.send(None) == "http://site/"
    assert pages.send(b'<a href="/a"><a href="/b">') == "http://site/b"
    assert pages.throw(ConnectionResetError()) == "http://site/a"
    with pytest.raises(StopIteration) as end:
        pages.send(b"")
    assert end.value.value == {"http://site/", "http://site/a", "http://site/b"}
    assert capsys.readouterr().out == "http://site/b: ConnectionResetError\n"


def talk() -> Generator[int, str, str]:
    heard = yield 1
    answered = yield 2
    return f"{heard} {answered}"


def ask() -> Generator[int, str, str]:
    said = yield from talk()
    return said


def test_what_the_chapter_says_of_a_frame_holds_though_its_numbers_do_not() -> None:
    assert talk.__code__.co_flags & 1 << 5  # a generator: bit 5, as in the chapter
    one = talk()
    frame, before = one.gi_frame, one.gi_frame.f_lasti
    assert one.send(None) == 1  # type: ignore[arg-type]
    first = frame.f_lasti
    assert one.send("hello") == 2
    assert before < first < frame.f_lasti < len(one.gi_code.co_code)
    assert frame.f_locals == {"heard": "hello"}
    with pytest.raises(StopIteration, match="hello goodbye"):
        one.send("goodbye")
    assert one.gi_frame is None
    assert inspect.getgeneratorstate(one) == inspect.GEN_CLOSED


def test_two_generators_of_one_function_share_its_code_and_not_its_frame() -> None:
    one, other = talk(), talk()
    one.send(None)  # type: ignore[arg-type]
    assert one.gi_code is other.gi_code
    assert one.gi_frame.f_lasti > other.gi_frame.f_lasti


def test_a_caller_stays_in_its_place_while_what_it_delegates_to_moves_on() -> None:
    caller = ask()
    caller.send(None)  # type: ignore[arg-type]
    below = caller.gi_yieldfrom
    assert inspect.isgenerator(below)
    places = caller.gi_frame.f_lasti, below.gi_frame.f_lasti
    caller.send("hello")
    assert caller.gi_frame.f_lasti == places[0]
    assert below.gi_frame.f_lasti > places[1]
