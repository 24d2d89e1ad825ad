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
    "source, visible",
    [
        ("a<!-- x -->b<!-->c-->d", b"a b d"),
        ("a<!-->b", b"a "),
        ("a<SCRIPT><p></scripts></Script x>b<style_>c", b"a b\x0bc"),
        ("<p title='<script>'></script>b", b"\x0b"),
        ("<<b>c", b"\x0bc"),
        ("<<!-- x -->b>c", b"< b>c"),
        ("a < b <> <", b"a < b <> <"),
        ("<b", b"\x0b"),
    ],
)
def test_the_visible_text_is_what_the_expressions_leave(compiled, source, visible):
    assert compiled.visible(source.encode()) == visible
    in_python = text_digest._TAG.sub(b"\x0b", text_digest._UNSEEN.sub(b" ", source.encode()))
    assert in_python == visible


def test_numeric_references_are_decoded_once(compiled):
    assert compiled.decoded(b"&#64;&#x41&#XE9;&#8217;&#38;#64; & &# &#x; &amp;") == (
        "@Aé\u2019&#64; & &# &#x; &amp;".encode()
    )


@for_each("other", ["0", "31", "127", "x80", "55296", "xFFFE", "x110000", "9" * 99])
def test_a_reference_that_means_another_character_is_left_to_python(compiled, other):
    assert compiled.decoded(f"a&#64;&#{other};".encode()) is None


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
    visible = b"\x0b".join(b"text %d" % (number % distinct) for number in range(count))
    *_, blocks = text_digest._words(visible)
    monkeypatch.setattr(accelerator, "text", None)
    assert blocks == text_digest._blocks(visible)
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
        text_digest._words(text_digest.visible_text(before + body, xml=False))
    assert time.process_time() - started < 12


def test_other_threads_run_while_a_large_text_is_read(compiled):
    signals = text_digest._SIGNALS
    hints = compiled.hints(signals)
    before = sys.getswitchinterval()
    for of_large in (
        lambda: compiled.visible(b"<p>" * 1_000_000),
        lambda: compiled.outline(b"<p>" * 1_000_000),
        lambda: compiled.decoded(b"&#64;" * 1_000_000),
        lambda: compiled.words(b"a\v" * 1_000_000, signals, hints, 10, bytes),
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
        compiled.visible("text")
    with pytest.raises(TypeError, match="bytes"):
        compiled.outline("text")
    signals = frozenset({b"views"})
    with pytest.raises(TypeError, match="bytes"):
        compiled.words(b"1 views", signals, compiled.hints(signals), 10, len)
    with pytest.raises(ValueError, match="hints"):
        compiled.words(b"a", signals, b"", 10, bytes)
    with pytest.raises(ValueError, match="has not 3 to 12 bytes"):
        compiled.hints(frozenset({b"ab"}))
