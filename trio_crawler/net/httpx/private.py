"""Functions for every private attribute of httpx, httpcore and h2 that this package uses.

These names may change with any release, so an untested version is refused when this module is
imported, not at the first request that needs one of them. Only the clients of callers need the
module, and do without it if their version was not tested.
"""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import httpcore
import httpx

_MAX_STREAMS = 10
TRIED = {"httpx": ((0, 28), (0, 29)), "httpcore": ((1, 0), (1, 1)), "h2": ((4, 0), (5, 0))}
"""The first tested version of each package, and the first version after the tested ones."""


def check_version(package: str, version: str) -> None:
    """Raise ImportError, with a remedy, for a version of a package that was not tested."""
    first, beyond = TRIED[package]
    if not first <= _numbers(version) < beyond:
        tried = f">={_dotted(first)},<{_dotted(beyond)}"
        raise ImportError(
            f"internals of {package} {version}, which is installed, were not tried: "
            f"run pip install '{package}{tried}'"
        )


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else ()


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


check_version("httpx", httpx.__version__)
check_version("httpcore", httpcore.__version__)
# h2 is an extra of this package, and httpcore imports it only for HTTP/2.
if find_spec("h2") is not None:
    import h2

    check_version("h2", h2.__version__)


def refuse_rest(stream: httpx.AsyncByteStream) -> None:
    """Have httpcore close a connection by HTTP/1.1 that has bytes after the body of `stream`.

    httpcore would take them for the response to the next request.
    """
    machine = getattr(getattr(_inside(stream), "_connection", None), "_h11_state", None)
    if machine is not None and machine.trailing_data[0]:
        machine.send_failed()


async def reset_http2_stream(stream: httpx.AsyncByteStream) -> None:
    """Send RST_STREAM for an HTTP/2 response, so that the server stops (RFC 9113, 5.4.2).

    `stream` is the stream of a response of `httpx.AsyncHTTPTransport` or of a client. Nothing is
    sent for a response by HTTP/1.1, nor for one that has ended.
    """
    # httpcore only drops its reference to the stream. The rest would arrive without being
    # acknowledged, and the connection would stall for ever after 16 MiB. After a reset, h2
    # acknowledges all bytes of the stream.
    inner = _inside(stream)
    if not hasattr(inner, "_stream_id"):
        return
    import h2.errors
    import h2.exceptions

    connection = inner._connection
    with suppress(h2.exceptions.ProtocolError, httpcore.NetworkError):
        connection._h2_state.reset_stream(inner._stream_id, h2.errors.ErrorCodes.CANCEL)
        await connection._write_outgoing_data(inner._request)


def _inside(stream: httpx.AsyncByteStream) -> Any:
    """Return the stream of httpcore inside those of httpx; None if there is none."""
    inner: Any = stream
    for _ in range(_MAX_STREAMS):
        if inner is None or hasattr(inner, "_connection"):
            return inner
        inner = getattr(inner, "_httpcore_stream", None) or getattr(inner, "_stream", None)
    return None
