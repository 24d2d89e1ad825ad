"""NO_PROXY: the hosts that are requested without a proxy."""

from __future__ import annotations

import re
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from trio_crawler.net.dial.addresses import as_in_url, parse_address

_SEPARATORS = re.compile(r"[,\s]+")
# An IPv6 address has a port only if it is in brackets; a second colon begins no port.
_PORT = re.compile(r"(\[.*\]|[^:]*):([0-9]{1,5})")


class _Entry(NamedTuple):
    """One entry: a name or an address; a `suffix` begins with a dot."""

    host: str
    suffix: str
    port: int | None


class Bypass:
    """The hosts of a NO_PROXY, a list that commas or spaces separate, as curl and Go read it.

    An entry is one of these:

    - `*`: every host;
    - `e.org` or `.e.org`: this name and its subdomains; `*.e.org`: its subdomains only;
    - `127.0.0.1`, `::1` or `[::1]`: an address, also in another spelling;
    - `10.0.0.0/8` or `fe80::/10`: the addresses of a network. A name is not looked up for it.

    All but a network may have a port (`e.org:8080`), and count only for that port then. The case
    of letters, and a dot at the end of a name, do not count. Any other entry is ignored.
    """

    def __init__(self, listed: str) -> None:
        words = [word.lower() for word in _SEPARATORS.split(listed) if word]
        self._all = "*" in words
        self._networks = [found for word in words if (found := _network(word)) is not None]
        self._entries = [_entry(word) for word in words if "/" not in word]

    def __call__(self, host: str, port: int) -> bool:
        """Whether `host`, without brackets, is requested at `port` without a proxy."""
        if self._all:
            return True
        host = _plain(host)
        address = parse_address(host)
        if address is not None:
            if any(address in network for network in self._networks):
                return True
            return any(
                entry.port in (None, port) and parse_address(entry.host) == address
                for entry in self._entries
                if entry.host
            )
        return any(
            entry.port in (None, port) and (host == entry.host or host.endswith(entry.suffix))
            for entry in self._entries
        )


def _network(word: str) -> IPv4Network | IPv6Network | None:
    address, slash, length = word.partition("/")
    if slash and length.isdecimal():
        with suppress(ValueError):
            return ip_network(f"{address.strip('[]')}/{length}", strict=False)
    return None


def _entry(word: str) -> _Entry:
    port = None
    if found := _PORT.fullmatch(word):
        word, port = found[1], int(found[2])
    name = _plain(word.strip("[]"))
    if name.startswith("*."):
        return _Entry("", name[1:], port)
    name = _in_ascii(name.removeprefix("."))
    return _Entry(name, f".{name}", port)


def _plain(host: str) -> str:
    return host.lower().removesuffix(".")


def _in_ascii(name: str) -> str:
    """Return a name as URLs have it: `bücher.test` is xn--bcher-kva.test."""
    if not name.isascii():
        with suppress(ValueError):
            return as_in_url(name)
    return name
