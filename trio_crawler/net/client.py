"""ClientTransport: a caller's httpx client, asked as if it were a transport."""

from __future__ import annotations

import httpx

_ASIDE = "trio_crawler.headers"


class ClientTransport(httpx.AsyncBaseTransport):
    """Send each request through a client, so that its headers, cookies and hooks apply.

    Redirects are given back as they are. The client stays the caller's to close.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the response's body is still to be read."""
        hooks = self._client.event_hooks
        if self._set_location_aside not in hooks["response"]:
            response_hooks = [*hooks["response"], self._set_location_aside]
            self._client.event_hooks = {**hooks, "response": response_hooks}
        request.extensions[_ASIDE] = True
        response = await self._client.send(request, stream=True, follow_redirects=False)
        response.headers = response.extensions.pop(_ASIDE, response.headers)
        return response

    @staticmethod
    async def _set_location_aside(response: httpx.Response) -> None:
        """Hide Location from the client, which makes the next request even if it is not to follow.

        For `javascript:` and other odd targets that raises, and the response is lost.
        """
        if _ASIDE in response.request.extensions and "location" in response.headers:
            response.extensions[_ASIDE] = response.headers
            shown = [pair for pair in response.headers.raw if pair[0].lower() != b"location"]
            response.headers = httpx.Headers(shown)
