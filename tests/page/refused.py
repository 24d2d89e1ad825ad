"""Refuse memory to a compiled reader, as a machine does that has none left, and print how it ends.

python tests/page/refused.py scan|tags|targets|text

An allocation is refused to the whole process: only a process without other threads may be asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from trio_crawler.page import accelerator, text_digest
from trio_crawler.page.urls import joining

PAGE = "<title>中</title>" + "".join(f'<a href="{number}">' for number in range(300))
TAGS = "".join(f"<a href={number} id=i name=n><td style=é中>" for number in range(300))
EACH = "<link rel=next href={0}#f><a rel=nofollow href={0}><p id=i{0}><a href=x{0}>"
POINTING = ("".join(EACH.format(number) for number in range(60)) + "<img src=i>").encode()
ELEMENT = (), (("image", "http://e.test/i", ""), ("image", "http://e.test/i", "f")), ()
SOURCE = b"<p>generated in 1 s&#64; word" * 100 + b"<p>word" * 200


def scanned() -> object:
    """Find the links of a page: they are a tuple, None means that the page is given up."""
    assert accelerator.scan is not None
    home = "http://e.test/"
    return accelerator.scan(PAGE.encode(), str, 100_000, home, *joining(home, "utf-8"))


def tagged() -> object:
    """Find the tags of a page, some with several rows: a list, None if it is given up."""
    assert accelerator.tags is not None
    return accelerator.tags(TAGS)


def pointed() -> object:
    """Find what a page points to: a tuple, None if it is given up."""
    assert accelerator.targets is not None
    home = "http://e.test/"
    about = str, lambda *_: ELEMENT, {}, {"next": "link"}, home
    return accelerator.targets(POINTING, *about, *joining(home, "utf-8"))


def read() -> object:
    """Digest the text of a page."""
    compiled, signals = accelerator.text, text_digest._SIGNALS
    assert compiled is not None
    return compiled.words(SOURCE, signals, compiled.hints(signals), 10, bytes.upper)


def main(reader: Callable[[], object]) -> None:
    import _testcapi  # Absent from some builds of Python.

    expected = reader()
    ends = set()
    # Counted from 1; the reader is done after fewer.
    for allocation in range(1, 2_000):
        _testcapi.set_nomemory(allocation, allocation + 1)
        try:
            end = reader()
        except MemoryError:
            end = "error"
        finally:
            _testcapi.remove_mem_hooks()
        ends.add("whole" if end == expected else str(end))
    print(*sorted(ends))


if __name__ == "__main__":
    main({"scan": scanned, "tags": tagged, "targets": pointed, "text": read}[sys.argv[1]])
