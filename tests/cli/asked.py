"""What a server was asked for, besides its robots.txt."""

from __future__ import annotations

from sites.raw import Request, Server


def requests(server: Server) -> list[Request]:
    """List the requests for anything else than robots.txt, in the order they came."""
    return [request for request in server.requests if not _is_robots(request)]


def pages(server: Server) -> list[str]:
    """List the targets of these requests."""
    return [request.target for request in requests(server)]


def _is_robots(request: Request) -> bool:
    # A proxy is asked for the whole URL.
    return request.target.endswith("/robots.txt")
