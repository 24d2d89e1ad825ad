"""The compiled reader of the text of pages finds what the reader in Python finds."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import for_each
from rigs import fuzzing, text_fuzz

from trio_crawler.page import accelerator, text_digest

pytestmark = pytest.mark.skipif(
    accelerator.text is None, reason="there are no compiled readers, or they are turned off"
)


def read(body: bytes) -> text_digest.PageText | None:
    return text_digest.page_text(body, "text/html", "utf-8")


@pytest.fixture
def compiled() -> accelerator.Text:
    assert accelerator.text is not None
    return accelerator.text


@for_each(
    "source",
    [
        "a<!-- x -->b<!-->c-->d",
        "a<!-->b",
        "a<SCRIPT><p></scripts></Script x>b<style_>c",
        "<p title='<script>'></script>b",
        "<<b>c",
        "<<!-- x -->b>c",
        "a < b <> <",
        "<b",
        "&#64;&#x41&#XE9;&#8217;&#38;#64; & &# &#x; &amp; a&#32;b&#11;c&#60;b>",
    ],
)
def test_a_text_is_that_which_the_expressions_leave(source, monkeypatch):
    found = text_digest._words(source.encode(), xml=False)
    monkeypatch.setattr(accelerator, "text", None)
    assert found == text_digest._words(source.encode(), xml=False)


def test_every_number_of_a_character_means_what_it_means_in_python(monkeypatch):
    bounds = (0xD800, 0xE000, 0xFFFE, 0x10000, 0x110000, 10**8, 10**9, 2**32, 9**99)
    numbers = (*range(0x900), *range(0x900, 0x120000, 97), *bounds, *(n - 1 for n in bounds))
    source = " ".join(f"&#{number};" for number in numbers).encode()
    found = text_digest._words(source, xml=False)[0]
    monkeypatch.setattr(accelerator, "text", None)
    assert found == text_digest._words(source, xml=False)[0]


def test_only_parts_that_an_expression_can_change_are_returned(compiled):
    far = " x" * 30
    text = f"server 12{far} generated{far} 5 hits{far} hits {far} 7 views"
    signals = text_digest._SIGNALS
    words, parts, _ = compiled.words(text.encode(), signals, compiled.hints(signals), 10, bytes)
    assert words.decode() == " ".join(text.split())
    assert [words[begin:end].split()[9] for begin, end in parts] == [b"5", b"7"]


@for_each("count", [1, 127, 128, 129, 1_000, 50_000])
@for_each("distinct", [1, 7, 100_000])
def test_blocks_are_grouped_as_in_python(count, distinct, monkeypatch):
    source = b"<p>".join(b"text %d" % (number % distinct) for number in range(count))
    *_, blocks = text_digest._words(source, xml=False)
    monkeypatch.setattr(accelerator, "text", None)
    assert blocks == text_digest._words(source, xml=False)[2]
    assert 2 <= len(blocks) <= 2 * text_digest.MOST_BLOCKS


@pytest.mark.parametrize("seed", range(2))
def test_damaged_pages_have_the_digest_that_they_have_in_python(seed):
    assert text_fuzz.compare(3_000, seed) == "3,000 pages are read alike"


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(not fuzzing.has_sanitizers(), reason="gcc has no sanitizers here")
def test_sanitizers_find_nothing_in_the_texts_of_damaged_pages():
    command = [sys.executable, str(Path(text_fuzz.__file__)), "--pages", "5000", "--sanitize"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout == "5,000 pages are read alike\n"


HOSTILE = [
    *("<", "<b", "<<", "<!--", "-->", "<!", "<script>", "</script", "<title>", "<script", "</"),
    *("&", "&#", "&#6", "&#x", "&#64;", "server ", "generated 1 ", "a ", "\v", "a\v", "1", " ago"),
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_of_10_mib_takes_long(piece):
    """Quadratic time would be hours; the bound leaves room for slow CI."""
    body = (piece * (10 * 1024 * 1024 // len(piece))).encode()
    started = time.process_time()
    for before in (b"", b"<script>", b"<p "):
        text_digest._words(before + body, xml=False)
    assert time.process_time() - started < 12


def test_other_threads_run_while_a_large_text_is_read(compiled):
    signals = text_digest._SIGNALS
    hints = compiled.hints(signals)
    before = sys.getswitchinterval()
    for of_large in (
        lambda: compiled.outline(b"<p>" * 1_000_000),
        lambda: compiled.words(b"<p>" * 1_000_000, signals, hints, 10, bytes),
        lambda: compiled.words(b"a " * 1_000_000, signals, hints, 10, bytes),
    ):
        gate, ran = threading.Lock(), threading.Event()
        gate.acquire()
        thread = threading.Thread(target=lambda gate=gate, ran=ran: gate.acquire() and ran.set())
        thread.start()
        # Now a thread must let go of the lock of the interpreter by itself.
        sys.setswitchinterval(1_000)
        try:
            gate.release()
            for _ in range(1_000):
                if not ran.is_set():
                    of_large()
            has_run = ran.is_set()
        finally:
            sys.setswitchinterval(before)
            thread.join()
        assert has_run


@pytest.fixture
def traced() -> Iterator[None]:
    """Count all memory that is allocated by way of Python."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.slow
def test_no_memory_is_lost_by_a_text(traced):
    body = b"<p>generated in 1 s&#64;&#8217;" * 200 + b" word" * 100
    read(body)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        read(body)
        read(body + b"&#0;")
    assert tracemalloc.get_traced_memory()[0] - before < 100_000


def test_wrong_arguments_are_refused(compiled):
    with pytest.raises(TypeError, match="bytes"):
        compiled.outline("text")
    signals = frozenset({b"views"})
    with pytest.raises(TypeError, match="bytes"):
        compiled.words(b"1 views", signals, compiled.hints(signals), 10, len)
    with pytest.raises(ValueError, match="hints"):
        compiled.words(b"a", signals, b"", 10, bytes)
    with pytest.raises(ValueError, match="has not 3 to 12 bytes"):
        compiled.hints(frozenset({b"ab"}))
