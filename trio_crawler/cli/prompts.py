"""Prompts: the passwords that the command line leaves out, which the terminal is asked for."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from urllib.parse import quote

import click

from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.secrets import ask, use

# The URL of a proxy with a user and without a password.
_PROXY_USER = re.compile(r"([a-z0-9]+://[^/?#@:]+)(@.+)", re.IGNORECASE | re.DOTALL)
# In PEM a key with a password is told by one of these (RFC 5958 and RFC 1421).
_is_encrypted = re.compile(
    rb"^(?:-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED)", re.MULTILINE
).search
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
    if proxy is not None and (found := _PROXY_USER.fullmatch(proxy)):
        password = password_of("a user in --proxy", "--proxy", "the user of the proxy")
        proxy = f"{found[1]}:{quote(password, safe='')}{found[2]}"
    key = _password_of_key(options)
    return replace(options, auth=auth, logins=tuple(logins), proxy=proxy, client_password=key)


def _password_of_key(options: CrawlOptions) -> str | None:
    """Ask for the password of the key of --client-cert, if it has one."""
    if options.client_cert is None:
        if options.client_key is not None:
            raise click.UsageError("--client-key would have no effect without --client-cert")
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
    if not _is_encrypted(begin):
        return None
    remedy = "decrypt the key with `openssl pkey`"
    return ask(f"Password of the key in {path}: ", f"the key of {option}", remedy)
