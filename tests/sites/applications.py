"""Applications that Debian packages, each with content that the test has written, over loopback.

    with cgit(tmp_path) as site:
        crawl = await crawled(site.url, nofollow=False, most=500)
    assert site.found(crawl.outcomes) == site.content

Each is skipped where its package is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from trio_crawler import (
    Crawler,
    Fetch,
    HttpFetch,
    Limits,
    Outcome,
    Page,
    Politeness,
    Reason,
    Skipped,
)

from . import servers
from .servers import apache, lighttpd, php
from .shop import words

_CGIT = Path("/usr/lib/cgit/cgit.cgi")
_GITWEB = Path("/usr/lib/cgi-bin/gitweb.cgi")
_DOKUWIKI = Path("/usr/share/dokuwiki")
_MEDIAWIKI = Path("/usr/share/mediawiki")
_BEGIN = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Site:
    """A running application: its start page, its content, and the way to find that in outcomes.

    `content` has a name for each thing that a crawl must find, and `name_of` returns the name of
    the thing that a URL shows, or None. `home` is the directory of its files.
    """

    url: str
    content: frozenset[str]
    name_of: Callable[[str], str | None]
    home: Path

    def found(self, outcomes: Iterable[Outcome]) -> set[str]:
        """Return the names of the content that is among the good pages."""
        return {
            name
            for each in outcomes
            if isinstance(each, Page) and each.status == 200
            if (name := self.name_of(each.url)) is not None
        } & self.content


@dataclass(slots=True)
class Crawled:
    """A crawl that is over: `ended` is whether it ended by itself, not by a limit."""

    outcomes: list[Outcome] = field(default_factory=list)
    ended: bool = False

    @property
    def requests(self) -> int:
        """The number of URLs that were asked for, without robots.txt."""
        return len(self.outcomes)

    @property
    def pages(self) -> list[Page]:
        """The good pages, in the order in which they came."""
        return [each for each in self.outcomes if isinstance(each, Page) and each.status == 200]

    def last(self, found: Callable[[Iterable[Outcome]], Collection[object]]) -> int:
        """Return the number of requests until the last thing was found."""
        known: set[object] = set()
        last = 0
        for number, outcome in enumerate(self.outcomes, 1):
            if not known.issuperset(names := found([outcome])):
                known.update(names)
                last = number
        return last


async def crawled(
    url: str, *, most: int, nofollow: bool = True, fetch: Fetch | None = None, **given: object
) -> Crawled:
    """Crawl with the default options, and at most so many pages."""
    if fetch is None:
        async with HttpFetch(seeds=[url]) as http:
            return await crawled(url, most=most, nofollow=nofollow, fetch=http, **given)
    done = Crawled()
    crawler = Crawler(
        [url],
        fetch=fetch,
        politeness=Politeness(nofollow=nofollow),
        limits=Limits(max_pages=most),
        **given,  # type: ignore[arg-type]
    )
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            done.outcomes.append(outcome)
    done.ended = not any(
        isinstance(each, Skipped) and each.reason is Reason.PAGE_BUDGET for each in done.outcomes
    )
    done.outcomes = [each for each in done.outcomes if not isinstance(each, Skipped)]
    return done


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository: its bare directory, and the commits from the first to the last."""

    path: Path
    commits: tuple[str, ...]


def repository(at: Path, *, commits: int = 30, files: int = 8) -> Repository:
    """Make a repository; each commit changes one file, and each tenth one has a tag."""
    path = at / "repos" / "project.git"
    path.mkdir(parents=True)
    _git(path, "init", "--quiet", "--bare", "--initial-branch=main")
    (path / "description").write_text("A project of a test\n")
    (path / "git-daemon-export-ok").touch()
    lines: list[str] = []
    for number in range(1, commits + 1):
        name = ("src/" if number % files % 2 else "") + f"{words(number % files, 1)}.txt"
        text = words(f"content {number}", 60).replace(" ", "\n") + "\n"
        message = words(f"commit {number}", 5) + "\n"
        who = f"A Tester <tester@example.org> {_BEGIN + number * 86_400} +0000"
        lines += ["commit refs/heads/main", f"mark :{number}", f"author {who}"]
        lines += [f"committer {who}", f"data {len(message)}", message.rstrip("\n")]
        if number > 1:
            lines.append(f"from :{number - 1}")
        lines += [f"M 100644 inline {name}", f"data {len(text)}", text.rstrip("\n"), ""]
        if number % 10 == 0:
            lines += [f"reset refs/tags/v{number // 10}", f"from :{number}", ""]
    _git(path, "fast-import", "--quiet", given="\n".join(lines) + "\n")
    found = _git(path, "rev-list", "--reverse", "main").split()
    assert len(found) == commits
    return Repository(path, tuple(found))


# A hook of git, or a bisection, names a repository: that of the tests is another one.
_WITHOUT_GIT = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}


