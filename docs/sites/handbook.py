"""A small handbook as one meets them: mostly well, with a few faults of age.

Two links lead nowhere, one page has moved, one is slow, one may not be asked for,
and one is in the sitemap only: no page links to it.
"""

from __future__ import annotations

from dataclasses import replace

from sites.serving import NOT_THERE, Answer, page

ELSEWHERE = ("https://elsewhere.example/", "mailto:editors@handbook.example")
PAGES = {
    "/": page("/install", "/tutorial/", "/reference", "/faq", text="Handbook"),
    "/install": page("/", "/download", "/changelog", text="Installing"),
    "/tutorial/": page("first", "second", "third", text="Tutorial"),
    "/tutorial/first": page("/", "second", text="First steps"),
    "/tutorial/second": page("first", "third", "fourth", text="More steps"),
    "/tutorial/third": page("second", "/reference#options", text="More steps"),
    "/reference": page("/reference/options", "/reference/errors", text="Reference"),
    "/reference/options": page("/reference", text="Options"),
    "/reference/errors": page("/reference", "/changelog", text="Errors"),
    "/faq": page("/install", "/admin/", *ELSEWHERE, text="Questions"),
    "/admin/": page(text="For the editors"),
    "/draft": page("/reference", text="Draft of the next edition"),
}
# A sitemap has whole URLs; these are not, because this site does not know its own.
SITEMAP = "".join(
    f"<url><loc>{path}</loc></url>" for path in PAGES if path != "/admin/"
)


def answer(path: str) -> Answer:
    """Answer as an ordinary server does; `/reference` takes its time."""
    match path:
        case "/robots.txt":
            rules = "User-agent: *\nDisallow: /admin/\n"
            return Answer(rules, headers={"Content-Type": "text/plain"})
        case "/sitemap.xml":
            xml = f'<?xml version="1.0"?><urlset>{SITEMAP}</urlset>'
            return Answer(xml, headers={"Content-Type": "application/xml"})
        case "/download":
            return Answer(status=301, headers={"Location": "/install"})
        case "/":
            return replace(PAGES[path], wait=0.2)
        case "/reference":
            return replace(PAGES[path], wait=0.5)
    return PAGES.get(path, NOT_THERE)
