"""The compiled scanner of links finds what the readers in Python find, or gives the page up."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from rigs import fuzzing, scanner_fuzz

from trio_crawler.page import accelerator, read

pytestmark = pytest.mark.skipif(
    accelerator.scan is None, reason="there is no compiled scanner, or it is turned off"
)


def scanned(text: str, max_links: int = 100_000) -> read.ParsedHtml | None:
    return read.scan_html(text.encode(), scanner_fuzz.URL, "utf-8", max_links)


def scan(text: str, decode: object = str) -> Any:
    assert accelerator.scan is not None
    return accelerator.scan(text.encode(), decode, 100_000)  # type: ignore[arg-type]


@for_each(
    "text, hrefs",
    [
        ("<a href=\"x\"><A HREF='y'><area href=z><a href><a name=n>", ["x", "y", "z", ""]),
        ('<a href="x#1"><a href="x#2"><a href="#3"><a href="x #4">', ["x", "", "x #"]),
        ('<a href="?a&amp;b"><a href="&#120;&#35;f"><a href="x">', ["?a&b", "x"]),
        ('<a href="\0"><a href="\xe9#"><a href="\u4e2d"><a href="\U0001f600">', "\ufffdé中😀"),
        ("\ufeff<a href=x>", ["x"]),
        ('\u013ca href=no><a href="\u0123\U00010022">', ["\u0123\U00010022"]),
        ("<!-- <a href=no> --><script>'<a href=no>'</script><a href=x>", ["x"]),
        ("<svg><path></svg><template><p></template><a href=x>", ["x"]),
    ],
)
def test_the_hrefs_are_distinct_decoded_and_without_fragments(text, hrefs):
    assert scan(text, read._decoded)[1] == list(hrefs)


@for_each(
    "text",
    [
        "<script><!-- <script> </script> --></script><a href=x>",
        "<script><!-- <script> --></script><a href=x>",
        "<script><!--> </script><a href=x>",
        "a < b <p title='>'><svg/><math/><a href=x>",
        "<!--!> <a href=no> --><a href=x>",
        "<svg><!-- > --></svg><select><a href=x></select>",
        "<svg></a></svg><a href=x>",
        '<svg style="a:url(b)"><foreignobject cite=c><p>t</p></foreignobject></svg><a href=x>',
        "<a href=x><p title='",
        "<p>" * 500_000 + "<a href=x>",
    ],
    ids=lambda text: text[:30],
)
def test_a_page_need_not_be_tidy(text):
    assert scanner_fuzz.difference(text) == ""
    assert scanner_fuzz.in_python(text).hrefs == ["x"]


@for_each(
    "text",
    [
        "<svg><title><b>x</b></title></svg>",
        "<svg><a href=x></svg>",
        "<svg><p><title>x</title></svg>",
        "<math><![CDATA[x]]></math>",
        "<template><svg><a href=x></svg></template>",
        "<svg>",
        "<plaintext>",
        "<a href=x rel='no&#102;ollow'>",
        "<base href='mailto:x'><a href='#f'>",
        "<p>" + "<a href=x>" * 10,
    ],
)
def test_a_page_that_needs_another_reader_is_given_up(text):
    assert scanned("<p>", 10) is not None
    assert scanned(text, 10) is None


def test_nofollow_base_and_title_are_found():
    text = (
        "<title>a &amp;\n b</title><title>no</title><base><base href=/b/><base href=/no/>"
        "<a rel='x NOFOLLOW' href=n><a rel=nofollower href=f><a href=n rel=x rel=nofollow>"
    )
    page = scanned(text)
    assert page == read.ParsedHtml(["f", "n"], ["n"], "http://e.test/b/", "a & b", 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_pages_are_read_as_they_are_in_python(seed):
    # `.ci/run --all` reads a million more.
    assert scanner_fuzz.compare(300, seed) < 300


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(not fuzzing.has_sanitizers(), reason="gcc has no sanitizers here")
def test_sanitizers_find_nothing_in_damaged_pages():
    command = [sys.executable, str(Path(scanner_fuzz.__file__)), "--pages", "300", "--sanitize"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("300 pages are read alike")


HOSTILE = [
    *("<", "<a ", '"', "'", '="', "='", "<!--", "<!---", "<!", "</", "<script>", "<script><!--"),
    *("<script><!--<script", "</script", "<title>", '<a x="', "<a href=x ", "<svg>", "-", "<p\f"),
    *("<svg></svg ", '<a rel="nofollow ', "&", "<a href=&#1", "\u4e2d<", "</x y=z>", "<a href=x>"),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_page_of_10_mib_takes_long(piece):
    """Quadratic time would be hours; the bound leaves room for slow CI."""
    text = piece * (10 * 1024 * 1024 // len(piece))
    started = time.process_time()
    scan(text)
    scan("<script>" + text)
    scan("<a href='" + text)
    assert time.process_time() - started < 3


def test_other_threads_run_while_a_large_page_is_read():
    gate, ran = threading.Lock(), []
    gate.acquire()
    thread = threading.Thread(target=lambda: gate.acquire() and ran.append(True))
    thread.start()
    before = sys.getswitchinterval()
    # Now a thread must let go of the lock of the interpreter by itself.
    sys.setswitchinterval(1_000)
    try:
        gate.release()
        for _ in range(100):
            scan("<p>" * 1_000)
        small = list(ran)
        for _ in range(1_000):
            if not ran:
                scan("<p>" * 1_000_000)
        large = list(ran)
    finally:
        sys.setswitchinterval(before)
        thread.join()
    assert (small, large) == ([], [True])


@pytest.fixture
def traced() -> Iterator[None]:
    """Count all memory that is allocated by way of Python."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def fail(source: str) -> str:
    raise ZeroDivisionError(source)


def test_no_memory_is_lost_whatever_the_end(traced):
    links = "".join(f'<a href="{number}&amp;中">' for number in range(1_000))
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        scan("<title>x</title>" + links)
        assert scan(links + "<plaintext>") is None
        with pytest.raises(ZeroDivisionError):
            scan(links, fail)
        with pytest.raises(TypeError, match="unhashable"):
            scan(links, lambda source: [source])
    assert tracemalloc.get_traced_memory()[0] - before < 100_000


def test_a_lean_reader_is_told_of_no_links_and_no_places():
    text = '<a href="x">t</a><p id="i"><img src="s">'
    assert accelerator.tags is not None
    assert [name for name, *_ in accelerator.tags(text, True) or ()] == ["img"]


def test_a_body_is_given_up_if_it_is_not_valid_utf_8():
    assert accelerator.scan is not None
    edges = [bytes([each]) for each in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)]
    for first in range(0x7F, 0x100):
        for more in product(edges, repeat=3):
            for length in range(4):
                body = b"12345678" + bytes([first]) + b"".join(more[:length])
                found = accelerator.scan(body, str, 1)
                assert (found is None) == ("\ufffd" in body.decode(errors="replace")), body