def _git(path: Path, *command: str, given: str = "") -> str:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    done = subprocess.run(
        ["git", *command],
        cwd=path,
        env=_WITHOUT_GIT,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_CGI = """
server.bind = "127.0.0.1"
server.port = @PORT@
server.modules += ("mod_alias", "mod_cgi", "mod_setenv")
alias.url = ("/git" => "@SCRIPT@")
cgi.assign = (".cgi" => "")
setenv.add-environment = ("@VARIABLE@" => "@SETTINGS@", "GIT_CONFIG_COUNT" => "1",
    "GIT_CONFIG_KEY_0" => "safe.directory", "GIT_CONFIG_VALUE_0" => "*")
"""


@contextmanager
def _cgi(at: Path, program: Path, name: str, settings: str) -> Iterator[str]:
    if not program.exists():
        pytest.skip(f"{program} is not installed")
    file = at / "settings"
    file.write_text(settings)
    # Its values come from the configuration of the test, not from /etc.
    given = {"script": program, "variable": name, "settings": file}
    with lighttpd(_CGI, root=at, **given) as server:
        yield f"{server.url()}git"


@contextmanager
def cgit(at: Path, *, commits: int = 120) -> Iterator[Site]:
    """Start cgit with one repository; its content is the pages of the commits."""
    made = repository(at, commits=commits)
    settings = (
        "virtual-root=/git/\ncache-size=0\nenable-commit-graph=1\nenable-log-filecount=1\n"
        "snapshots=tar.gz\nrepo.url=project\nrepo.desc=A project of a test\n"
        f"repo.path={made.path}\n"
    )
    newest = made.commits[-1]

    def commit_of(url: str) -> str | None:
        path, _, query = url.partition("?")
        if not path.endswith("/commit/"):
            return None
        match = re.search(r"(?:^|[&;])id=([0-9a-f]{40})", query)
        return match[1] if match else newest

    with _cgi(at, _CGIT, "CGIT_CONFIG", settings) as url:
        yield Site(f"{url}/", frozenset(made.commits), commit_of, at)


@contextmanager
def gitweb(at: Path, *, commits: int = 30) -> Iterator[Site]:
    """Start gitweb with one repository; its content is the pages of the commits."""
    made = repository(at, commits=commits)
    settings = (
        f'$projectroot = "{at / "repos"}";\n@git_base_url_list = ();\n'
        "$feature{'snapshot'}{'default'} = ['tgz'];\n"
    )

    def commit_of(url: str) -> str | None:
        query = url.partition("?")[2]
        match = re.search("a=commit(?:[;&]|$)", query) and re.search("[;&]h=([0-9a-f]{40})", query)
        return match[1] if match else None

    with _cgi(at, _GITWEB, "GITWEB_CONFIG", settings) as url:
        yield Site(url, frozenset(made.commits), commit_of, at)


_WIKI = """<?php
$conf['title'] = 'A wiki of a test';
$conf['savedir'] = '@DATA@';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['disableactions'] = 'register';
$conf['indexdelay'] = 0;
$conf['updatecheck'] = 0;
$conf['baseurl'] = '';
"""
_FOLDERS = "attic cache index locks log media media_attic media_meta meta pages tmp".split()


@contextmanager
def dokuwiki(at: Path, *, pages: int = 60) -> Iterator[Site]:
    """Start DokuWiki under PHP's own server; its content is the pages, all linked by chapters."""
    if not (_DOKUWIKI / "doku.php").exists():
        pytest.skip(f"{_DOKUWIKI} is not installed")
    data, settings, log = at / "data", at / "conf", at / "logs"
    for folder in (settings, log, *(data / name for name in _FOLDERS)):
        folder.mkdir(parents=True)
    (settings / "local.php").write_text(_WIKI.replace("@DATA@", str(data)))
    (settings / "acl.auth.php").write_text("* @ALL 1\n")
    (settings / "users.auth.php").write_text("")
    begin = at / "begin.php"
    begin.write_text(f"<?php define('DOKU_CONF', '{settings}/');\n")
    names = [words(f"wiki {number}", 2).replace(" ", "_") for number in range(pages)]
    chapters = [f"chapter_{words(number, 1)}" for number in range(6)]
    wiki_page(data, "start", "Start", *(f"  * [[{chapter}]]" for chapter in chapters))
    for number, chapter in enumerate(chapters):
        listed = [f"  * [[{name}]]" for name in names[number :: len(chapters)]]
        wiki_page(data, chapter, chapter, *listed)
    for name in names:
        wiki_page(data, name, name, words(name, 80), "[[missing_" + name[:3] + "]]", "[[start]]")

    def name_of(url: str) -> str | None:
        parts = urlsplit(url)
        match = re.fullmatch(r"id=([^&]+)", parts.query) if parts.query else None
        return unquote(match[1]) if match and parts.path.endswith("/doku.php") else None

    content = frozenset([*names, *chapters, "start"])
    with php(begin, root=_DOKUWIKI) as server:
        yield Site(f"{server.url()}doku.php", content, name_of, at)


def wiki_page(data: Path, name: str, title: str, *lines: str) -> None:
    """Write a page of DokuWiki, as if it was always there."""
    file = data / "pages" / f"{name}.txt"
    file.write_text("\n\n".join([f"====== {title} ======", *lines]) + "\n")


@contextmanager
def mediawiki(at: Path, *, pages: int = 60) -> Iterator[Site]:
    """Start MediaWiki on SQLite under PHP's own server; each page links to the next two."""
    scripts = _MEDIAWIKI / "maintenance"
    if not (scripts / "install.php").exists() or shutil.which("php") is None:
        pytest.skip(f"{_MEDIAWIKI} is not installed")
    texts = at / "texts"
    texts.mkdir()
    names = ["Main Page", *(words(f"wiki {number}", 3).capitalize() for number in range(pages))]
    for number, name in enumerate(names):
        following = (names[(2 * number + step) % len(names)] for step in (1, 2))
        links = [*following, *(["Missing page"] if number % 10 == 1 else [])]
        lines = [words(name, 80), *(f"* [[{link}]]" for link in links)]
        (texts / f"{name}.txt").write_text("\n".join(lines) + "\n")
    settings = at / "LocalSettings.php"
    options = (
        f"--dbtype=sqlite --dbpath={at}/db --dbname=wiki --confpath={at} --scriptpath= "
        "--server=http://127.0.0.1 --pass=A-long-word-1"
    )
    _php(scripts / "install.php", *options.split(), "A wiki", "Admin")
    with settings.open("a") as file:
        file.write("if (isset($_SERVER['HTTP_HOST'])) {\n")
        file.write("  $wgServer = 'http://' . $_SERVER['HTTP_HOST'];\n}\n")
        # A page that was kept in the second in which a page that it links to was made would go on
        # saying that there is none.
        file.write("$wgParserCacheType = CACHE_NONE;\n")
    given = map(str, sorted(texts.iterdir()))
    _php(scripts / "importTextFiles.php", "--conf", str(settings), "--overwrite", *given)
    _php(scripts / "runJobs.php", "--conf", str(settings))
    begin = at / "begin.php"
    begin.write_text(f"<?php define('MW_CONFIG_FILE', '{settings}');\n")

    def name_of(url: str) -> str | None:
        parts = urlsplit(url)
        begins = parts.path.startswith("/index.php/") and not parts.query
        return unquote(parts.path[11:]).replace("_", " ") if begins else None

    with php(begin, root=_MEDIAWIKI) as server:
        yield Site(server.url(), frozenset(names), name_of, at)


def _php(script: Path, *given: str) -> None:
    done = subprocess.run(["php", script, *given], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def fossil(at: Path, *, commits: int = 20) -> Iterator[Site]:
    """Start Fossil with one repository, whose links all may see; its content is the check-ins."""
    if shutil.which("fossil") is None:
        pytest.skip("fossil is not installed")
    exported = subprocess.run(
        ["git", "-c", "safe.directory=*", "fast-export", "--all"],
        cwd=repository(at, commits=commits).path,
        env=_WITHOUT_GIT,
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout
    # Fossil keeps a list of its repositories in the home of the user.
    environment = {**os.environ, "HOME": str(at), "USER": "tester"}
    file = at / "project.fossil"

    def run(*command: str, given: bytes = b"") -> str:
        done = subprocess.run(
            ["fossil", *command], input=given, env=environment, capture_output=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    run("import", "--git", str(file), given=exported)
    # By default readers without a name get no links to files and check-ins.
    run("user", "capabilities", "nobody", "ghjorz", "-R", str(file))
    query = "SELECT uuid FROM event JOIN blob ON rid = objid WHERE type = 'ci'"
    made = re.findall("[0-9a-f]{40,}", run("sql", "-R", str(file), query))

    def name_of(url: str) -> str | None:
        match = re.search("/(?:info|ci|vinfo)/([0-9a-f]{10})[0-9a-f]*$", url)
        return match[1] if match else None

    with servers.fossil(file) as server:
        yield Site(server.url(), frozenset(each[:10] for each in made), name_of, at)


_INDEXES = """
Listen 127.0.0.1:@PORT@
LoadModule autoindex_module /usr/lib/apache2/modules/mod_autoindex.so
<Directory "@ROOT@">
Options +Indexes
IndexOptions FancyIndexing HTMLTable
Require all granted
</Directory>
"""


@contextmanager
def autoindex(at: Path, *, files: int = 60) -> Iterator[Site]:
    """Start Apache with its own lists of three folders, which can be sorted by each column."""
    root, folders = at / "files", "abc"
    names: set[str] = set()
    for folder in folders:
        (root / folder).mkdir(parents=True)
    for number in range(files):
        name = f"{folders[number % len(folders)]}/{words(number, 2).replace(' ', '-')}.txt"
        (root / name).write_text(words(f"file {number}", 30))
        names.add(f"/{name}")
    assert len(names) == files
    for directory, _, _ in os.walk(at):
        # Apache reads them as another user.
        Path(directory).chmod(0o755)

    def name_of(url: str) -> str | None:
        parts = urlsplit(url)
        return unquote(parts.path) if not parts.path.endswith("/") else None

    with apache(_INDEXES, root=root) as server:
        yield Site(server.url(), frozenset(names), name_of, at)
