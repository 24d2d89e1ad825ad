"""A page that links to a video of 32 MiB, which says what it is and how long."""

from __future__ import annotations

from sites.serving import NOT_THERE, Answer, page

SIZE = 32 * 1024 * 1024


def answer(path: str) -> Answer:
    if path == "/film.mp4":
        return Answer(bytes(SIZE), headers={"Content-Type": "video/mp4"})
    return page("/film.mp4") if path == "/" else NOT_THERE
