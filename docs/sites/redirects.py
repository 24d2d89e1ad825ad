"""Two pages lead to a third; a relative path, a 308, two in a circle."""

from __future__ import annotations

from sites.serving import NOT_THERE, Answer, page

MOVED = {
    "/foo": (302, "/baz"),
    "/bar": (302, "/baz"),
    "/here/there": (301, "../quux"),  # which is /quux
    "/old": (308, "/new"),
    "/round": (302, "/about"),
    "/about": (302, "/round"),
}
PAGES = {
    "/": page("/foo", "/bar", "/here/there", "/old", "/round"),
    "/baz": page("/"),
    "/quux": page("/baz"),
    "/new": page("/"),
}


def answer(path: str) -> Answer:
    if path in MOVED:
        status, target = MOVED[path]
        return Answer(status=status, headers={"Location": target})
    return PAGES.get(path, NOT_THERE)
