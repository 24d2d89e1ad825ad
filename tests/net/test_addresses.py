from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.net.dial.addresses import AddressPolicy, as_in_url
from trio_crawler.page.urls import normalise

PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255
128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0
191.255.255.255 192.0.1.0 192.0.3.0 192.31.196.1 192.52.193.1 192.88.98.255 192.88.100.0
192.167.255.255 192.169.0.0 192.175.48.1 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
203.0.112.255 203.0.114.0 223.255.255.255
2000:: 2001:200:: 2001:db7:ffff:: 2001:db9:: 2606:4700:4700::1111 2620:4f:8000::1 2a00:1450::1
3ffe:: 3ffe:ffff:: 3fff:1000::
::ffff:8.8.8.8 ::ffff:808:808 64:ff9b::8.8.8.8 64:ff9b::808:808 2002:808:808::1
""".split()

REFUSED = {
    "unspecified": "0.0.0.0 :: ::ffff:0.0.0.0",
    "of this network": "0.0.0.1 0.255.255.255 ::ffff:0.1.2.3",
    "private": (
        "10.0.0.0 10.0.0.5 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255"
        " ::ffff:10.0.0.5 ::ffff:a00:5 64:ff9b::10.0.0.5 64:ff9b::c0a8:1 2002:a00:5:: 2002:ac10::1"
    ),
    "shared": "100.64.0.0 100.127.255.255 ::ffff:100.64.0.1",
    "loopback": (
        "127.0.0.0 127.0.0.1 127.0.0.2 127.255.255.255 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1"
        " 64:ff9b::127.0.0.1 2002:7f00:1::"
    ),
    "link-local": "169.254.0.0 169.254.255.255 fe80:: fe80::1 febf:ffff::1 ::ffff:169.254.1.1",
    "cloud metadata": (
        "169.254.169.254 100.100.100.200 168.63.129.16 fd00:ec2::254 ::ffff:169.254.169.254"
        " ::ffff:168.63.129.16 64:ff9b::a9fe:a9fe 64:ff9b::168.63.129.16 2002:a9fe:a9fe::"
        " 169.254.170.2 169.254.170.23 fd00:ec2::23 fd20:ce::254 192.0.0.192 169.254.0.23"
        " 169.254.42.42 fd00:42::42"
        # IPv4-compatible, IPv4-translated, NAT64 with prefixes of each length, ISATAP, Teredo.
        " ::169.254.169.254 ::ffff:0:169.254.169.254 64:ff9b:1::169.254.169.254"
        " 64:ff9b:1:a9fe:a9:fe00:: fd00:64::169.254.169.254 fd00:64:a9fe:a9fe::"
        " fd00:64:1:a9fe:a9:fe00:: fd00:64:1:a9:fe:a9fe:: fd00:64:1:1:a9:fea9:fe00::"
        " fd00:64:a9:fea9:fe::"
        " fd00::200:5efe:169.254.169.254 2001:0:a9fe:a9fe::1 2001:0:808:808::5601:5601"
        " 2600:64::169.254.169.254"
    ),
    "documentation": (
        "192.0.2.0 192.0.2.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255"
        " 2001:db8:: 2001:db8:ffff::1 3fff:: 3fff:fff:ffff::1"
    ),
    "benchmarking": "198.18.0.0 198.19.255.255 2001:2::1",
    "multicast": "224.0.0.0 224.0.0.1 233.252.0.1 239.255.255.255 ff00:: ff02::1 ff0e::1",
    "broadcast": "255.255.255.255 ::ffff:255.255.255.255",
    "reserved": (
        "192.0.0.0 192.0.0.8 192.0.0.191 192.0.0.255 192.88.99.1 240.0.0.0 255.255.255.254"
        " 2001:1::1 2001:10::1 2001:20::1 2001:30::1 2001:1ff:ffff::1"
        " 0:0:0:1:: ::1:0:0:0 ::fffe:8.8.8.8 ::ffff:0:8.8.8.8 64:ff9a:ffff::1 64:ff9b:0:1::1"
        " 64:ff9b:2::1 100:0:0:1::1 1fff:ffff::1 4000:: 5f00::1 fbff:ffff::1 fe00::1 fe7f::1"
    ),
    "IPv4-compatible": "::127.0.0.1 ::8.8.8.8 ::2 ::ffff:ffff",
    "NAT64 address for local use": "64:ff9b:1:: 64:ff9b:1::808:808 64:ff9b:1:ffff::1",
    "Teredo": "2001:: 2001:0:1234::1 2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
    "discard": "100:: 100::ffff:ffff:ffff:ffff",
    "unique local": "fc00:: fc00::1 fd12:3456::1 fdff:ffff::1 fd00::a9fe:a9fe:0",
    "site-local": "fec0:: fec0::1 feff:ffff::1",
    "with a scope": "fe80::1%eth0 fe80::1%1 ::1%lo 2606:4700::1%eth0",
    "not an address": "localhost 127.1 0x7f.0.0.1 010.0.0.1 2130706433 1.2.3.4.5 ::g %eth0 [ :",
}
CASES = [(address, kind) for kind, row in REFUSED.items() for address in row.split()]


def refusal(
    policy: AddressPolicy, address: str, host: str = "host.example", port: int = 80
) -> str | None:
    return policy.block_reason(host, port, address)


@for_each(
    "host, normal",
    [("0x7f.1", "127.0.0.1"), ("A.example", "a.example"), ("[::1]", "::1"), ("0::1", "::1")],
)
def test_a_host_is_written_as_in_a_normalised_url(host: str, normal: str) -> None:
    assert as_in_url(host) == normal


@for_each("address", PUBLIC)
def test_a_public_address_may_be_connected(address: str) -> None:
    assert AddressPolicy().block_reason(address, 80, address) is None
    assert refusal(AddressPolicy(), address) is None


@for_each("address, kind", CASES)
def test_any_other_address_is_refused_and_its_kind_is_named(address: str, kind: str) -> None:
    said = refusal(AddressPolicy(), address)
    assert said is not None
    assert kind in said
    # Remembered or not, the answer is the same.
    assert refusal(AddressPolicy(), address) == said


def test_the_empty_address_is_refused() -> None:
    assert refusal(AddressPolicy(), "") is not None


@given(st.ip_addresses(v=4))
def test_a_mapped_address_and_its_carriers_are_judged_as_the_inner_address(
    inner: IPv4Address,
) -> None:
    policy = AddressPolicy()
    refused = refusal(policy, str(inner)) is not None
    number = int(inner)
    carriers = (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80)
    for carrier in carriers:
        assert (refusal(policy, str(IPv6Address(carrier))) is not None) is refused


@given(st.ip_addresses(v=4))
def test_no_ipv4_compatible_address_may_be_connected(inner: IPv4Address) -> None:
    assert refusal(AddressPolicy(), str(IPv6Address(int(inner))))


@given(st.ip_addresses())
def test_what_python_knows_to_be_of_special_use_is_refused(
    address: IPv4Address | IPv6Address,
) -> None:
    # The IPv6 carriers are judged by their inner address, which Python does not look at.
    if address in ip_network("2002::/16") or address in ip_network("64:ff9b::/96"):
        return
    if address.is_private or address.is_multicast or address.is_reserved or address.is_loopback:
        mapped = getattr(address, "ipv4_mapped", None)
        if mapped is None:
            assert refusal(AddressPolicy(), str(address))


INTRA = "http://intra.example/"


def test_the_sentence_has_the_kind_and_the_remedy() -> None:
    remedy = "name it as a seed or with --allow-private"
    policy = AddressPolicy()
    own = policy.block_reason("10.0.0.5", 80, "10.0.0.5")
    assert own == f"10.0.0.5 is a private address; {remedy}"
    assert policy.block_reason("[::1]", 80, "::1") == f"::1 is a loopback address; {remedy}"
    assert policy.block_reason("a.example", 80, "10.0.0.5") == (
        f"a.example leads to 10.0.0.5, a private address; {remedy}"
    )
    assert policy.block_reason("[::ffff:a00:5]", 80, "::ffff:a00:5") == (
        f"::ffff:a00:5 is a way to 10.0.0.5, a private address; {remedy}"
    )


def test_the_sentence_says_why_a_seed_does_not_open_its_address() -> None:
    policy = AddressPolicy(["http://127.0.0.1:8001/", "http://127.0.0.1/", INTRA])
    assert policy.block_reason("127.0.0.1", 9200, "127.0.0.1") == (
        "127.0.0.1 is a loopback address, and its seed opens only port 80, 443, 8001; "
        "name this URL as a seed, or the address with --allow-private"
    )
    policy.record("intra.example", ["10.0.0.5"])
    assert policy.block_reason("intra.example", 80, "10.0.0.6") == (
        "intra.example leads to 10.0.0.6, a private address that was not in its first lookup; "
        "name it with --allow-private"
    )
    mixed = AddressPolicy([INTRA])
    mixed.record("intra.example", ["93.184.216.34", "10.0.0.5"])
    assert mixed.block_reason("intra.example", 80, "10.0.0.5") == (
        "intra.example leads to 10.0.0.5, a private address, and its first lookup had a public "
        "one too; name it with --allow-private"
    )
    untried = "its private addresses were not tried: name them with --allow-private"
    assert (mixed.withheld("intra.example"), policy.withheld("intra.example")) == (untried, "")
    assert policy.block_reason("a.example", 80, "169.254.169.254") == (
        "a.example leads to 169.254.169.254, a cloud metadata address; "
        "only --allow-private opens it"
    )
    assert policy.block_reason("[::ffff:127.0.0.1]", 80, "::ffff:127.0.0.1") == (
        "::ffff:127.0.0.1 is a way to 127.0.0.1, a loopback address; "
        "name it as a seed or with --allow-private"
    )
    public = AddressPolicy([INTRA], public_only=True)
    assert public.block_reason("intra.example", 80, "10.0.0.5") == (
        "intra.example leads to 10.0.0.5, a private address; with --public-only no seed opens it"
    )


def test_an_address_that_nothing_can_open_is_refused_without_a_remedy() -> None:
    policy = AddressPolicy(allow_private=["::/0", "0.0.0.0/0"])
    assert policy.block_reason("a.example", 80, "fe80::1%eth0") == (
        "a.example leads to fe80::1%eth0, an address with a scope, which is never connected to"
    )
    assert policy.block_reason("a.example", 80, "b.example") == (
        "a.example leads to b.example, not an address"
    )


# What a seed opens.


@for_each(
    "seed, port, address",
    [
        ("http://127.0.0.1/", 80, "127.0.0.1"),
        ("http://127.0.0.1/", 443, "127.0.0.1"),
        ("https://127.0.0.1/", 80, "127.0.0.1"),
        ("http://127.0.0.1:443/", 80, "127.0.0.1"),
        ("https://127.0.0.1:8443/a/b?c", 8443, "127.0.0.1"),
        ("http://127.0.0.1", 80, "127.0.0.1"),
        ("http://127.0.0.1?q=http://x/", 80, "127.0.0.1"),
        ("http://me:secret@127.0.0.1:80/@10.0.0.5/", 80, "127.0.0.1"),
        ("http://127.0.0.1./", 80, "127.0.0.1"),
        ("http://0177.1/", 80, "127.0.0.1"),
        ("http://2130706433:8000/", 8000, "127.0.0.1"),
        ("http://0x7F.1/", 80, "127.0.0.1"),
        ("http://0.0.0.0:8000/", 8000, "0.0.0.0"),
        ("http://169.254.1.1/", 80, "169.254.1.1"),
        ("http://[::1]/", 80, "::1"),
        ("http://[::1]:8080/", 8080, "::1"),
        ("http://[::1]:8080/", 8080, "0:0:0:0:0:0:0:1"),
        ("http://[::1]:8080/", 8080, "[::1]"),
        ("http://[::ffff:7f00:1]/", 80, "::ffff:127.0.0.1"),
    ],
)
def test_a_seed_that_is_an_address_opens_it_at_its_port(
    seed: str, port: int, address: str
) -> None:
    policy = AddressPolicy([normalise(seed)])
    assert refusal(policy, address, address, port) is None
    assert refusal(policy, address, f"[{address.strip('[]')}]", port) is None
    assert refusal(AddressPolicy(["http://example.org/"]), address, address, port)
    assert refusal(AddressPolicy([normalise(seed)], public_only=True), address, address, port)
    # Neither at another port, nor for a name.
    assert refusal(policy, address, address, 9200)
    assert refusal(policy, address, "host.example", port)
    assert refusal(policy, address, "localhost", port)


@for_each(
    "seed, address",
    [
        ("http://127.0.0.1/", "127.0.0.2"),
        ("http://127.0.0.1/", "::1"),
        ("http://127.0.0.1/", "::ffff:127.0.0.1"),
        ("http://127.0.0.1/", "::127.0.0.1"),
        ("http://127.0.0.1/", "64:ff9b::127.0.0.1"),
        ("http://127.0.0.1/", "2002:7f00:1::"),
        ("http://[::1]/", "127.0.0.1"),
        ("http://[::ffff:7f00:1]/", "127.0.0.1"),
        ("http://example.org/127.0.0.1", "127.0.0.1"),
        ("http://127.0.0.1@example.org/", "127.0.0.1"),
        ("http://localhost/", "127.0.0.1"),
        ("http://8.8.8.8/", "10.0.0.5"),
    ],
)
def test_a_seed_opens_no_other_address(seed: str, address: str) -> None:
    assert refusal(AddressPolicy([normalise(seed)]), address, address)


METADATA = [address for address, kind in CASES if kind == "cloud metadata"]


@for_each("address", METADATA)
def test_no_seed_opens_a_metadata_address(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    policy = AddressPolicy([normalise(f"http://{host}/"), INTRA])
    policy.record(address, [address])
    policy.record("intra.example", [address, "10.0.0.5"])
    for asked in (address, "intra.example", "host.example"):
        said = refusal(policy, address, asked)
        assert said is not None
        assert said.endswith("; only --allow-private opens it")
    assert refusal(policy, "10.0.0.5", "intra.example") is None
    allowed = AddressPolicy([INTRA], ["::/0", "0.0.0.0/0"])
    assert refusal(allowed, address, "intra.example") is None


@for_each(
    "network, address",
    [
        ("169.254.169.254", "169.254.169.254"),
        ("169.254.0.0/16", "169.254.169.254"),
        ("169.254.0.0/16", "::ffff:169.254.169.254"),
        ("fd00::/8", "fd00:ec2::254"),
        ("64:ff9b::/96", "64:ff9b::a9fe:a9fe"),
    ],
)
def test_a_metadata_address_is_opened_by_an_allowed_network_that_has_it(
    network: str, address: str
) -> None:
    assert refusal(AddressPolicy(allow_private=[network]), address) is None


FIRST = {
    "one address": ("10.0.0.5", "10.0.0.5"),
    "two": ("10.0.0.5 10.0.0.6", "10.0.0.5 10.0.0.6"),
    "two families": ("10.0.0.5 fd00::5", "10.0.0.5 fd00::5"),
    "two kinds": ("127.0.0.1 ::1 192.168.0.1", "127.0.0.1 ::1 192.168.0.1"),
    "carriers": ("::ffff:10.0.0.5 64:ff9b::10.0.0.5", "::ffff:10.0.0.5 64:ff9b::10.0.0.5"),
    "a scope": ("10.0.0.5 fe80::1%eth0", "10.0.0.5"),
    "metadata": ("10.0.0.5 169.254.169.254 fd00:ec2::254", "10.0.0.5"),
    "only metadata": ("169.254.169.254", ""),
    "what is no address": ("10.0.0.5 localhost", "10.0.0.5"),
    "a public one first": ("93.184.216.34 127.0.0.1", ""),
    "a public one last": ("127.0.0.1 ::1 93.184.216.34", ""),
    "a public one of IPv6": ("127.0.0.1 2606:4700::1111", ""),
    "a public one in IPv6": ("127.0.0.1 ::ffff:8.8.8.8", ""),
    "a public one by NAT64": ("127.0.0.1 64:ff9b::8.8.8.8", ""),
    "a public one by 6to4": ("127.0.0.1 2002:808:808::1", ""),
    "a public one with a scope": ("127.0.0.1 2606:4700::1111%eth0", ""),
    "only public ones": ("93.184.216.34 2606:4700::1111", ""),
}


@for_each("answer, opened", FIRST.values(), ids=FIRST)
def test_the_first_lookup_of_a_seed_opens_all_of_its_addresses_or_none(
    answer: str, opened: str
) -> None:
    policy = AddressPolicy(["http://intra.example:8080/"])
    policy.record("intra.example", answer.split())
    # Neither a later lookup nor that of another name opens more.
    policy.record("intra.example", ["10.9.9.9"])
    policy.record("other.example", answer.split())
    for address in {*answer.split(), "10.9.9.9"}:
        may = address in opened.split() or refusal(AddressPolicy(), address) is None
        assert (refusal(policy, address, "intra.example", 8080) is None) is may, address
        if refusal(AddressPolicy(), address) is not None:
            for port in (80, 443, 8081):
                assert refusal(policy, address, "intra.example", port), address
            assert refusal(policy, address, "other.example", 8080), address
            assert refusal(policy, address, address, 8080), address


@for_each(
    "seeds, ports",
    [
        ("http://intra.example/", {80, 443}),
        ("https://intra.example/", {80, 443}),
        ("https://intra.example:80/", {80, 443}),
        ("http://intra.example:8080/", {8080}),
        ("https://intra.example:8443/", {8443}),
        ("http://intra.example:1/ https://intra.example:2/", {1, 2}),
        ("http://intra.example:1/ https://intra.example/", {1, 80, 443}),
        ("http://other.example:1/ http://intra.example:2/", {2}),
        ("http://INTRA.example/", {80, 443}),
        ("http://intra.example./", set()),
        ("http://www.intra.example/", set()),
        ("http://sub.intra.example/", set()),
    ],
)
def test_a_seeds_name_is_opened_at_the_ports_of_its_seeds(seeds: str, ports: set[int]) -> None:
    policy = AddressPolicy(map(normalise, seeds.split()))
    policy.record("intra.example", ["10.0.0.5"])
    tried = (1, 2, 80, 443, 8080, 8443, 9200)
    opened = {port for port in tried if not refusal(policy, "10.0.0.5", "intra.example", port)}
    assert opened == ports


def test_before_its_first_lookup_a_name_opens_nothing() -> None:
    policy = AddressPolicy([INTRA])
    assert refusal(policy, "10.0.0.5", "intra.example")


def test_a_later_lookup_of_a_seed_opens_nothing() -> None:
    policy = AddressPolicy([INTRA])
    policy.record("intra.example", ["10.0.0.5"])
    policy.record("intra.example", ["10.0.0.6"])
    assert refusal(policy, "10.0.0.6", "intra.example")
    assert refusal(policy, "10.0.0.5", "intra.example") is None


@pytest.mark.parametrize("first", ["93.184.216.34", "169.254.169.254", "fe80::1%eth0"])
def test_a_seed_that_was_public_at_first_or_metadata_cannot_become_private(first: str) -> None:
    policy = AddressPolicy(["http://public.example/"])
    policy.record("public.example", [first])
    policy.record("public.example", ["127.0.0.1"])
    said = refusal(policy, "127.0.0.1", "public.example")
    assert said is not None
    assert "that was not in its first lookup" in said


def test_a_first_lookup_that_gave_nothing_does_not_count() -> None:
    policy = AddressPolicy([INTRA])
    policy.record("intra.example", [])
    policy.record("intra.example", ["10.0.0.5"])
    assert refusal(policy, "10.0.0.5", "intra.example") is None


@for_each(
    "host", ["evil.example", "a.intra.example", "example", "intra.example.", "127.0.0.1", ""]
)
def test_the_lookup_of_another_host_opens_nothing(host: str) -> None:
    policy = AddressPolicy([INTRA, "http://127.0.0.1/"])
    policy.record(host, ["10.0.0.5"])
    assert refusal(policy, "10.0.0.5", host)
    # Nor does it use up the seed's own first lookup.
    policy.record("intra.example", ["10.0.0.6"])
    assert refusal(policy, "10.0.0.6", "intra.example") is None


def test_each_seed_has_a_first_lookup_of_its_own() -> None:
    policy = AddressPolicy(["http://a.example/", "https://a.example/x", "http://b.example/"])
    policy.record("a.example", ["10.0.0.1"])
    policy.record("b.example", ["10.0.0.2"])
    assert refusal(policy, "10.0.0.2", "b.example") is None
    assert refusal(policy, "10.0.0.1", "b.example")
    policy.record("a.example", ["10.0.0.3"])
    assert refusal(policy, "10.0.0.3", "a.example")


def test_a_lookup_that_gives_no_addresses_but_names_opens_nothing() -> None:
    policy = AddressPolicy([INTRA])
    policy.record("intra.example", ["localhost", "fe80::1%eth0"])
    for address in ("localhost", "fe80::1%eth0", "fe80::1"):
        assert refusal(policy, address, "intra.example")


def test_with_public_only_neither_a_seed_nor_its_lookup_opens_anything() -> None:
    policy = AddressPolicy([INTRA, "http://127.0.0.1/"], public_only=True)
    policy.record("intra.example", ["10.0.0.5"])
    assert refusal(policy, "10.0.0.5", "intra.example")
    assert refusal(policy, "127.0.0.1", "127.0.0.1")
    assert refusal(policy, "93.184.216.34", "intra.example") is None


def test_public_only_and_an_allowed_network_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="allow_private and public_only exclude each other"):
        AddressPolicy(allow_private=["10.0.0.0/8"], public_only=True)


# What the caller opens.


@for_each(
    "entry, opened, closed",
    [
        ("10.0.0.0/8", "10.0.0.0 10.255.255.255 ::ffff:10.1.2.3", "11.0.0.0 127.0.0.1 ::1"),
        ("10.0.0.5", "10.0.0.5 ::ffff:a00:5", "10.0.0.4 10.0.0.6 64:ff9b::10.0.0.5 2002:a00:5::"),
        ("10.0.0.0/255.255.0.0", "10.0.255.255", "10.1.0.0"),
        ("::1", "::1", "127.0.0.1 ::ffff:127.0.0.1"),
        ("fd00::/8", "fd00::1 fd00:ec2::254", "fc00::1"),
        ("0.0.0.0/0", "10.0.0.1 127.0.0.1 169.254.169.254 ::ffff:10.0.0.1", "::1 fe80::1"),
        ("::/0", "::1 fe80::1 ff02::1 ::ffff:10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "10.0.0.1"),
        ("64:ff9b::/96", "64:ff9b::10.0.0.5", "10.0.0.5"),
    ],
)
def test_an_allowed_network_opens_its_addresses_and_no_other(
    entry: str, opened: str, closed: str
) -> None:
    policy = AddressPolicy(allow_private=[entry])
    for address in opened.split():
        if address not in closed.split():
            assert refusal(AddressPolicy(), address), address
        assert refusal(policy, address) is None, address
    for address in closed.split():
        assert (refusal(policy, address) is None) is (address == "11.0.0.0"), address


@for_each(
    "entry",
    ["", "example.org", "10", "10.0.0.0/33", "10.0.0.0/", "::/129", "fe80::1%eth0", "[::1]"],
)
def test_an_entry_that_is_no_network_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match=r"such as 10\.0\.0\.0/8, not ") as caught:
        AddressPolicy(allow_private=["10.0.0.0/8", entry])
    assert str(caught.value).endswith(f", not {entry!r}")


def test_an_entry_with_host_bits_set_is_told_its_network() -> None:
    with pytest.raises(ValueError, match="host bits") as caught:
        AddressPolicy(allow_private=["10.0.0.1/8"])
    assert str(caught.value).endswith("such as 10.0.0.0/8, not '10.0.0.1/8'")


def test_what_one_policy_opens_stays_closed_for_another() -> None:
    opened = AddressPolicy(["http://127.0.0.1/"], ["10.0.0.0/8"])
    assert refusal(opened, "127.0.0.1", "127.0.0.1") is None
    assert refusal(opened, "10.0.0.5") is None
    assert refusal(AddressPolicy(), "127.0.0.1", "127.0.0.1")
    assert refusal(AddressPolicy(), "10.0.0.5")
