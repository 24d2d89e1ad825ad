"""Home links to two pages that come at the same moment and share three links."""

from __future__ import annotations

from sites.serving import Answer, page

LINKS = {"/": ("/a", "/b"), "/a": ("/x", "/y", "/z"), "/b": ("/x", "/y", "/z")}


def answer(path: str) -> Answer:
    return page(*LINKS.get(path, ()))
