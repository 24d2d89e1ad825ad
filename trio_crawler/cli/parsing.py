"""Parsing: split the text after an option into values.

The library checks the values. No message shows a text that may hold a password.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from typing import Any

import click

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://|https?:[/\\]", re.IGNORECASE)
# All that a browser skips between the scheme and the host.
_SLASHES = re.compile(r"[^:]*:[/\\\t\r\n]*")
# RFC 6265, 4.1.1: the name is a token. Browsers send more in a value than the RFC allows.
_COOKIE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+=[^\x00-\x1f\x7f\ud800-\udfff]*")


def urls(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return the URLs to crawl; one without a scheme gets http://."""
    return tuple(dict.fromkeys(_url(url) for url in given))


def prefixes(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return prefixes of URLs, and paths."""
    for prefix in given:
        if _SCHEME.match(prefix):
            _refuse_userinfo(prefix)
    return tuple(given)


def sitemaps(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return URLs and paths of sitemaps; a URL without a scheme gets http://."""
    found = (word.strip() for word in given)
    return tuple(dict.fromkeys(word if _is_path(word) else _url(word) for word in found))


def distinct(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return each value once."""
    return tuple(dict.fromkeys(given))


def headers(
    context: click.Context, parameter: click.Parameter, given: Any
) -> tuple[tuple[str, str], ...]:
    """Return headers as names and values."""
    return tuple(_header(header) for header in given)


def cookies(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return cookies, each `NAME=VALUE`; one text may have several, with semicolons between."""
    pairs = (pair.strip(" ") for text in given for pair in text.split(";"))
    return tuple(_cookie(pair) for pair in pairs)


def credentials(
    context: click.Context, parameter: click.Parameter, given: Any
) -> tuple[str, str] | None:
    """Return a user and a password; only the password may have colons."""
    if given is None:
        return None
    user, colon, password = given.partition(":")
    if not colon:
        raise click.BadParameter("write it as USER:PASSWORD")
    return user, password


def _is_path(word: str) -> bool:
    # Two slashes begin the name of a host.
    return word.startswith("/") and not word.startswith("//")


def _url(url: str) -> str:
    url = url.strip()
    if not url:
        raise click.BadParameter("an empty URL")
    if not _SCHEME.match(url):
        url = f"http://{url}"
    _refuse_userinfo(url)
    _refuse_bare_ipv6(url)
    return url


def _refuse_userinfo(url: str) -> None:
    """Refuse a URL with a user or password: reports show it, and it is for one site only."""
    if "@" in _authority(url):
        advice = "give them with --auth USER:PASSWORD"
        raise click.BadParameter(f"a URL must not hold a user or password: {advice}")


def _refuse_bare_ipv6(url: str) -> None:
    host = _authority(url)
    try:
        IPv6Address(host)
    except AddressValueError:
        return
    # A zone, as in fe80::1%eth0, cannot be in a URL.
    advice = f"in a URL it has brackets: [{host.partition('%')[0]}]"
    raise click.BadParameter(f"{host} is an IPv6 address; {advice}")


def _authority(url: str) -> str:
    return re.split(r"[/?#\\]", _SLASHES.sub("", url, count=1), maxsplit=1)[0]


def _header(header: str) -> tuple[str, str]:
    name, colon, value = header.partition(":")
    if not colon:
        raise click.BadParameter("write it as 'Name: value'")
    return name.strip(), value.strip()


def _cookie(pair: str) -> str:
    if not _COOKIE.fullmatch(pair):
        raise click.BadParameter("write it as NAME=VALUE")
    return pair
