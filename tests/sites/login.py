"""A site behind a login that bounces, as a function of URL and cookie, and a fetch of it.

web = LoginWeb(bouncing)
totals = await Crawler([web.url], fetch=web).crawl()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import httpx
import trio
from sites.raw import Request, html, reply

from trio_crawler import Job, Response
from trio_crawler.net import CookieStore

PAGES = 12


class Said(NamedTuple):
    """What a site answers: where it leads (None for a page), its links, and its Set-Cookie."""

    target: str | None = None
    links: tuple[str, ...] = ()
    cookie: str | None = None
    status: int = 200


Site: TypeAlias = Callable[[str, str], Said]
"""From the path with its query, and the Cookie header ("" for none), to what is answered."""


def bouncing(path: str, cookie: str) -> Said:
    """Bounce each page to a login that sets a cookie and leads back to it."""
    if path.startswith("/login"):
        return Said(path.partition("next=")[2] or "/", cookie="s=1; Path=/")
    if "s=1" not in cookie:
        return Said("/login" if path == "/" else f"/login?next={path}")
    return Said(links=tuple(f"/p{n}" for n in range(PAGES)))


class LoginWeb:
    """A fetch that answers as a site does, with the cookies of a `CookieStore`.

    `asked` has each request: URL and Cookie header. `delay` is a function from the job to seconds.
    """

    def __init__(
        self,
        site: Site,
        *,
        url: str = "http://site.test/",
        delay: Callable[[Job], float] = lambda job: 0.1,
        cookies: bool = True,
    ) -> None:
        self.url = url
        self.asked: list[tuple[str, str]] = []
        self._site = site
        self._delay = delay
        self.store = CookieStore(clock=lambda: 0.0, today=lambda: datetime.now(UTC))
        self._cookies = cookies
        self.cookies_for = self.store.cookies_for if cookies else None

    @property
    def hits(self) -> Counter[str]:
        """The number of requests by URL."""
        return Counter(url for url, _ in self.asked)

    async def __call__(self, job: Job) -> Response:
        if job.url.endswith("/robots.txt"):
            await trio.lowlevel.checkpoint()
            return Response(404)
        cookie = (self.store.cookies_for(job.url) if self._cookies else None) or ""
        self.asked.append((job.url, cookie))
        await trio.sleep(self._delay(job))
        parts = urlsplit(job.url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        said = self._site(path, cookie)
        lines = ["GET / HTTP/1.1", *([f"Cookie: {cookie}"] if cookie else []), "", ""]
        return self._response(job, said, "\r\n".join(lines).encode())

    def _response(self, job: Job, said: Said, request: bytes) -> Response:
        fields = [("content-type", "text/html")]
        if said.cookie:
            fields.append(("set-cookie", said.cookie))
        status = said.status
        if said.target is not None:
            fields.append(("location", said.target))
            status = 302
        headers = httpx.Headers(fields)
        self.store.store(job.url, headers)
        anchors = "".join(f'<a href="{link}">{link}</a>' for link in said.links)
        body = f"<!doctype html><title>{job.url}</title>{anchors}".encode()
        return Response(status, headers, b"" if said.target else body, request)


async def bounce(request: Request, stream: trio.abc.Stream) -> None:
    """Answer on a stream as `bouncing` does; a handler for `sites.raw`."""
    said = bouncing(request.target, request.headers.get("cookie", ""))
    if request.target == "/robots.txt":
        answer = reply(404)
    elif said.target is None:
        answer = html(*said.links, title=request.target)
    else:
        secure = "; Secure" if isinstance(_plain(stream), trio.SSLStream) else ""
        cookie = {"Set-Cookie": said.cookie + secure} if said.cookie else {}
        answer = reply(302, {"Location": said.target, **cookie})
    await stream.send_all(answer)


def _plain(stream: trio.abc.Stream) -> trio.abc.Stream:
    inner: trio.abc.Stream = getattr(stream, "inner", stream)
    return inner
