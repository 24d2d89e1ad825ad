"""Every picture is drawn from a run, and drawn anew it is the same."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import drawing
import either
import lanes
import modern
import pytest
from virtual import run_asyncio, run_trio

DOCS = Path(drawing.__file__).parent
sys.path[:0] = [str(DOCS / "pictures"), str(DOCS / "failures")]

import scenes  # noqa: E402 - its folder is no package

SVG = "{http://www.w3.org/2000/svg}"
DIGEST = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
from scenes import SCENES
for name, scene in SCENES.items():
    print(name, hashlib.sha256(scene.drawn(name).encode()).hexdigest())
"""


@pytest.mark.parametrize("name", scenes.SCENES)
def test_a_picture_is_what_its_run_draws(name: str, recorded: Callable[[Path, str], None]) -> None:
    recorded(DOCS / "pictures" / f"{name}.svg", scenes.SCENES[name].drawn(name))


def test_another_process_with_another_hash_seed_draws_the_same_bytes() -> None:
    parts = ("pictures", "failures", "reading", "", "..")
    folders = [str(DOCS / part) for part in parts]
    done = subprocess.run(
        [sys.executable, "-c", DIGEST, *folders],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    drawn = dict(line.split() for line in done.stdout.splitlines())
    kept = {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (DOCS / "pictures").glob("*.svg")
    }
    assert drawn == kept


def kinds(records: list[lanes.Record]) -> set[tuple[str, str]]:
    return {
        (each.what, each.where.partition(" ")[0] if each.what == "waits" else "")
        for each in records
    }


def test_asyncio_and_trio_emit_the_same_kinds_of_records() -> None:
    asyncio_s = scenes.crawls(either, run_asyncio)
    trios = scenes.crawls(either, run_trio)
    assert kinds(asyncio_s) == kinds(trios)
    assert {what for what, _ in kinds(trios)} == {"started", "waits", "ended"}


def test_one_anyio_program_has_the_same_lanes_on_both() -> None:
    drawn = [
        list(drawing.lanes(scenes.crawls(either, run), 6.0).values())
        for run in (run_asyncio, run_trio)
    ]
    told = [[(lane.label, lane.waits, lane.ended) for lane in made] for made in drawn]
    assert told[0] == told[1]
    assert len(told[0]) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"time": 0.35},
        {"what": "ended"},
        {"where": "sleeping work"},
        {"where": "fetching /elsewhere"},
        {"task": 99},
        {"parent": 3},
    ],
    ids=lambda change: next(iter(change)) + " " + str(next(iter(change.values()))),
)
def test_a_changed_record_changes_the_picture(change: dict[str, object]) -> None:
    records = scenes.SCENES["tree-trio"].panels[0][1]()
    number = next(n for n, each in enumerate(records) if each.where == "fetching /b")
    changed = [*records]
    changed[number] = replace(changed[number], **change)  # type: ignore[arg-type]
    if "parent" in change:
        changed = [
            replace(each, parent=3) if each.task == records[number].task else each
            for each in records
        ]
        assert tree(records) != tree(changed)
    else:
        assert timeline(records) != timeline(changed)


def timeline(records: list[lanes.Record]) -> str:
    return drawing.timeline("x", "X", [("", records)], 6, {})


def tree(records: list[lanes.Record]) -> str:
    return drawing.tree("x", "X", [("", records)], 6, {})


def test_an_end_that_is_another_one_is_drawn_in_another_way() -> None:
    records = scenes.crawls(either, run_trio)
    last = records[-1]
    ends = [replace(last, what=what) for what in ("ended", "raised", "cancelled")]
    drawn = {timeline([*records[:-1], end]) for end in ends} | {timeline(records[:-1])}
    assert len(drawn) == 4


def test_the_workers_of_modern_asyncio_end_by_themselves_where_a_queue_can_be_shut_down() -> None:
    made = drawing.lanes(scenes.crawls(modern, run_asyncio), 6.0).values()
    fates = {lane.fate for lane in made if lane.name == "work"}
    assert fates == ({"ended"} if hasattr(asyncio.Queue, "shutdown") else {"cancelled"})


@pytest.mark.parametrize("name", [n for n in scenes.SCENES if not n.startswith("tree-")])
def test_a_legend_says_what_each_mark_at_the_end_of_a_lane_means(name: str) -> None:
    svg = ElementTree.fromstring(scenes.SCENES[name].drawn(name))
    marks = {each.get("class") for each in svg.iter()}
    words = {each.text for each in svg.iter(f"{SVG}text")}
    assert {fate: word in words for fate, word in drawing.FATES.items()} == {
        fate: fate in marks for fate in drawing.FATES
    }
    assert marks & set(drawing.FATES)


def test_tasks_outlive_the_one_that_started_them_on_asyncio_and_not_on_trio() -> None:
    asyncio_s, trios = (scenes.SCENES[f"tree-{name}"].drawn("x") for name in ("chapter", "trio"))
    assert asyncio_s.count('class="tie outlived"') == 4 + 1  # the last one is the legend
    assert "outlived it" in asyncio_s
    assert "outlived it" not in trios
    assert 'class="tie outlived"' not in trios


@pytest.mark.parametrize("name", scenes.SCENES)
def test_a_picture_is_well_formed_small_and_says_what_it_shows(name: str) -> None:
    svg = ElementTree.fromstring((DOCS / "pictures" / f"{name}.svg").read_text())
    assert svg.get("role") == "img"
    wide, high = map(float, (svg.get("viewBox") or "").split()[2:])
    assert wide <= 380
    ids = [each.get("id") for each in svg.iter() if each.get("id")]
    assert ids == [f"picture-{name}{rest}" for rest in ("", "-title", "-desc")]
    assert (svg.get("aria-labelledby") or "").split() == ids[1:]
    for kind in ("title", "desc"):
        assert len("".join(svg.find(f"{SVG}{kind}").itertext())) > 10  # type: ignore[union-attr]
    for words in svg.iter(f"{SVG}text"):
        long = 6.6 * len(words.text or "")
        x = float(words.get("x") or 0)
        left = {"start": x, "middle": x - long / 2, "end": x - long}[
            words.get("text-anchor") or ""
        ]
        assert left >= 0, words.text
        assert left + long <= wide + 4, words.text
        assert 0 < float(words.get("y") or 0) < high


def test_each_picture_is_shown_by_a_page_and_each_one_shown_is_there() -> None:
    shown = {
        found
        for page in DOCS.rglob("*.md")
        for found in re.findall(r"\{picture\} (\S+)", page.read_text())
    }
    drawn = {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    assert shown == drawn
    assert drawn == set(scenes.SCENES)
