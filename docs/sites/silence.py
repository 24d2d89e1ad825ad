"""Home links to /1, which never comes, /2, which belies its charset, and /3."""

from __future__ import annotations

from sites.serving import NOT_THERE, Answer, page

PAGES = {
    "/": page("/1", "/2", "/3"),
    "/1": Answer(wait=600.0),
    "/2": Answer("<title>Café</title>".encode("latin-1"), wait=0.2),
    "/3": page("/"),
}


def answer(path: str) -> Answer:
    return PAGES.get(path, NOT_THERE)
