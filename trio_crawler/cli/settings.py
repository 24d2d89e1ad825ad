"""Settings: what a crawl directory keeps of the options, and what is made of that again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trio_crawler import Politeness, __version__
from trio_crawler.cli.main import Options

if TYPE_CHECKING:
    from trio_crawler.cli.build import Plan

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


def meaning(options: Options, plan: Plan) -> dict[str, Any]:
    """Tell what the crawl is about: with another meaning it would be another crawl."""
    said = {name: getattr(options, name) for name in _MEANT}
    lists = {name: sorted(getattr(options, name)) for name in _MEANT_IN_ANY_ORDER}
    return {"urls": sorted(plan.seeds), **said, **lists}


def settings(options: Options, plan: Plan, directory: str) -> dict[str, Any]:
    """Tell how the crawl is run, for readers; nothing that may be a secret is among it."""
    return {
        "version": __version__,
        "seeds": list(plan.seeds),
        "workers": options.max_tasks,
        "insecure_hosts": list(plan.insecure_hosts),
        "warc": place(options.warc, directory),
        **{name: getattr(options, name) for name in _SET},
    }


def politeness_of(settings: Mapping[str, Any]) -> Politeness | None:
    """Make out how gentle a crawl of the command was; None for a crawl of another program."""
    if "per_host" not in settings:
        return None
    return Politeness(
        per_host=settings["per_host"],
        delay=settings["delay"],
        adaptive=settings["adaptive"],
        patience=settings["patience"],
        robots=not settings["ignore_robots"],
        nofollow=not settings["ignore_nofollow"],
    )


def place(path: str | None, directory: str | os.PathLike[str]) -> str | None:
    """Give the path from the directory on: both may be moved together."""
    if path is None:
        return None
    return os.path.relpath(os.path.realpath(path), os.path.realpath(directory))
