"""Compare the compiled reader of the text of pages with the one in Python on damaged pages.

    python tests/rigs/text_fuzz.py --pages 10000000
    python tests/rigs/text_fuzz.py --pages 10000000 --sanitize

With --sanitize it is compiled again, into a temporary directory, with AddressSanitizer and
UndefinedBehaviorSanitizer, and any fault of memory ends the program (needs gcc and its libasan).
Exit status 1 if a page has another digest, size, block or heading, or other words.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from rigs import fuzzing  # noqa: E402

from trio_crawler.page import accelerator, text_digest  # noqa: E402

SOURCE = fuzzing.PAGE / "_text.c"
LONGEST = 30  # pieces of a page

# Two spaces or more stand between the pieces.
PIECES = re.split(
    r"\s{2,}",
    """<p>  </p>  <b  >  <  </  <<  < b  <>  <!--  -->  --  ->  <!-->  <!--->  <!-- x -->
    <!doctype  <script>  </script>  </script  <SCRIPT  </ScRiPt x>  <scripts>  </scripts>  <style>
    </style>  <noscript>  </noscript>  <noscript/>  <template>  </template>  <title>  </title>
    <title  <h1>  <h1  <H1 a='x>y'  <h1x>  </h1>
    <p title="<script>">  <p a='<!-- x -->' b>  <script<!--  <title>a</title>  <style_  <style\xe9
    one  two  three  \xe9  \x80  \0  1  12  1,234  1.5  0.013  2026  12:30  12:30:59  Nov  Mon  ago
    Ago  <b>12</b>  views  Views:  view  (views)  hits,  hit  [visits]  visitor  pageviews  query
    queries.  QUERIES  online  12 users online  users are online  viewed 12 times  accessed
    page generated in 0.5 s  Generated  rendered  served*  executed  loaded in 3 ms  parsed  took
    took 12 seconds  processed  compiled  execution time: 12 ms  loading time  load  processing
    response time 3\xb5s  retrieved  printed 12.3.2026  exported  last activity  last visit 12:30
    current time 12:30  server time: Mon 1 Nov 2026  Local time  now  It is now 12:30 am  today
    today is 2026-11-22  5 minutes ago  about an hour ago  3 days, 2 hours ago  an hour  ago.
    &  &#  &#x  &#64;  &#65  &#x41;  &#x4  &#xe9;  &#8217;  &#0;  &#128;  &#151  &#55296;  &#xFFFE;
    &#x1F600;  &#99999999999999;  &#38;#64;  &amp;  ;  #64;  servers  times  overview  generate""",
)
SPACES = ["", "", " ", " ", "\n", "\t", "\v", "\f", "\r\n", "  ", "\xa0", "\x1c", "\x85"]


def damaged(random: Random) -> Iterator[bytes]:
    """Yield pages without end: pieces, some of them cut, with any space between them."""
    while True:
        chosen = random.choices(PIECES, k=random.randint(1, LONGEST))
        if random.random() < 0.3:
            at = random.randrange(len(chosen))
            chosen[at] = chosen[at][: random.randrange(len(chosen[at]) + 1)]
        if random.random() < 0.2:
            chosen *= random.choice([2, 3, 50])
        yield "".join(piece + random.choice(SPACES) for piece in chosen).encode("latin-1")


def read(body: bytes) -> tuple[object, ...]:
    """Return what the reader finds in a page."""
    outline = text_digest.outline(body, xml=False)
    return text_digest.page_text(body, "text/html", "utf-8"), outline


def in_python(body: bytes) -> tuple[object, ...]:
    """Return what the reader in Python finds in a page."""
    text, accelerator.text = accelerator.text, None
    try:
        return read(body)
    finally:
        accelerator.text = text


def compare(pages: int, seed: int) -> str:
    """Compare so many pages, and return what is printed.

    Raises AssertionError for a page that is read differently.
    """
    started = time.monotonic()
    for number, body in zip(range(1, pages + 1), damaged(Random(seed)), strict=False):
        found, expected = read(body), in_python(body)
        assert found == expected, f"{body!r}: {found} is not {expected}"
        if number % 1_000_000 == 0:
            print(f"{number:,} pages, {time.monotonic() - started:.0f} s", flush=True)
    return f"{pages:,} pages are read alike"


def use(module: Any) -> None:
    """Let the reader use compiled functions that were built elsewhere."""
    accelerator.text = module


if __name__ == "__main__":
    sys.exit(fuzzing.run(__file__, SOURCE, use, lambda: accelerator.text is not None, compare))
