"""A durable crawl may be cancelled at any step of any of its tasks: a resume loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio
from durable import compare
from durable.small import Small, at_once, law, whole_crawl
from msgspec.structs import replace

from trio_crawler import Limits, Response
from trio_crawler.testing import Site, html, redirect


class Cancel(trio.abc.Instrument):
    """Cancel a scope before step number `at` of all tasks; count the steps."""

    def __init__(self, scope: trio.CancelScope, at: int) -> None:
        self.steps = 0
        self._scope = scope
        self._at = at

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self.steps == self._at:
            self._scope.cancel()


async def cancelled(crawl: Small, at: int) -> int:
    """Run a crawl and cancel it at a step; return how many steps it took."""
    with trio.CancelScope() as scope:
        instrument = Cancel(scope, at)
        trio.lowlevel.add_instrument(instrument)
        try:
            await crawl.run()
        finally:
            trio.lowlevel.remove_instrument(instrument)
    return instrument.steps


async def cancel_at_each_step(whole: Small, another: Callable[[Path], Small], every: int) -> int:
    """Cancel crawls at every so many steps, each another crawl, and complete them."""
    at, steps = 1 - every, 1
    while at < steps:
        at += every
        crawl = another(whole.directory.parent.with_name(f"at{at}"))
        steps = await cancelled(crawl, at)
        assert law(await crawl.run()), at
        assert crawl.complaints(whole, stops=1) == [], at
    return at


async def test_a_crawl_cancelled_at_any_step_is_completed_by_the_next_run(
    monkeypatch, autojump_clock, whole
):
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    assert await cancel_at_each_step(whole, Small, every=1) > 100


async def test_a_crawl_cancelled_while_threads_are_at_work_is_completed_by_the_next_run(
    autojump_clock, whole
):
    assert await cancel_at_each_step(whole, Small, every=17) > 100


def in_levels() -> Site:
    """Make a site with short and long ways to its pages, and more beyond them."""
    return {
        "/": html("/a", "/b"),
        "/a": html("/a/1", "/a/2"),
        "/b": redirect("/b/1"),
        "/b/1": html("/c", "/a/2"),
        "/a/1": html("/c"),
        "/a/2": html("/d"),
        "/c": html("/d"),
        "/d": html("/e"),
    }


async def test_a_crawl_in_levels_that_is_cancelled_keeps_true_distances(
    memory, monkeypatch, autojump_clock
):
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    limits = Limits(max_depth=3)
    whole = await whole_crawl(Small(memory / "whole", in_levels, limits))
    await cancel_at_each_step(whole, lambda home: Small(home, in_levels, limits), every=1)
    depths = {outcome.url: outcome.depth for outcome in whole.outcomes()}
    for home in memory.glob("at*"):
        stored = compare.stored(home / "crawl")
        assert {outcome.url: outcome.depth for outcome in stored} == depths


def redirected(last: str) -> Site:
    """Make a chain of redirects that is cut behind `last` on one way, and not on another."""
    return {
        "/": html("/1", "/slow"),
        "/1": redirect("/2"),
        "/2": redirect("/3"),
        "/3": redirect(last),
        "/slow": html(last),
        last: redirect("/5"),
        "/5": redirect("/6"),
        "/6": html("/7"),
        "/7": html(),
    }


# The other way is found when the first was cut already, or while its last hop is under way.
@pytest.mark.parametrize("last", ["/4", "/slower"])
async def test_a_chain_of_redirects_that_is_cancelled_leads_where_its_fullest_way_leads(
    memory, monkeypatch, autojump_clock, last
):
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)

    def another(home: Path) -> Small:
        # Whether it was cut or led on, depends on which way came first.
        site = partial(redirected, last)
        return Small(home, site, Limits(max_redirects=3), either=[last])

    whole = await whole_crawl(another(memory / "whole"))
    assert len(whole.outcomes()) == 9
    await cancel_at_each_step(whole, another, every=1)


def folded() -> Site:
    """Make pages that give way to their canonical one, which comes, or does not."""

    def named(canonical: str, *links: str) -> Response:
        page = html(*links)
        link = f'<link rel="canonical" href="{canonical}">'.encode()
        return replace(page, body=page.body.replace(b"<title>", link + b"<title>"))

    return {
        "/": html("/x?1", "/x?2", "/y?1", "/z?1"),
        "/x?1": named("/x", "/of-x"),
        "/x?2": named("/x", "/of-x"),
        "/x": named("/x", "/of-x"),
        "/of-x": html(),
        "/y?1": named("/y", "/of-y"),
        "/of-y": html(),
        "/z?1": named("/z?2", "/of-z"),
        "/z?2": named("/z?1", "/of-z"),
        "/of-z": html(),
    }


async def test_a_crawl_that_folds_copies_and_is_cancelled_loses_no_page(
    memory, monkeypatch, autojump_clock
):
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    whole = await whole_crawl(Small(memory / "whole", folded, fold=True))
    assert len(whole.outcomes()) == 11
    at, steps = 0, 1
    while at < steps:
        at += 1
        crawl = Small(memory / f"at{at}", folded, fold=True)
        steps = await cancelled(crawl, at)
        assert law(await crawl.run()), at
        # Which of two that name each other is the copy, depends on which comes first.
        urls = {outcome.url for outcome in crawl.outcomes()}
        assert urls == {outcome.url for outcome in whole.outcomes()}, at


async def test_a_crawl_cancelled_again_and_again_comes_to_its_end(memory, autojump_clock, whole):
    crawl = Small(memory / "again")
    stops = 0
    # Where it is cancelled moves on, or a start that takes longer would never be over.
    while await cancelled(crawl, 10 + 10 * stops) > 10 + 10 * stops:
        stops += 1
    assert stops > 5
    assert law(await crawl.run())
    assert crawl.complaints(whole, stops=stops + 1) == []


@pytest.mark.parametrize("last", range(1, 19))
async def test_a_crawl_that_is_stopped_after_any_outcome_asks_for_nothing_twice(
    memory, autojump_clock, whole, last
):
    crawl = Small(memory / "stopped")
    figures = await crawl.run(last=last)
    assert figures.admitted == figures.waiting + figures.pages + figures.redirects + (
        figures.failures + figures.skipped
    )
    assert law(await crawl.run())
    assert crawl.complaints(whole, stops=0) == []
