"""A site of seeded faults, and of things that look like faults and are none.

Each case is a page of its own, with the links of one kind and the findings that a link check must
come to. `sites.faults` serves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import httpx

from trio_crawler import Reason, Response
from trio_crawler.model import Answer, Fault, Job, Purpose

HOME, OUT = "http://site.test/", "http://out.test/"
# Hosts of their own: one that is busy or breaks connections is asked less.
BUSY, LATER = "http://busy.test/", "http://later.test/"
BREAKS, DROPS = "http://breaks.test/", "http://drops.test/"
REFUSED, NOWHERE = "http://refused.test/", "http://nowhere.invalid/"
HOSTS = (HOME, OUT, BUSY, LATER, BREAKS, DROPS, REFUSED)

LARGE = 50_000_000


@dataclass(frozen=True)
class Said:
    """What a server says about a URL; `head` is the status or the fault of HEAD if it differs."""

    status: int = 200
    body: str = ""
    type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    head: int | Reason | None = None
    fault: Reason | None = None
    large: bool = False

    def to(self, job: Job) -> Answer:
        """Return the answer of a web in memory."""
        by_head = job.purpose is Purpose.CHECK and job.tries == 1
        if by_head and isinstance(self.head, Reason):
            return Fault(self.head)
        if self.fault is not None and not (by_head and self.fault is Reason.INCOMPLETE):
            return Fault(self.fault)
        status = self.head if by_head and isinstance(self.head, int) else self.status
        flaw = Reason.NOT_READ if self.large and not by_head else None
        body = b"" if by_head else self.body.encode()
        return Response(status, httpx.Headers(self.fields), body, flaw=flaw)

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the head."""
        return {"Content-Type": self.type, **self.headers}


class Row(NamedTuple):
    """One finding: its verdict, its code, and the URL with its fragment, or a path of the site."""

    verdict: str
    code: str
    target: str


@dataclass(frozen=True)
class Case:
    """A page with some markup, what its links lead to, and what a check finds there."""

    name: str
    markup: str
    found: tuple[Row, ...] = ()
    answers: Mapping[str, Said] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    empty: bool = False

    @property
    def page(self) -> str:
        """The URL of the page."""
        return f"{HOME}cases/{self.name}.html"

    @property
    def pages(self) -> frozenset[str]:
        """The URLs whose links belong to this case."""
        return frozenset((self.page, *(_url(path) for path in self.answers)))

    def said(self) -> dict[str, Said]:
        """Return everything that servers say, by URL."""
        body = "" if self.empty else f"<!doctype html><title>{self.name}</title>{self.markup}"
        page = Said(body=body, headers=self.headers)
        return {self.page: page, **{_url(path): said for path, said in self.answers.items()}}


def _url(path: str) -> str:
    return HOME.rstrip("/") + path if path.startswith("/") else path


def gone(*targets: str) -> tuple[Row, ...]:
    """Return a fault of status 404 for each target."""
    return tuple(Row("fault", "404", target) for target in targets)


def fault(code: str, target: str) -> tuple[Row, ...]:
    """Return one fault."""
    return (Row("fault", code, target),)


def note(code: str, target: str) -> tuple[Row, ...]:
    """Return one note."""
    return (Row("note", code, target),)


def lost(target: str) -> tuple[Row, ...]:
    """Return one fragment of the site that names no place."""
    return fault("missing_fragment", target)


def moved(target: str, status: int = 302) -> Said:
    """Return a redirect."""
    return Said(status, headers={"Location": target})


PNG, CSS = Said(body="PNG", type="image/png"), "text/css"
TEXT = Said(body="fine")
PLACES = Said(body='<p id="there">a <a name="named">b</a> <i id="über">c</i> <i id="a b">d</i>')

