"""The command line: what may be said, what it means, and one clear line when it is wrong."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from trio_crawler._version import __version__
from trio_crawler.cli import parsing as values
from trio_crawler.cli.grouped import Grouped
from trio_crawler.cli.options import HEADINGS, declared
from trio_crawler.cli.outputs import check
from trio_crawler.cli.told import tell

WRONG_USAGE = 2
_EPILOG = """\
\b
Examples:
  python -m trio_crawler --exclude '/old/' --jsonl pages.jsonl docs.example.org
  python -m trio_crawler -o docs --warc docs.warc.gz docs.example.org
  python -m trio_crawler report docs --csv docs.csv    (without the network; --help tells more)

\b
Exit status:
  0    every page is well
  1    broken links or failures were found, a host was given up, or a file or DIR could not be
       read or written
  2    wrong usage, a FILE that cannot be made, or another crawl has it or DIR
  3    nothing could be fetched
  130  ended by Ctrl-C (143 by SIGTERM)

The report goes to standard output, the live line to standard error.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """Hold what was said on the command line, checked; passwords are not in its repr."""

    urls: tuple[str, ...]
    max_redirect: int
    max_tries: int
    max_tasks: int
    depth: int | None
    max_pages: int | None
    max_time: float | None
    timeout: float
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    under: tuple[str, ...]
    strict: bool
    sitemap: tuple[str, ...]
    no_sitemaps: bool
    canonical: bool
    ignore_robots: bool
    ignore_nofollow: bool
    no_traps: bool
    per_host: int
    delay: float
    adaptive: bool
    patience: float
    order: str
    user_agent: str | None
    contact: str | None
    header: tuple[tuple[str, str], ...] = field(repr=False)
    auth: tuple[str, str] | None = field(repr=False)
    cookie: tuple[str, ...] = field(repr=False)
    cookies: bool
    insecure_host: tuple[str, ...]
    allow_private: tuple[str, ...]
    http2: bool
    proxy: str | None = field(repr=False)
    trust_env: bool
    output: str | None
    refresh: bool
    jsonl: str | None
    csv: str | None
    links: str | None
    sitemap_xml: str | None
    warc: str | None
    why: bool
    level: int


def main() -> NoReturn:
    """Run the command and exit with its status."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A title that the locale has no bytes for is written as escapes, as stderr has it.
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is None:
        # Closed, as with 2>&-. To print, None would mean standard output.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the end of the process
    try:
        sys.exit(_chosen(sys.argv[1:]))
    except click.ClickException as error:
        tell(f"trio-crawler: {error.format_message()}")
        sys.exit(WRONG_USAGE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)


def _chosen(words: list[str]) -> int:
    # A host of this name is written http://report/.
    if words[:1] == ["report"]:
        from trio_crawler.cli.retold import retold

        return int(retold.main(words[1:], "trio-crawler report", standalone_mode=False))
    return int(command.main(words, standalone_mode=False))


CONTEXT: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 96,
    # The chapter's options are spelled with underscores: both are understood.
    "token_normalize_func": lambda token: token.replace("_", "-"),
}


@click.command(
    name="trio-crawler",
    cls=Grouped,
    headings=HEADINGS,
    epilog=_EPILOG,
    context_settings=CONTEXT,
)
@click.argument("urls", nargs=-1, metavar="URL...", callback=values.urls)
@declared
@click.version_option(__version__, prog_name="trio_crawler", message="%(prog)s %(version)s")
def command(talk: int, urls: tuple[str, ...], **said: Any) -> int:
    """Crawl from each URL through every page of its site and report what is broken.

    A URL without a scheme gets http://.
    """
    if not urls:
        raise click.UsageError("name at least one URL to crawl, or ask for --help")
    options = Options(urls=urls, level=talk, **said)
    check(options)
    # Trio, httpx and the parsers are imported only now: --help needs none of them.
    from trio_crawler.cli.crawl import run

    return run(options)
