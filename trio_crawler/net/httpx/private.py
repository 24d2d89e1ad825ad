"""Reset: how an answer by HTTP/2 is left before its end."""

from __future__ import annotations

from contextlib import suppress
from typing import Any


async def reset(stream: Any) -> None:
    """Tell the server to send no more of an answer (RFC 9113, 5.4.2), if it is by HTTP/2.

    `stream` is that of the response as httpx gives it. An answer that has ended is left alone.
    """
    # httpcore only forgets it: the rest would come, and as nobody acknowledges it, the connection
    # would stand still for good after 16 MiB. What comes for a stream that was reset, h2
    # acknowledges by itself.
    inner: Any = getattr(getattr(stream, "_httpcore_stream", None), "_stream", None)
    if not hasattr(inner, "_stream_id"):
        return
    # Imported when there is HTTP/2: httpcore and h2 are not part of every crawl.
    import h2.errors
    import h2.exceptions
    import httpcore

    connection = inner._connection
    with suppress(h2.exceptions.ProtocolError, httpcore.NetworkError):
        connection._h2_state.reset_stream(inner._stream_id, h2.errors.ErrorCodes.CANCEL)
        await connection._write_outgoing_data(inner._request)
