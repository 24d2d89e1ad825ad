"""Prompts: the passwords that the command line leaves out, which the terminal is asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote

from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.secrets import ask

# The URL of a proxy with a user and without a password.
_PROXY_USER = re.compile(r"([a-z0-9]+://[^/?#@:]+)(@.+)", re.IGNORECASE | re.DOTALL)


def asked(options: CrawlOptions) -> CrawlOptions:
    """Return the options with the passwords that are missing, which the terminal is asked for.

    Raises click.UsageError if standard input is no terminal.
    """
    answers: dict[str, str] = {}

    def password_of(named: str, option: str, whom: str) -> str:
        if whom not in answers:
            answers[whom] = ask(f"Password of {whom}: ", named, option)
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
    return replace(options, auth=auth, logins=tuple(logins), proxy=proxy)
