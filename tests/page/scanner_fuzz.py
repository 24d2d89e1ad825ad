"""Compare the compiled scanner of links with the readers in Python on damaged pages.

    python tests/page/scanner_fuzz.py --pages 10000000
    python tests/page/scanner_fuzz.py --pages 10000000 --sanitize

Counted are the pages that the scanner does not give up. With --sanitize it is compiled again, into
a temporary directory, with AddressSanitizer and UndefinedBehaviorSanitizer, and any fault of
memory ends the program (needs gcc and its libasan). Exit status 1 if a page is read differently.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from trio_crawler.page.html import accelerator, read  # noqa: E402

SOURCE = ROOT / "trio_crawler/page/html/_scan.c"
NAME = "trio_crawler.page.html._scan"
URL = "http://e.test/d/"
SMALL = read.MAX_TREE_CHARACTERS
LONGEST = 14  # pieces of a page

# Two spaces or more stand between the pieces.
PIECES = re.split(
    r"\s{2,}",
    """<p>  </p>  <div class="c">  </div  text  <b  >  <br/>  <a href="x1">  <a class="c" href="x2"
    </a>  <a href="x3" title="t">  <li id="i">  <img src="?a=b">  <!-- c -->  <!doctype html x "y">
    <img alt="<-"  <img alt="<b>">  <imgs a="<">
    <meta a="b" content=">"  <META a=">">
    <area href=x4>  <area href='x5'/>  <script>"</a"</script>  <script async src="s"></script >
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
    <a rel=nofollows href=x1>  <a rel rel=nofollow href=x2>  &amp;  &  &#35;  &lt  #f  #  %
    <a href="?a=1&copy=2&lt;#&">  <a href="x&#35;f">  <a href="x#f&amp;">  <a href=" x5 #f">
    <a href="#f">  <a href=" #f">  <link href=no>  <math><mi>  <body>  <svg><p>  <svg><title>
    <tabl  e>  <table>  <td>  <form>  \xe9  \u201c  \U0001f600  <bloc\u212aquote>
    <a\u0100 href=no>  <a href="\u4e2d#\xe9">  <a href="\xe9">  \0  <a href="\0x">  <a\0href=no>
    <title>\0&notit;</title>""",
)
PIECES += [" ", "\t", "\n", "\f", "\r", "\r\n", "  ", "\v", "\xa0"]
PIECES += ['<a href="\t#f">', '<a\nhref="x1">', "<!--!>", "<!---!>"]
# Characters that end in the byte of a mark.
PIECES += ["\u013c", "\u013e", "<\u0141 href=no>", '<a href="x\u0123\u0122y">', "\U0001003cp>"]
# In a script, and in comments: where these end depends on what is in them.
SCRIPT = """<script> <script> </script> </script> <!-- <!-- --> --> <!--> - --!> > !> <script
    </script/ x <a/href=s1> <SCRIPT/> </ScripT> </title> <title>""".split()
WHOLE = "".join(PIECES)


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
    """Return what the readers in Python find in a page."""
    scan, accelerator.scan = accelerator.scan, None
    try:
        return read.parse_html(text, URL)
    finally:
        accelerator.scan = scan


def difference(text: str) -> str | None:
    """Return how the two readers differ on a page; "" if they agree, None if it was given up."""
    found = read.scan_html(text, URL, "utf-8", 100_000)
    if found is None:
        return None
    expected = in_python(text)
    expected = expected._replace(
        hrefs=list(dict.fromkeys(expected.hrefs)),
        nofollow_hrefs=list(dict.fromkeys(expected.nofollow_hrefs)),
    )
    return "" if found == expected else f"{found}\nis not\n{expected}"


def compare(pages: int, seed: int) -> int:
    """Compare so many pages, and return how many others were given up.

    Raises AssertionError for a page that is read differently.
    """
    given_up = compared = 0
    started = time.monotonic()
    for number, text in enumerate(damaged(Random(seed))):
        # A small page that is not tidy is given up: as a large one it is read.
        size = "large" if number % 4 else "small"
        read.MAX_TREE_CHARACTERS = -1 if number % 4 else SMALL
        found = difference(text)
        assert not found, f"{text!r} as a {size} page: {found}"
        given_up += found is None
        compared += found is not None
        if compared == pages:
            break
        if found is not None and compared % 1_000_000 == 0:
            seconds = time.monotonic() - started
            print(f"{compared:,} pages, {given_up:,} given up, {seconds:.0f} s", flush=True)
    read.MAX_TREE_CHARACTERS = SMALL
    return given_up


def build(home: Path) -> Path:
    """Compile the scanner with sanitizers."""
    library = home / "_scan.so"
    include = sysconfig.get_paths()["include"]
    flags = [
        "-shared",
        "-fPIC",
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    flags += ["-Wno-unused-parameter", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *flags, f"-I{include}", str(SOURCE), "-o", str(library)], check=True)
    return library


def environment() -> dict[str, str]:
    """Return the environment of a process that may load such a scanner.

    Python's own allocator would hide what is beyond the end of a page. Python keeps objects until
    it exits, which are no leaks.
    """
    names = ("libasan.so", "libubsan.so")
    paths = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    ]
    return os.environ | {
        "LD_PRELOAD": " ".join(paths),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def has_sanitizers() -> bool:
    """Whether gcc is here, and the libraries of its sanitizers."""
    if shutil.which("gcc") is None or sys.platform != "linux":
        return False
    return all(Path(path).is_absolute() for path in environment()["LD_PRELOAD"].split())


def load(library: Path) -> None:
    """Let the readers use a scanner that was built elsewhere."""
    spec = spec_from_file_location(NAME, library, loader=ExtensionFileLoader(NAME, str(library)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    accelerator.scan = module.scan


def main() -> int:
    """Run what is asked for; return 0 if all pages were read alike."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--library", type=Path, help="use a scanner that was built before")
    options = parser.parse_args()
    if options.sanitize:
        with TemporaryDirectory() as home:
            words = [__file__, "--pages", str(options.pages), "--seed", str(options.seed)]
            words += ["--library", str(build(Path(home)))]
            return subprocess.run(
                [sys.executable, *words], env=environment(), check=False
            ).returncode
    if options.library is not None:
        load(options.library)
    if accelerator.scan is None:
        print("there is no compiled scanner", file=sys.stderr)
        return 2
    given_up = compare(options.pages, options.seed)
    print(f"{options.pages:,} pages are read alike; {given_up:,} others were given up")
    return 0


if __name__ == "__main__":
    sys.exit(main())
