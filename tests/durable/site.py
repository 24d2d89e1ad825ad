"""A site of any size, the same for the same seed, with all that makes a crawl uneven.

Trees of pages with many cross links, redirects (to pages, in chains, without end), 404s, 500s,
503s that are over at the second request, slow pages, packed ones, copies, large ones, a robots.txt
that forbids something, a sitemap with orphans. Version 2 is what the same site is a week later.
"""

from __future__ import annotations

import gzip
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha1
from html import escape
from random import Random

LIMIT = 10
"""Redirects in a row that a crawl follows."""

_WORDS = "alder birch cedar damson elm fir gorse hazel ivy juniper larch maple oak pine".split()
_TITLES = (
    "Überblick &amp; Mehr",
    "a\x01b",
    "&lt;b&gt;bold&lt;/b&gt;",
    "  two\n lines ",
    "",
    "日本",
)
_WHEN = "Sat, 31 Oct 2026 12:%02d:%02d GMT"


@dataclass(slots=True)
class Answer:
    """What a path answers; `wait` is in seconds, `links` are the paths its body leads to."""

    status: int = 200
    media: str = "text/html; charset=utf-8"
    body: bytes = b""
    location: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    links: list[str] = field(default_factory=list)

    @property
    def tries(self) -> int:
        """Return how often a crawl asks for it: a 5xx is tried once more."""
        return 2 if self.status >= 500 else 1


