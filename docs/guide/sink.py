"""Write a sink: a loop over the outcomes. This one finds titles used twice."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from trio_crawler import Crawler, Page
from trio_crawler.report import CSV_HEAD, csv_row


async def main(url: str, path: Path) -> None:
    titles: defaultdict[str, list[str]] = defaultdict(list)
    async with await trio.open_file(path, "wb") as file:
        await file.write(CSV_HEAD)
        async with Crawler([url]).outcomes() as outcomes:
            async for outcome in outcomes:
                await file.write(csv_row(outcome))  # a slow disk slows the crawl
                if isinstance(outcome, Page) and outcome.ok:
                    titles[outcome.title or ""].append(outcome.url)
    for title, pages in sorted(titles.items()):
        if len(pages) > 1:
            print(f"{title!r} is the title of {', '.join(sorted(pages))}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        path = Path(directory, "pages.csv")
        trio.run(main, sys.argv[1], path)
        print(f"pages.csv has {len(path.read_text().splitlines())} lines")
