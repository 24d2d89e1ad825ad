"""The commands about a crawl that several processes share, but the worker itself."""

from __future__ import annotations

from collections.abc import Callable

import click

from trio_crawler.cli.command import SHORT, Command
from trio_crawler.cli.shared_options import Shared

_ABOUT = {
    "status": "Show how far a crawl is that workers share, and who they are.",
    "stop": "Let all workers of a shared crawl end, after the requests in flight.",
    "drop": "Remove a shared crawl from its store, when its workers have left.",
}


def parameters_of_store() -> list[click.Parameter]:
    """Return the parameters that name a shared crawl."""
    told = "The name of the crawl: workers with the same STORE and NAME share one."
    return [
        click.Argument(["store"], metavar="STORE"),
        click.Option(["--crawl"], metavar="NAME", required=True, help=told),
    ]


def _asking(name: str) -> Callable[..., int]:
    def run(store: str, crawl: str, *, as_json: bool = False) -> int:
        # Trio is imported only now.
        from trio_crawler.cli import worker

        return worker.asked(name, Shared(store, crawl), as_json=as_json)

    return run


def _merge(directories: tuple[str, ...], output: str) -> int:
    """Join the directories (-o) of the workers of a shared crawl in one, for its report.

    'report' then prints the report of the whole crawl, and writes its files.
    """
    from trio_crawler.cli.worker import merged

    return merged(directories, output)


COMMANDS: dict[str, click.Command] = {
    name: Command(
        name,
        params=parameters_of_store(),
        callback=_asking(name),
        help=told,
        context_settings=SHORT,
    )
    for name, told in _ABOUT.items()
}
COMMANDS["status"].params.append(
    click.Option(["--json", "as_json"], is_flag=True, help="Print one line of JSON, for programs.")
)
COMMANDS["merge"] = Command(
    "merge",
    params=[
        click.Argument(["directories"], metavar="DIR...", nargs=-1, required=True),
        click.Option(
            ["-o", "--output", "output"],
            metavar="DIR",
            required=True,
            help="Make the joined directory here; there must be no crawl yet.",
        ),
    ],
    callback=_merge,
    help=_merge.__doc__,
    context_settings=SHORT,
)
