"""Logins: the user and the password that each origin gets, from URLs, --auth or a netrc file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import click

from trio_crawler import normalise
from trio_crawler.cli.exit import complain
from trio_crawler.cli.options import CrawlOptions

_NETRC = "~/.netrc"


def login_option(options: CrawlOptions) -> str:
    """Return what gives users on the command line, as messages name it; "" without any.

    Raises click.UsageError for options that exclude each other.
    """
    given = {
        "--auth": options.auth is not None,
        "--netrc": options.netrc,
        "--netrc-file": options.netrc_file is not None,
    }
    named = [option for option, is_given in given.items() if is_given]
    if len(named) > 1:
        raise click.UsageError(f"use {named[0]} or {named[1]}, not both")
    return named[0] if named else "a user in a URL" if options.logins else ""


def logins(options: CrawlOptions, seeds: Sequence[str]) -> dict[str, tuple[str, str]] | None:
    """Return the user and the password for each origin: those of its URL, else of the option.

    Raises click.UsageError if they contradict each other or would have no effect.
    """
    found: dict[str, tuple[str, str]] = {}
    for url, (user, password) in options.logins:
        origin, login = _origin(normalise(url)), (user, password or "")
        if found.setdefault(origin, login) != login:
            raise click.UsageError(f"URL: {origin}/ is given with two users or passwords")
    option = login_option(options)
    if not option.startswith("--"):
        return found or None
    rest = [origin for origin in dict.fromkeys(map(_origin, seeds)) if origin not in found]
    if not rest:
        raise click.UsageError(f"{option} would have no effect: each URL has its own user")
    if options.auth is not None:
        user, password = options.auth
        return dict.fromkeys(rest, (user, password or "")) | found
    return _of_netrc(option, options.netrc_file, rest) | found


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _of_netrc(option: str, path: str | None, origins: Sequence[str]) -> dict[str, tuple[str, str]]:
    hosts = {origin: urlsplit(origin).hostname or "" for origin in origins}
    known = _netrc(option, path, hosts.values())
    if not known:
        where = ", ".join(dict.fromkeys(hosts.values()))
        raise click.UsageError(f"{option}: {path or _NETRC} has no entry for {where}")
    return {origin: known[host] for origin, host in hosts.items() if host in known}


def _netrc(option: str, path: str | None, hosts: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the user and the password of each of the hosts that the file has an entry for."""
    from netrc import NetrcParseError, netrc

    if path == "":
        raise click.UsageError(f"{option} needs the name of a file, not ''")
    name = _NETRC if path is None else path
    place = os.path.expanduser(name) if path is None else name
    try:
        entries = {host.lower(): entry for host, entry in netrc(place).hosts.items()}
        mode = os.stat(place).st_mode
    except OSError as error:
        raise click.UsageError(f"{option}: cannot read {name}: {error.strerror}") from None
    except NetrcParseError as error:
        # Its message may have a password.
        raise click.UsageError(f"{option}: {name} is no netrc file: line {error.lineno}") from None
    except UnicodeError:
        raise click.UsageError(f"{option}: {name} is not UTF-8 text") from None
    if os.name == "posix" and stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        complain(f"other users can read {name}: chmod 600 {name}")
    found = {host: entries.get(host) or entries.get("default") for host in hosts}
    return {host: (entry[0], entry[2] or "") for host, entry in found.items() if entry}
