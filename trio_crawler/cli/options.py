"""The command line: what may be said, what it means, and one clear line when it is wrong."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from trio_crawler._version import __version__
from trio_crawler.cli import values
from trio_crawler.cli.grouped import Grouped

WRONG_USAGE = 2
NORMAL = 2
"""The level of talk between `-q` (0) and `-v` (3), as the chapter's crawler counts it."""

_HEADINGS = {
    "strict": "What is crawled",
    "depth": "How far",
    "max_tries": "How",
    "user_agent": "What is sent",
    "insecure_host": "By which way",
    "jsonl": "What is shown",
}

_EPILOG = """\
\b
Example:
  python -m trio_crawler --exclude '/old/' --jsonl pages.jsonl docs.example.org

\b
Exit status:
  0    every page is well
  1    broken links or failures were found, or a file could not be written
  2    wrong usage
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
    user_agent: str | None
    header: tuple[tuple[str, str], ...] = field(repr=False)
    auth: tuple[str, str] | None = field(repr=False)
    cookie: tuple[str, ...] = field(repr=False)
    cookies: bool
    insecure_host: tuple[str, ...]
    allow_private: tuple[str, ...]
    http2: bool
    proxy: str | None = field(repr=False)
    trust_env: bool
    jsonl: str | None
    why: bool
    level: int


def main() -> NoReturn:
    """Run the command and exit with its status."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A title that the locale has no bytes for is written as escapes, as stderr has it.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.exit(command.main(standalone_mode=False))
    except click.ClickException as error:
        print(f"trio-crawler: {error.format_message()}", file=sys.stderr)
        sys.exit(WRONG_USAGE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)


def _level(context: click.Context, parameter: click.Parameter, talk: Any) -> int:
    # As in the chapter's crawler the order counts: -q falls to 0, each -v adds one.
    level = NORMAL
    for word in talk or ():
        level = 0 if word == "quiet" else min(level + 1, 3)
    return level


_count = click.IntRange(min=0)
_some = click.IntRange(min=1)
_seconds = click.FloatRange(min=0, min_open=True)


@click.command(
    name="trio-crawler",
    cls=Grouped,
    headings=_HEADINGS,
    epilog=_EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 96,
        # The chapter's options are spelled with underscores: both are understood.
        "token_normalize_func": lambda token: token.replace("_", "-"),
    },
)
@click.argument("urls", nargs=-1, metavar="URL...", callback=values.urls)
@click.option(
    "--strict/--lenient",
    default=True,
    help="Stay on the host of a URL, with or "
    "without www. (strict, the default), or on its registrable domain (lenient).",
)
@click.option(
    "--include",
    metavar="REGEX",
    multiple=True,
    help="Follow only URLs in which REGEX is found. Repeatable: one must be found.",
)
@click.option(
    "--exclude",
    metavar="REGEX",
    multiple=True,
    help="Do not follow URLs in which REGEX is found. Repeatable.",
)
@click.option(
    "--under",
    metavar="PREFIX",
    multiple=True,
    callback=values.prefixes,
    help="Follow only URLs that begin with "
    "PREFIX: a URL, or a path on the hosts given. Repeatable.",
)
@click.option("--depth", metavar="N", type=_count, help="Follow links at most N deep.")
@click.option("--max-pages", metavar="N", type=_some, help="Fetch at most N pages.")
@click.option(
    "--max-time",
    metavar="SECONDS",
    type=_seconds,
    help="Start nothing more after so many seconds; end 5 seconds later at the latest.",
)
@click.option(
    "--max-redirect",
    metavar="N",
    type=_count,
    default=10,
    show_default=True,
    help="Follow at most N redirects in a row.",
)
@click.option(
    "--max-tries",
    metavar="N",
    type=_some,
    default=4,
    show_default=True,
    help="Try a URL at most N times when the network fails or the server is busy.",
)
@click.option(
    "--max-tasks",
    metavar="N",
    type=_some,
    default=10,
    show_default=True,
    help="Fetch at most N URLs at the same time.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=_seconds,
    default=30.0,
    show_default=True,
    help="Give up on one try of one URL after so many seconds, all in all.",
)
@click.option("--user-agent", metavar="TEXT", help="Say TEXT as the User-Agent.")
@click.option(
    "--header",
    metavar="'NAME: VALUE'",
    multiple=True,
    callback=values.headers,
    help="Send this header to the scheme, host and port of the given URLs, and to no "
    "other. Repeatable.",
)
@click.option(
    "--auth",
    metavar="USER:PASSWORD",
    callback=values.credentials,
    help="Log in by HTTP Basic authentication, to the same ones only.",
)
@click.option(
    "--cookie",
    metavar="'NAME=VALUE'",
    multiple=True,
    callback=values.cookies,
    help="Send this cookie to the same ones only. Repeatable.",
)
@click.option("--cookies", is_flag=True, help="Keep the cookies of each host and send them back.")
@click.option(
    "--insecure-host",
    metavar="HOST",
    multiple=True,
    callback=values.hosts,
    help="Do not verify the certificate of HOST. Repeatable.",
)
@click.option(
    "--allow-private",
    metavar="CIDR",
    multiple=True,
    help="Connect also to these private addresses, such as 10.0.0.0/8. Repeatable.",
)
@click.option("--http2", is_flag=True, help="Speak HTTP/2 with servers that know it.")
@click.option(
    "--proxy",
    metavar="URL",
    callback=values.proxy,
    help="Go through this proxy: http, https or socks5.",
)
@click.option(
    "--trust-env", is_flag=True, help="Go through the proxies of HTTP_PROXY, NO_PROXY, etc."
)
@click.option(
    "--jsonl",
    metavar="FILE",
    help="Write every outcome as a line of JSON to FILE; "
    "'-' is standard output, the report then goes to standard error.",
)
@click.option("--why", is_flag=True, help="List every URL that was refused, with the reason.")
@click.option(
    "-v",
    "--verbose",
    "talk",
    flag_value="verbose",
    multiple=True,
    expose_value=False,
    help="Show each URL as it ends, and the whole lists in the report.",
)
@click.option(
    "-q",
    "--quiet",
    "talk",
    flag_value="quiet",
    multiple=True,
    callback=_level,
    help="Show no live line.",
)
@click.version_option(__version__, prog_name="trio_crawler", message="%(prog)s %(version)s")
def command(talk: int, urls: tuple[str, ...], **said: Any) -> int:
    """Crawl from each URL through every page of its site and report what is broken.

    A URL without a scheme gets http://.
    """
    if not urls:
        raise click.UsageError("name at least one URL to crawl, or ask for --help")
    # Trio, httpx and the parsers are imported only now: --help needs none of them.
    from trio_crawler.cli.run import run

    return run(Options(urls=urls, level=talk, **said))
