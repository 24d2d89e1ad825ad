"""Every private attribute of httpx, httpcore and h2 that this package touches, in functions.

These names may change with any release, so an untried version is refused when this module is
imported, not at the first request that needs one of them. Nothing else in the package needs the
module: HTTP/1.1 without a proxy goes by the package's own wire.
"""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import httpcore
import httpx

TRIED = {"httpx": ((0, 28), (0, 29)), "httpcore": ((1, 0), (1, 1)), "h2": ((4, 0), (5, 0))}
"""For each package the first version that was tried, and the first one that was not."""


def check_version(package: str, version: str) -> None:
    """Raise ImportError, with a remedy, for a version of a package that was not tried."""
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
# It is an extra of this package, and httpcore imports it only for HTTP/2.
if find_spec("h2") is not None:
    import h2

    check_version("h2", h2.__version__)


def set_network_backend(
    transport: httpx.AsyncHTTPTransport, backend: httpcore.AsyncNetworkBackend
) -> None:
    """Let the pool of a transport connect by `backend`; httpx has no parameter for that."""
    pool: Any = transport._pool
    pool._network_backend = backend


def count_connections(transport: httpx.AsyncHTTPTransport) -> int:
    """Return the number of connections in the pool of a transport."""
    return len(transport._pool.connections)


async def reset_http2_stream(stream: httpx.AsyncByteStream) -> None:
    """Ask the server to stop sending an HTTP/2 response (RFC 9113, 5.4.2).

    `stream` is the response's, as `httpx.AsyncHTTPTransport` returns it. Nothing is sent for a
    response by HTTP/1.1, and for one that has ended.
    """
    # httpcore only forgets the stream. The rest would come without being acknowledged, and the
    # connection would stall for good after 16 MiB. Once the stream is reset, h2 acknowledges
    # what comes for it.
    inner: Any = stream._httpcore_stream._stream  # type: ignore[attr-defined]
    if not hasattr(inner, "_stream_id"):
        return
    import h2.errors
    import h2.exceptions

    connection = inner._connection
    with suppress(h2.exceptions.ProtocolError, httpcore.NetworkError):
        connection._h2_state.reset_stream(inner._stream_id, h2.errors.ErrorCodes.CANCEL)
        await connection._write_outgoing_data(inner._request)
