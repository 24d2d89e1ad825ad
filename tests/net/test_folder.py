"""A folder of files answers like a static web server, and nothing outside of it is read."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from cases import for_each
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from trio_crawler import Crawler, Fault, Job, Page, Politeness, Reason, Redirect
from trio_crawler.model import Answer, Phase, Purpose, Response, Validator
from trio_crawler.net import FolderFetch
from trio_crawler.net.folder import STEP
from trio_crawler.testing import Web, html

KIB, MIB = 1024, 1024 * 1024
BASE = "https://example.org/docs/"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder beside a file that is secret."""
    (tmp_path / "secret.html").write_text("secret")
    made = tmp_path / "public"
    made.mkdir()
    return made


def write(folder: Path, *paths: str) -> None:
    """Write files that have their own paths in them."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


async def answer(folder: Path, path: str, purpose: Purpose = Purpose.PAGE, **given: Any) -> Answer:
    fetch = FolderFetch(folder, **{"base_url": BASE, **given})
    return await fetch(Job(BASE + path, purpose=purpose))


async def told(folder: Path, path: str, **given: Any) -> Any:
    """Return the body, else the status and where a redirect leads to, else the reason."""
    found = await answer(folder, path, **given)
    if isinstance(found, Fault):
        return found.reason
    if found.status == 200:
        return found.body.decode()
    return found.headers.get("location", found.status)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# What a URL names.


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "index.html"),
        ("a.html", "a.html"),
        ("a.html?b=c", "a.html"),
        ("?b=c", "index.html"),
        ("sub/", "sub/index.html"),
        ("sub/b.html", "sub/b.html"),
        ("sub", BASE + "sub/"),
        ("sub?b=c/d", BASE + "sub/?b=c/d"),
        ("empty", BASE + "empty/"),
        ("empty/", 404),
        ("none.html", 404),
        ("none/a.html", 404),
        ("a.html/", 404),
        ("a.html/b", 404),
        ("A.HTML", 404),
        ("a", 404),
        ("index/", 404),
    ],
)
async def test_a_url_is_answered_as_by_a_static_server(
    folder: Path, path: str, expected: object
) -> None:
    write(folder, "index.html", "a.html", "sub/index.html", "sub/b.html", "index/index.html/x")
    (folder / "empty").mkdir()
    assert await told(folder, path) == expected


async def test_empty_segments_are_ignored_and_never_become_a_host(folder: Path) -> None:
    write(folder, "evil.test/index.html")
    fetch = FolderFetch(folder, base_url="https://example.org")
    found = [await fetch(Job(f"https://example.org//evil.test{end}")) for end in ("", "/")]
    assert [each.status for each in found if isinstance(each, Response)] == [301, 200]
    assert isinstance(found[0], Response)
    assert found[0].headers["location"] == "https://example.org//evil.test/"


@for_each(
    "path, expected",
    [
        ("a", "a.html"),
        ("a.html", "a.html"),
        ("both", "both.html"),
        ("both/", "both/index.html"),
        ("sub", BASE + "sub/"),
        ("sub/b", "sub/b.html"),
        ("v1.2", "v1.2.html"),
        ("plain", "plain"),
        ("odd", 404),
        ("deep", BASE + "deep/"),
        ("a/", 404),
        ("none", 404),
        ("x" * 255, 404),
    ],
)
async def test_a_clean_url_is_answered_by_the_html_file(
    folder: Path, path: str, expected: object
) -> None:
    write(folder, "a.html", "both.html", "both/index.html", "sub/index.html", "sub/b.html")
    write(folder, "v1.2.html", "plain", "plain.html", "odd.html/index.html")
    write(folder, "deep/index.html", "deep.html/x")
    assert await told(folder, path, clean_urls=True) == expected


@for_each(
    "path, name",
    [
        ("%C3%A9.html", "é.html"),
        ("é.html", "é.html"),
        ("a%20b%3F%23.html", "a b?#.html"),
        ("%61.html", "a.html"),
        ("100%25.html", "100%.html"),
        ("a+b.html", "a+b.html"),
        ("...", "..."),
        ("%E6%97%A5%E6%9C%AC/%E8%AA%9E", "日本/語"),
    ],
)
async def test_a_path_is_decoded_by_utf_8(folder: Path, path: str, name: str) -> None:
    write(folder, name)
    assert await told(folder, path) == name


@for_each("path", ["100%.html", "100%2.html", "100%zz.html", "%"])
async def test_a_path_with_a_percent_sign_that_begins_no_escape_is_answered_with_400(
    folder: Path, path: str
) -> None:
    write(folder, "100%.html", "100%2.html", "100%zz.html")
    assert await told(folder, path) == 400
    assert FolderFetch(folder, base_url=BASE).path_of(BASE + path) is None


async def test_a_name_that_is_not_utf_8_is_found_by_its_bytes(folder: Path) -> None:
    write(folder, "a.html")
    os.rename(folder / "a.html", os.fsencode(folder) + b"/\xe9.html")
    assert await told(folder, "%E9.html") == "a.html"


async def test_the_url_of_the_base_without_its_slash_is_redirected(folder: Path) -> None:
    fetch = FolderFetch(folder, base_url=BASE[:-1])
    found = await fetch(Job(BASE[:-1] + "?a=b"))
    assert isinstance(found, Response)
    assert (found.status, found.headers["location"]) == (301, BASE + "?a=b")


# Nothing outside.

ESCAPES = [
    "../secret.html",
    "%2e%2e/secret.html",
    "%2e%2e%2fsecret.html",
    "sub/%2e%2e%2f%2e%2e%2fsecret.html",
    "..%2fsecret.html",
    "..%5csecret.html",
    "..\\secret.html",
    "%2fetc%2fpasswd",
    "/etc/passwd",
    "%2f%2e%2e/secret.html",
    "sub/../../secret.html",
    "a.html%00.png",
    "%00",
    "a%2fb",
    "sub%2findex.html",
    ".",
    "%2e",
    "x/%2e%2e/sub/index.html",
]


@for_each("path", ESCAPES)
async def test_a_path_that_would_lead_out_is_not_found(folder: Path, path: str) -> None:
    write(folder, "a.html", "sub/index.html")
    assert await told(folder, path) == 404


PIECES = [
    "..",
    ".",
    "/",
    "%2f",
    "%2e",
    "\\",
    "%5c",
    "\0",
    "%00",
    "%",
    "sub",
    "out",
    "in",
    "%c0%ae",
]
PIECES += ["secret.html", "index.html", "loop", "?", "#", "é", "%ff", "\ud800", "x" * 300]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join))
@example(path="out/secret.html")
@example(path="file")
def test_no_path_leads_out(folder: Path, path: str) -> None:
    write(folder, "index.html", "sub/index.html")
    links = {"out": "..", "file": "../secret.html", "sub/up": "../..", "in": "sub", "loop": "loop"}
    for link, target in links.items():
        if not (folder / link).is_symlink():
            (folder / link).symlink_to(target)

    async def ask() -> None:
        for clean in (False, True):
            found = await answer(folder, path, clean_urls=clean)
            if isinstance(found, Response):
                assert found.status in (200, 301, 400, 404)
                assert found.body in (b"", b"index.html", b"sub/index.html")
            else:
                assert found.reason is Reason.BLOCKED_ADDRESS

    trio.run(ask)


async def test_a_symbolic_link_is_followed_inside_only(folder: Path) -> None:
    write(folder, "a.html", "sub/index.html", "sub/b.html")
    outside = folder.parent / "public-too"
    write(outside, "index.html")
    links = {
        "page.html": "a.html",
        "latest": "sub",
        "absolute.html": folder / "a.html",
        "sub/over.html": "../../public/a.html",
        "twice": "latest",
        "sub/through.html": "../latest/b.html",
        "sub/back.html": "../latest/../a.html",
        "home": ".",
        "up.html": "../secret.html",
        "around.html": "sub/../../secret.html",
        "sibling": outside,
        "parent": "..",
        "sub/away": "../parent",
        "dangling.html": "none.html",
        "loop": "loop",
        "ping": "pong/x",
        "pong": "ping",
    }
    for link, target in links.items():
        (folder / link).symlink_to(target)
    inside = {
        "page.html": "a.html",
        "latest/": "sub/index.html",
        "latest": BASE + "latest/",
        "twice/b.html": "sub/b.html",
        "sub/through.html": "sub/b.html",
        "sub/back.html": "a.html",
        "absolute.html": "a.html",
        "sub/over.html": "a.html",
        "home/home/latest/b.html": "sub/b.html",
        "home": BASE + "home/",
    }
    assert {path: await told(folder, path) for path in inside} == inside
    out = [
        "up.html",
        "around.html",
        "sibling/",
        "sibling/index.html",
        "parent/secret.html",
        "parent/",
        "sub/away",
    ]
    for path in out:
        assert await told(folder, path) is Reason.BLOCKED_ADDRESS
    for path in ("dangling.html", "loop", "loop/", "ping", "ping/x", "latest/none"):
        assert await told(folder, path) == 404


async def test_the_folder_itself_may_be_a_link_and_the_root_of_the_disk(folder: Path) -> None:
    write(folder, "a.html")
    link = folder.parent / "link"
    link.symlink_to(folder)
    (folder / "abs.html").symlink_to(folder / "a.html")
    assert await told(link, "a.html") == await told(link, "abs.html") == "a.html"
    path = os.fspath(folder / "abs.html").removeprefix("/")
    assert await told(Path("/"), path) == "a.html"
    assert await told(Path("/"), "") == 404


async def test_a_file_that_was_replaced_by_a_link_is_not_opened(folder: Path) -> None:
    from trio_crawler.net.files import Files, open_found

    write(folder, "a.html", "b.html")
    path, status = Files(str(folder)).find(["a.html"])
    (folder / "a.html").unlink()
    (folder / "a.html").symlink_to("../secret.html")
    before = descriptors()
    with pytest.raises(OSError, match="symbolic links"):
        open_found(path, status)
    (folder / "a.html").unlink()
    (folder / "b.html").rename(folder / "a.html")
    with pytest.raises(OSError, match="replaced"):
        open_found(path, status)
    assert descriptors() == before


# Case.


@pytest.fixture
def folding(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system that finds names in any case."""
    if not (shutil.which("mkntfs") and shutil.which("lowntfs-3g")) or os.geteuid():
        pytest.skip("only root mounts a file system, of the Debian package ntfs-3g")
    disk, mounted = tmp_path / "disk", tmp_path / "mounted"
    mounted.mkdir()
    with disk.open("wb") as file:
        file.truncate(8 * MIB)
    subprocess.run(["mkntfs", "-q", "-F", "-f", disk], check=True, capture_output=True)
    subprocess.run(["lowntfs-3g", "-o", "ignore_case", disk, mounted], check=True)
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


