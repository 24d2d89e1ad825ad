"""A site of eight pages whose waits are all different: no two things happen at one moment."""

from __future__ import annotations

from dataclasses import replace

from sites.serving import NOT_THERE, Answer, page

WAITS = {
    "/": 1.0,
    "/a": 1.5,
    "/b": 2.3,
    "/c": 0.8,
    "/d": 1.2,
    "/e": 2.0,
    "/f": 0.9,
    "/g": 1.1,
}
LINKS = {"/": "abc", "/a": "d", "/b": "e", "/c": "fg"}


def answer(path: str) -> Answer:
    if path not in WAITS:
        return NOT_THERE
    links = [f"/{name}" for name in LINKS.get(path, "")]
    return replace(page("/", *links), wait=WAITS[path])
