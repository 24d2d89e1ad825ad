"""Keep: the crawl directory that -o names, and what is written together with it."""

from __future__ import annotations

import os
import stat
from typing import Any

import trio

from trio_crawler import (
    History,
    Outcome,
    Report,
    SqliteFrontier,
    Stream,
    __version__,
    line,
    report,
)
from trio_crawler.cli.clashes import STANDARD_OUTPUT
from trio_crawler.cli.options import Options
from trio_crawler.cli.prepare import Plan, insecure_hosts

_PORTION = 64
"""Stored outcomes between two checkpoints."""

_MEANT = (
    "strict",
    "no_sitemaps",
    "canonical",
    "depth",
    "max_redirect",
    "ignore_robots",
    "ignore_nofollow",
    "no_traps",
)
_MEANT_IN_ANY_ORDER = ("include", "exclude", "under", "sitemap")
_SET = (
    "max_tries",
    "max_pages",
    "max_time",
    "timeout",
    "per_host",
    "delay",
    "adaptive",
    "patience",
    "order",
    "ignore_robots",
    "ignore_nofollow",
)


class Keep:
    """Hold what lasts beyond this run: an open frontier, and the streams beside it.

    A new JSON Lines file begins with what earlier runs of the walk have settled. A new WARC file
    does not: bodies are not kept. Raises StoreError for a stream that cannot be written.
    """

    def __init__(
        self, frontier: SqliteFrontier, options: Options, warc: report.Warc | None
    ) -> None:
        self._frontier = frontier
        self._options = options
        self._streams: list[Stream] = []
        if options.jsonl is not None and is_plain(options.jsonl):
            self._streams.append(frontier.stream(options.jsonl, line, self._lines))
        self._warc = warc
        self._archive: Stream | None = None
        if options.warc is not None and warc is not None:
            parts = (warc.records, warc.head, warc.rest)
            self._archive = frontier.stream(options.warc, *parts)
            self._streams.append(self._archive)

    def _lines(self) -> bytes:
        # At once: what is written in part would not be new any more.
        return b"".join(map(line, self._frontier.outcomes()))

    async def recall(self, told: Report) -> None:
        """Tell what earlier runs of the walk have settled, and the archive what it holds."""
        for number, outcome in enumerate(self._frontier.outcomes()):
            if number % _PORTION == 0:
                await trio.lowlevel.checkpoint()
            told.add(outcome)
        if self._archive is not None and not self._archive.fresh:
            await trio.to_thread.run_sync(self._recall_archive)

    def _recall_archive(self) -> None:
        place = _place(self._options.warc, self._frontier.directory)
        with History(self._frontier.directory) as history:
            runs = [run for run in history.runs if run.walk == history.walks]
        # What a run without the archive has fetched is not in it.
        if self._warc is not None and all(run.settings.get("warc") == place for run in runs):
            self._warc.recall(self._frontier.bodies())

    def add(self, outcome: Outcome) -> None:
        """Write an outcome to the streams, once it is settled."""
        for stream in self._streams:
            stream.add(outcome)


def frontier_of(options: Options, plan: Plan) -> SqliteFrontier | None:
    """Make the frontier that keeps the crawl in a directory, if one is named."""
    if options.output is None:
        return None
    return SqliteFrontier(
        options.output,
        plan.limits,
        plan.politeness,
        order=plan.order,
        meaning=meaning(options, plan),
        refresh=options.refresh,
        settings=settings(options, plan),
    )


def meaning(options: Options, plan: Plan) -> dict[str, Any]:
    """Tell what the crawl is about: with another meaning it would be another crawl."""
    said = {name: getattr(options, name) for name in _MEANT}
    lists = {name: sorted(getattr(options, name)) for name in _MEANT_IN_ANY_ORDER}
    return {"urls": sorted(plan.seeds), **said, **lists}


def settings(options: Options, plan: Plan) -> dict[str, Any]:
    """Tell how the crawl is run, for readers; nothing that may be a secret is among it."""
    said = {name: getattr(options, name) for name in _SET}
    hosts = insecure_hosts(options)
    about = {"version": __version__, "seeds": list(plan.seeds), "workers": options.max_tasks}
    return {
        **about,
        "insecure_hosts": hosts,
        "warc": _place(options.warc, options.output or ""),
        **said,
    }


def _place(path: str | None, directory: str | os.PathLike[str]) -> str | None:
    """Give the path from the directory on: both may be moved together."""
    return (
        None
        if path is None
        else os.path.relpath(os.path.realpath(path), os.path.realpath(directory))
    )


def is_plain(path: str) -> bool:
    """Tell whether a file can be cut back, and so be a stream; a pipe and a device cannot."""
    if path == STANDARD_OUTPUT:
        return False
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
