"""Answer for the URLs of a site from a folder of files, as a static web server would."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache, partial
from math import inf
from types import TracebackType
from typing import Self
from urllib.parse import quote, unquote_to_bytes, urlsplit

import httpx
import trio

from trio_crawler.arguments import (
    ArgumentError,
    check_flag,
    check_function,
    check_kind,
    check_path,
    check_whole,
    public,
)
from trio_crawler.in_trio import check_in_trio
from trio_crawler.model import Answer, Fault, Fetch, Job, Phase, Reason, Response, Validator
from trio_crawler.net.fetcher import bounds_within
from trio_crawler.net.files import Files, OutsideError, open_found, type_of
from trio_crawler.net.http1.wire import MAX_BYTES
from trio_crawler.net.request import DEFAULT_USER_AGENT
from trio_crawler.net.statistics import FetchStatistics
from trio_crawler.page.media import is_read
from trio_crawler.page.urls import BARE_PERCENT, NOWHERE, normalise, web_url
from trio_crawler.policy.answers import ReceivedHeaders, by_name

__all__ = ["BASE_URL", "STEP", "FolderFetch"]

BASE_URL = NOWHERE
"""The default URL of a folder: no host has this name (RFC 6761, 6.4)."""

STEP = 1024 * 1024
"""The most bytes that are read at once, and the largest file that is read without a thread."""

_INDEX = "index.html"
_PAGES = (b"text/html", b"application/xhtml+xml")

# What a path may have beside letters, digits and "-._~" (URL Standard, "path percent-encode set").
_PLAIN = "/!$&'()*+,;=:@[]|"
_SEPARATORS = {os.sep, os.altsep or os.sep, "\0"}

_MISSING = frozenset(
    {
        *(errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG),
        # Names that the file system cannot have.
        *(errno.EINVAL, errno.EILSEQ),
    }
)
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


@public("trio_crawler.net")
class FolderFetch:
    """Fetch URLs from a folder of files, without a server.

    The files are below `base_url`: with "https://example.org/docs/" the answer for
    https://example.org/docs/a/b.png is the file a/b.png. A URL names a folder by a slash at its
    end, and the answer is the index.html there; without the slash it is redirected (301) to the
    URL with it. With `clean_urls` /a is answered by a.html, unless there is a file a. The answer
    is 404 for everything else that is not there, also for a folder without index.html, and 403
    for a file that the process may not read. A query changes nothing. Empty segments of a path
    are ignored, as nginx and Apache do.

    Names are percent-decoded by UTF-8, and compared by case on every file system. A path with a
    `%` that begins no escape is answered with 400, as by nginx and Apache. Nothing outside
    of the folder is read: `..`, separators and nulls in a name are not found, and a symbolic link
    that leads out is a `BLOCKED_ADDRESS` fault. Of a link inside the folder, the target counts.
    What is not a regular file (a FIFO, a device, a socket) is never opened: a `BAD_REPLY` fault.
    A file that changes while it is read, and an error of the disk, are `INCOMPLETE` faults, which
    a crawl retries.

    The Content-Type follows from the suffix, by a table of this package. It has no charset, so
    that what the page says counts. A file with an unknown suffix has no Content-Type, and a crawl
    looks at its first bytes. ETag and Last-Modified are made of the time of the last change and
    the size: with `job.validator` the answer may be an empty 304.

    `max_bytes` bounds the body as in `HttpFetch`: a page is cut (`Response.flaw`), a robots.txt
    too after 500 KiB, and a sitemap of more than 50 MiB is a fault. A body in which a crawl reads
    nothing, by its type, is left if it is longer; without `bodies` it is always left.

    All other URLs go to the fetch `other`, which the caller closes; its `user_agent`, `lookup`
    and the like are those of this fetch. Without it they are `BLOCKED_ADDRESS` faults. A path
    beside that of `base_url` is among them, even on its host: it is no page of the folder. But
    the robots.txt of this host is always answered here: from the folder, or with 404 if
    `base_url` has a path.

    No server has to be spared, so `Politeness(robots=False)` suits a folder. More than a few
    workers make a crawl of it no faster.

    ▶ A file of at most 1 MiB is read at once: out of the cache of the system that takes at most
    33 us, where the way to a thread takes 91. A larger one is read by threads, 1 MiB at a time.
    A disk that does not answer (a network share) holds the crawl.

    Raises TypeError or ValueError, naming the argument, if it is invalid.

    >>> Path("public").mkdir()
    >>> Path("public/index.html").write_text("<a href=gone.html>Gone</a>")
    26
    >>> fetch = FolderFetch("public", base_url="https://e.org/")
    >>> list(fetch.pages()), fetch.path_of("https://e.org/")
    (['https://e.org/'], 'public/index.html')
    >>> trio.run(Crawler([fetch.base_url], fetch=fetch).crawl).pages
    2
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        base_url: str | httpx.URL = BASE_URL,
        clean_urls: bool = False,
        max_bytes: int = MAX_BYTES,
        bodies: bool = True,
        other: Fetch | None = None,
    ) -> None:
        self._files = _files(folder)
        self._folder = os.fspath(folder)
        check_flag("clean_urls", clean_urls)
        check_whole("max_bytes", max_bytes, least=1)
        check_flag("bodies", bodies)
        if other is not None:
            check_function("other", other, "a fetch, such as HttpFetch(), or None")
        base = web_url("base_url", base_url)
        if "?" in base:
            raise ArgumentError("base_url", f" must have no query: {base!r}")
        self.base_url = base if base.endswith("/") else f"{base}/"
        parts = urlsplit(self.base_url)
        self._origin, self._host = f"{parts.scheme}://{parts.netloc}", parts.hostname
        self._clean_urls = clean_urls
        self._bounds = bounds_within(max_bytes)
        self._bodies = bodies
        self._other = other
        self._requests = 0
        self._bytes = 0
        self._closed = False
        # What a crawl asks a fetch for, beside the answers.
        self.user_agent: str = getattr(other, "user_agent", DEFAULT_USER_AGENT)
        self.random = getattr(other, "random", None)
        self.cookies_for = getattr(other, "cookies_for", None)
        if other is None or hasattr(other, "sends_credentials"):
            self.sends_credentials: bool = getattr(other, "sends_credentials", False)

    async def __aenter__(self) -> Self:
        check_in_trio("FolderFetch")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close this fetch, but never `other`."""
        self._closed = True
        await trio.lowlevel.checkpoint()

    def __repr__(self) -> str:
        return f"<FolderFetch: {self._files.root!r} as {self.base_url}>"

    def statistics(self) -> FetchStatistics:
        """Return the counts of answers from the folder and of the bytes that were read."""
        return FetchStatistics(self._requests, self._bytes)

    def path_of(self, url: str) -> str | None:
        """Return the path of the file that answers for a `url`, below `folder` as it was given.

        None if there is none: for a URL of another place, one that is redirected, and a file that
        is never opened. Whether the process may read the file makes no difference.
        """
        check_kind("url", url, str, "a URL as a str")
        before = url.partition("#")[0].partition("?")[0]
        if not before.startswith(self.base_url):
            return None
        path = before[len(self.base_url) :]
        names, of_folder = _names(path), not path or path.endswith("/")
        if names is None:
            return None
        try:
            found = self._find(names, of_folder=of_folder)
        except (OSError, OutsideError):
            return None
        if found is None or not stat.S_ISREG(found[2].st_mode):
            return None
        return os.path.join(self._folder, *(names if of_folder else names[:-1]), found[0])

    def url_of(self, path: str | os.PathLike[str]) -> str:
        """Return the URL of a file by its path below `folder`, whether it is there or not.

        An index.html has the URL of its folder, and with `clean_urls` a.html has that of a, if
        that leads to it.
        """
        check_path("path", path)
        below = os.fspath(path).replace(os.sep, "/")
        folder, slash, name = below.rpartition("/")
        if name == _INDEX:
            return self._url(folder + slash)
        whole = self._url(below)
        if self._clean_urls and name.endswith(".html"):
            clean = self._url(below.removesuffix(".html"))
            leads_to = self.path_of(clean)
            if leads_to is not None and leads_to == self.path_of(whole):
                return clean
        return whole

    def _url(self, path: str) -> str:
        url = self.base_url + quote(os.fsencode(path), _PLAIN)
        # The standard changes no other segments of such a path than "." and "..".
        return normalise(url) if "/." in url else url

    def pages(self) -> Iterator[str]:
        """Yield the URL of each page in the folder, as seeds of a crawl.

        They come in the order of the file system, and pages are the files that are HTML or XHTML
        by their suffixes. Hidden files and folders are left out, and so is what only a symbolic
        link leads to: it is read if a page links to it. A folder that the process may not list is
        yielded itself: the answer for it is 403.
        """
        return (self.url_of(path) for path, is_page in self._walk() if is_page)

    def others(self) -> Iterator[str]:
        """Yield the URL of each other file in the folder, in the order of the file system."""
        return (self.url_of(path) for path, is_page in self._walk() if not is_page)

    def _walk(self) -> Iterator[tuple[str, bool]]:
        """Yield the path of each regular file below the folder, and whether it is a page."""
        waiting = [""]
        while waiting:
            below = waiting.pop()
            try:
                entries = os.scandir(os.path.join(self._files.root, below))
            except PermissionError:
                yield below, True
                continue
            except OSError:
                # It was removed just now.
                continue
            with entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    path = below + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path + os.sep)
                    elif entry.is_file(follow_symlinks=False):
                        yield path, type_of(entry.name) in _PAGES

    async def lookup(self, url: str) -> float:
        """Look up the name of the host of `url`, unless it is that of `base_url`; see `Fetch`."""
        lookup: Callable[[str], Awaitable[float]] | None = getattr(self._other, "lookup", None)
        if lookup is None or urlsplit(url).hostname == self._host:
            await trio.lowlevel.checkpoint()
            return inf
        return await lookup(url)

    def addresses(self, url: str) -> Sequence[str]:
        """Return the addresses of the host of `url`, as the fetch for other URLs knows them."""
        known: Callable[[str], Sequence[str]] = getattr(self._other, "addresses", lambda _: ())
        return known(url)

    async def __call__(self, job: Job) -> Answer:
        """Return the answer for `job.url`. Raises RuntimeError after `aclose`, and under asyncio.

        An error of the file system is a Fault or a status.
        """
        if self._closed:
            raise RuntimeError("this FolderFetch is closed: make another one")
        check_kind("job", job, Job, "a Job")
        check_in_trio("FolderFetch")
        if not job.url.startswith(self.base_url):
            return await self._answer_outside(job)
        await trio.lowlevel.checkpoint()
        self._requests += 1
        try:
            return await self._answer(job)
        except OutsideError:
            detail = "a symbolic link leads out of the folder, and is not followed"
            return Fault(Reason.BLOCKED_ADDRESS, detail, Phase.READ)
        except OSError as error:
            return _of(error)

    async def _answer_outside(self, job: Job) -> Answer:
        before, mark, query = job.url.partition("?")
        is_robots = job.url == f"{self._origin}/robots.txt"
        if self._other is not None and not is_robots and before + "/" != self.base_url:
            return await self._other(job)
        await trio.lowlevel.checkpoint()
        if is_robots:
            return Response(404)
        if before + "/" == self.base_url:
            return _moved(self.base_url, mark + query)
        detail = f"the folder has only what is below {self.base_url}"
        return Fault(Reason.BLOCKED_ADDRESS, detail, Phase.CONNECT)

    async def _answer(self, job: Job) -> Answer:
        before, mark, query = job.url.partition("#")[0].partition("?")
        path = before[len(self.base_url) :]
        names = _names(path)
        if names is None:
            return Response(400 if BARE_PERCENT.search(path) else 404)
        found = self._find(names, of_folder=not path or path.endswith("/"))
        if found is None:
            return _moved(before + "/", mark + query)
        name, path, status = found
        if not stat.S_ISREG(status.st_mode):
            detail = f"a pipe, a socket or a device, not a regular file: {path!r}"
            return Fault(Reason.BAD_REPLY, detail, Phase.READ)
        descriptor = open_found(path, status)
        try:
            return await self._response(job, name, descriptor, status)
        finally:
            os.close(descriptor)

    def _find(
        self, names: list[str], *, of_folder: bool
    ) -> tuple[str, str, os.stat_result] | None:
        """Return the name, the path and the status of a file; None to redirect to its folder.

        Raises OSError and OutsideError.
        """
        if of_folder:
            return self._file([*names, _INDEX])
        page = [*names[:-1], f"{names[-1]}.html"]
        try:
            path, status = self._files.find(names)
        except OSError as error:
            if not self._clean_urls or error.errno not in _MISSING:
                raise
            return self._file(page)
        if not stat.S_ISDIR(status.st_mode):
            return names[-1], path, status
        if self._clean_urls:
            try:
                return self._file(page)
            except OSError as error:
                if error.errno not in _MISSING:
                    raise
        return None

    def _file(self, names: list[str]) -> tuple[str, str, os.stat_result]:
        path, status = self._files.find(names)
        if stat.S_ISDIR(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "a folder", path)
        return names[-1], path, status

    async def _response(
        self, job: Job, name: str, descriptor: int, status: os.stat_result
    ) -> Answer:
        kind, size, bounds = type_of(name), status.st_size, self._bounds[job.purpose]
        headers = _headers(kind, status)
        if job.validator is not None and _is_unchanged(job.validator, headers):
            return Response(304, headers)
        if bounds.pages and not is_read(kind.decode()):
            if not self._bodies:
                return Response(200, headers, flaw=Reason.NOT_READ)
            if size > bounds.max_bytes:
                return Response(200, headers, flaw=Reason.TOO_LARGE)
        if size > bounds.max_bytes and not bounds.truncate:
            detail = f"the file has {size} bytes; {bounds.max_bytes} are the limit"
            return Fault(Reason.TOO_LARGE, detail, Phase.READ)
        wanted = min(size, bounds.max_bytes)
        body = await _read(descriptor, wanted)
        self._bytes += len(body)
        after = os.fstat(descriptor)
        if len(body) < wanted or (size, status.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return Fault(Reason.INCOMPLETE, "the file changed while it was read", Phase.READ)
        flaw = Reason.TOO_LARGE if wanted < size else None
        return Response(200, headers, body, flaw=flaw)


def _files(folder: str | os.PathLike[str]) -> Files:
    check_path("folder", folder)
    path = os.fspath(folder)
    if not path:
        raise ArgumentError("folder", " must not be empty: write '.' for the current one")
    try:
        files = Files(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ArgumentError("folder", f": cannot open {path!r}: {why}") from None
    if not os.path.isdir(files.root):
        raise ArgumentError("folder", f" must be a folder, not a file: {path!r}")
    return files


def _names(path: str) -> list[str] | None:
    """Return the names of the files on the way; None if one cannot be a name."""
    try:
        names = [
            segment
            if segment.isascii() and "%" not in segment
            else os.fsdecode(unquote_to_bytes(segment))
            for segment in path.split("/")
            if segment
        ]
    except UnicodeError:
        return None
    bad = any(name in (".", "..") or not _SEPARATORS.isdisjoint(name) for name in names)
    return None if bad or ("%" in path and BARE_PERCENT.search(path)) else names


def _moved(url: str, query: str) -> Response:
    # A whole URL: a path of two slashes would be a host.
    return Response(301, httpx.Headers([(b"Location", (url + query).encode("utf-8", "replace"))]))


def _headers(kind: bytes, status: os.stat_result) -> httpx.Headers:
    size, changed = status.st_size, status.st_mtime_ns
    fields = [(b"Content-Length", b"%d" % size), (b"ETag", b'"%x-%x"' % (changed, size))]
    if kind:
        fields.append((b"Content-Type", kind))
    # Some times of files are no dates.
    with suppress(ValueError, OverflowError, OSError):
        fields.append((b"Last-Modified", _date(changed // 1_000_000_000).encode()))
    return ReceivedHeaders(fields, by_name(fields))


# ▶ It takes 10 us, and most files of a site are written within seconds.
_date = lru_cache(1_024)(partial(formatdate, usegmt=True))


def _is_unchanged(known: Validator, headers: httpx.Headers) -> bool:
    """Whether a conditional request is answered by 304 (RFC 9110, 13.2.2)."""
    if known.etag is not None:
        return known.etag == headers["etag"]
    return known.last_modified is not None and known.last_modified == headers.get("last-modified")


async def _read(descriptor: int, size: int) -> bytes:
    """Return at most `size` bytes of a file, less if it ends before."""
    pieces, left = [], size
    while left:
        most = min(left, STEP)
        if size <= STEP:
            piece = os.read(descriptor, most)
        else:
            # When it is cancelled, this waits for the thread: the descriptor is closed after it.
            piece = await trio.to_thread.run_sync(os.read, descriptor, most)
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _of(error: OSError) -> Answer:
    """Return the answer for an error of the file system."""
    if error.errno in _MISSING:
        return Response(404)
    if error.errno in _FORBIDDEN:
        return Response(403)
    none_left = error.errno in _NO_DESCRIPTORS
    reason = Reason.NO_SOCKETS if none_left else Reason.INCOMPLETE
    return Fault(reason, error.strerror or str(error), Phase.READ)
