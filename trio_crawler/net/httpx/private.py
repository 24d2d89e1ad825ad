"""Functions for every private attribute of httpx, httpcore and h2 that this package uses.

These names may change with any release, so an untested version is refused when this module is
imported, not at the first request that needs one of them. Only HTTP/2 and proxies need the module:
HTTP/1.1 without a proxy uses the package's own wire.
"""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import httpcore
import httpx

TRIED = {"httpx": ((0, 28), (0, 29)), "httpcore": ((1, 0), (1, 1)), "h2": ((4, 0), (5, 0))}
"""The first tested version of each package, and the first version after the tested ones."""


def check_version(package: str, version: str) -> None:
    """Raise ImportError, with a remedy, for a version of a package that was not tested."""
    first, beyond = TRIED[package]
    if not first <= _numbers(version) < beyond:
        tried = f">={_dotted(first)},<{_dotted(beyond)}"
        raise ImportError(
            f"HTTP/2 and proxies rely on internals of {package} and were tried with "
            f"{package} {tried}, not with {package} {version}, which is installed: "
            f"run pip install '{package}{tried}', or crawl without http2, proxy and trust_env"
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


def set_network_backend(
    transport: httpx.AsyncHTTPTransport, backend: httpcore.AsyncNetworkBackend
) -> None:
    """Set the backend that connects for a transport; httpx has no parameter for it."""
    pool: Any = transport._pool
    pool._network_backend = backend


def count_connections(transport: httpx.AsyncHTTPTransport) -> int:
    """Return the number of connections in the pool of a transport."""
    return len(transport._pool.connections)


async def reset_http2_stream(stream: httpx.AsyncByteStream) -> None:
    """Send RST_STREAM for an HTTP/2 response, so that the server stops (RFC 9113, 5.4.2).

    `stream` is the stream of a response of `httpx.AsyncHTTPTransport`. Nothing is sent for a
    response by HTTP/1.1, nor for one that has ended.
    """
    # httpcore only drops its reference to the stream. The rest would arrive without being
    # acknowledged, and the connection would stall for ever after 16 MiB. After a reset, h2
    # acknowledges all bytes of the stream.
    inner: Any = stream._httpcore_stream._stream  # type: ignore[attr-defined]
    if not hasattr(inner, "_stream_id"):
        return
    import h2.errors
    import h2.exceptions

    connection = inner._connection
    with suppress(h2.exceptions.ProtocolError, httpcore.NetworkError):
        connection._h2_state.reset_stream(inner._stream_id, h2.errors.ErrorCodes.CANCEL)
        await connection._write_outgoing_data(inner._request)
