"""Eleven redirects in a row lead to /end; a late page links to the last of them."""

from __future__ import annotations

from dataclasses import replace

from sites.serving import NOT_THERE, Answer, page

PAGES = {
    "/": page("/1", "/late"),
    "/late": replace(page("/11"), wait=0.7),
    "/end": page("/"),
}


def answer(path: str) -> Answer:
    number = path.removeprefix("/")
    if number.isdecimal() and 1 <= int(number) <= 11:
        target = f"/{int(number) + 1}" if number != "11" else "/end"
        return Answer(status=302, headers={"Location": target}, wait=0)
    return PAGES.get(path, NOT_THERE)
