"""`trio_crawler` on the same small sites: each URL ends as something."""

from __future__ import annotations

from small_witness import answer_in_memory, asked, short
from trio_crawler import Crawler, Failure, HttpxFetch, Limits, Outcome, Redirect

from sites.small import SITES
from virtual import run_trio, visitor


def told(outcome: Outcome) -> str:
    match outcome:
        case Redirect(status=status, rejected=reason):
            return f"redirect {status}" + (f", refused: {reason}" if reason else "")
        case Failure(reason=reason, tries=tries):
            return f"failed: {reason}, tries: {tries}"
        case _:
            return f"page {outcome.status} {' '.join(outcome.flaws)}".strip()


async def ends(name: str) -> str:
    client, site = visitor(answer_in_memory)
    root = f"{site.url}{name}/"
    crawler = Crawler(
        [root], limits=Limits(max_redirects=1), fetch=HttpxFetch(client)
    )
    each = []
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            path = short(outcome.url.removeprefix("http://site"))
            each.append(f"    {path}: {told(outcome)}")
    lines = [name, f"    asked for {asked(site)}", *sorted(each)]
    return "\n".join(lines)


if __name__ == "__main__":
    for name in SITES:
        print(run_trio(ends, name))
