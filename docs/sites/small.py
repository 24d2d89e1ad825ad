"""Small sites in one, a directory each: each has one odd thing."""

from __future__ import annotations

from dataclasses import replace

from sites.serving import NOT_THERE, Answer, page


def moved(status: int = 302, location: str | None = None) -> Answer:
    return Answer(status=status, headers={"Location": location} if location else {})


HOPS = {
    "r1": moved(location="http://site/hops/r2"),
    "r2": moved(location="http://site/hops/r3"),
    "r3": page(),
    "p": replace(page("r2"), wait=0.1),  # it comes after r1
}
SITES = {
    "home": {"": page("a"), "a": page("./")},
    "relative": {"": page("a"), "a": moved(location="b"), "b": page()},
    "nowhere": {"": page("a"), "a": moved()},
    "for-good": {"": page("a"), "a": moved(308, "b"), "b": page()},
    "hops": {"": page("p", "r1"), **HOPS},
    "hops-without-r1": {"": page("/hops/p")},
    "charset": {"": page("a"), "a": Answer(b"Caf\xe9")},
    "dropped": {"": page("a"), "a": Answer(hang_up=True)},
}


def answer(path: str) -> Answer:
    name, _, rest = path.removeprefix("/").partition("/")
    return SITES.get(name, {}).get(rest, NOT_THERE)
