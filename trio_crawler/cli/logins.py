"""Logins: the user and the password that each origin gets, and passwords that are asked for."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

import click

from trio_crawler.cli.exit import complain
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.secrets import ask, use

_NETRC = "~/.netrc"
# The URL of a proxy with a user and without a password.
_PROXY_USER = r"(?is)([a-z0-9]+://[^/?#@:]+)(@.+)"
# In PEM a key with a password is told by one of these (RFC 5958 and RFC 1421).
_ENCRYPTED = rb"(?m)^(?:-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED)"
_MAX_BYTES = 1024 * 1024


def asked(options: CrawlOptions) -> CrawlOptions:
    """Return the options with the passwords that are missing, which the terminal is asked for.

    Raises click.UsageError if standard input is no terminal.
    """
    answers: dict[str, str] = {}

    def password_of(named: str, option: str, whom: str) -> str:
        if whom not in answers:
            answers[whom] = ask(f"Password of {whom}: ", named, use(option))
        return answers[whom]

    auth, logins = options.auth, list(options.logins)
    if auth is not None and auth[1] is None:
        auth = auth[0], password_of("--auth USER", "--auth", auth[0])
    for at, (url, (user, password)) in enumerate(logins):
        if password is None:
            host = re.split(r"[/?#\\]", url.partition("//")[2], maxsplit=1)[0]
            password = password_of("a user in a URL", "--auth", f"{user} at {host}")
            logins[at] = url, (user, password)
    proxy = options.proxy
    if proxy is not None and (found := re.fullmatch(_PROXY_USER, proxy)):
        password = password_of("a user in --proxy", "--proxy", "the user of the proxy")
        proxy = f"{found[1]}:{quote(password, safe='')}{found[2]}"
    key = _password_of_key(options)
    return options.but(auth=auth, logins=tuple(logins), proxy=proxy, client_password=key)


def _password_of_key(options: CrawlOptions) -> str | None:
    """Ask for the password of the key of --client-cert, if it has one."""
    if options.client_cert is None:
        return None
    option = "--client-cert" if options.client_key is None else "--client-key"
    path = options.client_cert if options.client_key is None else options.client_key
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        # A pipe can be read only once, and not by the command.
        return None
    try:
        with open(path, "rb") as file:
            begin = file.read(_MAX_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise click.UsageError(f"{option}: cannot read {path!r}: {why}") from None
    if not re.search(_ENCRYPTED, begin):
        return None
    remedy = "decrypt the key with `openssl pkey`"
    return ask(f"Password of the key in {path}: ", f"the key of {option}", remedy)


def logins(options: CrawlOptions, seeds: Sequence[str]) -> dict[str, tuple[str, str]] | None:
    """Return the user and the password for each origin: those of its URL, else of the option.

    Raises click.UsageError if they contradict each other or would have no effect.
    """
    # The passwords are asked for before the library is imported.
    from trio_crawler import normalise

    found: dict[str, tuple[str, str]] = {}
    for url, (user, password) in options.logins:
        origin, login = origin_of(normalise(url)), (user, password or "")
        if found.setdefault(origin, login) != login:
            raise click.UsageError(f"URL: {origin}/ is given with two users or passwords")
    if not options.login:
        return found or None
    option = options.login[0]
    rest = [origin for origin in dict.fromkeys(map(origin_of, seeds)) if origin not in found]
    if not rest:
        raise click.UsageError(f"{option} would have no effect: each URL has its own user")
    if options.auth is not None:
        user, password = options.auth
        return dict.fromkeys(rest, (user, password or "")) | found
    return _of_netrc(option, options.netrc_file, rest) | found


def origin_of(url: str) -> str:
    """Return the origin of a normalised URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _of_netrc(option: str, path: str | None, origins: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the user and the password of each of the origins that the file has an entry for."""
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
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        complain(f"other users can read {name}: chmod 600 {name}")
    hosts = {origin: urlsplit(origin).hostname or "" for origin in origins}
    found = {each: entries.get(hosts[each]) or entries.get("default") for each in origins}
    if not any(found.values()):
        where = ", ".join(dict.fromkeys(hosts.values()))
        raise click.UsageError(f"{option}: {name} has no entry for {where}")
    return {origin: (entry[0], entry[2] or "") for origin, entry in found.items() if entry}
