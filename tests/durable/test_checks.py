"""A crawl that checks links is cancelled and killed: it finds what one run finds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import trio
from cli.command import wait_until
from durable.checking import OUT, Checking, findings
from durable.small import at_once
from durable.test_cancelled import Cancel

from trio_crawler import Checked

_PROGRAM = Path(__file__).with_name("checking.py")


async def whole_crawl(home: Path) -> Checking:
    """Run a crawl to its end, and see that it has what this is about."""
    whole = Checking(home / "whole")
    await whole.run()
    outcomes = whole.outcomes()
    again = {each.url for each in outcomes if isinstance(each, Checked) and each.again}
    assert again == {f"{OUT}{name}" for name in ("fine", "read", "moved", "there")}
    codes = Counter(code for _, _, _, code, _, _ in findings(outcomes))
    assert codes == {"404": 3, "missing_fragment": 4}
    assert whole.complaints(whole, whole.web.hits, stops=0) == []
    return whole


async def test_a_crawl_with_checks_that_is_cancelled_at_any_step_finds_what_one_run_finds(
    memory, monkeypatch, autojump_clock
):
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    whole = await whole_crawl(memory)
    at, steps = 0, 1
    while at < steps:
        at += 1
        crawl = Checking(memory / f"at{at}")
        with trio.CancelScope() as scope:
            instrument = Cancel(scope, at)
            trio.lowlevel.add_instrument(instrument)
            try:
                await crawl.run()
            finally:
                trio.lowlevel.remove_instrument(instrument)
        steps = instrument.steps
        await crawl.run()
        assert crawl.complaints(whole, crawl.web.hits, stops=1) == [], at
    assert at > 100


def test_a_crawl_with_checks_that_is_killed_finds_what_one_run_finds(memory):
    whole = trio.run(whole_crawl, memory)
    requests = sum(whole.web.hits.values())
    for at in range(1, requests + 1, 3):
        home = memory / f"killed{at}"
        home.mkdir()
        log = home / "log"
        command = [sys.executable, str(_PROGRAM), str(home), str(log)]
        killed = subprocess.Popen(command)
        try:
            wait_until(lambda log=log, at=at: log.exists() and len(lines(log)) >= at)
        finally:
            killed.kill()
            killed.wait()
        subprocess.run(command, check=True, timeout=30)
        crawl = Checking(home)
        assert crawl.complaints(whole, Counter(lines(log)), stops=1) == [], at


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()
