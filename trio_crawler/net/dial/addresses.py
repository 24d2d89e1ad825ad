"""The policy that decides which addresses a crawl may connect to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from trio_crawler.page.urls import authority, normalise
from trio_crawler.page.urls import host as url_host

Address: TypeAlias = IPv4Address | IPv6Address
Block: TypeAlias = IPv4Network | IPv6Network

_CACHED = 4096
_NO_ADDRESSES: frozenset[Address] = frozenset()
_WEB_PORTS = frozenset({80, 443})
_METADATA_KIND = "a cloud metadata address"

# The services that tell a machine in a cloud its secrets. Most clouds use 169.254.169.254.
_METADATA = frozenset(
    map(
        ip_address,
        (
            *("169.254.169.254", "fd00:ec2::254"),
            *("169.254.170.2", "169.254.170.23", "fd00:ec2::23"),  # Amazon: containers
            "fd20:ce::254",  # Google
            "168.63.129.16",  # Azure; the rest of its block is public
            "100.100.100.200",  # Alibaba
            "192.0.0.192",  # Oracle
            "169.254.0.23",  # Tencent
            *("169.254.42.42", "fd00:42::42"),  # Scaleway
        ),
    )
)
# The IANA special-purpose address registries (RFC 6890, RFC 8190) and the multicast registries;
# the first match counts. `ipaddress.is_global` is not used: it calls multicast and ::127.0.0.1
# global, and its value for other blocks depends on the patch version of Python.
_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
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
    """The kind of an address, None for a public one, and the `forms` in which it can be opened.

    `metadata` is whether it leads to a service of a cloud that holds secrets.
    """

    kind: str | None
    forms: tuple[Address, ...] = ()
    metadata: bool = False


class AddressPolicy:
    """The addresses a crawl may connect to: public ones, and others that are opened.

    A seed opens private addresses for its own host, at its own port; the ports 80 and 443 open
    each other. If its host is an address, that is the address. If it is a name, all addresses of
    the first lookup of that name are opened, unless one of them is public: then none is. Later
    lookups open no other address. No seed opens a metadata address of a cloud, nor does any with
    `public_only`. Seeds must be normalised URLs.

    `allow_private` has addresses and networks ("10.0.0.0/8") to open for every host and port,
    metadata addresses too, together with their IPv4-mapped addresses.

    Raises ValueError, naming the entry, if one of `allow_private` is neither, and if there is one
    with `public_only`.
    """

    def __init__(
        self,
        seeds: Iterable[str] = (),
        allow_private: Iterable[str] = (),
        *,
        public_only: bool = False,
    ) -> None:
        self._allowed = tuple(map(_block, allow_private))
        if self._allowed and public_only:
            raise ValueError("allow_private and public_only exclude each other: give one of them")
        self._public_only = public_only
        # By the hosts of the seeds: the ports, and the private addresses that are opened at them.
        # A name that was not looked up is not among the latter.
        self._ports: dict[str, frozenset[int]] = {}
        self._opened: dict[str, frozenset[Address]] = {}
        # The private addresses of first lookups with a public one.
        self._withheld: dict[str, frozenset[Address]] = {}
        for seed in seeds:
            host = url_host(seed)
            port = int(authority(seed)[len(host) + 1 :] or 80)
            ports = _WEB_PORTS if port in _WEB_PORTS else frozenset({port})
            key = _key(host)
            self._ports[key] = self._ports.get(key, ports) | ports
        for name in self._ports:
            if parse_address(name) is not None:
                self.record(name, [name])

    def record(self, host: str, addresses: Sequence[str]) -> None:
        """Open the addresses of the first lookup of `host`, if it is the host of a seed."""
        host = _key(host)
        if not addresses or host not in self._ports or host in self._opened:
            return
        private = frozenset(
            form
            for each in map(_judge, addresses)
            if each.kind is not None and not each.metadata
            for form in each.forms[:1]
        )
        self._opened[host] = _NO_ADDRESSES
        if self._public_only or not private:
            return
        # An answer of a public and a private address is how a stranger's name leads inside.
        if any(_judge(address.partition("%")[0]).kind is None for address in addresses):
            self._withheld[host] = private
        else:
            self._opened[host] = private

    def block_reason(self, host: str, port: int, address: str) -> str | None:
        """Return a sentence why `address`, looked up for `host`, is blocked; None if it is not.

        `address` may be in brackets. Any other text than an address is blocked.
        """
        judged = _judge(address)
        if judged.kind is None or self._is_allowed(judged.forms):
            return None
        own, found = bare(host), bare(address)
        subject = f"{found} is" if own == found else f"{own} leads to {found},"
        sentence = f"{subject} {judged.kind}"
        host = _key(host)
        is_opened = judged.forms[:1] and judged.forms[0] in self._opened.get(host, ())
        if is_opened and port in self._ports[host]:
            return None
        if not judged.forms:
            return sentence
        return sentence + self._remedy(host, judged, bool(is_opened))

    def withheld(self, host: str) -> str:
        """Return a sentence if addresses of a seed are withheld for a public one; else nothing."""
        if all(self._is_allowed((each,)) for each in self._withheld.get(_key(host), ())):
            return ""
        return "its private addresses were not tried: name them with --allow-private"

    def _is_allowed(self, forms: tuple[Address, ...]) -> bool:
        return any(form in network for form in forms for network in self._allowed)

    def _remedy(self, host: str, judged: _Judgement, is_opened: bool) -> str:
        if self._public_only:
            return "; with --public-only no seed opens it"
        if judged.metadata:
            return "; only --allow-private opens it"
        if is_opened:
            ports = ", ".join(map(str, sorted(self._ports[host])))
            own = f", and its seed opens only port {ports}"
            return f"{own}; name this URL as a seed, or the address with --allow-private"
        if host not in self._ports:
            return "; name it as a seed or with --allow-private"
        why = " that was not in its first lookup"
        if judged.forms[0] in self._withheld.get(host, ()):
            why = ", and its first lookup had a public one too"
        return f"{why}; name it with --allow-private"


@lru_cache(maxsize=_CACHED)
def parse_address(host: str) -> Address | None:
    """Return the address that a host is, in brackets or not; None for a name."""
    host = bare(host)
    if ":" not in host and not host[-1:].isdigit():
        # A million seeds would take a minute of ValueErrors.
        return None
    try:
        return ip_address(host)
    except ValueError:
        return None


def as_in_url(host: str) -> str:
    """Return a host as normalised URLs have it: `0x7f.1` is 127.0.0.1. Raises ValueError."""
    return bare(
        url_host(normalise(f"http://[{bare(host)}]/" if ":" in host else f"http://{host}/"))
    )


def bare(host: str) -> str:
    """Return a host without the brackets of an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


