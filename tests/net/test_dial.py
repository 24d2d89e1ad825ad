from __future__ import annotations

import errno
import os
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import pytest
import trio
from cases import for_each
from sites.steps import cancelled_at

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial import connector
from trio_crawler.net.dial.addresses import AddressPolicy
from trio_crawler.net.dial.connector import Dialer
from trio_crawler.net.errors import OUT_OF_SOCKETS, FetchError
from trio_crawler.net.turn import Progress

LOOPBACK = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "::1")
REMEDY = "name it as a seed or with --allow-private"
OPEN = AddressPolicy(allow_private=["0.0.0.0/0", "::/0"])


class Steps(Progress):
    """Remember the phases in the order they were set."""

    __slots__ = ("phases",)

    def __init__(self) -> None:
        self.phases: list[Phase] = []

    @property
    def phase(self) -> Phase:
        return self.phases[-1]

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self.phases.append(phase)


def leads_to(*addresses: str) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    """Make a lookup that gives these addresses for any name."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        return addresses

    return resolve


@contextmanager
def listening(*addresses: str, port: int = 0, backlog: int = 16) -> Iterator[list[socket.socket]]:
    """Listen at each address, all on one port, and answer nothing."""
    servers: list[socket.socket] = []
    try:
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            server = socket.socket(family)
            servers.append(server)
            server.setblocking(False)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((address, port))
            server.listen(backlog)
            port = port_of(server)
        yield servers
    finally:
        for server in servers:
            server.close()


def port_of(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    return port


def visits(server: socket.socket) -> int:
    """Count the connections that wait to be accepted, and accept them."""
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


@contextmanager
def nothing_left() -> Iterator[None]:
    """Check that what was opened is closed."""
    before = descriptors()
    yield
    assert descriptors() == before


def descriptors() -> dict[str, str]:
    links = {fd: f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")}
    return {fd: os.readlink(link) for fd, link in links.items() if os.path.lexists(link)}


async def faulty(dialer: Dialer, host: str, port: int = 80) -> FetchError:
    steps = Steps()
    with pytest.raises(FetchError) as caught:
        await dialer(host, port, steps)
    assert caught.value.fault.phase is steps.phase
    return caught.value


@pytest.mark.parametrize("address", LOOPBACK)
async def test_a_seeds_own_address_is_connected_to(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with listening(address) as [server]:
        port, steps = port_of(server), Steps()
        dialer = Dialer(AddressPolicy([f"http://{host}:{port}/"]))
        with closing(await dialer(host, port, steps)) as sock:
            assert sock.getpeername()[:2] == (address, port)
            assert sock.getblocking() is False
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.get_inheritable() is False
            peer, _ = server.accept()
            peer.close()
            await trio.lowlevel.wait_readable(sock)
            assert sock.recv(1) == b""
    assert steps.phases == [Phase.RESOLVE, Phase.CONNECT]


async def test_a_name_of_the_system_is_connected_to() -> None:
    with listening("127.0.0.1") as [server]:
        port = port_of(server)
        dialer = Dialer(AddressPolicy([f"http://localhost:{port}/"]))
        with closing(await dialer("localhost", port, Steps())) as sock:
            assert sock.getpeername() == server.getsockname()


@pytest.mark.parametrize("address", LOOPBACK)
async def test_an_address_that_is_refused_is_not_contacted(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with listening(address) as [server], nothing_left():
        dialer = Dialer(AddressPolicy(["http://example.org/"]))
        fault = (await faulty(dialer, host, port_of(server))).fault
        assert fault.reason is Reason.BLOCKED_ADDRESS
        assert fault.phase is Phase.CONNECT
        assert fault.detail == f"{address} is a loopback address; {REMEDY}"
        assert visits(server) == 0


async def test_a_name_that_leads_to_refused_addresses_only_is_blocked_and_says_both() -> None:
    dialer = Dialer(AddressPolicy(), leads_to("127.0.0.1", "::1"))
    with listening("127.0.0.1", "::1") as servers:
        fault = (await faulty(dialer, "evil.example", port_of(servers[0]))).fault
        assert fault.reason is Reason.BLOCKED_ADDRESS
        assert fault.detail.startswith("evil.example leads to 127.0.0.1, a loopback address; ")
        assert [visits(server) for server in servers] == [0, 0]


@pytest.mark.parametrize("first", ["public", "private"])
async def test_the_second_choice_of_a_seeds_mixed_lookup_is_never_contacted(first: str) -> None:
    contacts: list[str] = []

    async def connect(address: str, port: int) -> socket.socket:
        await trio.lowlevel.checkpoint()
        contacts.append(address)
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    found = ["93.184.216.34", "127.0.0.1", "2606:4700::1111", "::1", "169.254.169.254"]
    resolve = leads_to(*(found if first == "public" else found[::-1]))
    policy = AddressPolicy(["http://seed.example/"])
    dialer = Dialer(policy, resolve, stagger=0, connect=connect)
    for _ in range(2):
        fault = (await faulty(dialer, "seed.example")).fault
        assert fault.reason is Reason.CONNECTION_REFUSED
        # On a machine without IPv6, a company's own host may have no other way.
        assert fault.detail.endswith(
            "; its private addresses were not tried: name them with --allow-private"
        )
    assert sorted(contacts) == ["2606:4700::1111"] * 2 + ["93.184.216.34"] * 2


@pytest.mark.parametrize(
    "policy",
    [
        AddressPolicy(["http://other.example/"]),
        AddressPolicy(["http://seed.example/"], public_only=True),
        AddressPolicy(["http://seed.example/"], ["127.0.0.1"]),
    ],
)
async def test_addresses_that_are_not_withheld_from_a_seed_are_not_told(
    policy: AddressPolicy,
) -> None:
    async def connect(address: str, port: int) -> socket.socket:
        await trio.lowlevel.checkpoint()
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    dialer = Dialer(policy, leads_to("93.184.216.34", "127.0.0.1"), connect=connect)
    fault = (await faulty(dialer, "seed.example")).fault
    assert fault.detail == "seed.example refused the connection"


async def test_what_is_not_an_address_is_never_given_to_the_system() -> None:
    dialer = Dialer(OPEN, leads_to("localhost", "127.1", "::1%lo"))
    with listening("127.0.0.1", "::1") as servers:
        fault = (await faulty(dialer, "a.example", port_of(servers[0]))).fault
        assert fault.reason is Reason.BLOCKED_ADDRESS
        assert [visits(server) for server in servers] == [0, 0]


async def test_a_lookup_that_fails_ends_the_dialing_in_its_phase() -> None:
    fault = (await faulty(Dialer(OPEN), "a..b", 8080)).fault
    assert (fault.reason, fault.phase) == (Reason.NO_SUCH_HOST, Phase.RESOLVE)
    assert fault.detail.startswith("the name of a..b:8080 ")


async def test_a_name_without_addresses_is_a_fault() -> None:
    assert (await faulty(Dialer(OPEN, leads_to()), "a.example")).fault.detail == (
        "a.example has no address"
    )


@contextmanager
def closed_port() -> Iterator[int]:
    """Hold a port that nobody listens on."""
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        yield port_of(sock)


async def test_a_port_where_nobody_listens_refuses() -> None:
    with closed_port() as port, nothing_left():
        fault = (await faulty(Dialer(OPEN), "127.0.0.1", port)).fault
        assert fault.reason is Reason.CONNECTION_REFUSED
        assert fault.detail == f"127.0.0.1:{port} refused the connection"


async def test_the_next_address_is_tried_when_one_refuses() -> None:
    with listening("127.0.0.2") as [server], nothing_left():
        # Other tests listen at 127.0.0.1, maybe at this port.
        resolve = leads_to("127.0.9.1", "127.0.9.2", "127.0.0.2")
        with trio.fail_after(5):
            dialer = Dialer(OPEN, resolve, stagger=60)
            with closing(await dialer("a.example", port_of(server), Steps())) as sock:
                assert sock.getpeername() == server.getsockname()


def test_without_descriptors_the_sentence_says_what_to_do() -> None:
    async def main() -> None:
        for addresses in (["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]):
            fault = (await faulty(Dialer(OPEN, leads_to(*addresses)), "a.example")).fault
            assert (fault.reason, fault.detail) == (Reason.NO_SOCKETS, OUT_OF_SOCKETS)
            assert fault.phase is Phase.CONNECT

    async def exhausted() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = os.dup(0)
        os.close(highest)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
            await main()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    trio.run(exhausted)


@contextmanager
def deaf(address: str, port: int = 0) -> Iterator[int]:
    """Listen with a full backlog: the next connection is neither accepted nor refused."""
    with listening(address, port=port, backlog=0) as [server]:
        waiting = []
        try:
            for _ in range(8):
                sock = socket.socket()
                waiting.append(sock)
                sock.settimeout(0)
                sock.connect_ex(server.getsockname())
            yield port_of(server)
        finally:
            for sock in waiting:
                sock.close()


async def test_an_address_that_does_not_answer_loses_to_one_that_does() -> None:
    with deaf("127.0.0.1") as port, listening("127.0.0.2", port=port) as [server]:
        dialer = Dialer(OPEN, leads_to("127.0.0.1", "127.0.0.2"), stagger=0.01)
        with nothing_left(), trio.fail_after(5):
            sock = await dialer("a.example", port, Steps())
            assert sock.getpeername() == server.getsockname()
            sock.close()


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.1", "127.0.0.1"]])
async def test_a_server_that_does_not_answer_can_be_given_up(addresses: list[str]) -> None:
    with deaf("127.0.0.1") as port, nothing_left():
        with trio.move_on_after(0.05) as scope:
            await Dialer(OPEN, leads_to(*addresses), stagger=0.01)("a.example", port, Steps())
        assert scope.cancelled_caught


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["127.0.0.1", "127.0.0.1"], ["127.0.0.2", "::1", "127.0.0.3", "127.0.0.1"]],
)
async def test_cancelled_at_any_checkpoint_it_leaves_no_descriptor(addresses: list[str]) -> None:
    with listening("127.0.0.1") as [server]:
        dialer = Dialer(OPEN, leads_to(*addresses), stagger=0)

        async def work() -> None:
            (await dialer("a.example", port_of(server), Steps())).close()

        # The order of tasks is random, and with it the number of checkpoints.
        for _ in range(5):
            ended: list[bool] = []
            for checkpoint in range(1, 31):
                with nothing_left():
                    ended.append(await cancelled_at(checkpoint, work))
                visits(server)
            assert sum(ended) >= 2 + len(addresses) // 2
            assert not any(ended[20:])


@pytest.mark.parametrize("call", ["setblocking", "setsockopt", "connect_ex", "getsockopt"])
@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]])
async def test_an_error_of_any_call_on_the_socket_leaves_no_descriptor(
    call: str, addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(sock: socket.socket, *arguments: object) -> None:
        raise OSError(errno.ENOBUFS, "x")

    class Failing(socket.socket):
        pass

    with listening("127.0.0.1", "127.0.0.2") as servers, nothing_left():
        port = port_of(servers[0])
        setattr(Failing, call, fails)
        monkeypatch.setattr(socket, "socket", Failing)
        with pytest.raises(OSError, match="x") as caught:
            await Dialer(OPEN, leads_to(*addresses))("a.example", port, Steps())
        assert caught.value.errno == errno.ENOBUFS


class Race:
    """Connect as a plan says: seconds until it succeeds, or until it fails with a number."""

    def __init__(self, plan: dict[str, float | tuple[float, int]]) -> None:
        self.plan = plan
        self.starts: list[tuple[float, str]] = []
        self.made: dict[str, socket.socket] = {}
        self.ended: list[str] = []
        self.begun = trio.current_time()

    async def connect(self, address: str, port: int) -> socket.socket:
        assert port == 80
        self.starts.append((round(trio.current_time() - self.begun, 6), address))
        what = self.plan[address]
        seconds, number = what if isinstance(what, tuple) else (what, 0)
        try:
            await trio.sleep(seconds)
        finally:
            self.ended.append(address)
        if number:
            raise OSError(number, os.strerror(number))
        self.made[address] = sock = socket.socket()
        return sock

    async def run(self, *addresses: str) -> str:
        """Return the address that has won, after a look at all the others."""
        dialer = Dialer(OPEN, leads_to(*(addresses or self.plan)), connect=self.connect)
        with closing(await dialer("a.example", 80, Steps())) as winner:
            assert self.open == [winner]
            assert sorted(self.ended) == sorted(address for _, address in self.starts)
            (name,) = (name for name, sock in self.made.items() if sock is winner)
            return name

    @property
    def open(self) -> list[socket.socket]:
        return [sock for sock in self.made.values() if sock.fileno() >= 0]


HANGS = 3600.0


async def test_the_next_attempt_starts_a_quarter_of_a_second_after_the_last(
    autojump_clock: trio.testing.MockClock,
) -> None:
    race = Race({"192.0.2.1": HANGS, "192.0.2.2": HANGS, "192.0.2.3": HANGS, "192.0.2.4": 0.1})
    assert await race.run() == "192.0.2.4"
    assert [start for start, _ in race.starts] == [0, 0.25, 0.5, 0.75]
    assert trio.current_time() - race.begun == pytest.approx(0.85)


async def test_one_address_is_waited_for_as_long_as_it_takes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    race = Race({"192.0.2.1": HANGS})
    assert await race.run() == "192.0.2.1"
    assert race.starts == [(0, "192.0.2.1")]


async def test_the_families_take_turns_beginning_with_the_first_address(
    autojump_clock: trio.testing.MockClock,
) -> None:
    six = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"]
    four = ["192.0.2.1", "192.0.2.2"]
    race = Race({**dict.fromkeys(six, HANGS), **dict.fromkeys(four, HANGS)})
    await race.run(*six, *four)
    tried = [address for _, address in race.starts]
    assert tried == [six[0], four[0], six[1], four[1], six[2], six[3]]
    race = Race(race.plan)
    await race.run(*four, *six)
    tried = [address for _, address in race.starts]
    assert tried == [four[0], six[0], four[1], six[1], six[2], six[3]]


async def test_the_first_to_connect_wins_though_it_began_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    race = Race({"2001:db8::1": 0.4, "192.0.2.1": 0.1})
    assert await race.run() == "192.0.2.1"
    race = Race({"2001:db8::1": 0.3, "192.0.2.1": 0.1})
    assert await race.run() == "2001:db8::1"
    race = Race({"2001:db8::1": 0.2, "192.0.2.1": 0.0})
    assert await race.run() == "2001:db8::1"
    assert race.starts == [(0, "2001:db8::1")]


async def test_of_those_that_connect_at_the_same_moment_one_stays_open(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def connect(address: str, port: int) -> socket.socket:
        if address == "192.0.2.3":
            # The cancellation comes too late for those that are woken here.
            woken.set()
        else:
            await woken.wait()
        made.append(socket.socket())
        return made[-1]

    made: list[socket.socket] = []
    woken = trio.Event()
    resolve = leads_to("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")
    with closing(await Dialer(OPEN, resolve, connect=connect)("h", 80, Steps())) as winner:
        assert made[0] is winner
        assert [sock.fileno() for sock in made[1:]] == [-1, -1]
        assert winner.fileno() >= 0


async def test_the_next_attempt_starts_at_once_when_any_has_failed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    refused = errno.ECONNREFUSED
    race = Race({
        "192.0.2.1": (0.3, refused),
        "192.0.2.2": HANGS,
        "192.0.2.3": (0.01, refused),
        "192.0.2.4": HANGS,
        "192.0.2.5": HANGS,
        "192.0.2.6": 0.0,
    })  # fmt: skip
    assert await race.run() == "192.0.2.6"
    assert [start for start, _ in race.starts] == [0, 0.25, 0.3, 0.31, 0.56, 0.81]


async def test_all_attempts_may_fail_and_the_last_failure_ends_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    race = Race({
        "192.0.2.1": (2.0, errno.ENETUNREACH),
        "192.0.2.2": (0.1, errno.ECONNREFUSED),
        "192.0.2.3": (0.5, errno.ETIMEDOUT),
    })  # fmt: skip
    dialer = Dialer(OPEN, leads_to(*race.plan), connect=race.connect)
    fault = (await faulty(dialer, "a.example")).fault
    assert fault.detail == "a.example refused the connection"
    assert trio.current_time() - race.begun == pytest.approx(2.0)


async def test_of_a_name_with_thousands_of_addresses_a_few_are_tried(
    autojump_clock: trio.testing.MockClock,
) -> None:
    four = [f"192.0.{n // 256}.{n % 256}" for n in range(2000)]
    six = [f"2001:db8::{n:x}" for n in range(2000)]
    race = Race(dict.fromkeys([*four, *six], (0.0, errno.ECONNREFUSED)))
    dialer = Dialer(OPEN, leads_to(*race.plan), connect=race.connect)
    assert (await faulty(dialer, "a.example")).fault.reason is Reason.CONNECTION_REFUSED
    tried = [address for _, address in race.starts]
    assert len(tried) == connector.MAX_ADDRESSES
    assert sum(":" in address for address in tried) == connector.MAX_ADDRESSES // 2


async def test_cancelled_at_any_checkpoint_a_race_leaves_no_socket(
    autojump_clock: trio.testing.MockClock,
) -> None:
    refused = errno.ECONNREFUSED
    plan: dict[str, float | tuple[float, int]]
    plan = {"192.0.2.1": HANGS, "192.0.2.2": (0.1, refused), "2001:db8::1": 0.25}
    # The order of tasks is random, and with it the number of checkpoints.
    for _ in range(20):
        ended: list[bool] = []
        for checkpoint in range(1, 31):
            race = Race({**plan, "2001:db8::2": 0.25})
            ended.append(await cancelled_at(checkpoint, race.run))
            assert race.open == []
            assert len(race.ended) == len(race.starts)
        assert sum(ended) >= 8
        assert not any(ended[20:])


async def test_an_outer_cancellation_at_the_moment_of_winning_closes_the_winner(
    autojump_clock: trio.testing.MockClock,
) -> None:
    made: list[socket.socket] = []

    async def connect(address: str, port: int) -> socket.socket:
        await trio.sleep(1)
        made.append(socket.socket())
        scope.cancel()
        return made[-1]

    with trio.CancelScope() as scope:
        await Dialer(OPEN, leads_to("192.0.2.1", "192.0.2.2"), connect=connect)("h", 80, Steps())
    assert scope.cancelled_caught
    assert made
    assert all(sock.fileno() < 0 for sock in made)


ERRORS = [
    (errno.EMFILE, Reason.NO_SOCKETS, OUT_OF_SOCKETS),
    (errno.ENFILE, Reason.NO_SOCKETS, OUT_OF_SOCKETS),
    (errno.ECONNREFUSED, Reason.CONNECTION_REFUSED, "a.example refused the connection"),
    (
        errno.ECONNRESET,
        Reason.RESET,
        "a.example closed the connection before it had answered",
    ),
    (
        errno.ETIMEDOUT,
        Reason.CONNECT_TIMEOUT,
        "a.example did not accept a connection in time",
    ),
    *(
        (number, Reason.UNREACHABLE, f"a.example cannot be reached: {os.strerror(number)}")
        for number in (
            errno.EHOSTUNREACH,
            errno.ENETUNREACH,
            errno.ENETDOWN,
            errno.EADDRNOTAVAIL,
            errno.EAFNOSUPPORT,
            errno.EACCES,
            errno.EPERM,
            errno.EINVAL,
        )
    ),
]


def failing(*numbers: int) -> Dialer:
    """Make a dialer whose attempts fail, one after the other, with these numbers."""
    left = list(numbers)

    async def connect(address: str, port: int) -> socket.socket:
        await trio.lowlevel.checkpoint()
        raise OSError(left.pop(0), "x")

    addresses = [f"192.0.2.{n}" for n in range(len(numbers))]
    return Dialer(OPEN, leads_to(*addresses), connect=connect)


@for_each("number, reason, detail", ERRORS)
async def test_the_number_of_an_error_tells_why_no_connection_came(
    number: int, reason: Reason, detail: str
) -> None:
    for numbers in ((number,), (number, number)):
        fault = (await faulty(failing(*numbers), "a.example")).fault
        assert (fault.reason, fault.detail, fault.phase) == (reason, detail, Phase.CONNECT)


async def test_a_port_that_is_not_usual_is_named() -> None:
    fault = (await faulty(failing(errno.ECONNREFUSED), "a.example", 8080)).fault
    assert fault.detail == "a.example:8080 refused the connection"
    fault = (await faulty(failing(errno.ECONNREFUSED), "a.example", 443)).fault
    assert fault.detail == "a.example refused the connection"


async def test_of_several_addresses_that_failed_the_most_telling_one_counts() -> None:
    told = [number for number, _, _ in ERRORS if number not in (errno.ENFILE, errno.EADDRNOTAVAIL)]
    for place, telling in enumerate(told):
        for less in told[place + 1 :]:
            for numbers in ((telling, less), (less, telling), (less, telling, less)):
                fault = (await faulty(failing(*numbers), "a.example")).fault
                assert fault.detail == ERRORS_BY_NUMBER[telling][1]
                assert fault.reason is ERRORS_BY_NUMBER[telling][0]


ERRORS_BY_NUMBER = {number: (reason, detail) for number, reason, detail in ERRORS}


async def test_an_error_that_is_none_of_the_network_is_raised_as_it_is() -> None:
    for numbers in ((errno.ENOBUFS,), (errno.ENOBUFS, errno.EBADF)):
        with pytest.raises(OSError, match="x") as caught:
            await failing(*numbers)("a.example", 80, Steps())
        assert caught.value.errno == errno.ENOBUFS
    fault = (await faulty(failing(errno.ENOBUFS, errno.ECONNREFUSED), "a.example")).fault
    assert fault.reason is Reason.CONNECTION_REFUSED


async def test_a_bug_in_an_attempt_closes_the_winner(
    autojump_clock: trio.testing.MockClock,
) -> None:
    made: list[socket.socket] = []

    async def connect(address: str, port: int) -> socket.socket:
        if address == "192.0.2.1":
            await woken.wait()
            raise ZeroDivisionError
        # The cancellation comes too late for the other one.
        woken.set()
        made.append(socket.socket())
        return made[-1]

    woken = trio.Event()
    with pytest.raises(ExceptionGroup) as caught:
        await Dialer(OPEN, leads_to("192.0.2.1", "192.0.2.2"), connect=connect)("h", 80, Steps())
    assert caught.group_contains(ZeroDivisionError)
    assert [sock.fileno() for sock in made] == [-1]


BLOCKED = ["127.0.0.2", "[::1]", "::1", "[::ffff:7f00:1]", "169.254.169.254"]
BLOCKED += ["127.2", "0x7f.2", "2130706434", "127.0.0.2.", "[0:0::1]", "[::ffff:127.0.0.1]"]


@for_each("host, port", [*((host, 80) for host in BLOCKED), ("127.0.0.1", 81)])
def test_a_host_that_is_a_refused_address_is_known_without_a_lookup(host: str, port: int) -> None:
    with pytest.raises(FetchError) as caught:
        Dialer(AddressPolicy(["http://127.0.0.1/", "http://169.254.169.254/"])).check_literal(
            host, port
        )
    assert caught.value.fault.reason is Reason.BLOCKED_ADDRESS


@for_each(
    "host", ["127.0.0.1", "127.1", "8.8.8.8", "[2606:4700::1]", "localhost", "1.2.3.999", "a b"]
)
def test_any_other_host_passes_without_a_lookup(host: str) -> None:
    Dialer(AddressPolicy(["http://127.0.0.1/"])).check_literal(host, 80)
