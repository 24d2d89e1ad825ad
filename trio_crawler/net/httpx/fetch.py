"""Fetch URLs by a client or transport of the caller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import httpx

from trio_crawler.net.fetcher import TIMEOUT, Fetcher
from trio_crawler.net.http1.wire import MAX_BYTES
from trio_crawler.net.httpx.adapter import HttpxAdapter
from trio_crawler.net.request import (
    DEFAULT_USER_AGENT,
    Auth,
    Headers,
    Requests,
    default_fields,
)
from trio_crawler.page.urls import web_urls

if TYPE_CHECKING:
    from trio_crawler.net.cookies import CookieStore


class HttpxFetch(Fetcher):
    """Fetch a URL with one GET request, by an `httpx.AsyncClient` or `httpx.AsyncBaseTransport`.

    That client or transport is responsible for addresses, certificates, proxies and connections,
    and the caller closes it: `aclose` only ends this fetch. A client adds its own headers,
    cookies, authentication and timeouts; it gets two response hooks, which act only on the
    requests of this fetch.

    The client's own hooks and authentication may read the body of a response, whole or in part:
    the page is the same as without them. They get no more of it than the fetch may read;
    `max_bytes` does not bound what httpx decodes for them. A status that a hook refuses with
    `raise_for_status` is a response all the same. Any other exception of a hook is a bug, and so
    is a hook that closes a response below 400 before its body was read (RuntimeError). A stream
    that a hook puts in place of the body is the body, of any length. A body that was read before
    this fetch gets it is taken from `response.content`, and is RuntimeError if it is not there.

    `timeout` (seconds), `max_bytes`, `bodies`, redirects, the body of an error response and
    `job.purpose` are as in `HttpFetch`. `max_bytes` bounds only bodies, as the transport returns
    them. A timeout of the client is a Fault that names it.

    `user_agent` is sent to every server, and `contact`, an e-mail address, in From. The default
    of `user_agent` is the User-Agent of the client unless that is httpx's own, else that of
    `HttpFetch`; the attribute `user_agent` has the value that is sent. `headers` and `auth` are
    sent only to the origins of `seeds`, as by `HttpFetch`. `cookies` stores and sends cookies; if
    it has cookies for a URL, the client's cookies are not sent. Without it a login that leads back
    to its first URL is not followed, whatever cookies the client itself stores.

    Raises TypeError or ValueError, naming the argument, if it is invalid or would have no effect:
    `seeds` without `headers` or `auth`, and `auth` for a client with its own authentication.
    """

    __module__ = "trio_crawler"

    def __init__(
        self,
        client_or_transport: httpx.AsyncClient | httpx.AsyncBaseTransport,
        *,
        seeds: Iterable[str | httpx.URL] = (),
        user_agent: str | None = None,
        contact: str | None = None,
        headers: Headers = (),
        auth: Auth | None = None,
        cookies: CookieStore | None = None,
        timeout: float = TIMEOUT,
        max_bytes: int = MAX_BYTES,
        bodies: bool = True,
    ) -> None:
        client = _checked(client_or_transport)
        seeds = web_urls("seeds", seeds)
        own = _own_fields(client)
        defaults = default_fields(user_agent, contact, replaced=own)
        requests = Requests(defaults, seeds=seeds, headers=headers, auth=auth, cookies=cookies)
        if seeds and not requests.has_own:
            raise ValueError("seeds would have no effect without headers or auth: give them too")
        if client is not None and client.auth is not None and requests.authorizes:
            raise ValueError("auth would have no effect: the client has authentication of its own")
        adapter = HttpxAdapter(requests, client_or_transport)
        super().__init__(
            adapter,
            user_agent=user_agent or own.get("User-Agent", DEFAULT_USER_AGENT),
            cookies=cookies,
            cookies_for=adapter.cookies_for,
            sends_credentials=requests.has_credentials or _has_credentials(client),
            timeout=timeout,
            max_bytes=max_bytes,
            bodies=bodies,
        )


def _checked(given: object) -> httpx.AsyncClient | None:
    """Return the client, or None for a transport. Raises TypeError and ValueError."""
    if isinstance(given, httpx.AsyncClient):
        if given.is_closed:
            raise ValueError("client_or_transport must be open, and this client is closed")
        return given
    if not isinstance(given, httpx.AsyncBaseTransport):
        wanted = "client_or_transport must be an httpx.AsyncClient or an httpx.AsyncBaseTransport"
        raise TypeError(f"{wanted}, not {_described(given)}")
    return None


def _has_credentials(client: httpx.AsyncClient | None) -> bool:
    """Whether a client sends cookies or a login of its own."""
    if client is None:
        return False
    named = "cookie" in client.headers or "authorization" in client.headers
    return named or client.auth is not None or bool(client.cookies)


def _described(given: object) -> str:
    """Return what was given instead of a client."""
    if isinstance(given, type):
        return f"the class {given.__module__}.{given.__qualname__}: pass an instance"
    if isinstance(given, httpx.Client | httpx.BaseTransport):
        return f"an {type(given).__module__}.{type(given).__qualname__}, which is not asynchronous"
    return repr(given)


def _own_fields(client: httpx.AsyncClient | None) -> dict[str, str]:
    """Return the User-Agent and Accept of a client, unless they are httpx's defaults."""
    if client is None:
        return {}
    plain = {"User-Agent": f"python-httpx/{httpx.__version__}", "Accept": "*/*"}
    own = {name: client.headers.get(name, value) for name, value in plain.items()}
    return {name: value for name, value in own.items() if value != plain[name]}
