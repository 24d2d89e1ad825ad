"""Measure for how long the event loop is held, and say by whom.

    python tests/bench/held.py [CASE ...] [--root DIRECTORY] [--workers 10] [--over 20]

Needs `pip install -e .`. Each case runs in a process of its own: crawls of a ROOT in memory and in
a directory, large pages, a page of 100,000 links, a sitemap of 50,000 URLs, 100,000 seeds. Trio
calls us before and after each step of a task, which nothing can interrupt: the CPU that the thread
takes meanwhile is the hold, whatever else runs on the machine. A pass of the garbage collector is
counted apart, as `gc`. A step is shown with the name of its task, and with the functions of ours
that were running in it, by samples. A step with CPU in one sample only was nearly always one call
into C. `lock` is the longest time that a step took without CPU: another thread kept the lock of
the interpreter, for one expression over a large text, or the machine was busy.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import httpx
import trio
from measure import serving

from trio_crawler import (
    Checks,
    Crawler,
    Frontier,
    Limits,
    MemoryFrontier,
    Politeness,
    Response,
    SqliteFrontier,
    Traps,
)
from trio_crawler.page import has_accelerator
from trio_crawler.testing import Site, Web, html

SITE = "http://site.test/"
OURS = str(Path(__file__).resolve().parents[2] / "trio_crawler")
SAMPLED = 0.002
"""Seconds between two looks at a step that takes long."""


class Steps(trio.abc.Instrument):
    """Note the CPU of each step of each task; `longest` has those over a bound, in seconds."""

    def __init__(self, over: float) -> None:
        self.over = over
        self.longest: list[tuple[float, str, str]] = []
        self.collections: list[float] = []
        self.cpu = self.lock = 0.0
        self.count = 0
        self._thread = threading.get_ident()
        self._seen: Counter[str] = Counter()
        # The step in which this is made counts from here on.
        self._began: tuple[float, float] | None = time.perf_counter(), time.thread_time()
        self._collected = self._collecting = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note when a step begins."""
        self._seen, self._collected = Counter(), 0.0
        self._began = time.perf_counter(), time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note what the step took."""
        assert self._began is not None
        wall, cpu = self._began
        self._began = None
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        self.count += 1
        self.cpu = max(self.cpu, cpu - self._collected)
        self.lock = max(self.lock, wall - cpu)
        if cpu - self._collected > self.over:
            places = ", ".join(f"{place} {count}" for place, count in self._seen.most_common(3))
            self.longest.append((cpu - self._collected, task.name.rpartition(".")[2], places))

    def collect(self, phase: str, _: dict[str, int]) -> None:
        """Note what a pass of the garbage collector takes of this thread."""
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            taken = time.thread_time() - self._collecting
            self._collected += taken
            self.collections.append(taken)

    def sample(self, ended: threading.Event) -> None:
        """Count the functions that run in a step that takes long; for a thread of its own."""
        while not ended.wait(SAMPLED):
            began = self._began
            if began is not None and time.perf_counter() - began[0] > self.over / 2:
                frame = sys._current_frames().get(self._thread)
                if frame is not None and (place := _place(frame)):
                    self._seen[place] += 1

    def told(self) -> str:
        """Return what held the loop, one line for each kind of step."""
        kinds: dict[tuple[str, str], list[float]] = {}
        for taken, task, places in sorted(self.longest, reverse=True):
            kinds.setdefault((task, places.split(" ")[0]), []).append(taken)
        lines = [
            f"    {1000 * taken[0]:.0f} ms, {len(taken)} of them over: {task}, in {place or '?'}"
            for (task, place), taken in list(kinds.items())[:6]
        ]
        collected = max(self.collections, default=0.0)
        said = f"{1000 * self.cpu:6.1f} ms   gc {1000 * collected:5.1f}   "
        said += f"lock {1000 * self.lock:5.1f}   {len(self.longest)} of {self.count:,} steps over"
        return "\n".join([said, *lines])


def _place(frame: FrameType | None) -> str:
    """Return the innermost function of ours that runs, and its caller if that is ours, too."""
    names = []
    while frame is not None and len(names) < 2:
        code = frame.f_code
        if code.co_filename.startswith(OURS):
            names.append(f"{Path(code.co_filename).stem}.{code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return "<".join(names)


@contextmanager
def watched(over: float) -> Iterator[Steps]:
    """Watch the steps of the tasks in the block; it must be in a task."""
    steps, ended = Steps(over), threading.Event()
    sampler = threading.Thread(target=steps.sample, args=[ended])
    sampler.start()
    gc.callbacks.append(steps.collect)
    trio.lowlevel.add_instrument(steps)
    try:
        yield steps
    finally:
        trio.lowlevel.remove_instrument(steps)
        gc.callbacks.remove(steps.collect)
        ended.set()
        sampler.join()


def page(body: str, media: str = "text/html") -> Response:
    """Return an answer with a body."""
    return Response(200, httpx.Headers({"content-type": media}), body.encode())


def large(links: int, room: int, where: str = "", same: int = 1) -> str:
    """Return the markup of a page with so many links, in so many characters for each."""
    link = '<li class="toctree"><a class="reference internal" href="{}{}">text {}</a></li>\n'
    made = (link.format(where, number // same, number) for number in range(links))
    return "<!doctype html><title>Large</title>\n" + "".join(each.ljust(room) for each in made)


OPEN = Traps.off()
FEW = Limits(max_pages=5, max_seconds=3)
Run = Callable[[Frontier], Awaitable[object]]


def pages(**how: object) -> Run:
    """Crawl pages of 1, 3 and 10 MiB, whose links lead outside or are known."""
    sizes = {"/1": 10_000, "/3": 30_000, "/10": 100_000}
    site: Site = {"/": html(*sizes, *(f"/{number}x" for number in range(3)))} | {
        path: page(large(links, 104, "http://other.test/")) for path, links in sizes.items()
    }
    more: Site = {
        "/0x": page(large(200_000, 52, "#")),
        "/1x": page(large(100_000, 104, "/", same=50_000)),
        "/2x": page("<p>" + "text without tags\n" * 600_000),
    }
    return lambda frontier: crawl(
        Web({**site, **more}), frontier, limits=Limits(max_pages=7, max_seconds=5), **how
    )


def crawl(web: Web, frontier: Frontier, **how: object) -> Awaitable[object]:
    """Crawl from the first page."""
    return Crawler([web.url], fetch=web, frontier=frontier, **how).crawl()  # type: ignore[arg-type]


def inside(**how: object) -> Run:
    """Crawl a page of 100,000 links that are all admitted, and then end."""
    web = Web({"/": page(large(100_000, 80, "/p"))})
    return lambda frontier: crawl(web, frontier, limits=FEW, **how)


def outside(**how: object) -> Run:
    """Crawl a page of 100,000 links that are all rejected."""
    web = Web({"/": page(large(100_000, 80, "http://other.test/p"))})
    return lambda frontier: crawl(web, frontier, limits=FEW, **how)


def sitemap() -> Run:
    """Crawl a site with a sitemap of 50,000 URLs."""
    listed = "".join(f"<url><loc>{SITE}p{number}</loc></url>\n" for number in range(50_000))
    web = Web(
        {
            "/": html(),
            "/robots.txt": page(f"Sitemap: {SITE}map.xml", "text/plain"),
            "/map.xml": page(f"<urlset>{listed}</urlset>", "text/xml"),
        }
    )
    return lambda frontier: crawl(web, frontier, limits=FEW)


def seeds() -> Run:
    """Crawl from 100,000 seeds of 100 hosts; a crawler is made before the crawl."""
    each = [f"http://h{number % 100}.test/{number}" for number in range(100_000)]
    web = Web({}, url=each[0])

    async def run(frontier: Frontier) -> None:
        crawler = Crawler(each, fetch=web, frontier=frontier, limits=Limits(max_seconds=3))
        await trio.lowlevel.checkpoint()
        await crawler.crawl()

    return run


async def stream(count: int) -> AsyncIterator[str]:
    """Yield so many seeds."""
    for number in range(count):
        yield f"http://h{number % 100}.test/{number}"


def streamed(frontier: Frontier) -> Awaitable[object]:
    """Crawl from a stream of 20,000 seeds."""
    limits = Limits(max_seconds=3)
    crawler = Crawler(
        [], seed_stream=stream(20_000), fetch=Web({}), frontier=frontier, limits=limits
    )
    return crawler.crawl()


def root(url: str, workers: int) -> Run:
    """Crawl a directory over HTTP."""
    polite = Politeness(per_host=workers, nofollow=False)

    async def run(frontier: Frontier) -> None:
        await Crawler([url], workers=workers, politeness=polite, frontier=frontier).crawl()

    return run


CASES: dict[str, Callable[[], Run]] = {
    "pages": pages,
    "pages-checks": lambda: pages(checks=Checks(external=True)),
    "pages-anchors": lambda: pages(anchors=True),
    "inside": inside,
    "inside-no-traps": lambda: inside(traps=OPEN),
    "outside": outside,
    "outside-anchors": lambda: outside(anchors=True),
    "outside-checks": lambda: outside(checks=Checks(external=True)),
    "sitemap": sitemap,
    "seeds": seeds,
    "streamed": lambda: streamed,
}
PLACES = ("memory", "lasting", "resumed")


async def measured(run: Run, place: str, over: float) -> None:
    """Run a case, and print what held the loop."""
    if place == "memory":
        with watched(over) as steps:
            await run(MemoryFrontier())
    else:
        with tempfile.TemporaryDirectory() as directory:
            if place == "resumed":
                async with SqliteFrontier(directory) as before:
                    await run(before)
            with watched(over) as steps:
                async with SqliteFrontier(directory) as lasting:
                    await run(lasting)
    print(steps.told(), flush=True)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all: root " + " ".join(CASES))
    parser.add_argument("--root", default="/usr/share/doc/linux-doc-6.1/html")
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--over", type=float, default=20, help="milliseconds that are too long")
    parser.add_argument("--places", nargs="+", default=PLACES, choices=PLACES)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := set(asked.cases) - {"root", *CASES}:
        parser.error(f"there is no case {min(unknown)}")
    if asked.child:
        name = asked.cases[0]
        run = root(asked.url, asked.workers) if name == "root" else CASES[name]()
        trio.run(measured, run, asked.places[0], asked.over / 1000)
        return
    print("with" if has_accelerator() else "without", "the compiled scanner", flush=True)
    for name in asked.cases or ["root", *CASES]:
        for place in asked.places:
            if name == "root":
                with serving(Path(asked.root)) as (_, url):
                    _in_child(asked, name, place, "--url", url)
            else:
                _in_child(asked, name, place)


def _in_child(asked: argparse.Namespace, name: str, place: str, *more: str) -> None:
    print(f"{name:16} {place:8}", end="", flush=True)
    command = [sys.executable, __file__, name, "--child", "--places", place, *more]
    command += ["--over", str(asked.over), "--workers", str(asked.workers)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
