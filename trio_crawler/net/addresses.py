"""The policy that decides which addresses a crawl may connect to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import NamedTuple, TypeAlias

from trio_crawler.arguments import ArgumentError
from trio_crawler.page.urls import host

Address: TypeAlias = IPv4Address | IPv6Address
Block: TypeAlias = IPv4Network | IPv6Network

_CACHED = 4096

# The IANA special-purpose address registries (RFC 6890, RFC 8190) and the multicast registries;
# the first match counts. `ipaddress.is_global` is not used: it calls multicast and ::127.0.0.1
# global, and its value for other blocks depends on the patch version of Python.
_METADATA = "a cloud metadata address"
_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
        ("169.254.169.254/32", _METADATA),
        ("100.100.100.200/32", _METADATA),  # Alibaba
        ("168.63.129.16/32", _METADATA),  # Azure; the rest of its block is public
        ("0.0.0.0/32", "the unspecified address"),
        ("0.0.0.0/8", "an address of this network"),  # RFC 791, 3.2
        ("10.0.0.0/8", "a private address"),  # RFC 1918
        ("100.64.0.0/10", "a shared address"),  # RFC 6598: behind a carrier's NAT
        ("127.0.0.0/8", "a loopback address"),  # RFC 1122, 3.2.1.3
        ("169.254.0.0/16", "a link-local address"),  # RFC 3927
        ("172.16.0.0/12", "a private address"),  # RFC 1918
        ("192.0.0.0/24", "a reserved address"),  # RFC 6890: IETF protocol assignments
        ("192.0.2.0/24", "a documentation address"),  # RFC 5737
        ("192.88.99.0/24", "a reserved address"),  # RFC 7526: deprecated 6to4 relays
        ("192.168.0.0/16", "a private address"),  # RFC 1918
        ("198.18.0.0/15", "a benchmarking address"),  # RFC 2544
        ("198.51.100.0/24", "a documentation address"),  # RFC 5737
        ("203.0.113.0/24", "a documentation address"),  # RFC 5737
        ("224.0.0.0/4", "a multicast address"),  # RFC 5771
        ("255.255.255.255/32", "the broadcast address"),  # RFC 919, 7
        ("240.0.0.0/4", "a reserved address"),  # RFC 1112, 4
    )
)
_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), kind)
    for network, kind in (
        ("fd00:ec2::254/128", _METADATA),  # Amazon
        ("::/128", "the unspecified address"),
        ("::1/128", "a loopback address"),
        ("::/96", "an IPv4-compatible address"),  # RFC 4291, 2.5.5.1
        ("64:ff9b:1::/48", "a NAT64 address for local use"),  # RFC 8215
        ("100::/64", "a discard address"),  # RFC 6666
        ("fc00::/7", "a unique local address"),  # RFC 4193
        ("fe80::/10", "a link-local address"),  # RFC 4291, 2.5.6
        ("fec0::/10", "a site-local address"),  # RFC 3879
        ("ff00::/8", "a multicast address"),  # RFC 4291, 2.7
        ("2001::/32", "a Teredo address"),  # RFC 4380
        ("2001:2::/48", "a benchmarking address"),  # RFC 5180
        ("2001:db8::/32", "a documentation address"),  # RFC 3849
        ("3fff::/20", "a documentation address"),  # RFC 9637
        ("2001::/23", "a reserved address"),  # RFC 2928: IETF protocol assignments
    )
)
# The only allocated block of global unicast (RFC 4291, 2.5.4).
_UNICAST = IPv6Network("2000::/3")
# The networks of addresses that embed an IPv4 address, and the number of bits that follow it.
_MAPPED = IPv6Network("::ffff:0:0/96")
_CARRIERS = (
    (_MAPPED, 0),  # RFC 4291, 2.5.5.2
    (IPv6Network("64:ff9b::/96"), 0),  # RFC 6052, 2.1: NAT64
    (IPv6Network("2002::/16"), 80),  # RFC 3056: 6to4
)


class _Judgement(NamedTuple):
    """The kind of an address, None for a public one, and the `forms` in which it can be opened."""

    kind: str | None
    forms: tuple[Address, ...] = ()


class AddressPolicy:
    """The addresses a crawl may connect to: public ones, and others that are opened.

    A seed with an address as its host opens exactly that address. A seed with a name opens the
    addresses of the first lookup of that name; later lookups open no other address.
    `allow_private` has addresses and networks ("10.0.0.0/8") to open, together with their
    IPv4-mapped addresses. Seeds must be normalised URLs.

    Raises ValueError, naming the entry, if one of `allow_private` is neither.
    """

    def __init__(self, seeds: Iterable[str] = (), allow_private: Iterable[str] = ()) -> None:
        hosts = {bare(host(seed)) for seed in seeds}
        parsed = {host: parse_address(host) for host in hosts}
        self._opened: set[Address] = {found for found in parsed.values() if found is not None}
        self._names = {host for host, found in parsed.items() if found is None}
        self._not_looked_up = set(self._names)
        self._allowed = tuple(map(_block, allow_private))

    def __repr__(self) -> str:
        opened, allowed = len(self._opened), len(self._allowed)
        return f"<AddressPolicy: {opened} addresses opened, {allowed} networks allowed>"

    def record(self, host: str, addresses: Sequence[str]) -> None:
        """Open the addresses of the first lookup of `host`, if `host` is the name of a seed."""
        if addresses and host in self._not_looked_up:
            self._not_looked_up.remove(host)
            for kind, forms in map(_judge, addresses):
                if kind is not None:
                    self._opened.update(forms[:1])

    def block_reason(self, host: str, address: str) -> str | None:
        """Return a sentence why `address`, looked up for `host`, is blocked; None if it is not.

        `address` may be in brackets. Any other text than an address is blocked.
        """
        kind, forms = _judge(address)
        if kind is None or self._is_opened(forms):
            return None
        sentence = f"{_subject(bare(host), bare(address))} {kind}"
        if not forms:
            return sentence
        if host in self._names:
            return f"{sentence} that was not in its first lookup; name it with --allow-private"
        return f"{sentence}; name it as a seed or with --allow-private"

    def _is_opened(self, forms: tuple[Address, ...]) -> bool:
        if forms and forms[0] in self._opened:
            return True
        return any(form in network for form in forms for network in self._allowed)


def parse_address(host: str) -> Address | None:
    """Return the address that a host is, in brackets or not; None for a name."""
    try:
        return ip_address(bare(host))
    except ValueError:
        return None


def bare(host: str) -> str:
    """Return a host without the brackets of an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


