"""What a server was asked for, besides its robots.txt; and a crawl that is stopped at once."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import trio
from cli.command import ended, start
from sites.raw import Request, Server, html, silence, threaded_raw_server


def stopped_at_once(option: str, path: Path) -> str:
    """Stop a crawl by Ctrl-C, twice, while it waits for its second page; return the first.

    Until then the old file is there.
    """
    path.write_text("old")
    asked = threading.Event()

    async def slow(request: Request, stream: trio.abc.Stream) -> None:
        asked.set()
        await silence(request, stream)

    words, site = [option, str(path)], {"/": html("/slow"), "/slow": slow}
    with threaded_raw_server(site) as server, start(*words, server.url) as process:
        assert asked.wait(20)
        assert path.read_text() == "old"
        process.send_signal(signal.SIGINT)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        ended(process)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    return server.url


def requests(server: Server) -> list[Request]:
    """List the requests for anything else than robots.txt, in the order they came."""
    return [request for request in server.requests if not _is_robots(request)]


def pages(server: Server) -> list[str]:
    """List the targets of these requests."""
    return [request.target for request in requests(server)]


def _is_robots(request: Request) -> bool:
    # A proxy is asked for the whole URL.
    return request.target.endswith("/robots.txt")