FAULTS = (
    Case("link", "<a href=/gone>gone</a>", gone("/gone")),
    Case("area", "<map><area href=/gone-area></map>", gone("/gone-area")),
    Case("external", f"<a href={OUT}gone>gone</a>", gone(f"{OUT}gone")),
    Case(
        "external-410",
        f"<a href={OUT}410>gone</a>",
        fault("410", f"{OUT}410"),
        {f"{OUT}410": Said(410)},
    ),
    Case(
        "external-500",
        f"<a href={OUT}500>broken</a>",
        fault("500", f"{OUT}500"),
        {f"{OUT}500": Said(500)},
    ),
    Case("refused", f"<a href={REFUSED}>x</a>", fault("connection_refused", REFUSED)),
    Case("no-name", f"<a href={NOWHERE}>x</a>", fault("no_such_host", NOWHERE)),
    Case("scheme-relative", "<a href=//out.test/gone-2>x</a>", gone(f"{OUT}gone-2")),
    Case("img", "<img src=/gone.png>", gone("/gone.png")),
    Case("img-external", f"<img src={OUT}gone.png>", gone(f"{OUT}gone.png")),
    Case("srcset", '<img srcset="/a.png 1x, /gone-2x.png 2x">', gone("/gone-2x.png")),
    Case(
        "picture",
        '<picture><source srcset="/gone.avif"><img src=/a.png></picture>',
        gone("/gone.avif"),
    ),
    Case("input-image", "<input type=image src=/gone-button.png>", gone("/gone-button.png")),
    Case("background", "<body background=/gone-back.png>", gone("/gone-back.png")),
    Case("svg-image", "<svg><image href=/gone.svg /></svg>", gone("/gone.svg")),
    Case("svg-use", "<svg><use xlink:href=/gone-use.svg#x /></svg>", gone("/gone-use.svg#x")),
    Case("script", "<script src=/gone.js></script>", gone("/gone.js")),
    Case("style-sheet", "<link rel=stylesheet href=/gone.css>", gone("/gone.css")),
    Case("icon", '<link rel="shortcut icon" href=/gone.ico>', gone("/gone.ico")),
    Case("preload", "<link rel=preload as=font href=/gone.woff2>", gone("/gone.woff2")),
    Case(
        "imagesrcset",
        '<link rel=preload as=image imagesrcset="/gone-i.png 2x">',
        gone("/gone-i.png"),
    ),
    Case(
        "css-url",
        "<link rel=stylesheet href=/css/a.css>",
        gone("/css/gone-a.png"),
        {
            "/css/a.css": Said(
                body="a{background:url(gone-a.png)} b{src:url( '/a.png' )}", type=CSS
            )
        },
    ),
    Case(
        "css-import",
        "<link rel=stylesheet href=/css/b.css>",
        gone("/css/gone-b.css", "/css/gone-c.png"),
        {
            "/css/b.css": Said(body="@import 'c.css'; @import url(gone-b.css);", type=CSS),
            "/css/c.css": Said(body="a { background: url('gone-c.png') }", type=CSS),
        },
    ),
    Case("css-inline", '<p style="background:url(/gone-p.png)">', gone("/gone-p.png")),
    Case("css-element", "<style>p{background:url(/gone-s.png)}</style>", gone("/gone-s.png")),
    Case("video", "<video src=/gone.mp4></video>", gone("/gone.mp4")),
    Case("poster", "<video poster=/gone.jpg></video>", gone("/gone.jpg")),
    Case("source", "<video><source src=/gone.webm></video>", gone("/gone.webm")),
    Case("track", "<video><track src=/gone.vtt></video>", gone("/gone.vtt")),
    Case("audio", "<audio src=/gone.ogg></audio>", gone("/gone.ogg")),
    Case("object", "<object data=/gone.pdf></object>", gone("/gone.pdf")),
    Case("embed", "<embed src=/gone.swf>", gone("/gone.swf")),
    Case("iframe", "<iframe src=/gone-frame></iframe>", gone("/gone-frame")),
    Case(
        "iframe-only",
        "<iframe src=/framed></iframe>",
        gone("/gone-framed"),
        {"/framed": Said(body="<a href=/gone-framed>x</a>")},
    ),
    Case(
        "meta-refresh",
        '<meta http-equiv=refresh content="0; url=/refreshed">',
        gone("/gone-refreshed"),
        {"/refreshed": Said(body="<a href=/gone-refreshed>x</a>")},
    ),
    Case(
        "refresh-header",
        "",
        gone("/gone-by-header"),
        headers={"Refresh": "0; url=/gone-by-header"},
        empty=True,
    ),
    Case(
        "link-header",
        "",
        gone("/gone-h.css", "/gone-next"),
        headers={"Link": "</gone-h.css>; rel=preload, </gone-next>; rel=next"},
    ),
    Case("alternate", "<link rel=alternate hreflang=de href=/gone-de/>", gone("/gone-de/")),
    Case("canonical", "<link rel=canonical href=/gone-canonical>", gone("/gone-canonical")),
    Case("og-image", '<meta property=og:image content="/gone-og.png">', gone("/gone-og.png")),
    Case(
        "manifest",
        "<link rel=manifest href=/app.webmanifest>",
        gone("/gone-192.png"),
        {
            "/app.webmanifest": Said(
                body='{"icons":[{"src":"gone-192.png"},{"src":"a.png"}]}',
                type="application/manifest+json",
            )
        },
    ),
    Case("base", "<base href=/deep/><a href=other>x</a>", gone("/deep/other")),
    Case("fragment-own", "<a href=#lost>x</a>", lost("/cases/fragment-own.html#lost")),
    Case("fragment", "<a href=/places#lost>x</a>", lost("/places#lost")),
    Case("fragment-percent", "<a href=/places#l%20ost>x</a>", lost("/places#l%20ost")),
    Case("fragment-unicode", "<a href=/places#öl>x</a>", lost("/places#%C3%B6l")),
    Case("fragment-case", "<a href=/places#There>x</a>", lost("/places#There")),
    Case(
        "fragment-external",
        f"<a href={OUT}places#lost>x</a>",
        note("missing_fragment", f"{OUT}places#lost"),
    ),
    Case(
        "fragment-redirected",
        "<a href=/to-places#lost>x</a>",
        lost("/to-places#lost"),
        {"/to-places": moved("/places")},
    ),
    Case(
        "fragment-in-template",
        "<a href=#t>x</a><template><p id=t></template>",
        lost("/cases/fragment-in-template.html#t"),
    ),
    Case(
        "fragment-in-comment",
        "<a href=#c>x</a><!-- <p id=c> -->",
        lost("/cases/fragment-in-comment.html#c"),
    ),
    Case("mailto", "<a href=mailto:nobody>x</a>", fault("bad_mailto", "mailto:nobody")),
    Case("mailto-two-signs", "<a href=mailto:a@b@c>x</a>", fault("bad_mailto", "mailto:a@b@c")),
    Case("bad-url", "<a href=http://[x>x</a>", fault("bad_url", "http://[x")),
    Case(
        "bad-port",
        "<a href=http://out.test:99999/>x</a>",
        fault("bad_url", "http://out.test:99999/"),
    ),
    Case(
        "cut-body",
        "<a href=/cut>x</a>",
        fault("incomplete", "/cut"),
        {"/cut": Said(body="half", fault=Reason.INCOMPLETE)},
    ),
    Case(
        "redirect-to-404",
        "<a href=/to-gone>x</a>",
        gone("/to-gone"),
        {"/to-gone": moved("/gone-behind")},
    ),
    Case(
        "redirects-to-404",
        "<a href=/hop>x</a>",
        gone("/hop"),
        {"/hop": moved("/hop-2"), "/hop-2": moved("/hop-3"), "/hop-3": moved("/gone-at-last")},
    ),
    Case(
        "permanent",
        "<a href=/old>x</a>",
        note("301", "/old"),
        {"/old": moved("/places", 301)},
    ),
    Case(
        "permanent-external",
        f"<a href={OUT}old>x</a>",
        note("308", f"{OUT}old"),
        {f"{OUT}old": moved(f"{OUT}places", 308)},
    ),
    Case(
        "redirect-loop",
        "<a href=/loop>x</a>",
        fault("too_many_redirects", "/loop"),
        {"/loop": moved("/pool"), "/pool": moved("/loop")},
    ),
    Case(
        "redirect-to-itself",
        "<a href=/self>x</a>",
        fault("too_many_redirects", "/self"),
        {"/self": moved("/self")},
    ),
    Case(
        "redirect-loop-external",
        f"<a href={OUT}loop>x</a>",
        fault("too_many_redirects", f"{OUT}loop"),
        {f"{OUT}loop": moved(f"{OUT}pool"), f"{OUT}pool": moved(f"{OUT}loop")},
    ),
    Case(
        "redirect-nowhere",
        "<a href=/nowhere>x</a>",
        fault("bad_location", "/nowhere"),
        {"/nowhere": Said(302)},
    ),
    Case(
        "redirect-out-to-404",
        "<a href=/leaves>x</a>",
        gone("/leaves"),
        {"/leaves": moved(f"{OUT}gone-behind")},
    ),
    Case(
        "external-redirect-to-404",
        f"<a href={OUT}hop>x</a>",
        gone(f"{OUT}hop"),
        {f"{OUT}hop": moved(f"{OUT}gone-hop")},
    ),
    Case(
        "external-redirect-back-to-404",
        f"<a href={OUT}back>x</a>",
        gone(f"{OUT}back"),
        {f"{OUT}back": moved(f"{HOME}gone-back")},
    ),
    Case(
        "external-unauthorised",
        f"<a href={OUT}401>x</a>",
        note("401", f"{OUT}401"),
        {f"{OUT}401": Said(401)},
    ),
    Case(
        "external-forbidden",
        f"<a href={OUT}403>x</a>",
        note("403", f"{OUT}403"),
        {f"{OUT}403": Said(403)},
    ),
    Case(
        "external-999",
        f"<a href={OUT}999>x</a>",
        note("999", f"{OUT}999"),
        {f"{OUT}999": Said(999)},
    ),
    Case("external-busy", f"<a href={BUSY}>x</a>", note("429", BUSY), {BUSY: Said(429)}),
    Case("external-later", f"<a href={LATER}>x</a>", note("503", LATER), {LATER: Said(503)}),
    Case(
        "external-breaks",
        f"<a href={BREAKS}>x</a>",
        note("reset", BREAKS),
        {BREAKS: Said(fault=Reason.RESET)},
    ),
)
"""What a link checker is bought for, and the notes: what could not be checked, or was moved."""