@lru_cache(maxsize=_CACHED)
def _judge(address: str) -> _Judgement:
    found = parse_address(address)
    if found is None:
        return _Judgement("not an address")
    if isinstance(found, IPv4Address):
        return _Judgement(_kind_v4(found), (found,))
    if found.scope_id is not None:
        # The scope names an interface of this machine; no URL can have one.
        return _Judgement("an address with a scope, which is never connected to")
    if found in _MAPPED:
        return _Judgement(_kind_v6(found), (found, _inner(found, 0)))
    return _Judgement(_kind_v6(found), (found,))


def _kind_v4(address: IPv4Address) -> str | None:
    return next((kind for network, kind in _V4 if address in network), None)


def _kind_v6(address: IPv6Address) -> str | None:
    for carrier, shift in _CARRIERS:
        if address in carrier:
            inner = _inner(address, shift)
            kind = _kind_v4(inner)
            return kind and f"a way to {inner}, {kind}"
    for network, kind in _V6:
        if address in network:
            return kind
    return None if address in _UNICAST else "a reserved address"


def _inner(address: IPv6Address, shift: int) -> IPv4Address:
    return IPv4Address(int(address) >> shift & 0xFFFF_FFFF)


def _subject(host: str, address: str) -> str:
    if host == address:
        return f"{address} is"
    return f"{host} leads to {address},"


def _block(entry: str) -> Block:
    try:
        if "%" in entry:
            raise ValueError(entry)
        network = ip_network(entry, strict=False)
    except ValueError:
        wanted = "an address or a network such as 10.0.0.0/8"
        raise _not_a_block(wanted, entry) from None
    try:
        return ip_network(entry)
    except ValueError:
        wanted = f"a network without host bits, such as {network}"
        raise _not_a_block(wanted, entry) from None


def _not_a_block(wanted: str, entry: str) -> ArgumentError:
    return ArgumentError("allow_private", f" must be {wanted}, not {entry!r}", each=True)
