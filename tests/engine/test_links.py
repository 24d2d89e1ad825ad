"""The links of pages: which of them are judged."""

from __future__ import annotations

import pytest

from trio_crawler import Crawler, Job, Page, Redirect
from trio_crawler.testing import Web, html, redirect

HOME, OTHER = "http://site.test/", "http://site.test/other"


@pytest.mark.parametrize("answer", [html("/other"), redirect("/other")], ids=["link", "redirect"])
@pytest.mark.parametrize("seeds", [[HOME], [OTHER, HOME]], ids=["new", "known"])
async def test_a_url_that_was_admitted_is_not_judged_again(answer, seeds):
    judged = []

    def nothing(job: Job) -> bool:
        judged.append(job.url)
        return False

    web = Web({"/": answer, "/other": html("/other")})
    async with Crawler(seeds, scope=nothing, workers=1, fetch=web).outcomes() as outcomes:
        found = {outcome.url: outcome async for outcome in outcomes}
    known = OTHER in seeds
    assert judged == ([] if known else [OTHER])
    match found[HOME]:
        case Page(links=links, rejected=rejected):
            assert links == ((OTHER,) if known else ())
            assert [link.url for link in rejected] == ([] if known else [OTHER])
        case Redirect(rejected=reason):
            assert reason == (None if known else "excluded")