@pytest.mark.real
async def test_names_are_compared_by_case_on_a_file_system_that_does_not(folding: Path) -> None:
    write(folding, "index.html", "sub/page.html", "1")
    assert (folding / "SUB/PAGE.html").read_text() == "sub/page.html"
    fetch = FolderFetch(folding, base_url=BASE)

    async def status(path: str) -> int:
        found = await fetch(Job(BASE + path))
        assert isinstance(found, Response)
        return found.status

    good, bad = ["", "sub/page.html", "sub", "1"], ["INDEX.html", "SUB/page.html", "sub/Page.html"]
    for _ in range(2):
        assert [await status(path) for path in good] == [200, 200, 301, 200]
        assert [await status(path) for path in bad] == [404] * 3
    # A name that is new is found.
    write(folding, "sub/new.html")
    assert (await status("sub/new.html"), await status("sub/NEW.html")) == (200, 404)


# Files that cannot be read.


async def test_a_special_file_is_a_fault_and_is_never_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(folder / "pipe.html")
    (folder / "sub").mkdir()
    os.mkfifo(folder / "sub" / "index.html")
    (folder / "link.html").symlink_to("pipe.html")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(folder)
        listening.bind("socket")
        for path in ("pipe.html", "sub/", "link.html", "socket"):
            found = await answer(folder, path)
            assert isinstance(found, Fault)
            assert (found.reason, found.phase) == (Reason.BAD_REPLY, Phase.READ)
            assert "not a regular file" in found.detail
    # An open of a reader would have let a writer in.
    with pytest.raises(OSError, match="No such device"):
        os.open(folder / "pipe.html", os.O_WRONLY | os.O_NONBLOCK)


