"""A caller's client as a transport, whose hooks and authentication may read bodies."""

from __future__ import annotations

import traceback

import httpx

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.head import content_encoding
from trio_crawler.net.httpx.body import KeptStream, ResponseBody, TooLong
from trio_crawler.net.progress import Progress

_ASKED = "trio_crawler.asked"
_NOT_ASYNC = (
    "a hook of the client is not an async function: httpx.AsyncClient awaits what each hook "
    "returns, so write `async def`"
)


class Asked:
    """A request of a fetch, and its last response; an authentication may need several.

    `headers` are those of a redirect whose Location is hidden from the client.
    """

    def __init__(self, progress: Progress, max_bytes: int) -> None:
        self.progress = progress
        self.max_bytes = max_bytes
        self.response: httpx.Response | None = None
        self.kept: KeptStream | None = None
        self.headers: httpx.Headers | None = None
        self.encoding = b""

    def body_of(self, response: httpx.Response) -> ResponseBody:
        """Return the body of a response, with what the hooks have read of it."""
        kept = self.kept if response is self.response else None
        return ResponseBody(response, kept, self.progress, self.max_bytes)


async def ask(client: httpx.AsyncClient, request: httpx.Request, asked: Asked) -> httpx.Response:
    """Send a request by a caller's client, and return its response before the body is read.

    Its headers, cookies, authentication and hooks apply. Redirects are returned, not followed. A
    response whose status a hook refuses (`raise_for_status`) is returned all the same. The caller
    closes the client. Raises FetchError for a body that a hook cannot decode.
    """
    _set_hooks(client)
    request.extensions[_ASKED] = asked
    try:
        response = await client.send(request, stream=True, follow_redirects=False)
    except httpx.HTTPStatusError as error:
        if error.response is not asked.response:
            raise
        response = error.response
        if asked.kept is not None:
            # httpx has closed it. Nothing needs the body of such a response, if it has one.
            asked.kept.optional = True
    except TooLong:
        if asked.response is None:
            raise
        response = asked.response
    except httpx.DecodingError as error:
        if asked.kept is None or not asked.kept.begun:
            raise
        detail = f"the body of {asked.progress.server} cannot be decoded"
        raise FetchError(Reason.BAD_REPLY, detail, Phase.READ) from error
    except TypeError as error:
        if not _is_at_hook(error):
            raise
        raise TypeError(_NOT_ASYNC) from error
    if response is asked.response and asked.headers is not None:
        response.headers = asked.headers
    return response


def _set_hooks(client: httpx.AsyncClient) -> None:
    """Put the hooks of this module before and after those of the client."""
    hooks = client.event_hooks
    own = hooks["response"]
    # The caller may add hooks, or set others, at any time.
    if own[:1] != [_keep_body] or own[-1:] != [_hide_location]:
        others = [hook for hook in own if hook not in (_keep_body, _hide_location)]
        client.event_hooks = {**hooks, "response": [_keep_body, *others, _hide_location]}


async def _keep_body(response: httpx.Response) -> None:  # noqa: ASYNC124 - httpx awaits it
    """Keep for the fetch what later hooks and the authentication read of the body."""
    asked = response.request.extensions.get(_ASKED)
    if asked is None:
        return
    asked.response, asked.kept, asked.headers = response, None, None
    asked.progress.received = None
    if not response.is_stream_consumed and isinstance(response.stream, httpx.AsyncByteStream):
        asked.kept = KeptStream(response.stream, asked.progress, asked.max_bytes)
        # A hook may change the header, but not the bytes that are kept.
        asked.encoding = content_encoding(response.headers.raw)
        response.stream = asked.kept


async def _hide_location(response: httpx.Response) -> None:  # noqa: ASYNC124 - httpx awaits it
    """Hide Location from the client.

    The client builds the next request even if it must not follow the redirect. For `javascript:`
    and other odd targets that raises, and the response would be lost.
    """
    asked = response.request.extensions.get(_ASKED)
    if asked is not None and "location" in response.headers:
        asked.headers = response.headers
        others = [pair for pair in response.headers.raw if pair[0].lower() != b"location"]
        response.headers = httpx.Headers(others)


def _is_at_hook(error: TypeError) -> bool:
    """Whether httpx itself, not a hook, raised an error where it awaits hooks."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    last = frames[-1]
    return last.f_globals.get("__name__") == "httpx._client" and "hook" in last.f_locals
