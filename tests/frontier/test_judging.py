"""The judge and the frontier: what was admitted is not judged a second time."""

from __future__ import annotations

import httpx
import pytest
import trio

from trio_crawler import Job, Limits, MemoryFrontier, Page, Reason, Redirect, Response
from trio_crawler.engine.pages import Judge

HOME, OTHER = Job("http://e.test/"), "http://e.test/other"
LINK = Response(200, httpx.Headers({"content-type": "text/html"}), b"<a href=/other>")
MOVED = Response(301, httpx.Headers({"location": "/other"}))


@pytest.mark.parametrize("response", [LINK, MOVED], ids=["link", "redirect"])
@pytest.mark.parametrize("seeds", [[HOME], [HOME, Job(OTHER)]], ids=["new", "known"])
async def test_a_url_that_was_admitted_is_not_judged_again(response, seeds):
    judged = []

    def admits(job: Job) -> Reason:
        judged.append(job.url)
        return Reason.EXCLUDED

    frontier = MemoryFrontier()
    judge = Judge(Limits(), frontier.knows, admits, trio.lowlevel.checkpoint)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(frontier.run, seeds)
        await frontier.jobs.receive()
        outcome, _ = await judge.answer(HOME, response, 0.1)
        nursery.cancel_scope.cancel()
    known = len(seeds) == 2
    assert judged == ([] if known else [OTHER])
    match outcome:
        case Page():
            assert outcome.links == ((OTHER,) if known else ())
            assert [link.url for link in outcome.refused] == ([] if known else [OTHER])
        case Redirect():
            assert outcome.refused == (None if known else Reason.EXCLUDED)
