from __future__ import annotations

import errno
import math
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence

import pytest
import trio
from cases import for_each
from sites.steps import cancelled_at, until

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial import connector
from trio_crawler.net.dial.addresses import server_name
from trio_crawler.net.dial.connector import Resolver, look_up
from trio_crawler.net.errors import OUT_OF_SOCKETS, FetchError

THREADS = 32


class Names:
    """Answer as the system does: from a table, or when told to."""

    def __init__(self, *answers: Sequence[str] | OSError) -> None:
        self.asked: list[bytes] = []
        self.answers = list(answers)
        self.free = threading.Event()
        self.free.set()

    def __call__(self, name: bytes) -> Sequence[str]:
        # What is answered is decided when it is asked.
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(name)
        assert self.free.wait(10)
        if isinstance(answer, OSError):
            raise answer
        return answer

    async def were_asked(self, times: int) -> None:
        """Wait until the thread of a lookup has begun."""
        await until(lambda: len(self.asked) == times)


async def faulty(resolver: Resolver, host: str, port: int = 80) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await resolver(host, port)
    return caught.value


async def test_a_name_is_looked_up_by_the_system() -> None:
    assert "127.0.0.1" in await Resolver()("localhost", 80)


def test_addresses_come_once_each_and_in_the_order_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def getaddrinfo(
        host: bytes, port: None, family: int = 0, type: int = 0
    ) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        assert (host, type) == (b"h.example", socket.SOCK_STREAM)
        found = ["::2", "10.0.0.2", "::1", "::2", "10.0.0.2", "10.0.0.1"]
        return [(0, type, 6, "", (address, 0)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert list(look_up(b"h.example")) == ["::2", "10.0.0.2", "::1", "10.0.0.1"]


@for_each(
    "host, address",
    [
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[fe80::1%eth0]", "fe80::1%eth0"),
    ],
)
async def test_an_address_is_its_own_and_takes_no_thread(host: str, address: str) -> None:
    names = Names(["192.0.2.1"])
    assert list(await Resolver(names)(host, 80)) == [address]
    assert names.asked == []


@for_each(
    "host", ["a", "a.", "xn--bcher-kva.example", "_dmarc.example", "b" * 63 + ".example", "a-.-b"]
)
async def test_a_name_is_asked_for_as_it_is(host: str) -> None:
    names = Names(["192.0.2.1"])
    assert await Resolver(names)(host, 80) == ["192.0.2.1"]
    assert names.asked == [host.encode()]


async def test_a_name_that_is_too_long_for_the_system_is_not_known() -> None:
    # 299 characters: over the 253 of RFC 1035, so that no name server is asked.
    name = ".".join(["ab"] * 100)
    fault = (await faulty(Resolver(), name)).fault
    assert (fault.reason, fault.detail) == (
        Reason.NO_SUCH_HOST,
        f"the name of {name} is not known",
    )


@for_each(
    "error, reason, detail",
    [
        (
            socket.gaierror(socket.EAI_NONAME, "x"),
            Reason.NO_SUCH_HOST,
            "the name of h is not known",
        ),
        (
            socket.gaierror(socket.EAI_NODATA, "x"),
            Reason.NO_SUCH_HOST,
            "the name of h is not known",
        ),
        # The name server refused, or failed for good: that says nothing of the name.
        (
            socket.gaierror(socket.EAI_FAIL, "failed"),
            Reason.DNS,
            "the name of h cannot be looked up: failed",
        ),
        (
            socket.gaierror(socket.EAI_AGAIN, "try again"),
            Reason.DNS,
            "the name of h cannot be looked up: try again",
        ),
        (
            OSError(errno.EIO, "broken"),
            Reason.DNS,
            "the name of h cannot be looked up: broken",
        ),
        (OSError(errno.EIO), Reason.DNS, "the name of h cannot be looked up: unknown error"),
        (OSError("?"), Reason.DNS, "the name of h cannot be looked up: unknown error"),
        (OSError(errno.EMFILE, "x"), Reason.NO_SOCKETS, OUT_OF_SOCKETS),
        (OSError(errno.ENFILE, "x"), Reason.NO_SOCKETS, OUT_OF_SOCKETS),
        # The numbers of getaddrinfo are not those of the system.
        (
            socket.gaierror(errno.EMFILE, "odd"),
            Reason.DNS,
            "the name of h cannot be looked up: odd",
        ),
    ],
)
async def test_a_lookup_that_fails_says_why(error: OSError, reason: Reason, detail: str) -> None:
    fault = (await faulty(Resolver(Names(error)), "h", 443)).fault
    assert (fault.reason, fault.detail, fault.phase) == (reason, detail, Phase.RESOLVE)


async def test_a_name_without_addresses_is_not_known() -> None:
    fault = (await faulty(Resolver(Names([])), "h")).fault
    assert (fault.reason, fault.detail) == (Reason.NO_SUCH_HOST, "the name of h is not known")


@for_each(
    "host, port, peer",
    [
        ("h", 80, "h"),
        ("h", 443, "h"),
        ("h", 8080, "h:8080"),
        ("::1", 81, "[::1]:81"),
        ("[::1]", 81, "[::1]:81"),
        ("::1", 80, "[::1]"),
    ],
)
def test_a_peer_is_named_with_its_port_unless_it_is_a_usual_one(
    host: str, port: int, peer: str
) -> None:
    assert server_name(host, port) == peer


def test_a_process_without_descriptors_says_so_and_not_that_the_name_is_unknown() -> None:
    # In a new process, for glibc keeps what it once read. All but a few descriptors are taken
    # once Trio has its own; the name is one that /etc/hosts has.
    program = """if True:
        import os, resource, trio
        from trio_crawler.net.errors import OUT_OF_SOCKETS, FetchError
        from trio_crawler.net.dial.connector import Resolver

        async def main():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            try:
                while True:
                    os.dup(0)
            except OSError:
                pass
            try:
                await Resolver()("localhost", 80)
            except FetchError as error:
                print(error.fault.reason.value)

        trio.run(main)
    """
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("no_sockets\n", "")


async def test_addresses_are_kept_for_a_minute(autojump_clock: trio.testing.MockClock) -> None:
    names = Names(["192.0.2.1"], ["192.0.2.2"])
    resolver = Resolver(names)
    assert await resolver("h", 80) == ["192.0.2.1"]
    assert repr(resolver) == "<Resolver: 1 names cached, 0 lookups>"
    await trio.sleep(59.9)
    assert await resolver("h", 443) == ["192.0.2.1"]
    assert len(names.asked) == 1
    await trio.sleep(0.1)
    assert await resolver("h", 80) == ["192.0.2.2"]
    await trio.sleep(59.9)
    assert await resolver("h", 80) == ["192.0.2.2"]
    assert len(names.asked) == 2


async def test_of_too_many_names_the_oldest_is_evicted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    names = Names(["192.0.2.1"])
    resolver = Resolver(names, max_names=3)
    for host in ("a", "b", "c"):
        await resolver(host, 80)
        await trio.sleep(25)
    # `a` is too old now: looked up again, it is the youngest.
    await resolver("a", 80)
    await resolver("d", 80)
    assert repr(resolver) == "<Resolver: 3 names cached, 0 lookups>"
    for host in ("c", "a", "d"):
        await resolver(host, 80)
    assert names.asked == [b"a", b"b", b"c", b"a", b"d"]
    await resolver("b", 80)
    assert names.asked[5:] == [b"b"]


async def test_many_who_ask_at_once_cause_one_lookup() -> None:
    names = Names(["192.0.2.1"], ["192.0.2.2"])
    names.free.clear()
    resolver = Resolver(names)
    found: list[Sequence[str]] = []

    async def ask() -> None:
        found.append(await resolver("h", 80))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(ask)
        await names.were_asked(1)
        await trio.testing.wait_all_tasks_blocked()
        assert repr(resolver) == "<Resolver: 0 names cached, 1 lookups>"
        names.free.set()
    assert found == [["192.0.2.1"]] * 50
    assert len(names.asked) == 1


async def test_a_failure_is_shared_by_those_who_waited_and_not_kept() -> None:
    names = Names(socket.gaierror(socket.EAI_AGAIN, "x"), ["192.0.2.1"])
    names.free.clear()
    resolver = Resolver(names)
    errors: list[FetchError] = []

    async def ask() -> None:
        errors.append(await faulty(resolver, "h"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
        await names.were_asked(1)
        await trio.testing.wait_all_tasks_blocked()
        names.free.set()
    assert len(names.asked) == 1
    assert len(set(map(id, errors))) == 3
    assert await resolver("h", 80) == ["192.0.2.1"]


async def test_when_the_one_who_looks_up_is_cancelled_another_starts_anew() -> None:
    names = Names(["192.0.2.1"], ["192.0.2.2"])
    names.free.clear()
    resolver = Resolver(names)
    found: list[Sequence[str]] = []
    leader = trio.CancelScope()

    async def lead() -> None:
        with leader:
            await resolver("h", 80)

    async def ask() -> None:
        found.append(await resolver("h", 80))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lead)
        await names.were_asked(1)
        for _ in range(3):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert len(names.asked) == 1
        leader.cancel()
        await names.were_asked(2)
        names.free.set()
    assert leader.cancelled_caught
    assert found == [["192.0.2.2"]] * 3
    assert len(names.asked) == 2


async def test_an_abandoned_lookup_keeps_its_thread_until_it_ends() -> None:
    names = Names(["192.0.2.1"])
    names.free.clear()
    resolver = Resolver(names, max_threads=THREADS)
    async with trio.open_nursery() as nursery:
        for n in range(THREADS):
            nursery.start_soon(resolver, f"h{n}", 80)
        await names.were_asked(THREADS)
        nursery.cancel_scope.cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resolver, "late", 80)
        await trio.testing.wait_all_tasks_blocked()
        assert b"late" not in names.asked
        names.free.set()
    assert names.asked[-1] == b"late"


async def test_cancelled_at_any_checkpoint_a_lookup_leaves_nothing_under_way() -> None:
    checkpoint = 1
    resolver = Resolver(Names(["192.0.2.1"]))

    async def work() -> None:
        await resolver(f"h{checkpoint}", 80)
        await resolver(f"h{checkpoint}", 80)
        await resolver("[::1]", 80)

    while await cancelled_at(checkpoint, work):
        assert repr(resolver).endswith(" 0 lookups>")
        assert await resolver(f"h{checkpoint}", 80) == ["192.0.2.1"]
        checkpoint += 1
    assert checkpoint > 3


async def test_an_answer_that_is_known_still_lets_others_run() -> None:
    resolver = Resolver(Names(["192.0.2.1"]))
    await resolver("h", 80)
    for host in ("h", "127.0.0.1"):
        with trio.testing.assert_checkpoints():
            await resolver(host, 80)


async def test_a_bug_in_a_lookup_is_raised_and_holds_up_nobody() -> None:
    def broken(name: bytes) -> Sequence[str]:
        raise ZeroDivisionError

    resolver = Resolver(broken)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await resolver("h", 80)
    assert repr(resolver) == "<Resolver: 0 names cached, 0 lookups>"


# Lookups before they are needed.


async def test_a_lookup_in_time_spares_the_call_its_own(
    mock_clock: trio.testing.MockClock,
) -> None:
    names = Names(["192.0.2.1"])
    resolver = Resolver(names)
    assert await resolver.look_up_early("h", 30) == 60
    mock_clock.jump(20)
    assert await resolver.look_up_early("h", 30) == 40
    assert await resolver("h", 80) == ["192.0.2.1"]
    assert len(names.asked) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_an_address_needs_no_lookup(host: str) -> None:
    names = Names(["192.0.2.1"])
    resolver = Resolver(names)
    with trio.testing.assert_checkpoints():
        assert await resolver.look_up_early(host, 30) == math.inf
    assert names.asked == []


@pytest.mark.parametrize("number", [socket.EAI_NONAME, socket.EAI_AGAIN])
async def test_a_failure_in_time_is_kept_for_the_calls_and_not_for_the_next_lookup(
    mock_clock: trio.testing.MockClock, number: int
) -> None:
    names = Names(socket.gaierror(number, "x"), ["192.0.2.1"])
    resolver = Resolver(names)
    assert await resolver.look_up_early("h", 30) == 60
    for port in (80, 8080):
        mock_clock.jump(20)
        error = await faulty(resolver, "h", port)
        assert error.fault.phase is Phase.RESOLVE
        assert server_name("h", port) in error.fault.detail
    assert len(names.asked) == 1
    assert await resolver.look_up_early("h", 30) == 60
    assert await resolver("h", 80) == ["192.0.2.1"]
    assert len(names.asked) == 2


async def test_a_failure_in_time_is_kept_for_a_minute(
    mock_clock: trio.testing.MockClock,
) -> None:
    names = Names(socket.gaierror(socket.EAI_AGAIN, "x"), ["192.0.2.1"])
    resolver = Resolver(names)
    await resolver.look_up_early("h", 30)
    mock_clock.jump(60)
    assert await resolver("h", 80) == ["192.0.2.1"]


async def test_a_want_of_descriptors_is_not_kept(mock_clock: trio.testing.MockClock) -> None:
    names = Names(OSError(errno.EMFILE, "x"), ["192.0.2.1"])
    resolver = Resolver(names)
    assert await resolver.look_up_early("h", 30) == 60
    assert await resolver("h", 80) == ["192.0.2.1"]


async def test_a_lookup_that_takes_too_long_is_a_failure_that_is_kept() -> None:
    names = Names(["192.0.2.1"])
    names.free.clear()
    resolver = Resolver(names)
    assert await resolver.look_up_early("h", 0.01) == 60
    fault = (await faulty(resolver, "h")).fault
    assert (fault.reason, fault.phase) == (Reason.DNS, Phase.RESOLVE)
    assert fault.detail == "the name of h cannot be looked up: no answer in 0.01 seconds"
    assert len(names.asked) == 1
    names.free.set()


async def test_the_time_in_which_a_lookup_waits_for_a_thread_does_not_count(
    mock_clock: trio.testing.MockClock,
) -> None:
    mock_clock.autojump_threshold = 0
    names = Names(["192.0.2.1"])
    names.free.clear()
    resolver = Resolver(names, max_threads=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resolver.look_up_early, "first", math.inf)
        await names.were_asked(1)
        nursery.start_soon(resolver.look_up_early, "second", 5)
        await trio.sleep(20)
        assert names.asked == [b"first"]
        mock_clock.autojump_threshold = math.inf
        names.free.set()
    assert names.asked == [b"first", b"second"]
    assert await resolver("second", 80) == ["192.0.2.1"]
    assert len(names.asked) == 2


async def test_two_hundred_and_fifty_silent_names_do_not_delay_a_well_one() -> None:
    """With fewer threads the well one would wait until the first silent one is given up."""
    silent = threading.Event()
    begun = []

    def look_up(name: bytes) -> Sequence[str]:
        if name.startswith(b"silent"):
            begun.append(name)
            assert silent.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return ["192.0.2.1"]

    resolver = Resolver(look_up)
    async with trio.open_nursery() as nursery:
        for n in range(250):
            nursery.start_soon(resolver.look_up_early, f"silent{n}", 30)
        await until(lambda: len(begun) == 250)
        assert await resolver("well", 80) == ["192.0.2.1"]
        assert repr(resolver) == "<Resolver: 1 names cached, 250 lookups>"
        silent.set()


def test_the_threads_take_no_more_than_a_quarter_of_the_descriptors() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (80, limits[1]))
        few = Resolver(Names(["192.0.2.1"]))
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        many = Resolver(Names(["192.0.2.1"]))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert few.max_threads == 20
    assert 20 < many.max_threads <= connector.MAX_THREADS


async def test_a_cancelled_lookup_in_time_leaves_nothing_under_way() -> None:
    names = Names(["192.0.2.1"])
    names.free.clear()
    resolver = Resolver(names)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resolver.look_up_early, "h", 30)
        await names.were_asked(1)
        nursery.cancel_scope.cancel()
    names.free.set()
    assert repr(resolver) == "<Resolver: 0 names cached, 0 lookups>"
    assert await resolver("h", 80) == ["192.0.2.1"]
