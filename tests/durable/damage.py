"""Damage the database of a crawl, and see that whatever reads it says so in one line.

    python tests/durable/damage.py --flips 3000 --cells 1 --seed 1

A flip changes one to eight bytes anywhere in `crawl.sqlite`. With `--cells 1` each column of each
table gets, one after the other, what SQLite would store there and no crawl does. A reader may go
on with what it read, and it may end with one line; it may not end otherwise, or never.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import signal
import sqlite3
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import trio
from trio.testing import MockClock

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2])]

from durable.small import Small, at_once  # noqa: E402

from trio_crawler import History, StoreError  # noqa: E402
from trio_crawler.cli.main import report_command  # noqa: E402

NAME = "crawl.sqlite"
LONGEST = 20
"""Seconds after which a reader hangs."""

CELLS = (
    "NULL", "x''", "x'ff00'", "CAST(x'ff41' AS TEXT)", "''", "'['", "'[[1]]'", "'{}'", "'x'",
    "'http:'", "-1", "1e300", "9e999", "9223372036854775807", "7.5",
)  # fmt: skip

Harm = Callable[[Path], object]


class Fault(NamedTuple):
    """What a reader did that it may not do."""

    what: str
    harm: str
    reader: str
    text: str


def stopped(home: Path) -> None:
    """Make a crawl of two walks, of which the second waits for its next run."""
    finished(home)
    run(Small(home).run, 7, refresh=True)


def finished(home: Path) -> None:
    """Make a crawl of two walks that are over."""
    run(Small(home).run, None)
    run(Small(home).run, None, refresh=True)


BASES = {"stopped": stopped, "finished": finished}


def run(work: Any, *args: Any, **named: Any) -> None:
    """Run a crawl in virtual time."""

    async def main() -> None:
        await work(*args, **named)

    trio.run(main, clock=MockClock(autojump_threshold=0))


def resumed(home: Path) -> None:
    run(Small(home).run)


def refreshed(home: Path) -> None:
    run(Small(home).run, None, refresh=True)


def reported(home: Path) -> None:
    """Print the report and write all exports; raise what the command did not tell in one line."""
    words = [str(home / "crawl"), "--changes", "--why"]
    for flag in ("--csv", "--links", "--jsonl", "--sitemap-xml"):
        words += [flag, str(home / f"x{flag}")]
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        status = report_command.main(words, "report", standalone_mode=False)
    if told.getvalue():
        assert status in (1, 2), status
        raise StoreError(told.getvalue().removeprefix("trio-crawler: ").removesuffix("\n"))


def looked_at(home: Path) -> None:
    """Read all that a History has, of each walk."""
    with History(home / "crawl") as history:
        for walk in range(1, history.walks + 1):
            if walk > 9:
                break
            list(history.outcomes(walk))
            history.sitemaps(walk)
            history.statistics(walk)
            history.listing("http://site.test/orphan", walk)
        _ = history.runs, history.meaning, history.hosts(), list(history.changes())
        history.owns(home / "pages.jsonl")


READERS = {"resume": resumed, "refresh": refreshed, "report": reported, "History": looked_at}


def flips(base: Path, many: int, random: Random) -> Iterator[tuple[str, Harm]]:
    """Yield changes of bytes at random places."""
    size = (base / "crawl" / NAME).stat().st_size
    for _ in range(many):
        places = {random.randrange(size): random.randrange(1, 256) for _ in range(_many(random))}
        yield f"flips at {places}", lambda path, places=places: flip(path, places)  # type: ignore[misc]


def _many(random: Random) -> int:
    return 1 if random.random() < 0.6 else random.randint(2, 8)


def flip(path: Path, places: dict[int, int]) -> None:
    """Change bytes by an exclusive or."""
    data = bytearray(path.read_bytes())
    for place, mask in places.items():
        data[place] ^= mask
    path.write_bytes(data)


def cells(base: Path) -> Iterator[tuple[str, Harm]]:
    """Yield strange values for each column of each table: in one row, and in all rows."""
    with closing(sqlite3.connect(base / "crawl" / NAME)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        columns = [
            (table, column[1])
            for (table,) in tables
            for column in database.execute(f"PRAGMA table_info({table})")
        ]
    for table, column in columns:
        for value in CELLS:
            for where in (f"{column} = (SELECT max({column}) FROM {table})", "1"):
                sql = f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE {where}"
                yield sql, lambda path, sql=sql: execute(path, sql)  # type: ignore[misc]


def execute(path: Path, sql: str) -> None:
    """Run a statement; a value that a column refuses changes nothing."""
    database = sqlite3.connect(path)
    with closing(database), contextlib.suppress(sqlite3.Error), database:
        database.execute(sql)


def fault(reader: str, harm: str, home: Path) -> tuple[str, Fault | None]:
    """Let a reader read; return what it said, and what it may not do."""
    signal.alarm(LONGEST)
    try:
        READERS[reader](home)
    except BaseException as error:
        return _judged(error, reader, harm, home)
    finally:
        signal.alarm(0)
    return "fine", None


def _judged(error: BaseException, reader: str, harm: str, home: Path) -> tuple[str, Fault | None]:
    leaves = list(_leaves(error))
    texts = {str(leaf) for leaf in leaves}
    whole = "".join(traceback.format_exception(error))
    if not all(isinstance(leaf, StoreError) for leaf in leaves):
        return "other", Fault(repr(leaves[0])[:90], harm, reader, whole)
    text = min(texts)
    if len(texts) > 1 or not text.isprintable() or not text.startswith(str(home)):
        return "other", Fault("not one line that names the file", harm, reader, str(texts))
    return text.removeprefix(str(home)).split(" (")[0], None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _hangs(number: int, frame: object) -> None:
    raise TimeoutError("it hangs")


def damage(
    home: Path, many: int, random: Random, every: int = 0
) -> tuple[Counter[str], list[Fault]]:
    """Harm copies of two crawls in all these ways; return what was said, and what went wrong."""
    said: Counter[str] = Counter()
    found: list[Fault] = []
    before = signal.signal(signal.SIGALRM, _hangs)
    try:
        for name, make in BASES.items():
            base = home / name
            base.mkdir()
            make(base)
            harms = list(flips(base, many, random))
            if every:
                harms += random.sample(both := list(cells(base)), len(both) // every)
            for harm, do in harms:
                for reader in READERS:
                    copy = home / "copy"
                    shutil.rmtree(copy, ignore_errors=True)
                    shutil.copytree(base, copy)
                    do(copy / "crawl" / NAME)
                    text, wrong = fault(reader, f"{name}: {harm}", copy)
                    said[text] += 1
                    if wrong is not None:
                        found.append(wrong)
    finally:
        signal.signal(signal.SIGALRM, before)
    return said, found


def main(words: Sequence[str] | None = None) -> int:
    """Harm as asked for; return 0 if nothing was found wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=1_000)
    parser.add_argument("--cells", type=int, default=0, help="one of so many")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(words)
    trio.to_thread.run_sync = at_once  # type: ignore[assignment]
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as home:
        random = Random(asked.seed)
        said, found = damage(Path(home), asked.flips, random, every=asked.cells)
    for text, many in said.most_common():
        print(f"{many:7} {text}")
    kinds = Counter(f"{each.reader}: {each.what}" for each in found)
    shown: set[str] = set()
    for each in found:
        if each.what not in shown:
            shown.add(each.what)
            print(f"\n--- {each.reader}, {each.harm}\n{each.text[-2500:]}")
    for kind, many in kinds.most_common():
        print(f"{many:7} {kind}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