GOOD = (
    Case("places", "<a href=/places#there>x</a> <a href=/places#named>x</a>"),
    Case("top", "<a href=#top>x</a> <a href=#TOP>x</a> <a href=#>x</a> <a href=''>x</a>"),
    Case("percent", "<a href=/places#a%20b>x</a> <a href=/places#%C3%BCber>x</a>"),
    Case("unicode", "<a href=/places#über>x</a> <a href='/places#a b'>x</a>"),
    Case("text-fragment", "<a href=/places#:~:text=a>x</a> <a href=/places#there:~:text=a>x</a>"),
    Case("route", "<a href=/places#!/route>x</a> <a href=/places#/route>x</a>"),
    Case("user-content", "<h2 id=user-content-part></h2><a href=#part>x</a>"),
    Case("fragment-external", f"<a href={OUT}places#there>x</a>"),
    Case("entity-id", '<p id="a&amp;b"><a href="#a&amp;b">x</a>'),
    Case(
        "fragment-redirected",
        "<a href=/moved-places#there>x</a>",
        answers={"/moved-places": moved("/places")},
    ),
    Case(
        "fragment-of-the-redirect",
        "<a href=/elsewhere#gone>x</a>",
        answers={"/elsewhere": moved("/places#there")},
    ),
    Case(
        "fragment-of-a-document",
        "<a href=/doc.pdf#page=3>x</a> <video src=/film.mp4#t=10></video>",
        answers={
            "/doc.pdf": Said(body="%PDF", type="application/pdf"),
            "/film.mp4": Said(body="film", type="video/mp4"),
        },
    ),
    Case("use", '<svg><symbol id=s></symbol><use href="#s"/></svg>'),
    Case(
        "sprite",
        '<svg><use href="/sprite.svg#s"/></svg>',
        answers={
            "/sprite.svg": Said(
                body="<svg xmlns='http://www.w3.org/2000/svg'><symbol id='s'/></svg>",
                type="image/svg+xml",
            )
        },
    ),
    Case("data", "<img src=data:image/gif;base64,R0lGODlhAQABAAAAACw=>"),
    Case("javascript", "<a href=javascript:void(0)>x</a> <a href='javascript:a(`b`)'>x</a>"),
    Case("tel", "<a href=tel:+49301234>x</a> <a href=sms:+49301234>x</a>"),
    Case(
        "schemes", "<a href=ftp://out.test/>x</a> <a href=xmpp:a@b>x</a> <a href=irc://a/b>x</a>"
    ),
    Case("mail", "<a href=mailto:a@b.test>x</a> <a href='mailto:a@b.test?subject=a%20b'>x</a>"),
    Case("mail-empty", "<a href='mailto:?subject=a&amp;body=b'>x</a>"),
    *(
        Case(
            f"head-{status}",
            f"<a href={OUT}head-{status}>x</a>",
            answers={f"{OUT}head-{status}": Said(head=status)},
        )
        for status in (400, 403, 404, 405, 410, 418, 422, 500, 501)
    ),
    Case(
        "head-dropped",
        f"<a href={DROPS}>x</a>",
        answers={DROPS: Said(head=Reason.RESET)},
    ),
    Case(
        "large",
        f"<a href=/large.iso>x</a> <a href={OUT}large.iso>x</a>",
        answers={
            "/large.iso": Said(large=True, type="application/octet-stream"),
            f"{OUT}large.iso": Said(large=True, type="application/octet-stream", head=405),
        },
    ),
    Case("nofollow", "<a rel=nofollow href=/places>x</a>"),
    Case("template", "<template><a href=/gone-t>x</a><img src=/gone-t.png></template>"),
    Case("comment", "<!-- <a href=/gone-c>x</a> --><style>/* url(/gone-c.png) */</style>"),
    Case("in-script", "<script>a = '<a href=/gone-in-script>x</a>'</script>"),
    Case("in-textarea", "<textarea><a href=/gone-in-area>x</a></textarea>"),
    Case(
        "preconnect",
        f"<link rel=preconnect href={OUT}gone-p><link rel=dns-prefetch href=//nowhere.invalid>",
    ),
    Case("pingback", "<link rel=pingback href=/gone-xmlrpc>"),
    Case("no-href", "<a name=x>x</a> <a>y</a> <img> <img src=''> <img alt=x>"),
    Case("spaces", "<a href=' /places '>x</a> <a href='/pla\nces'>x</a>"),
    Case("case", "<A HREF=HTTP://SITE.TEST/places>x</A>"),
    Case("tilde", "<a href=/~me>x</a> <a href=/%7Eme>x</a>", answers={"/~me": TEXT}),
    Case("references", '<a href="/places?a=1&amp;b=2">x</a>', answers={"/places?a=1&b=2": TEXT}),
    Case("srcset-data", "<img srcset='data:image/gif,a,b 1x, /a.png 2x'>"),
    Case("css-fragment", "<style>a{mask:url(#m);b:url(data:,x)}</style>"),
    Case(
        "srcdoc", "<iframe srcdoc='a' src=/gone-srcdoc></iframe><iframe src=about:blank></iframe>"
    ),
    Case("temporary", "<a href=/for-now>x</a>", answers={"/for-now": moved("/places", 307)}),
    Case(
        "external-temporary",
        f"<a href={OUT}for-now>x</a>",
        answers={f"{OUT}for-now": moved(f"{OUT}places")},
    ),
    Case(
        "external-back",
        f"<a href={OUT}home>x</a>",
        answers={f"{OUT}home": moved(f"{HOME}places")},
    ),
    Case("form", "<form action=/gone-form method=post><button formaction=/gone-b></form>"),
    Case("secret", "<a href=/secret/x>x</a> <img src=/secret/x.png>"),
    Case(
        "page-and-image",
        "<a href=/a.png>x</a> <img src=/a.png> <a rel=nofollow href=/a.png>x</a>",
    ),
)
"""What is not broken, although many a checker says so."""

COMMON = {
    f"{HOME}places": PLACES,
    f"{OUT}places": PLACES,
    f"{HOME}a.png": PNG,
    f"{HOME}robots.txt": Said(
        body=f"User-agent: *\nDisallow: /secret/\nSitemap: {HOME}sitemap.xml", type="text/plain"
    ),
    f"{HOME}sitemap.xml": Said(
        body=f"<urlset><url><loc>{HOME}gone-from-map</loc></url></urlset>", type="text/xml"
    ),
}


def _good(case: Case) -> Case:
    return Case(f"good-{case.name}", case.markup, case.found, case.answers, case.headers)


CASES = (*FAULTS, *map(_good, GOOD))


def site() -> dict[str, Said]:
    """Return everything that all servers say, by URL."""
    links = "".join(f"<a href={case.page}>{case.name}</a>\n" for case in CASES)
    said = {HOME: Said(body=f"<!doctype html><title>home</title>{links}"), **COMMON}
    for case in CASES:
        said |= case.said()
    return said