def server_name(host: str, port: int) -> str:
    """Return a server as `host:port` for messages; the ports 80 and 443 are left out."""
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return name if port in (80, 443) else f"{name}:{port}"


@lru_cache(maxsize=_CACHED)
def _key(host: str) -> str:
    """Return a host as seeds have it, without brackets."""
    found = parse_address(host)
    return host if found is None else str(found)


@lru_cache(maxsize=_CACHED)
def _judge(address: str) -> _Judgement:
    found = parse_address(address)
    if found is None:
        return _Judgement("not an address")
    if isinstance(found, IPv4Address):
        return _Judgement(_kind_v4(found), (found,), found in _METADATA)
    if found.scope_id is not None:
        # The scope names an interface of this machine; no URL can have one.
        return _Judgement("an address with a scope, which is never connected to")
    forms = (found, _inner(found, 0)) if found in _MAPPED else (found,)
    kind = _kind_v6(found)
    way = next(filter(_METADATA.__contains__, _embedded(found, whole=kind is not None)), None)
    if way is not None:
        return _Judgement(f"a way to {way}, {_METADATA_KIND}", forms, metadata=True)
    return _Judgement(kind, forms, found in _METADATA)


def _kind_v4(address: IPv4Address) -> str | None:
    if address in _METADATA:
        return _METADATA_KIND
    return next((kind for network, kind in _V4 if address in network), None)


def _kind_v6(address: IPv6Address) -> str | None:
    if address in _METADATA:
        return _METADATA_KIND
    for carrier, shift in _CARRIERS:
        if address in carrier:
            inner = _inner(address, shift)
            kind = _kind_v4(inner)
            return kind and f"a way to {inner}, {kind}"
    rest = None if address in _UNICAST else "a reserved address"
    return next((kind for network, kind in _V6 if address in network), rest)


def _inner(address: IPv6Address, shift: int) -> IPv4Address:
    return IPv4Address(int(address) >> shift & 0xFFFF_FFFF)


def _embedded(address: IPv6Address, *, whole: bool) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses to which a network may translate an address.

    Without `whole`, yield only the one in the last 32 bits, which most networks use: other bits of
    a public address belong to the prefix of a site.
    """
    octets = address.packed
    yield IPv4Address(octets[12:])
    if not whole:
        return
    # RFC 6052, 2.2: after a prefix of 32 to 64 bits, around the octet in the middle.
    halves = octets[:8] + octets[9:]
    yield from (IPv4Address(halves[start : start + 4]) for start in range(4, 9))
    # RFC 3056, 2: 6to4. RFC 4380, 4: Teredo, with all bits inverted.
    yield IPv4Address(octets[2:6])
    yield IPv4Address(int(address) & 0xFFFF_FFFF ^ 0xFFFF_FFFF)


def _block(entry: str) -> Block:
    wanted = "an address or a network such as 10.0.0.0/8"
    try:
        if "%" in entry:
            raise ValueError(entry)
        network = ip_network(entry, strict=False)
        wanted = f"a network without host bits, such as {network}"
        return ip_network(entry)
    except ValueError:
        wrong = f" must be {wanted}, not {entry!r}"
        raise ArgumentError("allow_private", wrong, each=True) from None
