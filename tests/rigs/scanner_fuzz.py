"""Compare the compiled scanner of links with the readers in Python on damaged pages.

    python tests/rigs/scanner_fuzz.py --pages 10000000
    python tests/rigs/scanner_fuzz.py --pages 10000000 --sanitize

Its tags, by which a check finds links and places, are compared, too, the facts of each fifth page,
and the URLs that it makes of five random links for each page. Counted are the pages whose
links the scanner does not give up. With --sanitize it is compiled again, into
a temporary directory, with AddressSanitizer and UndefinedBehaviorSanitizer, and any fault of
memory ends the program (needs gcc and its libasan). Exit status 1 if a page is read differently.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from httpx import Headers
from msgspec.structs import replace

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from rigs import fuzzing  # noqa: E402

from trio_crawler.link import LinkKind  # noqa: E402
from trio_crawler.page import (  # noqa: E402
    accelerator,
    read,
    urls,
)
from trio_crawler.page.facts import page_facts  # noqa: E402
from trio_crawler.page.fragments import places_of, read_targets  # noqa: E402
from trio_crawler.page.html.links import read_links, read_outline, scan  # noqa: E402
from trio_crawler.page.link_targets import fragments_in  # noqa: E402
from trio_crawler.page.read import Facts  # noqa: E402
from trio_crawler.page.read import read as in_a_check  # noqa: E402

SOURCE = fuzzing.PAGE / "html/_scan.c"
URL = "http://e.test/d/"
LONGEST = 14  # pieces of a page

# Two spaces or more stand between the pieces.
PIECES = re.split(
    r"\s{2,}",
    """<p>  </p>  <div class="c">  </div  text  <b  >  <br/>  <a href="x1">  <a class="c" href="x2"
    </a>  <a href="x3" title="t">  <li id="i">  <img src="?a=b">  <!-- c -->  <!doctype html x "y">
    <img alt="<-"  <img alt="<b>">  <imgs a="<">
    <meta a="b" content=">"  <META a=">">
    <area href=x4>  <a href="./x/../x6#f">  <a href=".?y">
    <area href='x5'/>  <script>"</a"</script>  <script async src="s"></script >
    <style>p{}</style>  <title>a&amp;b</title>  <base href="/d/">  <base href=mailto:x>  <BASE>
    <TITLE >T</TITLE>  <svg><path d="m"/></svg>  <select><option></select>  <svg/>  <math/>
    <template><p></template>  <template/>  ="  ="b= "  'b='  x">  <p a=b "c= ">  "  '  <  =  </  /
    <!-- -->  --!>  <!-->  <!--->  <!--  -->  ->  -  !  ?>  <?x  <!x "y  a < b  <a href='y1'>
    <a href=y2>  <A HREF="y3">  <a hreflang="x" href="y4">  <a/href="y5"/>  <a href>  <a href= >
    <a href="y6"="z">  <a x=">" href="y7">  <p a="<a href=no>">  <svg>  </svg>  </svg/x>  <math>
    </math>  <template>  </template>  <select>  </select>  <script>  </script>  </script  <script
    <script><!--  <script><!-- <script>  </script></script>  </script x="y>">  <!-- <script  -->
    <title>  </title>  </titles>  <title a="x>y">  <textarea>  </textarea>  <style>  </style>
    <iframe>  <xmp>  </iframe>  </xmp>  <noembed>  </noembed>  <noframes>  </NoFrames>  <frameset>
    <frameset></frameset>  <plaintext>  </plaintext>  <title/>  <desc>  <g>  <![CDATA[  ]]>
    <noscript>  </noscript>  <a x="1"  <a x='2'  <a   href=   rel=   rel="   href="   nofollow
    <a rel=nofollow href=n1>  <a href=n2 rel="x NoFollow">  <a rel="no&#102;ollow" href=n3>
    <a rel="x nofollow" href="n4">  <a href="n5" rel="NoFollow">  <a href="x3" rel="next">
    <a href="x1" href="no">  <p class="c" title="><a href='no'>">
    <a rel=nofollows href=x1>  <a rel rel=nofollow href=x2>  &amp;  &  &#35;  &lt  #f  #  %
    <a href="?a=1&copy=2&lt;#&">  <a href="x&#35;f">  <a href="x#f&amp;">  <a href=" x5 #f">
    <a href="#f">  <a href=" #f">  <link href=no>  <math><mi>  <body>  <svg><p>  <svg><title>
    <tabl  e>  <table>  <td>  <form>  \xe9  \u201c  \U0001f600  <bloc\u212aquote>
    <a\u0100 href=no>  <a href="\u4e2d#\xe9">  <a href="\xe9">  \0  <a href="\0x">  <a\0href=no>
    <title>\0&notit;</title>  id="i"  id=j>  <p ID='k'  name="n"  style="a:url(u)"  style="a:b">
    cite=c  background=g>  src="s"  srcdoc="<a href=f>"  <img  <iframe  <td  <link rel=stylesheet
    <a href="#i">  <a href="#n">
    <q cite="q">  <circle id="i"/>  <path style="a:b(c)">  <a id=i href="x1">  <a name=n>
    <input type=image>  <link rel=icon>  <img srcset>
    <h1>  </h1>  <h1 a='  <meta name=description content=d>  <base href=d>  "application/ld+json"
    @import 'o';  a{b:url(v)}  <form action=f>
    <a style='a:url(w)' href=y8>  <meta property="og:url" content="t">""",
)
PIECES += re.split(
    r"\s{2,}",
    """<svg id="v">  <svg id=v/>  <use href="#u">  </use>  <use xlink:href='s.svg#u' id=w />
    <symbol id="y">  </symbol>  <defs>  </desc>  <linearGradient id="l">  <svg><title>t</title>
    <svg><use href=u1></svg>  <svg class=c><desc>d</desc><use id=x href=u2></use></svg>
    <a href=x9><svg><g id=g><use xlink:href="#g"/></g></svg>drawn</a>  <svg\n><use\n href=u3 />
    <template id=t>  <template><a href=no></template>  <template><svg><g/></svg><script>
    </template x>  <math id=m><mi id=n>x</mi></math>  <mi>  </mi>  <mtext>  <filter id=o>
    </filter>
    <svg><!-- <a href=no> --><feFlood/></svg>  <svg><!--  <math><mo href=no style="a:url(b)">
    <svg><style id=z>a{b:c}</style></svg>  <svg><style>@import 'o';  <metadata>  <rdf:a href=no>
    <svg><style>a{b:url(v)}</style></svg>  </rdf:a>  </style x  <svg><style>a{b:\\75rl(w)}</style>
    <use>  <image href=i>  </use x>  <svg><title>t</title><use href=u4 /><desc>é</desc>""",
)
PIECES += [" ", "\t", "\n", "\f", "\r", "\r\n", "  ", "\v", "\xa0"]
PIECES += ['<a href="\t#f">', '<a\nhref="x1">', "<!--!>", "<!---!>"]
# Characters that end in the byte of a mark.
PIECES += ["\u013c", "\u013e", "<\u0141 href=no>", '<a href="x\u0123\u0122y">', "\U0001003cp>"]
# In a script, and in comments: where these end depends on what is in them.
SCRIPT = """<script> <script> </script> </script> <!-- <!-- --> --> <!--> - --!> > !> <script
    </script/ x <a/href=s1> <SCRIPT/> </ScripT> </title> <title>""".split()
WHOLE = "".join(PIECES)
LINKS = (
    "a b.html .. ../ ./ / // ? q=1 & # %41 : \\ ~ [ ] . - -- A_9 \xe9 \ud800 @ 9 .1/ org/".split()
)
LINKS += (
    "http:// https:// http://e.test/ http://e.test www. f.org/ xn--a. :80/ E.org/ mailto:".split()
)


def damaged(chance: Random) -> Iterator[str]:
    """Yield pages without end, made of whole pieces and of parts of them."""
    choose, number = chance.choices, chance.random
    while True:
        pieces = choose(SCRIPT if number() < 0.1 else PIECES, k=1 + int(number() * LONGEST))
        if number() < 0.3:
            at = int(number() * len(WHOLE))
            pieces[int(number() * len(pieces))] = WHOLE[at : at + int(number() * 12)]
        yield "".join(pieces)


def in_python(text: str) -> read.ParsedHtml:
    """Return what the readers in Python find in a page: tag by tag, or at once if it is usual."""
    compiled = accelerator.scan, accelerator.tags
    accelerator.scan = accelerator.tags = None
    try:
        expected = read.parse_html(text, URL)
        assert read.scan_html(text, URL, "utf-8", 100_000) in (None, expected), text
        return expected
    finally:
        accelerator.scan, accelerator.tags = compiled


def resolved(hrefs: list[str], base: str) -> list[str]:
    """Return the URLs of hrefs; no other text is equal to that of a href that has none."""
    found, _ = urls.resolve(hrefs, base)
    return [found.get(href, "no URL") for href in hrefs]


def difference(text: str) -> str | None:
    """Return how the two readers differ on a page; "" if they agree, None if it was given up."""
    found = read.scan_html(text.encode("utf-8", "surrogatepass"), URL, "utf-8", 100_000)
    expected = in_python(text)
    if found is None:
        return None
    links, nofollow = list(expected.hrefs), list(expected.nofollow_hrefs)
    if found.resolved:
        links, nofollow = resolved(links, expected.base), resolved(nofollow, expected.base)
    expected = replace(
        expected,
        hrefs=list(dict.fromkeys(links)),
        nofollow_hrefs=list(dict.fromkeys(nofollow)),
        resolved=found.resolved,
    )
    return "" if found == expected else f"{found}\nis not\n{expected}"


def tags_differ(text: str) -> str:
    """Return how a check reads a page otherwise in Python; "" if it reads the same."""
    ours, our_links = scan(text.encode(), URL), read_links(text, URL)
    our_places = read_targets(text)
    our_facts = replace(in_a_check(text.encode(), "text/html", URL, scanned=True), outline=b"")
    compiled = accelerator.tags, accelerator.targets
    accelerator.tags = accelerator.targets = None
    try:
        theirs, their_links = scan(text, URL), read_links(text, URL)
        places = read_targets(text)
        their_facts = in_a_check(text.encode(), "text/html", URL, scanned=True)
    finally:
        accelerator.tags, accelerator.targets = compiled
    if ours is not None and theirs is not None and as_sets(our_facts) != as_sets(their_facts):
        return f"{our_facts}\nis not\n{their_facts}"
    if our_links != their_links:
        return f"{our_links}\nare not\n{their_links}"
    if our_places != places or (ours is not None and places_of(ours.places - {""}) != places):
        return f"these are not the places: {ours and ours.places}"
    every = {link.url: {""} if link.malformed else None for link in our_links.links}
    for kinds in ({"a"}, {"css"}, {"link", "image"}, {*LinkKind}) if ours is not None else ():
        outlined = read_outline(ours.outline, URL, 100_000, dict.fromkeys(kinds, every))
        found, sought = (
            [
                link
                for link in links
                if link.kind in kinds
                # An outline has not all links to places of the page.
                and (link.url != URL or link.fragment not in ours.places)
            ]
            for links in (outlined, our_links.links)
        )
        if found != sought:
            return f"{outlined}\nare in {ours.outline!r}, not\n{sought}"
    if ours is not None and our_links.links:
        one = our_links.links[len(text) % len(our_links.links)]
        alone = len(text) % 2 or one.fragment or one.malformed
        wanted = {one.kind: {one.url: {one.fragment} if alone else None}}
        outlined = read_outline(ours.outline, URL, 100_000, wanted)
        alike = [link for link in our_links.links if link[:3] == one[:3]]
        is_own = one.url == URL and one.fragment in ours.places
        if not is_own and [link for link in outlined if link[:3] == one[:3]] != alike:
            return f"{outlined}\nare in {ours.outline!r}, not\n{alike}"
    if ours is not None and theirs is not None:
        if list(ours.links) != list(theirs.links):
            return f"{list(ours.links)}\nis another order than that of\n{list(theirs.links)}"
        ours = ours._replace(outline=b"", is_usual=theirs.is_usual)
    if ours is None or theirs is None or as_sets(ours) == as_sets(theirs):
        return ""
    return f"{ours}\nis not\n{theirs}"


def as_sets(found: object) -> object:
    """Return what was found with the fragments of each URL once, in any order."""
    match found:
        case bytearray():
            return set(fragments_in(found))
        case dict():
            return {key: as_sets(each) for key, each in found.items()}
        case Facts():
            return replace(found, pointed=None), as_sets(found.pointed)
        case tuple():
            return [as_sets(each) for each in found]
    return found


def facts_differ(text: str) -> str:
    """Return how the facts of a page differ in Python; "" if they are the same."""
    about = text.encode(), "text/html", "utf-8", URL, Headers()
    ours = page_facts(*about, fetched=0)
    compiled = accelerator.tags, accelerator.text
    accelerator.tags = accelerator.text = None
    try:
        theirs = page_facts(*about, fetched=0)
    finally:
        accelerator.tags, accelerator.text = compiled
    return "" if ours == theirs else f"{ours}\nis not\n{theirs}"


def joins_differ(chance: Random) -> str:
    """Return how the URLs of some links differ; "" if they are the same."""
    links = ["".join(chance.choices(LINKS, k=int(chance.random() * 7))) for _ in range(5)]
    return difference("".join(f'<a href="{link}">' for link in links)) or ""


def compare(pages: int, seed: int) -> int:
    """Compare so many pages, and return how many others were given up.

    Raises AssertionError for a page that is read differently.
    """
    given_up = compared = 0
    started, chance = time.monotonic(), Random(seed)
    for number, text in enumerate(damaged(Random(seed))):
        found = difference(text)
        assert not found, f"{text!r}: {found}"
        assert not (found_too := tags_differ(text)), f"{text!r}: {found_too}"
        # They take half as long as all the rest.
        assert number % 5 or not (kept := facts_differ(text)), f"{text!r}: {kept}"
        assert not (joined := joins_differ(chance)), joined
        given_up += found is None
        compared += found is not None
        if compared == pages:
            break
        if found is not None and compared % 1_000_000 == 0:
            seconds = time.monotonic() - started
            print(f"{compared:,} pages, {given_up:,} given up, {seconds:.0f} s", flush=True)
    return given_up


def use(module: Any) -> None:
    """Let the readers use a scanner that was built elsewhere."""
    accelerator.scan, accelerator.tags = module.scan, module.tags
    accelerator.targets = module.targets


def said(pages: int, seed: int) -> str:
    """Compare so many pages, and return what is printed."""
    given_up = compare(pages, seed)
    return f"{pages:,} pages are read alike; {given_up:,} others were given up"


if __name__ == "__main__":
    sys.exit(fuzzing.run(__file__, SOURCE, use, lambda: accelerator.scan is not None, said))
