"""Values: what the text after an option means.

What may hold a password is not repeated in a message.
"""

from __future__ import annotations

import math
import re
from ipaddress import AddressValueError, IPv6Address
from typing import Any

import click

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://|https?:[/\\]", re.IGNORECASE)
# All that a browser skips between the scheme and the host.
_SLASHES = re.compile(r"[^:]*:[/\\\t\r\n]*")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PROXY = re.compile(
    r"(https?|socks5h?)://([^/?#@\s]*@)?(\[[0-9a-f:.]+\]|[^/?#@:\[\]\s]+)(:[0-9]{1,5})?/?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[!-?A-~]+@[!-?A-~]+")
_HOST = re.compile(r"\[?[0-9a-f]*:[0-9a-f:.]*:[0-9a-f.]*\]?|[^/\\:?#@*\[\]\s]+", re.IGNORECASE)


def urls(context: click.Context, parameter: click.Parameter, said: Any) -> tuple[str, ...]:
    """Take the URLs to crawl; one without a scheme gets http://."""
    return tuple(dict.fromkeys(_url(url) for url in said))


def prefixes(context: click.Context, parameter: click.Parameter, said: Any) -> tuple[str, ...]:
    """Take prefixes of URLs, and of paths."""
    for prefix in said:
        if _SCHEME.match(prefix):
            _refuse_userinfo(prefix)
    return tuple(said)


def sitemaps(context: click.Context, parameter: click.Parameter, said: Any) -> tuple[str, ...]:
    """Take URLs of sitemaps, and paths of them; a URL without a scheme gets http://."""
    found = (word.strip() for word in said)
    return tuple(dict.fromkeys(word if _is_path(word) else _url(word) for word in found))


def seconds(context: click.Context, parameter: click.Parameter, said: Any) -> float:
    """Take a number of seconds, which may be 0 but not be endless."""
    if not 0 <= said < math.inf:
        raise click.BadParameter(f"give 0 or more seconds, not {said:g}")
    return float(said)


def address(context: click.Context, parameter: click.Parameter, said: Any) -> str | None:
    """Take an e-mail address."""
    if said is not None and not _ADDRESS.fullmatch(said):
        raise click.BadParameter("write it as NAME@HOST")
    return str(said) if said else None


def headers(
    context: click.Context, parameter: click.Parameter, said: Any
) -> tuple[tuple[str, str], ...]:
    """Take headers, each `Name: value`."""
    return tuple(_header(header) for header in said)


def cookies(context: click.Context, parameter: click.Parameter, said: Any) -> tuple[str, ...]:
    """Take cookies, each `NAME=VALUE`, or several with semicolons between."""
    pairs = (pair.strip(" ") for text in said for pair in text.split(";"))
    return tuple(_cookie(pair) for pair in pairs)


def credentials(
    context: click.Context, parameter: click.Parameter, said: Any
) -> tuple[str, str] | None:
    """Take a user and a password: the password may have colons in it."""
    if said is None:
        return None
    user, colon, password = said.partition(":")
    if not colon or _CONTROL.search(said):
        raise click.BadParameter("write it as USER:PASSWORD")
    return user, password


def hosts(context: click.Context, parameter: click.Parameter, said: Any) -> tuple[str, ...]:
    """Take names or addresses of hosts, without a port."""
    for host in said:
        if not _HOST.fullmatch(host):
            advice = "name a host such as test.example.org or ::1"
            raise click.BadParameter(f"{advice}, without scheme, port, path and *")
    return tuple(dict.fromkeys(said))


def proxy(context: click.Context, parameter: click.Parameter, said: Any) -> str | None:
    """Take the URL of a proxy; it may hold a user and a password."""
    if said is not None and not _PROXY.fullmatch(said):
        raise click.BadParameter("write it as http://HOST:PORT; https and socks5 will do too")
    return str(said) if said else None


def _is_path(word: str) -> bool:
    # What begins with two slashes names a host.
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
    """Refuse a URL with a user in it: it would be for one of the sites only, and is shown."""
    if "@" in _authority(url):
        advice = "give them with --auth USER:PASSWORD"
        raise click.BadParameter(f"a URL must not hold a user or password: {advice}")


def _refuse_bare_ipv6(url: str) -> None:
    host = _authority(url)
    try:
        IPv6Address(host)
    except AddressValueError:
        return
    # A zone, as in fe80::1%eth0, is for no URL.
    advice = f"in a URL it has brackets: [{host.partition('%')[0]}]"
    raise click.BadParameter(f"{host} is an address of IPv6; {advice}")


def _authority(url: str) -> str:
    return re.split(r"[/?#\\]", _SLASHES.sub("", url, count=1), maxsplit=1)[0]


def _header(header: str) -> tuple[str, str]:
    name, colon, value = header.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter("write it as 'Name: value'")
    return name.strip(), value.strip()


def _cookie(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    if not equals or not _NAME.fullmatch(name) or _CONTROL.search(pair):
        raise click.BadParameter("write it as NAME=VALUE")
    return pair
