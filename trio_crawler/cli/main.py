"""The two commands: the command line in, an exit status out, one line when something is wrong."""

from __future__ import annotations

import codecs
import gc
import os
import re
import sys
from io import TextIOWrapper
from typing import Any, NoReturn
from urllib.parse import quote

import click
from click.core import ParameterSource

from trio_crawler.cli.command import (
    COMMANDS,
    OF_FOLDERS,
    PARAMETERS,
    Command,
    parameters_of_store,
)
from trio_crawler.cli.exit import INTERRUPTED, WRONG_USAGE, complain, guarded
from trio_crawler.cli.files import PROCESSES, check_directory, check_files, check_list
from trio_crawler.cli.logins import asked
from trio_crawler.cli.options import CrawlOptions, refuse_contradictions
from trio_crawler.cli.parsing import Group, parameters, secret_flags, site
from trio_crawler.cli.secrets import hide_arguments
from trio_crawler.cli.shared_options import ReportOptions, Shared, refuse
from trio_crawler.cli.signals import SIGNALS, Interrupted, name_of

_CRAWL_EPILOG = """\
\b
Examples:
  python -m trio_crawler --exclude '/old/' --jsonl pages.jsonl docs.example.org
  python -m trio_crawler -o docs --warc docs.warc.gz docs.example.org
  python -m trio_crawler report docs --csv docs.csv    (no network)

\b
Secrets (other users of the machine can read the command line):
  The value of --auth, --cookie, --header and --proxy may be
  @FILE      the line of FILE, for --cookie and --header all its lines
  @-         the same from standard input; a terminal is asked for one line
  @env:NAME  the value of the variable NAME of the environment

\b
Exit status:
  0    all pages are fine
  1    a link is broken, a URL failed, a host was given up, a line of --urls is no URL, or a file
       or DIR could not be read or written
  2    the command line is wrong, a FILE cannot be created, or FILE or DIR is in use by another
       crawl
  3    nothing could be fetched
  130  ended by Ctrl-C (143: by SIGTERM, 129: by SIGHUP)

The report goes to standard output, the live line to standard error.
"""
_CHECK_EPILOG = """\
\b
Examples:
  python -m trio_crawler check https://docs.example.org/
  python -m trio_crawler check ./public --base-url https://docs.example.org/
  python -m trio_crawler check --junit links.xml --baseline known.jsonl docs.example.org

\b
Exit status:
  0    no link is broken
  1    a link is broken (see --fail-on), or a file could not be written
  2    the command line is wrong, or FILE or DIR cannot be used
  3    nothing could be fetched
  130  ended by Ctrl-C (143: by SIGTERM, 129: by SIGHUP)
"""
_REPORT_EPILOG = """\
\b
Example:
  python -m trio_crawler report docs --csv docs.csv --changes

The exit status is that of the crawl: 0, 1 or 3; that of a check follows from the options given
here. It is 1 if DIR cannot be read, 2 if the command line is wrong, and 130, 143 or 129 after a
signal.
"""
CHECK_WORKERS = 100
"""The workers of a check unless the command line names a number, or a folder alone is checked.

▶ 2,000 hosts that never answer hold a worker for two timeouts each: with 10 workers they take
more than three hours, with 100 twenty minutes. No host gets more requests at once for it.
"""
_OFTEN = (
    "--depth --max-pages --max-time --include --exclude --sitemap --check --delay --per-host "
    "--max-tasks -o --html --jsonl --why -v"
).split()
_OFTEN_IN_CHECKS = (
    "--check --mine --exclude --max-time --base-url --ignore --accept --fail-on --baseline "
    "--html --junit --json -o --why -v"
).split()
_ESCAPED = "trio_crawler.escaped"
# The script of a shell sets this when it asks what may follow.
_COMPLETING = "_TRIO_CRAWLER_COMPLETE"
_SHELLS = ["bash", "zsh", "fish"]
# Letters of a URL are shown behind its host only.
_IN_PATH = r"https?://[^/]+/"