class Site:
    """Know what each path answers, in `answers`; `busy` ones answer 503 the first time.

    `urls` are the paths whose URLs must be among the outcomes of a crawl from "/", no more and no
    less; `either` those of which it depends on the order whether a redirect was followed or one
    too many.
    """

    def __init__(self, pages: int = 1500, seed: int = 1, version: int = 1) -> None:
        self.version = version
        self.answers: dict[str, Answer] = {}
        self.busy: set[str] = set()
        self.either: set[str] = set()
        self._random = Random(f"site {seed}")
        self._linked: list[str] = []
        self._hubs: list[str] = []
        self._grow(pages)
        self._weave()
        self._list()
        self.urls = set(self._reached())

    def _grow(self, pages: int) -> None:
        self._page("/")
        self._hubs.append("/")
        many = max(1, pages // 1000)
        self._chains(many)
        self._copies(many, min(60, pages // 5))
        self._large(many)
        kinds = {
            self._redirect: 0.05,
            self._missing: 0.03,
            self._plain: 0.03,
            self._slow: 0.07,
            self._broken: 1 / 250,
            self._unwell: 1 / 300,
        }
        makers = [make for make, part in kinds.items() for _ in range(round(part * pages))]
        rest = max(pages - len(self.answers) - len(makers), 0)
        makers += [self._ordinary] * rest
        self._random.shuffle(makers)
        for number, make in enumerate(makers, 1):
            make(number)

    # -- what there is ------------------------------------------------------------------------

    def _page(self, path: str, wait: float = 0.0) -> None:
        self.answers[path] = Answer(wait=wait)

    def _hang(self, path: str) -> None:
        """Link a path from a page that is linked itself: an eight-ary tree, a little uneven."""
        place = max(0, (len(self._linked) // 8) - self._random.randrange(3))
        hub = self._hubs[min(place, len(self._hubs) - 1)]
        self.answers[hub].links.append(path)
        self._linked.append(path)

    def _ordinary(self, number: int) -> None:
        path = self._random.choice(
            (
                f"/{'abcdefgh'[number % 8]}/{number}.html",
                f"/list?page={number}",
                f"/%C3%BC/{number}/",
            )
        )
        self._page(path)
        self._hang(path)
        self._hubs.append(path)

    def _slow(self, number: int) -> None:
        path = f"/slow/{number}.html"
        self._page(path, wait=self._random.uniform(0.05, 0.2))
        self._hang(path)
        self._hubs.append(path)

    def _plain(self, number: int) -> None:
        path = f"/files/{number}.bin"
        body = self._random.randbytes(self._random.choice((0, 1, 700, 5000)))
        self.answers[path] = Answer(media="application/octet-stream", body=body)
        self._hang(path)

    def _missing(self, number: int) -> None:
        path = f"/missing/{number}.html"
        self.answers[path] = Answer(404, body=f"<p>no page {number}".encode())
        self._hang(path)

    def _broken(self, number: int) -> None:
        path = f"/broken/{number}.html"
        self.answers[path] = Answer(500, body=f"<p>trouble {number}".encode())
        self._hang(path)

    def _unwell(self, number: int) -> None:
        path = f"/busy/{number}.html"
        self._page(path)
        self.busy.add(path)
        self._hang(path)

    def _redirect(self, number: int) -> None:
        path, status = f"/moved/{number}", self._random.choice((301, 302, 303, 307, 308))
        if number % 3:
            target = self._random.choice(self._hubs)
        else:
            # Only this redirect leads there.
            target = f"/hidden/{number}.html"
            self._page(target)
        self.answers[path] = Answer(status, location=target, body=b"moved")
        self._hang(path)

    def _chains(self, count: int) -> None:
        for number in range(count):
            self._chain(f"/chain/{number}", 4)
            self._chain(f"/long/{number}", LIMIT + 3)
            self._chain(f"/far/{number}", LIMIT + 2)
            # What is cut on the one way is not on the other.
            self._hang(f"/far/{number}/5")
            self.either.add(f"/far/{number}/{LIMIT}")
            loop = [f"/loop/{number}/{hop}" for hop in range(3)]
            for hop, path in enumerate(loop):
                self.answers[path] = Answer(302, location=loop[hop - 2])
            self._hang(loop[0])
            self.answers[f"/lost/{number}"] = Answer(302)
            self._hang(f"/lost/{number}")

    def _chain(self, start: str, length: int) -> None:
        for hop in range(length):
            target = f"{start}/{hop + 1}"
            self.answers[f"{start}/{hop}"] = Answer(302, location=target)
        self._page(f"{start}/{length}")
        self._hang(f"{start}/0")

    def _copies(self, count: int, links: int) -> None:
        """Make pages that are the same, and alone lead to others: more links than one turn."""
        for number in range(count):
            only = [f"/only/{number}/{child}.html" for child in range(links)]
            for path in only:
                self._page(path)
            for name in "abc":
                path = f"/copies/{number}/{name}.html"
                self.answers[path] = Answer(links=list(only))
                self._hang(path)

    def _large(self, count: int) -> None:
        for number in range(count):
            path = f"/large/{number}.html"
            self._page(path)
            self._hang(path)
            self._hubs.append(path)

    # -- how it is written --------------------------------------------------------------------

    def _weave(self) -> None:
        """Add cross links and write the bodies."""
        changing = Random("changes")
        pages = [path for path, it in self.answers.items() if self._is_page(path, it)]
        for path in pages:
            answer = self.answers[path]
            if not path.startswith("/copies/"):
                answer.links += self._random.choices(self._linked, k=self._random.randrange(3, 12))
        if self.version == 2:
            self._change(pages, changing)
        for path in pages:
            self._write(path)

    def _is_page(self, path: str, answer: Answer) -> bool:
        return answer.status == 200 and not path.startswith("/files/")

    def _change(self, pages: list[str], changing: Random) -> None:
        leaves = [path for path in pages if path[:3] in ("/sl", "/a/", "/b/", "/hi", "/on")]
        for path in changing.sample(leaves, max(2, len(leaves) // 20)):
            answer = self.answers[path]
            if changing.random() < 0.5:
                answer.status, answer.links, answer.body = 410, [], b"gone"
                pages.remove(path)
            else:
                answer.headers["x-changed"] = "1"
        for number in range(5):
            path = f"/new/{number}.html"
            self._page(path)
            pages.append(path)
            self.answers["/"].links.append(path)

    def _write(self, path: str) -> None:
        answer = self.answers[path]
        # A seed of its own, or one change would change all that is written later.
        name = path[:-6] if path.startswith("/copies/") else path
        random = Random(f"text of {name}" + answer.headers.get("x-changed", ""))
        title = random.choice(_TITLES) + f" {escape(name)}"
        words = random.choices(_WORDS, k=60_000 if "/large/" in path else 150)
        extra = ["http://other.test/", "mailto:a@b.test", "http://[bad/", "/private/x.html"]
        some = random.sample(extra, random.randrange(3))
        nofollow = "<meta name=robots content=nofollow>" if path.startswith("/hidden/") else ""
        anchors = "\n".join(
            f'<p><a href="{escape(link)}">to <b>{escape(link)}</b></a>'
            for link in (*answer.links, *some)
        )
        text = f"<!doctype html><title>{title}</title>{nofollow}{anchors}<p>{' '.join(words)}\n"
        answer.body = text.encode()
        self._validate(path, answer, random)

    def _validate(self, path: str, answer: Answer, random: Random) -> None:
        chance = random.random()
        if chance < 0.6:
            answer.headers["ETag"] = f'"{sha1(answer.body).hexdigest()[:16]}"'
        elif chance < 0.9:
            number = int(sha1(answer.body).hexdigest()[:4], 16)
            answer.headers["Last-Modified"] = _WHEN % (number // 60 % 60, number % 60)
        if random.random() < 0.2:
            answer.headers["Content-Encoding"] = "gzip"

    def _list(self) -> None:
        listed = ["/", *self._random.sample(self._linked, min(50, len(self._linked) // 2))]
        orphans = [f"/orphan/{number}.html" for number in range(10)]
        for path in orphans:
            self._page(path)
            self._write(path)
        urls = "".join(
            f"<url><loc>{{base}}{escape(path)}</loc></url>" for path in listed + orphans
        )
        xml = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        body = f"{xml}{urls}</urlset>".encode()
        self.answers["/sitemap.xml"] = Answer(media="application/xml", body=body)
        rules = "User-agent: *\nDisallow: /private/\nSitemap: {base}/sitemap.xml\n"
        self.answers["/robots.txt"] = Answer(media="text/plain", body=rules.encode())
        self._roots = ["/", *listed, *orphans]

    def _reached(self) -> Iterator[str]:
        """Walk as a crawl must, redirects counted; each path at its fullest."""
        best: dict[str, int] = {}
        waiting = deque((path, LIMIT) for path in self._roots)
        while waiting:
            path, left = waiting.popleft()
            if best.get(path, -1) >= left:
                continue
            best[path] = left
            answer = self.answers[path]
            if answer.location and left:
                waiting.append((answer.location, left - 1))
            elif not answer.location and not path.startswith("/hidden/"):
                waiting.extend((link, LIMIT) for link in answer.links)
        return iter(best)


def packed(body: bytes) -> bytes:
    """Pack a body, the same each time."""
    return gzip.compress(body, 6, mtime=0)
