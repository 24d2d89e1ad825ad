"""Closing: the report is printed, what went wrong is said, and the exit status follows."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from trio_crawler import StoreError
from trio_crawler.cli.exports import Export
from trio_crawler.cli.main import WRONG_USAGE
from trio_crawler.cli.outputs import STANDARD_OUTPUT
from trio_crawler.cli.told import tell
from trio_crawler.report import Report
from trio_crawler.store import DifferentCrawl, InUse

CLOSED_PIPE = 128 + signal.SIGPIPE
_FAULT, _NOTHING = 1, 3


def guarded(work: Callable[[], int]) -> int:
    """Do the work of a command and return its exit status, also when its reader leaves.

    A crawl directory that cannot be used is told in one line.
    """
    status = CLOSED_PIPE
    try:
        status = work()
    except* BrokenPipeError:
        # The reader of our output has left, as `head` does: end without a word.
        discard_output()
    except* StoreError as group:
        status = _refused(_first(group))
    return status


def discard_output() -> None:
    """Have Python not complain when it flushes standard output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(sentence: str) -> None:
    """Say in one line what went wrong."""
    tell(f"trio-crawler: {sentence}")


def close(report: Report, text: str, exports: Sequence[Export], stopped: int = 0) -> int:
    """Print the report, complain of files, and return the exit status.

    `stopped` is the number of the signal that ended a crawl. Raises BrokenPipeError when a reader
    has left.
    """
    errors = {export.path: export.error for export in exports if export.error}
    for error in errors.values():
        if isinstance(error, BrokenPipeError):
            raise error
    for path, error in errors.items():
        complain(f"cannot write {path}: {error.strerror}")
    piped = any(export.path == STANDARD_OUTPUT for export in exports)
    printed = _printed(text, sys.stderr if piped else sys.stdout)
    if stopped:
        return 128 + stopped
    if report.no_pages:
        return _NOTHING
    whole = printed and all(export.whole for export in exports)
    return _FAULT if report.problems or errors or not whole else 0


def _printed(text: str, output: TextIO) -> bool:
    try:
        print(text, file=output, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"cannot write the report: {error.strerror}")
        discard_output()
        return False
    return True


def _first(group: BaseExceptionGroup[StoreError]) -> StoreError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _refused(error: StoreError) -> int:
    complain(str(error))
    return WRONG_USAGE if isinstance(error, DifferentCrawl | InUse) else _FAULT
