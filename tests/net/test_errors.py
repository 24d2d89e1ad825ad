from __future__ import annotations

import errno
import socket
import ssl

import httpx
import pytest
from cases import for_each

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.errors import OUT_OF_SOCKETS, FetchError, socket_error
from trio_crawler.net.httpx_fetch import fetch_error
from trio_crawler.net.turn import Progress


def connect_error(*causes: BaseException) -> httpx.ConnectError:
    """Make what httpx raises when Trio could connect to none of several addresses."""
    inner = OSError("all attempts to connect failed")
    inner.__cause__ = causes[0] if len(causes) == 1 else BaseExceptionGroup("", list(causes))
    middle = RuntimeError()
    middle.__cause__ = inner
    error = httpx.ConnectError("all attempts to connect failed")
    # As after `raise ... from None` in httpcore.
    error.__context__ = middle
    return error


def fault_of(error: httpx.TransportError, server: str = "h", received: int | None = None) -> Fault:
    made = Progress(server)
    made.received = received
    return fetch_error(error, made).fault


def os_error(number: int) -> OSError:
    return OSError(number, "x")


@for_each(
    "number, reason",
    [
        (errno.ECONNREFUSED, Reason.CONNECTION_REFUSED),
        (errno.ENETUNREACH, Reason.UNREACHABLE),
        (errno.EHOSTUNREACH, Reason.UNREACHABLE),
        (errno.ENETDOWN, Reason.UNREACHABLE),
        (errno.EACCES, Reason.UNREACHABLE),
        (errno.EINVAL, Reason.UNREACHABLE),
        (errno.ETIMEDOUT, Reason.CONNECT_TIMEOUT),
        (errno.ECONNRESET, Reason.RESET),
    ],
)
def test_the_error_number_tells_why_no_connection_came(number: int, reason: Reason) -> None:
    fault = fault_of(connect_error(os_error(number)))
    assert fault.reason is reason
    assert "h" in fault.detail.split(" ")


def test_of_several_addresses_the_one_that_refused_tells_most() -> None:
    both = os_error(errno.ENETUNREACH), os_error(errno.ECONNREFUSED)
    assert fault_of(connect_error(*both)).reason is Reason.CONNECTION_REFUSED
    assert fault_of(connect_error(*reversed(both))).reason is Reason.CONNECTION_REFUSED


@pytest.mark.parametrize(
    ("number", "reason"),
    [(socket.EAI_NONAME, Reason.NO_SUCH_HOST), (socket.EAI_AGAIN, Reason.DNS)],
)
def test_a_name_that_cannot_be_looked_up_is_a_fault(number: int, reason: Reason) -> None:
    fault = fault_of(connect_error(socket.gaierror(number, "No address")), "h:81")
    assert fault.reason is reason
    assert "the name of h:81" in fault.detail


@for_each(
    "error, reason",
    [
        (httpx.ConnectTimeout(""), Reason.CONNECT_TIMEOUT),
        (httpx.ReadTimeout(""), Reason.TIMEOUT),
        (httpx.WriteTimeout(""), Reason.TIMEOUT),
        (httpx.PoolTimeout(""), Reason.NO_SOCKETS),
        (httpx.ReadError(""), Reason.RESET),
        (httpx.WriteError(""), Reason.RESET),
        (httpx.CloseError(""), Reason.RESET),
        (httpx.RemoteProtocolError("illegal status line"), Reason.BAD_REPLY),
        (httpx.LocalProtocolError("illegal state"), Reason.BAD_REPLY),
        (httpx.UnsupportedProtocol("no"), Reason.BAD_URL),
        (httpx.ProxyError("407"), Reason.UNREACHABLE),
        (connect_error(ssl.SSLError(1, "x")), Reason.TLS),
        (connect_error(ssl.SSLEOFError(8, "x")), Reason.RESET),
    ],
)
def test_every_network_exception_has_its_reason(
    error: httpx.TransportError, reason: Reason
) -> None:
    fault = fault_of(error)
    assert fault.reason is reason
    assert fault.detail


def test_a_reset_in_the_body_says_how_far_it_had_come() -> None:
    assert "after 7 bytes" in fault_of(httpx.ReadError(""), "h", 7).detail


def test_what_a_server_put_in_a_message_stays_one_short_printable_line() -> None:
    error = httpx.RemoteProtocolError("\x1b[2J\r\n\u202e" + "x" * 10_000)
    detail = fault_of(error).detail
    assert detail.isprintable()
    assert len(detail) < 250


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_client_without_descriptors_does_not_blame_the_server(number: int) -> None:
    fault = fault_of(connect_error(os_error(number)))
    assert (fault.reason, fault.detail) == (Reason.NO_SOCKETS, OUT_OF_SOCKETS)
    both = connect_error(os_error(errno.ECONNREFUSED), os_error(number))
    assert fault_of(both).reason is Reason.NO_SOCKETS


# Sockets of our own.


def progress(phase: Phase, received: int | None = None) -> Progress:
    made = Progress("h:81")
    made.phase, made.received = phase, received
    return made


@for_each("phase", Phase)
@for_each("number", [errno.EIO, errno.ENOBUFS, errno.EPERM, errno.ENOENT, 0])
def test_whatever_a_socket_raises_is_a_fault_in_its_phase(phase: Phase, number: int) -> None:
    fault = socket_error(os_error(number), progress(phase)).fault
    reaching = phase in (Phase.RESOLVE, Phase.CONNECT)
    assert fault.reason is (Reason.UNREACHABLE if reaching else Reason.RESET)
    assert fault.phase is phase
    assert fault.detail.startswith("h:81 ")


@pytest.mark.parametrize("phase", [Phase.CONNECT, Phase.SEND])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_spent_descriptors_are_not_blamed_on_the_server(phase: Phase, number: int) -> None:
    fault = socket_error(os_error(number), progress(phase)).fault
    assert fault.reason is Reason.NO_SOCKETS
    assert "h:81" not in fault.detail


def test_a_connection_lost_in_the_body_says_how_far_it_had_come() -> None:
    fault = socket_error(os_error(errno.ECONNRESET), progress(Phase.READ, 7)).fault
    assert fault == Fault(
        Reason.RESET, "h:81 broke the connection after 7 bytes of the body", Phase.READ
    )


def test_an_error_of_tls_is_one_in_every_phase() -> None:
    fault = socket_error(ssl.SSLError(1, "[SSL: BAD_RECORD] x"), progress(Phase.READ, 7)).fault
    assert (fault.reason, fault.phase) == (Reason.TLS, Phase.READ)


@pytest.mark.parametrize("received", [None, 7])
def test_only_what_never_was_tls_is_said_to_be_none(received: int | None) -> None:
    error = ssl.SSLError(1, "x")
    error.reason = "WRONG_VERSION_NUMBER"
    fault = socket_error(error, progress(Phase.TLS, received)).fault
    assert fault.reason is Reason.TLS
    assert ("does not speak TLS on this port" in fault.detail) is (received is None)


def test_a_fault_that_is_raised_says_its_sentence() -> None:
    error = FetchError(Reason.DNS, "no such name", Phase.RESOLVE)
    assert str(error) == "no such name"
    assert error.fault == Fault(Reason.DNS, "no such name", Phase.RESOLVE)