def main() -> NoReturn:
    """Run the command and exit with its status."""
    hide_arguments(secret_flags(CrawlOptions))
    prepare()
    if sys.stdout is None:
        # Every write to it fails. Otherwise the next file that is opened would get its number, and
        # what is printed.
        while (number := os.open(os.devnull, os.O_RDONLY)) < 1:
            # Standard input is closed too: its number is taken now.
            pass
        sys.stdout = open(number, "w", closefd=False)  # noqa: SIM115 - as below
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # For a title that the locale cannot encode, and for URLs that are shown readable.
            stream.reconfigure(errors=_ESCAPED)
    if sys.stderr is None:
        # Closed, as with 2>&-. To print, None would mean standard output.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the end of the process
    try:
        status = _run(sys.argv[1:])
    except click.ClickException as error:
        SIGNALS.note()  # or a signal would add a line of its own
        complain(error.format_message())
        status = WRONG_USAGE
    except Interrupted:
        SIGNALS.note()
        complain(f"stopped by {name_of(SIGNALS.first)}")
        status = INTERRUPTED
    except (click.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    # ▶ Or the collector would look through all objects at the exit, for 70 ms.
    gc.freeze()
    sys.exit(SIGNALS.ignore(status))


def prepare() -> None:
    """Prepare the process of a command, or of a worker, for text that its locale lacks."""
    codecs.register_error(_ESCAPED, _escaped)


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return escapes for letters that a locale lacks: in a URL, those of the URL itself."""
    if isinstance(error, UnicodeEncodeError):
        start, text = error.start, error.object
        word = text[max(text.rfind(end, 0, start) for end in " \n") + 1 : start]
        if re.match(_IN_PATH, word):
            # The others of the run may be beyond the URL.
            return quote(text[start], errors="replace"), start + 1
    return codecs.backslashreplace_errors(error)


def _run(words: list[str]) -> int:
    if _COMPLETING in os.environ:
        options = [each for each in command.params if isinstance(each, click.Option)]
        group = click.Group("trio-crawler", commands=_COMMANDS, params=[*options])
        return int(group.main(words, "trio-crawler", complete_var=_COMPLETING))
    at = _first_argument(words)
    name = words[at] if at < len(words) else ""
    if name == "help":
        words, name = [*words[at + 1 :], "--help"], "".join(words[at + 1 : at + 2])
    elif name in _COMMANDS:
        words = words[:at] + words[at + 1 :]
    elif name.isalpha():
        from difflib import get_close_matches

        if meant := get_close_matches(name, _COMMANDS, cutoff=0.7):
            hint = f"did you mean {meant[0]}? A host of that name is written http://{name}/"
            raise click.UsageError(f"there is no command {name}: {hint}")
    chosen = _COMMANDS.get(name, command)
    title = "trio-crawler" if chosen is command else f"trio-crawler {name}"
    return int(chosen.main(words, title, standalone_mode=False))


def _first_argument(words: list[str]) -> int:
    """Return the place of the first word that is no option of a crawl and no value of one."""
    options = (each for each in command.params if isinstance(each, click.Option))
    flags = {flag: each for each in options for flag in each.opts}
    at = 0
    while at < len(words) and len(words[at]) > 1 and words[at].startswith("-"):
        if words[at] == "--":
            return len(words)
        long = words[at].startswith("--")
        names = [words[at].replace("_", "-")] if long else [f"-{each}" for each in words[at][1:]]
        # Of "-qo DIR" the last letter takes the value; "-oDIR" has it already.
        valued = [name in flags and not flags[name].is_flag for name in names]
        at += 2 if valued[-1] and not any(valued[:-1]) else 1
    return at


def _crawl(**given: Any) -> int:
    """Crawl each URL, follow all links within its site, and report the broken ones.

    A URL without a scheme gets http://. Other commands, each with its own --help:

    \b
      trio-crawler demo          try it on a small site that it serves itself
      trio-crawler check URL     check every link of a site, or of a folder
      trio-crawler report DIR    print the report of the crawl in DIR again
      trio-crawler worker STORE  share one crawl with other processes and machines
      trio-crawler completion    let your shell complete commands and options
    """
    options = CrawlOptions(**given)
    nothing = not options.seeds and options.seed_stream is None
    wrong = {"name at least one URL to crawl, or ask for --help": nothing}
    for name, flag in OF_FOLDERS.items():
        wrong[f"{flag} is for a folder: see 'trio-crawler check --help'"] = getattr(options, name)
    refuse(wrong)
    return _run_crawl(options)


def _check(**given: Any) -> int:
    """Check every link of a site, or of a FOLDER or FILE of one, for its owner.

    All that its pages point to is asked for, also where nofollow asks crawlers not to go: pages,
    images, styles, scripts, other sites, and the #fragments. Of a FOLDER all pages are read, also
    those that no link leads to; of a FILE those that its links lead to, in the folder of FILE.
    """
    options = CrawlOptions(**given, owner=True)
    folder, asked = options.folder, options.seeds or options.folder or options.seed_stream
    wrong = {
        "name a URL or a folder to check, or ask for --help": not asked,
        "check the folder alone, or the URLs of --urls": folder and options.seed_stream,
        "--sitemap-xml of a folder needs --base-url: a sitemap has URLs": (
            folder and options.sitemap_xml and not options.base_url
        ),
        "--linked-only is for a folder: of a file, the links are followed": (
            options.files and options.linked_only
        ),
    }
    for name, flag in OF_FOLDERS.items():
        told = f"{flag} is for a folder: name one in place of a URL"
        wrong[told] = folder is None and getattr(options, name)
    refuse(wrong)
    if folder and "external" not in options.checked_kinds:
        # ▶ More would only wait for their turns, at 3 % more CPU and 10 MB.
        options = options.but(workers=min(options.workers, options.per_host))
    return _run_crawl(options)


def _run_crawl(options: CrawlOptions) -> int:
    if options.mine:
        named = click.get_current_context().get_parameter_source
        given = {
            "--per-host": named("per_host") is not ParameterSource.DEFAULT,
            "--delay": options.delay,
            "--adaptive": options.adaptive,
            "--lenient": not options.strict,
            "--urls": options.seed_stream is not None,
            "a folder": options.folder is not None,
        }
        why = "it is about the hosts of the given URLs, and sets how they are asked"
        refuse({f"use --mine or {each}, not both: {why}": given[each] for each in given})
        own: dict[str, Any] = {"ignore_robots": True, "ignore_nofollow": True}
        options = options.but(per_host=options.workers * options.processes, **own)
    check_list(options)
    refuse_contradictions(options)
    if options.directory is not None:
        check_directory(options.directory, "-o", "; to write to a pipe use --jsonl -")
        if options.processes == 1 and os.path.isdir(os.path.join(options.directory, PROCESSES)):
            told = "has a crawl by several processes: give --processes, also another N"
            raise click.UsageError(f"{options.directory} {told}")
    check_files(options)
    options = asked(options)
    # Trio, httpx and the parsers are imported only now: --help needs none of them.
    if options.processes > 1:
        from trio_crawler.cli.processes import run
    else:
        from trio_crawler.cli.crawl import run
    return run(options)


def _report(**given: Any) -> int:
    """Print the report of the crawl in DIR again, without the network.

    The crawl may still be running.
    """
    options = ReportOptions(**given)
    check_directory(options.directory, "DIR")
    check_files(options)
    # The reader of the directory is imported only now.
    from trio_crawler.cli.directory import run

    return run(options)


def _demo(serve: bool, port: int | None) -> int:
    """Check a small site that the demo serves on this machine, and find what it hides.

    This needs no network. The exit status is 0 if all faults of the site are found, 1 if not.
    """
    # The server is imported only now.
    from trio_crawler.cli.demo import run

    return guarded(
        lambda: run(
            serve=serve,
            port=port,
            # No file in the current folder is about the site of the demo.
            check=lambda words: _run(["check", "--config", os.devnull, *words]),
        )
    )


def _worker(store: str, crawl: str, **given: Any) -> int:
    """Crawl as one of several workers: those with the same STORE and --crawl share one crawl.

    STORE is a Valkey or Redis server, such as redis://127.0.0.1:6379/0. The first worker brings
    the URLs and the options that define the crawl; others may leave them out. Each reports and
    writes what it has fetched itself, with -o in a directory of its own: 'merge' joins these. If a
    worker is killed, the others get the URLs that it had.
    """
    shared = Shared(store, crawl)
    options = CrawlOptions(**given, shared=shared)
    wrong: dict[str, object] = {
        "--refresh is not for a worker: it walks through the site for the first time": (
            options.refresh
        ),
        "--check is not for a worker: check what the crawl has found": options.checks,
        "--canonical is not for a worker: each knows only its own pages": options.fold_canonical,
        "--processes is not for a worker: start more of them": options.processes > 1,
    }
    refuse(wrong)
    if options.seeds or options.seed_stream is not None:
        return _run_crawl(options)
    # Trio is imported only now.
    from trio_crawler.cli.worker import joined

    source = click.get_current_context().get_parameter_source
    typed = [name for name in given if source(name) is ParameterSource.COMMANDLINE]
    return guarded(lambda: _run_crawl(joined(options, shared, typed)))


def _completion(shell: str | None) -> int:
    """Print the script that lets a shell complete commands, options, words and paths.

    \b
      bash: trio-crawler completion bash > ~/.local/share/bash-completion/completions/trio-crawler
      zsh:  trio-crawler completion zsh > _trio-crawler, in a folder of $fpath
      fish: trio-crawler completion fish > ~/.config/fish/completions/trio-crawler.fish
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell or "")
    if script is None:
        raise click.UsageError(f"name a shell: {', '.join(_SHELLS)}")
    click.echo(script(command, {}, "trio-crawler", _COMPLETING).source())
    return 0


