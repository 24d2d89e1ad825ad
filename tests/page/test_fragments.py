"""The places of a page that a fragment may name."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc

import pytest
from cases import examples, for_each
from hypothesis import assume, given
from hypothesis import strategies as st
from sites import by_lexbor

from trio_crawler.page import accelerator, fragments
from trio_crawler.page.fragments import (
    has_place,
    key_of,
    names_of,
    places_of,
    read_targets,
)


def names(text: str, fragment: str) -> bool:
    """Whether a fragment names a place of a page."""
    return has_place(read_targets(text), fragment)


@for_each(
    "markup",
    [
        "<p id=x>",
        "<p id='x'>",
        '<p class="c" id="x">',
        '<p id="x" class="c">',
        "<P ID=x>",
        "<a name=x>",
        "<a id=x name=y>",
        "<a name=x id=y>",
        '<a class="c" name="x" href="y">',
        "<svg><path id=x /></svg>",
        "<script id=x></script>",
        "<template id=x></template>",
        "<p id='&#x78;'>",
        "<p style='a:b' id=x>",
        "<noscript><p id=x></noscript>",
        "<p id=x id=y>",
        "<p id='user-content-x'>",
    ],
)
def test_an_id_or_the_name_of_an_a_is_a_place(markup):
    assert names(f"<p>{markup}", "x")


@for_each(
    "markup",
    [
        "<p id=X>",
        "<p name=x>",
        "<img name=x>",
        "<svg><a name=x /></svg>",
        "<!-- <p id=x> -->",
        "<script>'<p id=x>'</script>",
        "<template><p id=x></template>",
        "<textarea><p id=x></textarea>",
        "<p title='<p id=x>'>",
        "&lt;p id=x>",
        "<p data-id=x>",
        "<p id=y id=x>",
        "<p id=''>",
        "</p id=x>",
    ],
)
def test_nothing_else_is(markup):
    assert not names(f"<p>{markup}", "x")


@for_each(
    "name, fragment, found",
    [
        ("é", "%C3%A9", True),
        ("é", "%e9", False),
        ("%C3%A9", "%C3%A9", True),
        ("a b", "a%20b", True),
        ("x", "x:~:text=y", True),
        ("x", "y:~:text=x", False),
        ("x", ":~:text=y", True),
        ("x", "", True),
        ("x", "top", True),
        ("x", "%54oP", True),
        ("x", "toP1", False),
        ("x", "!/route", True),
        ("x", "/route", True),
        ("user-content-é", "%C3%A9", True),
    ],
)
def test_a_fragment_is_looked_up_as_it_is_and_then_decoded(name, fragment, found):
    assert names(f'<p id="{name}">', fragment) is found


@for_each(
    "fragment, found",
    [
        ("3-17", True),
        ("L4-L5", True),
        ("L4-5", True),
        ("3-18", False),
        ("L3-L4", False),
        ("L4-L5-L4", False),
        ("L4-", False),
        ("x3-17", False),
    ],
)
def test_a_range_of_lines_names_its_first_and_its_last_line(fragment, found):
    assert names("<i id=3></i><i id=17></i><i id=L4></i><i id=L5></i>", fragment) is found


def test_a_fragment_may_name_at_most_four_places():
    assert names_of("%C3%A9") == ("%C3%A9", "\xe9", "user-content-%C3%A9", "user-content-\xe9")
    assert names_of("plain") == ("plain", "user-content-plain")


def test_keys_are_the_same_in_each_run():
    code = "from trio_crawler.page.fragments import key_of; print(key_of('x\\ud800'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == key_of("x\ud800")


@given(st.frozensets(st.text(max_size=4)))
def test_names_are_the_same_places_as_their_keys(ids):
    places, keys = places_of(ids), frozenset(map(key_of, ids))
    assert places == keys
    assert hash(places) == hash(keys)
    assert places | {0} == keys | {0}


@pytest.mark.slow
def test_the_places_of_a_page_of_a_million_ids_are_read():
    text = "".join(f'<p id="{number}">' for number in range(999_999))
    assert len(read_targets(text)) == 999_999


def test_a_page_with_more_places_than_are_read_says_so(monkeypatch):
    monkeypatch.setattr(fragments, "MAX_TARGETS", 10)
    monkeypatch.setattr(accelerator, "tags", None)
    assert read_targets("<p id=x>" * 11) is None
    assert read_targets("<p id=x>" * 9) == {key_of("x")}


PIECES = re.split(
    r"\s{2,}",
    """<p>  <div id="d1">  text  <b id=b1>  </b>  <a class="c" href='x2' id="i2">
    <a name=n1>
    <a href="x3" title="t" name="n3">  <li id='l1'>  <!-- c -->  <script>"<a id=no>"</script>
    <body id=bo>  <svg><path d="m" id="sv"/></svg>  <svg>  </svg>  <template>  </template>
    <p ="b= ">
    x">  "  '  <  >  =  -->  <A HREF="Y3" ID=Y3>  <p a="<a href=no id=no>">  <textarea>
    </textarea>  <?x  <desc>  <g id=g1>  <span id="sp" class=x>  <span class="x" id=''>
    <h1 id="h1">  <i id=a/b>  <p id="&amp;x">  <p id="n\0l">  <p id=" s ">  <svg id="s2">
    <svg><g id="g2"></g></svg>""",
)


@examples(1_000)
@given(st.lists(st.sampled_from(PIECES), max_size=7).map("".join))
def test_places_are_those_of_the_tree_of_lexbor(text):
    assume(not by_lexbor.is_left_open(text))
    assert read_targets(text) == frozenset(map(key_of, by_lexbor.targets(text)))


@given(st.text(max_size=200), st.booleans())
def test_no_text_raises(text, xml):
    assert read_targets(text, xml=xml) is not None
    assert len(names_of(text)) <= 4


def test_ids_as_long_as_pages_are_not_kept():
    tracemalloc.start()
    for number in range(40):
        name = f"{number}{'x' * 100_000}"
        assert read_targets(f'<p id="{name}">') == {key_of(name)}
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000
