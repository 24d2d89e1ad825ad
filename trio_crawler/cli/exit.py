"""The end of a command: print its report and its errors, and return the exit status."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from trio_crawler import StoreError
from trio_crawler.cli.declaration import declared, requested
from trio_crawler.cli.files import STANDARD_OUTPUT
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.signals import SIGNALS, Interrupted, name_of
from trio_crawler.store import DifferentCrawl, InUse, Unusable

if TYPE_CHECKING:
    # Both import Trio and the parsers, which --help does not need.
    from trio_crawler.cli.checking import Check
    from trio_crawler.cli.exports import Export
    from trio_crawler.cli.html import HtmlFile
    from trio_crawler.cli.shared_options import ReportOptions
    from trio_crawler.report import CrawlFacts, Report

FAULT, WRONG_USAGE, NOTHING = 1, 2, 3
# A command that a signal ended exits with 128 and the signal's number. Windows has no SIGPIPE.
INTERRUPTED = 128 + signal.SIGINT
CLOSED_PIPE = 128 + getattr(signal, "SIGPIPE", 13)


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
    # The modules are here to stay: no collection looks at them.
    gc.freeze()
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


def finish(
    report: Report,
    check: Check | None,
    html: HtmlFile | None,
    facts: Callable[[], CrawlFacts],
    exports: Sequence[Export],
    options: CrawlOptions | ReportOptions,
    *,
    owner: bool,
    ended: str,
    textless: int,
    more: Sequence[str] = (),
) -> int:
    """Print what a crawl or a directory has to say, and return the exit status.

    That is its report, unless it is a check by the `owner` of the site; its findings, if there is
    a `check`, which writes its files and tells why it `ended` early; and `more` parts. `html` is
    written after that. A complaint is about the `textless` pages, whose links are written without
    their texts.
    """
    # Imported late: `report` imports what --help does not need.
    from trio_crawler.report import attempted

    if textless and options.links is not None:
        noun = "1 page" if textless == 1 else f"{textless:,} pages"
        complain(
            f"--links {options.links}: the links of {noun} have no texts, which a directory "
            "keeps only if it is crawled with --links from the beginning"
        )
    piped = any(path == STANDARD_OUTPUT for path, _ in requested(options).values())
    color = colored(options.color, sys.stderr if piped else sys.stdout)
    parts, faults = list[str](), list[Exception]()
    if check is None or not owner:
        parts += attempted(lambda: [report.text(facts(), color=color, errors=faults)], faults)
    if check is not None:
        parts.append(check.finish(ended, lambda: facts().sitemaps, color=color))
        faults += check.faults
        if owner:
            shown = check.shown
            parts.append("\n".join(attempted(lambda: report.notes(facts(), shown), faults)))
            parts.append("\n".join(attempted(lambda: report.hints(facts()), faults)))
    if html is not None:
        parts += attempted(lambda: html.write(report, facts(), check), faults)
    for fault in faults:
        if isinstance(fault, StoreError):
            # A directory that is damaged is no bug: `guarded` says so in one line.
            raise fault
    text = "\n\n".join(filter(None, (*parts, *more)))
    failed, errors = (None, {}) if check is None else (check.failed, check.errors)
    if html is not None and html.error is not None:
        errors = {**errors, html.path: html.error}
    return close(report, text, exports, failed=failed, errors=errors, faults=faults, piped=piped)


def close(
    report: Report,
    text: str,
    exports: Sequence[Export],
    *,
    failed: bool | None = None,
    errors: Mapping[str, OSError] | None = None,
    faults: Sequence[Exception] = (),
    piped: bool = False,
) -> int:
    """Print the report, complain of files, and return the exit status.

    `failed` says whether the crawl has found a problem; None stands for those of the report.
    `errors` are those of other files. `faults` are bugs of this program, which the report tells in
    place of some of its parts: their tracebacks go to standard error. If a file is written
    to standard output (`piped`), the report goes to standard error. Raises BrokenPipeError when a
    reader has left.
    """
    unwritten = {export.path: export.error for export in exports if export.error}
    unwritten |= errors or {}
    if gone := [each for each in unwritten.values() if isinstance(each, BrokenPipeError)]:
        raise gone[0]
    for path, error in unwritten.items():
        complain(f"cannot write {path}: {error.strerror}")
    printed = True
    with SIGNALS.writing(2 if piped else 1):
        try:
            print(text, file=sys.stderr if piped else sys.stdout, flush=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            complain(f"cannot write the report: {error.strerror}")
            discard_output()
            printed = False
    for fault in faults:
        tell("".join(traceback.format_exception(fault)).rstrip())
    if faults:
        return FAULT
    if report.no_pages or report.turned_away:
        return NOTHING
    whole = printed and all(export.whole for export in exports)
    problems = bool(report.problems) if failed is None else failed
    return FAULT if problems or unwritten or not whole else 0


def discard_output() -> None:
    """Keep Python from complaining when it flushes standard output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def first(group: BaseExceptionGroup[StoreError]) -> StoreError:
    """Return the first of the errors in a group."""
    error = group.exceptions[0]
    return first(error) if isinstance(error, BaseExceptionGroup) else error


def refused(error: StoreError) -> int:
    """Print why a directory cannot be used, and return the exit status."""
    # With the options as they are typed.
    flags = {each.key: each.flag for _, each in declared(CrawlOptions)}
    complain(error.named(flags) if isinstance(error, DifferentCrawl) else str(error))
    return WRONG_USAGE if isinstance(error, DifferentCrawl | InUse | Unusable) else FAULT