@contextmanager
def nobody() -> Iterator[None]:
    """Be a user who may read only what all may read."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_what_may_not_be_read_is_forbidden() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chmod(folder, 0o755)
        write(folder, "closed.html", "open.html", "sub/a.html")
        (folder / "closed.html").chmod(0)
        (folder / "sub").chmod(0)
        with nobody():
            found = [await told(folder, path) for path in ("closed.html", "open.html", "sub/a")]
            clean = await told(folder, "sub/a", clean_urls=True)
        (folder / "sub").chmod(0o755)
    assert (found, clean) == ([403, "open.html", 403], 403)


async def test_without_a_free_descriptor_a_file_is_a_fault(folder: Path) -> None:
    write(folder, "a.html")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
    try:
        found = await answer(folder, "a.html")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert found == Fault(Reason.NO_SOCKETS, "Too many open files", Phase.READ)


@contextmanager
def held_threads() -> Iterator[trio.CapacityLimiter]:
    """Let no thread start in the block."""
    limiter = trio.to_thread.current_default_thread_limiter()
    total = limiter.total_tokens
    borrowers = [object() for _ in range(int(total))]
    for borrower in borrowers:
        limiter.acquire_on_behalf_of_nowait(borrower)
    try:
        yield limiter
    finally:
        for borrower in borrowers:
            limiter.release_on_behalf_of(borrower)


@pytest.mark.parametrize("change", ["shorter", "longer", "as long"])
async def test_a_file_that_changes_while_it_is_read_is_a_fault_that_is_retried(
    folder: Path, change: str
) -> None:
    large = folder / "a.html"
    large.write_bytes(bytes(3 * MIB))
    found = []

    async def ask() -> None:
        found.append(await answer(folder, "a.html"))

    async with trio.open_nursery() as nursery:
        with held_threads():
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            if change == "as long":
                os.utime(large, ns=(0, 0))
            else:
                os.truncate(large, MIB if change == "shorter" else 4 * MIB)
    detail = "the file changed while it was read"
    assert found == [Fault(Reason.INCOMPLETE, detail, Phase.READ)]


@pytest.mark.skipif(not os.path.exists("/sys/kernel/uevent_seqnum"), reason="only Linux has it")
async def test_a_file_with_less_bytes_than_its_size_says_is_a_fault() -> None:
    assert await told(Path("/sys/kernel"), "uevent_seqnum") is Reason.INCOMPLETE


async def test_a_large_file_that_is_cancelled_leaves_no_descriptor(folder: Path) -> None:
    (folder / "a.html").write_bytes(bytes(3 * MIB))
    before = descriptors()
    with held_threads():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, folder, "a.html")
            await wait_all_tasks_blocked()
            assert descriptors() == before + 1
            nursery.cancel_scope.cancel()
        assert descriptors() == before


async def test_a_large_file_is_read_while_other_tasks_run(folder: Path) -> None:
    body = os.urandom(2 * STEP + 1)
    (folder / "a.html").write_bytes(body)
    write(folder, "b.html")
    async with trio.open_nursery() as nursery:
        with held_threads():
            found = []

            async def ask() -> None:
                found.append(await answer(folder, "a.html"))

            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            assert await told(folder, "b.html") == "b.html"
            assert found == []
    assert isinstance(found[0], Response)
    assert found[0].body == body


# Bodies.


@for_each(
    "name, size, given, expected",
    [
        ("a.html", 10, {"max_bytes": 10}, (10, None)),
        ("a.html", 11, {"max_bytes": 10}, (10, Reason.TOO_LARGE)),
        ("a.html", 3 * MIB, {"max_bytes": 2 * MIB}, (2 * MIB, Reason.TOO_LARGE)),
        ("a.unknown", 11, {"max_bytes": 10}, (10, Reason.TOO_LARGE)),
        ("a.png", 10, {"max_bytes": 10}, (10, None)),
        ("a.png", 11, {"max_bytes": 10}, (0, Reason.TOO_LARGE)),
        ("a.png", 11, {}, (11, None)),
        ("a.png", 11, {"bodies": False}, (0, Reason.NOT_READ)),
        ("a.css", 11, {"bodies": False}, (11, None)),
        ("a.html", 0, {}, (0, None)),
    ],
)
async def test_a_body_is_bounded(
    folder: Path, name: str, size: int, given: Any, expected: object
) -> None:
    (folder / name).write_bytes(bytes(size))
    found = await answer(folder, name, **given)
    assert isinstance(found, Response)
    assert (len(found.body), found.flaw) == expected
    assert found.headers["content-length"] == str(size)


@for_each(
    "name, kind",
    [
        ("a.html", "text/html"),
        ("A.HTM", "text/html"),
        ("a.b.css", "text/css"),
        ("a.js", "text/javascript"),
        ("a.svg", "image/svg+xml"),
        ("sitemap.xml.gz", "application/gzip"),
        ("site.webmanifest", "application/manifest+json"),
        ("LICENSE", None),
        ("html", None),
        ("a.unknown", None),
        ("a.", None),
    ],
)
async def test_the_type_of_a_file_is_that_of_its_suffix_without_a_charset(
    folder: Path, name: str, kind: str | None
) -> None:
    write(folder, name)
    found = await answer(folder, name)
    assert isinstance(found, Response)
    assert found.headers.get("content-type") == kind


async def test_the_type_of_a_link_is_that_of_the_url(folder: Path) -> None:
    write(folder, "a.txt")
    (folder / "a.html").symlink_to("a.txt")
    found = await answer(folder, "a.html")
    assert isinstance(found, Response)
    assert found.headers["content-type"] == "text/html"


async def test_a_file_that_has_not_changed_is_answered_by_304(folder: Path) -> None:
    write(folder, "a.html")
    fetch = FolderFetch(folder, base_url=BASE)
    first = await fetch(Job(BASE + "a.html"))
    assert isinstance(first, Response)
    tag, date = first.headers["etag"], first.headers["last-modified"]

    async def status(*known: str | None) -> tuple[int, bytes]:
        found = await fetch(Job(BASE + "a.html", validator=Validator(*known)))
        assert isinstance(found, Response)
        return found.status, found.body

    assert await status(tag, date) == await status(tag) == await status(None, date) == (304, b"")
    assert await status('"other"', date) == (200, b"a.html")
    os.utime(folder / "a.html", (1, 1))
    assert await status(tag, date) == await status(None, date) == (200, b"a.html")
    assert await status(None, "Thu, 01 Jan 1970 00:00:01 GMT") == (304, b"")


# Other URLs.


async def test_other_urls_go_to_the_other_fetch(folder: Path) -> None:
    write(folder, "index.html")
    web = Web(
        {"https://b.test/": html(), "https://example.org/about": html()}, url="https://b.test/"
    )
    fetch = FolderFetch(folder, base_url=BASE, other=web)
    urls = ["https://b.test/", "https://example.org/about", "http://example.org/docs/", BASE]
    statuses = []
    for url in [*urls, "https://example.org/docs2/"]:
        found = await fetch(Job(url))
        assert isinstance(found, Response)
        statuses.append(found.status)
    assert statuses == [200, 200, 404, 200, 404]
    assert BASE not in web.hits
    assert fetch.statistics().requests == 1


async def test_robots_txt_of_the_host_is_never_asked_for_elsewhere(folder: Path) -> None:
    write(folder, "robots.txt")
    web = Web({"https://example.org/robots.txt": html("x")})
    for base, status in ((BASE, 404), ("https://example.org/", 200)):
        fetch = FolderFetch(folder, base_url=base, other=web)
        found = await fetch(Job("https://example.org/robots.txt", purpose=Purpose.ROBOTS))
        assert isinstance(found, Response)
        assert (found.status, found.body) == (status, b"" if status == 404 else b"robots.txt")


class Other:
    """A fetch with all that a crawl may ask it for."""

    user_agent = "other/1"
    sends_credentials = True

    def __init__(self) -> None:
        self.looked_up: list[str] = []

    async def lookup(self, url: str) -> float:
        self.looked_up.append(url)
        await trio.lowlevel.checkpoint()
        return 7.0

    async def __call__(self, job: Job) -> Response:
        await trio.lowlevel.checkpoint()
        return Response(204)


async def test_a_name_is_looked_up_by_the_other_fetch_but_not_that_of_the_folder(
    folder: Path,
) -> None:
    other = Other()
    fetch = FolderFetch(folder, base_url=BASE, other=other)
    urls = [BASE, "http://example.org/x", "https://b.test/"]
    assert [await fetch.lookup(url) for url in urls] == [float("inf")] * 2 + [7.0]
    assert other.looked_up == ["https://b.test/"]
    assert await FolderFetch(folder).lookup("https://b.test/") == float("inf")
    assert (fetch.user_agent, fetch.sends_credentials) == ("other/1", True)
    assert FolderFetch(folder).user_agent.startswith("trio_crawler/")


# A crawl.


async def test_a_folder_is_crawled(folder: Path) -> None:
    (folder / "index.html").write_bytes(
        b"<meta charset=iso-8859-1><title>\xe9</title><a href=sub>a</a>"
        b"<a href=https://example.org/docs/b.html#x>b</a><a href=none>c</a><a href=/about>d</a>"
    )
    (folder / "b.html").write_text("<a href=./>home</a>")
    write(folder, "sub/index.html")
    about = Web({"https://example.org/about": html()})
    fetch = FolderFetch(folder, base_url=BASE, other=about)
    crawler = Crawler([BASE], fetch=fetch, politeness=Politeness(per_host=10))
    found = {}
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            match outcome:
                case Page(url=url, status=status):
                    found[url] = status
                    assert url != BASE or outcome.title == "é"
                case Redirect(url=url, target=target):
                    found[url] = target
    assert found == {
        BASE: 200,
        BASE + "sub": BASE + "sub/",
        BASE + "sub/": 200,
        BASE + "b.html": 200,
        BASE + "none": 404,
        "https://example.org/about": 200,
    }


PATHS = {
    "": "index.html",
    "?a#b": "index.html",
    "a%20b.html": "a b.html",
    "sub/": "sub/index.html",
    "page": "page.html",
    "link.html": "link.html",
    "sub": None,
    "gone.html": None,
    "../secret": None,
    "out.html": None,
    "pipe.html": None,
}


@pytest.mark.parametrize(("path", "file"), PATHS.items())
def test_the_path_of_a_url_is_that_of_the_file_that_answers(
    folder: Path, path: str, file: str | None
) -> None:
    (folder / "sub").mkdir()
    for name in ("index.html", "a b.html", "sub/index.html", "page.html"):
        (folder / name).write_text("x")
    (folder / "link.html").symlink_to("page.html")
    (folder / "out.html").symlink_to(__file__)
    os.mkfifo(folder / "pipe.html")
    fetch = FolderFetch(folder, base_url=BASE, clean_urls=True)
    assert fetch.path_of(BASE + path) == (None if file is None else str(folder / file))
    assert fetch.path_of("http://other.test/" + path) is None
    with pytest.raises(TypeError, match="url must be a URL as a str"):
        fetch.path_of(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("clean_urls", [False, True])
def test_each_page_has_the_url_that_it_is_answered_for(folder: Path, clean_urls: bool) -> None:
    names = [
        "index.html",
        "a b.html",
        "sub/index.html",
        "c%20#?.HTM",
        "both",
        "both.html",
        "ö.xht",
    ]
    write(folder, *names, "pic.png", ".hidden/x.html", ".y.html", "sub/.z.html")
    (folder / "link.html").symlink_to("both.html")
    (folder / "again").symlink_to("sub")
    fetch = FolderFetch(folder, base_url=BASE, clean_urls=clean_urls)
    pages = list(fetch.pages())
    wanted = {*names} - {"both"}
    assert {fetch.path_of(url) for url in pages} == {str(folder / name) for name in wanted}
    assert len(pages) == len(wanted)
    assert set(fetch.others()) == {BASE + "both", BASE + "pic.png"}
    # A file without a suffix comes before the page.
    assert {BASE, BASE + "sub/", BASE + "both.html"} <= set(pages)
    assert (BASE + "a%20b" in pages) == clean_urls
    assert fetch.url_of(Path("sub/none.css")) == BASE + "sub/none.css"


def test_a_folder_that_may_not_be_listed_is_among_its_pages(folder: Path, monkeypatch) -> None:
    write(folder, "a/x.html", "b.html")
    scan = os.scandir

    def refuse(path: str) -> Any:
        if path.rstrip("/").endswith("/a"):
            raise PermissionError
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert set(FolderFetch(folder, base_url=BASE).pages()) == {BASE + "a/", BASE + "b.html"}
