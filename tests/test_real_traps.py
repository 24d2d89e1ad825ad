"""Real sites lose no page to the traps: what they refuse is crawled by another way, or is gone.

The pages come from the disk, not over a socket, so that 50,000 of them take a minute.
"""

from __future__ import annotations

import mimetypes
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import pytest
import trio

from trio_crawler import Crawler, Job, Page, Politeness, Reason, Redirect, Response

pytestmark = pytest.mark.real

DOC = Path("/usr/share/doc")
SITES = {
    "linux-doc": DOC / "linux-doc-6.1/html",
    "openjdk-17-doc": DOC / "openjdk-17-doc/api",
    "postgresql-doc": DOC / "postgresql-doc-15/html",
    "python3-doc": DOC / "python3/html",
    "rust-doc": DOC / "rust-doc/html",
    "sqlite3-doc": DOC / "sqlite3",
}
TRAPS = {
    Reason.LONG_URL,
    Reason.DEEP_PATH,
    Reason.REPEATED_PATH,
    Reason.PERMUTED_QUERY,
    Reason.TOO_MANY_HOPS,
    Reason.NOTHING_NEW,
    Reason.PATTERN_BUDGET,
    Reason.HOST_BUDGET,
    Reason.DUPLICATE,
}
SEED = "http://docs.test/"


class Disk:
    """Answer as a static server does that serves one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def __call__(self, job: Job) -> Response:
        await trio.lowlevel.checkpoint()
        return self.answer(job.url)

    def answer(self, url: str) -> Response:
        """Give what is at a URL."""
        path = unquote(urlsplit(url).path)
        file = self.root / path.lstrip("/")
        if file.is_dir() and not path.endswith("/"):
            return Response(301, httpx.Headers({"location": urlsplit(url).path + "/"}))
        file = file / "index.html" if path.endswith("/") else file
        if not file.is_file():
            return Response(404)
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        body = file.read_bytes() if kind == "text/html" else b""
        return Response(200, httpx.Headers({"content-type": kind}), body)


@pytest.mark.parametrize("name", SITES)
async def test_a_real_site_loses_no_page_to_the_traps(name: str) -> None:
    root = SITES[name]
    if not (root / "index.html").exists():
        pytest.skip(f"{root} is not installed")
    disk = Disk(root)
    crawled: set[str] = set()
    trapped: set[str] = set()
    # Sphinx marks the links to its sources.
    polite = Politeness(per_host=100, nofollow=False)
    async with Crawler([SEED], fetch=disk, politeness=polite).outcomes() as outcomes:
        async for outcome in outcomes:
            assert isinstance(outcome, Page | Redirect)
            crawled.add(outcome.url)
            if isinstance(outcome, Page):
                trapped |= {link.url for link in outcome.rejected if link.reason in TRAPS}
            else:
                assert outcome.rejected not in TRAPS
    lost = {url for url in trapped - crawled if disk.answer(url).status < 400}
    assert not lost
    assert len(crawled) > 500
