"""The end of a command: its errors, each in one line, and its exit status."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import declared
from trio_crawler.cli.signals import SIGNALS, Interrupted, name_of

if TYPE_CHECKING:
    from trio_crawler import StoreError

FAULT, WRONG_USAGE, NOTHING = 1, 2, 3
# A command that a signal ended exits with 128 and the signal's number: SIGINT has 2, SIGPIPE 13.
INTERRUPTED, CLOSED_PIPE = 128 + 2, 128 + 13


def tell(line: str) -> None:
    """Print a line to standard error; on a full disk it is lost, and the crawl goes on.

    Raises BrokenPipeError when the reader has left.
    """
    try:
        with SIGNALS.writing(2):
            # A URL in it may be a command to the runner of a CI: see `report.visible`.
            print(line.replace("##", "#\\x23"), file=sys.stderr, flush=True)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise


def complain(sentence: str) -> None:
    """Print an error in one line."""
    tell(f"trio-crawler: {sentence}")


def colored(when: str, stream: TextIO) -> bool:
    """Whether to use colours on a stream, by the value of --color.

    "auto" stands for a terminal that is not dumb, unless NO_COLOR is set and not empty
    (https://no-color.org). Variables that force colours, which build servers set, do not count.
    """
    if when != "auto":
        return when == "always"
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not refused and stream.isatty()


def guarded(work: Callable[[], int]) -> int:
    """Do the work of a command and return its exit status.

    If the reader of the output has left, end silently. If a crawl directory cannot be used, print
    the reason in one line. From now on signals are noted, and the work itself ends early.
    """
    SIGNALS.note()
    # Only now: --help needs neither of them.
    import ctypes

    from trio_crawler import StoreError

    # glibc keeps what each thread has freed for that thread: 60 MiB in a flood of links. This is
    # M_ARENA_MAX of <malloc.h>; other systems have no `mallopt`.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(-8, 1)
    # The modules are here to stay: no collection looks at them.
    gc.freeze()
    # ▶ With 1,000 tasks the collector takes 6 % of a crawl at Python's own threshold of 700, and
    # 3 % of a check at 10,000. It finds nothing: neither a page nor a failure leaves a cycle.
    gc.set_threshold(100_000)
    gc.enable()
    status = CLOSED_PIPE
    try:
        status = work()
    except* BrokenPipeError:
        # The reader of our output has left, as `head` does: end without a word.
        discard_output()
    except* StoreError as group:
        status = refused(first(group))
    except* Interrupted:
        complain(f"stopped by {name_of(SIGNALS.first)}")
    return status


def discard_output() -> None:
    """Keep Python from complaining when it flushes standard output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def first(group: BaseExceptionGroup[StoreError]) -> StoreError:
    """Return the first of the errors in a group."""
    error = group.exceptions[0]
    return first(error) if isinstance(error, BaseExceptionGroup) else error


def refused(error: StoreError) -> int:
    """Print why a directory cannot be used, and return the exit status."""
    from trio_crawler.store import DifferentCrawl, InUse, Unusable

    # With the options as they are typed.
    flags = {each.key: each.flag for _, each in declared(CrawlOptions)}
    complain(error.named(flags) if isinstance(error, DifferentCrawl) else str(error))
    return WRONG_USAGE if isinstance(error, DifferentCrawl | InUse | Unusable) else FAULT