def check_parameters() -> list[click.Parameter]:
    """Return the parameters of the command "check": those of a crawl, and a folder."""
    found = parameters(CrawlOptions)
    for parameter in found:
        if parameter.name == "seeds":
            parameter.callback = site
            parameter.metavar = "URL...|FOLDER|FILE..."
        elif parameter.name == "workers" and isinstance(parameter, click.Option):
            parameter.default = CHECK_WORKERS
            parameter.help = f"{parameter.help} Most wait for other sites, a few of them for long."
    return [*found, *PARAMETERS]


def _parameters_of_crawl() -> list[click.Parameter]:
    told = "Show the version and exit; with -v also whether there are compiled readers of pages."
    version = click.Option(["--version"], is_flag=True, expose_value=False, help=told)
    return [*parameters(CrawlOptions), version, *PARAMETERS]


def _parameters_of_demo() -> list[click.Parameter]:
    return [
        click.Option(
            ["--serve"],
            is_flag=True,
            help="Only serve the site, until Ctrl-C, so that you can try options on it.",
        ),
        click.Option(
            ["--port"],
            metavar="PORT",
            type=click.IntRange(0, 65535),
            help="Serve at this port of 127.0.0.1: 8000 with --serve, else 0, any that is free.",
        ),
    ]


command = Command("trio-crawler", _parameters_of_crawl, _crawl, epilog=_CRAWL_EPILOG, often=_OFTEN)
check_command = Command(
    "check",
    check_parameters,
    _check,
    epilog=_CHECK_EPILOG,
    first=(Group.CHECKED, Group.JUDGED),
    often=_OFTEN_IN_CHECKS,
)
report_command = Command(
    "report",
    lambda: [*parameters(ReportOptions), *PARAMETERS],
    _report,
    epilog=_REPORT_EPILOG,
)
_COMMANDS: dict[str, click.Command] = {
    "crawl": command,
    "check": check_command,
    "completion": Command(
        "completion",
        lambda: [click.Argument(["shell"], type=click.Choice(_SHELLS), required=False)],
        _completion,
    ),
    "demo": Command("demo", _parameters_of_demo, _demo),
    "report": report_command,
    "worker": Command(
        "worker",
        lambda: parameters_of_store(*parameters(CrawlOptions), *PARAMETERS),
        _worker,
        often=["--crawl", *_OFTEN],
    ),
    **COMMANDS,
}
