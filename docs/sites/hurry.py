"""A page that lies about its charset comes at once; two good ones take 20 s."""

from __future__ import annotations

from sites.serving import NOT_THERE, Answer

PAGES = {
    "/liar": Answer(b"<title>Caf\xe9</title>"),
    "/slow": Answer("<title>Slow</title>", wait=20),
    "/late": Answer("<title>Late</title>", wait=20),
}


def answer(path: str) -> Answer:
    return PAGES.get(path, NOT_THERE)
