"""Random webs, each the same for its seed: two hosts with all that a link may lead to."""

from __future__ import annotations

import random

import httpx

from trio_crawler import Fault, Reason, Response
from trio_crawler.testing import fault, redirect, robots

HOME = "http://site.test/"
OTHER = "http://other.test/"

_ODD = (
    *("http://[x", "mailto:a@b.test", "mailto:", "htp://typo.test/", "javascript:void(0)"),
    *("tel:+1", "//", "http://", "#", "#top", "#nowhere", "", "data:,x", "file:///etc/hosts"),
)
_STATUSES = (404, 404, 404, 410, 403, 401, 429, 500, 503, 999)
_FAULTS = (Reason.RESET, Reason.TLS, Reason.TIMEOUT, Reason.DNS, Reason.INCOMPLETE)
# These are not blamed on the host, so that it is never given up.
_CALM_STATUSES = (404, 404, 410, 403, 401, 400)
_CALM_FAULTS = (Reason.TLS, Reason.BAD_REPLY, Reason.INCOMPLETE)


class RandomWeb:
    """A web whose answers depend on its seed and on its version alone.

    The second version has other texts, links and ends on a third of its pages. No host of a `calm`
    web is ever given up, so the order of the requests does not matter.
    """

    def __init__(self, seed: int, version: int = 1, *, calm: bool = False) -> None:
        self._statuses = _CALM_STATUSES if calm else _STATUSES
        self._faults = _CALM_FAULTS if calm else _FAULTS
        shape = random.Random(f"shape {seed}")
        self.size = shape.randint(1, 24)
        self.pages = [f"{HOME}{shape.choice(['', 'd/', 'd/e/'])}p{n}" for n in range(self.size)]
        self.parts = [f"{HOME}i{n}.png" for n in range(shape.randint(0, 4))]
        self.styles = [f"{HOME}s{n}.css" for n in range(shape.randint(0, 2))]
        self.others = [f"{OTHER}o{n}" for n in range(shape.randint(0, 5))]
        self.site: dict[str, Response | Fault] = {}
        everything = [HOME, *self.pages, *self.parts, *self.styles, *self.others]
        for url in everything:
            edited = version == 2 and random.Random(f"{seed} {url}").random() < 1 / 3
            chance = random.Random(f"{seed} {url} {2 if edited else 1}")
            self.site[url] = self._answer(url, chance, everything)
        if shape.random() < 0.4:
            self.site[f"{HOME}robots.txt"] = robots(*shape.sample(["/d/e/", "/p1", "/i0"], 2))
        if shape.random() < 0.3:
            self.site[f"{HOME}sitemap.xml"] = self._sitemap(shape)

    def _answer(self, url: str, chance: random.Random, everything: list[str]) -> Response | Fault:
        kind = chance.random()
        if url == HOME:
            kind = 1.0
        if kind < 0.08:
            return fault(chance.choice(self._faults))
        if kind < 0.2:
            return Response(chance.choice(self._statuses))
        if kind < 0.36:
            target = self._spelled(chance, chance.choice(everything))
            return redirect(target, chance.choice([301, 302, 307, 308]))
        if url in self.parts:
            return Response(200, httpx.Headers({"content-type": "image/png"}), b"\x89PNG")
        if url in self.styles:
            target = chance.choice([*self.parts, f"{HOME}none.png"])
            body = f"a {{ background: url({target}) }}".encode()
            return Response(200, httpx.Headers({"content-type": "text/css"}), body)
        return self._page(chance, everything, more=4 * (url == HOME))

    def _page(self, chance: random.Random, everything: list[str], more: int) -> Response:
        head, body = [f"<title>{chance.choice('ABCDEFGH')}</title>"], ["<p id=top>A text.</p>"]
        if chance.random() < 0.1:
            head.append('<meta name="robots" content="nofollow">')
        if chance.random() < 0.1:
            head.append(f'<link rel="canonical" href="{chance.choice(self.pages)}">')
        head += [f'<link rel="stylesheet" href="{each}">' for each in self.styles[:1]]
        for _ in range(more + chance.randint(0, 6)):
            target = self._spelled(chance, chance.choice(everything))
            if chance.random() < 0.2:
                target = chance.choice(_ODD)
            elif chance.random() < 0.2:
                target += chance.choice(["#top", "#a1", "#nowhere", "#"])
            extra = chance.choice(["", "", "", " rel=nofollow", " id=a1"])
            body.append(f'<a href="{target}"{extra}>{chance.choice(["this", "that"])}</a>\n')
        for _ in range(chance.randint(0, 2)):
            part = chance.choice([*self.parts, f"{HOME}none.png"])
            body.append(f'<img src="{part}" alt="a part">\n')
        text = f"<!doctype html>\n{''.join(head)}\n{''.join(body)}"
        return Response(200, httpx.Headers({"content-type": "text/html"}), text.encode())

    def _spelled(self, chance: random.Random, url: str) -> str:
        path = url.removeprefix(HOME)
        if path == url:
            return url
        return chance.choice([url, f"/{path}", f"//site.test/{path}", f"/x/../{path}"])

    def _sitemap(self, chance: random.Random) -> Response:
        listed = [*chance.sample(self.pages, min(3, self.size)), f"{HOME}listed"]
        rows = "".join(f"<url><loc>{url}</loc></url>" for url in listed)
        body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'
        return Response(200, httpx.Headers({"content-type": "text/xml"}), body.encode())
