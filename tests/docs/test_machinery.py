"""What runs the programs of the pages, and what shows them, can be trusted."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import comparative
import pytest
import run
import trio
import virtual
from comparative import Twins, figure, folds, marks, recording
from selectolax.lexbor import LexborHTMLParser
from sites import drip, plain
from sites.serving import Answer, Site, serving

TRACEBACK = f"""before
Traceback (most recent call last):
  File "{run.DOCS}/reading/chapter.py", line 7, in <module>
    main()
    ~~~~^^
  File "/usr/lib/python3.11/asyncio/runners.py", line 190, in run
    return runner.run(main)
           ^^^^^^^^^^^^^^^^
  + Exception Group Traceback (most recent call last):
  |   File "{run.DOCS}/reading/web.py", line 15, in links
  |     raise a | b
  | ValueError: of http://127.0.0.1:4567/x at 0x7f00a1
after
"""


def test_of_a_traceback_the_frames_of_the_programs_and_the_error_are_kept():
    assert run.tidied(TRACEBACK, "http://127.0.0.1:4567/") == [
        "before",
        "Traceback (most recent call last):",
        "  chapter.py, line 7, in <module>",
        "  + Exception Group Traceback (most recent call last):",
        "  |   web.py, line 15, in links",
        "  | ValueError: of http://site/x at 0x...",
        "after",
    ]


@pytest.fixture
def program(tmp_path: Path):
    def write(code: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(f"import sys, time, urllib.request\n{code}\n")
        return str(path)

    return write


def test_a_program_that_hangs_is_stopped_and_what_it_printed_is_kept(program):
    code = "print('begun'); urllib.request.urlopen(sys.argv[1]); time.sleep(100)"
    assert run.run(["--for", "0.3", "plain", program(code)]).splitlines() == [
        "begun",
        "[still running 0.3 s after its last request: stopped]",
        "site: 1 request for 1 path",
    ]


def test_a_program_that_fails_says_how_it_exited(program):
    assert run.run(["plain", program("sys.exit(3)")]).splitlines() == [
        "[exit 3]",
        "site: 0 requests for 0 paths",
    ]


def test_ctrl_c_comes_after_the_first_request_and_all_arguments_reach_the_program(program):
    code = (
        "try:\n    urllib.request.urlopen(sys.argv[1])\n    time.sleep(100)\n"
        "except KeyboardInterrupt:\n    print(sys.argv[2:])"
    )
    said = run.run(["--interrupt", "0", "--hits", "plain", program(code), "--depth", "2"])
    assert said.splitlines() == ["['--depth', '2']", "site: / 1x"]


def test_a_warning_is_shown_but_the_one_that_is_chance(program):
    code = (
        "import warnings\nfor name in ('connect_tcp.<locals>.try_connect', 'work'):\n"
        "    warnings.warn(f'coroutine {name!r} was never awaited', RuntimeWarning)"
    )
    said = run.run(["--no-count", "plain", program(code)]).splitlines()
    assert [line for line in said if line.endswith("never awaited")] == [said[0]]
    assert "'work'" in said[0]


def test_of_a_program_the_named_functions_are_shown_in_its_own_order():
    code = "class B:\n    @a.c\n    def d(self):  # (1)\n        pass\n\ndef e(): f()\n"
    assert (
        comparative.part(code, ["e", "d", "x"])
        == "@a.c\ndef d(self):  # (1)\n    pass\n\ndef e(): f()\n"
    )
    assert comparative.part(code, []) == code
    assert comparative.part(code, ["x"]) == ""


def test_a_recording_has_a_name_for_each_command():
    commands = [["plain", "reading/a.py"], ["--hits", "plain", "reading/a.py"], ["plain", "b.py"]]
    assert len({recording(command) for command in commands}) == len(commands)


def test_the_witness_is_asked_without_being_counted():
    with serving(plain.answer) as site:
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", ASK, f"{site.url}~hits"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
        assert (done.stdout, site.hits.total()) == ("0\n", 0)


def test_whoever_came_before_is_counted_before_the_witness_answers():
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Site):
        def hit(self, path: str, visitor: object = None) -> None:
            begun.set()
            go_on.wait(5)
            super().hit(path, visitor)

    site = Slow(plain.answer)
    site.come("a visitor")
    asking = threading.Thread(target=site.hit, args=("/", "a visitor"))
    asking.start()
    begun.wait(5)
    threading.Timer(0.05, go_on.set).start()
    assert site.total() == 1


def test_what_a_program_sent_before_it_died_is_counted(program):
    code = (
        "import os, socket; from urllib.parse import urlsplit; url = urlsplit(sys.argv[1])\n"
        "for _ in range(50):\n"
        "    sock = socket.create_connection((url.hostname, url.port))\n"
        "    sock.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
        "os._exit(0)"
    )
    assert run.run(["plain", program(code)]) == "site: 50 requests for 1 path\n"


ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"


@pytest.mark.parametrize("runs", [virtual.run_asyncio, virtual.run_trio])
def test_an_hour_takes_no_time_in_virtual_time_on_both(runs):
    async def main() -> float:
        began = anyio.current_time()
        await anyio.sleep(3600)
        return anyio.current_time() - began

    assert runs(main) == pytest.approx(3600)


def test_a_program_that_would_wait_for_ever_is_stuck_on_both():
    async def with_trio() -> None:
        await trio.sleep_forever()

    async def with_asyncio() -> None:
        await asyncio.get_running_loop().create_future()

    for runs, main in ((virtual.run_asyncio, with_asyncio), (virtual.run_trio, with_trio)):
        with pytest.raises(virtual.Stuck):
            runs(main)


def test_a_site_is_the_same_in_virtual_time():
    client, site = virtual.visitor(plain.answer)

    async def main() -> bytes:
        async with client:
            return (await client.get(f"{site.url}3")).content

    answer: Answer = plain.answer("/3")
    assert virtual.run_trio(main) == str(answer.body).encode()
    assert site.hits == {"/3": 1}


def test_a_mark_is_a_link_to_its_twin_and_a_call_in_the_code_is_not():
    twins = Twins(["f(1)  # (1) (2)\ng = (3)  # (2)\n", "h(4)  # (2) (5)\n"], "pair-0")
    html = figure("f(1)  # (1) (2)\ng = (3)  # (2)\n", "a.py", "", twins, 0)
    assert html.count('<a class="mark" id="pair-0-0-2" href="#pair-0-1-2">(2)</a>') == 1
    assert html.count('<a class="mark" href="#pair-0-1-2">(2)</a>') == 1
    assert html.count("<a ") == 2


LISTING = '''"""Say what it does."""

import trio


async def fetch(url):
    return url


# Comments belong to what follows.
async def crawl():  # (1)
    await fetch("/")


if __name__ == "__main__":
    trio.run(crawl)
'''


def names_of_folds(*codes: str) -> list[str]:
    return [why for why, *_ in folds(codes[0], list(codes)) if why]


def test_imports_a_function_that_both_columns_have_and_the_start_are_folded() -> None:
    same = "fetch: the same in both"
    assert names_of_folds(LISTING, LISTING) == ["imports", same, "start"]
    assert names_of_folds(LISTING, LISTING.replace("return url", "pass")) == ["imports", "start"]
    assert names_of_folds(LISTING) == ["imports", "start"]


def test_a_program_is_not_folded_where_nothing_else_is_left_or_a_mark_stands() -> None:
    start = "import trio\n\nif __name__ == '__main__':\n    trio.run(fetch)\n"
    assert names_of_folds(start) == []
    assert names_of_folds(LISTING.replace("import trio", "import trio  # (2)")) == [
        "imports",
        "start",
    ]


PAIRS = {
    found
    for page in run.DOCS.rglob("*.md")
    for found in re.findall(r"^:+\{pair\} (\S+ .+)$", page.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize("names", sorted(PAIRS))
def test_every_mark_of_programs_side_by_side_has_a_twin(names: str):
    codes = [(run.DOCS / name).read_text() for name in names.split()]
    twins = Twins(codes, "")
    assert [
        (name, number)
        for column, (name, code) in enumerate(zip(names.split(), codes, strict=True))
        for line in marks(code)
        for number in line
        if twins.twin(column, number) is None
    ] == []


@pytest.mark.parametrize("names", sorted(PAIRS))
def test_a_listing_with_folds_has_every_line_of_its_program(names: str) -> None:
    codes = [(run.DOCS / name).read_text() for name in names.split()]
    for column, code in enumerate(codes):
        shown = LexborHTMLParser(figure(code, "", "", Twins(codes, ""), column))
        assert "".join(each.text() for each in shown.css("pre")) == code


BROKEN = {
    ":::{pair} reading/nowhere.py\n:::": "there is no docs/reading/nowhere.py",
    ":::{pair} reading/chapter.py\n:only: nobody\n:::": "has none of",
    "```{run} plain reading/nowhere.py\n```": "nothing is recorded for",
    ":::{step} reading/blocking.py reading/chapter.py\n- no such line\n:::": "has no line",
    ":::{picture} nowhere\nSeen.\n:::": "there is no docs/pictures/nowhere.svg",
}


def test_a_page_that_shows_what_is_not_there_cannot_be_built(tmp_path: Path):
    pages = tmp_path / "docs"
    pages.mkdir()
    shutil.copy(run.DOCS / "conf.py", pages)
    text = (pages / "conf.py").read_text()
    (pages / "conf.py").write_text(
        text.replace("Path(__file__).parent", f"type(Path())({str(run.DOCS)!r})")
    )
    (pages / "index.md").write_text("# Broken\n\n" + "\n\n".join(BROKEN))
    command = [sys.executable, "-m", "sphinx", "-q", str(pages), str(tmp_path / "out")]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert [why for why in BROKEN.values() if why not in said] == []


def test_the_drip_never_pauses_longer_than_a_time_out_of_a_read():
    assert 0 < drip.answer("/").drip < 1
