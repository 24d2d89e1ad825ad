"""Fetch URLs over the wire of this package, or by HTTP/2."""

from __future__ import annotations

import ssl
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import trio

from trio_crawler.arguments import ArgumentError, check_flag, check_function, public
from trio_crawler.in_trio import check_in_trio
from trio_crawler.net.dial.connector import Resolver
from trio_crawler.net.errors import FetchError
from trio_crawler.net.fetcher import TIMEOUT, Fetcher, Request
from trio_crawler.net.http1.connection import Connection, Origin
from trio_crawler.net.http1.message import Fields, Head
from trio_crawler.net.http1.wire import MAX_BYTES, Wire
from trio_crawler.net.request import (
    DEFAULT_USER_AGENT,
    Auth,
    Headers,
    Requests,
    Target,
    default_fields,
    is_target,
    merged,
)
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.net.tls import ClientCert, Security
from trio_crawler.net.turn import Progress
from trio_crawler.page.urls import origin as url_origin
from trio_crawler.page.urls import web_urls

if TYPE_CHECKING:
    from trio_crawler.net.cookies import CookieStore
    from trio_crawler.net.http2.stream import Http2Stream
    from trio_crawler.net.http2.wire import Http2Wire

__all__ = ["DEFAULT_USER_AGENT", "HttpFetch", "WireAdapter"]

_MAX_SITES = 10_000
_AFTER_SCHEME = len("https://")


@public("trio_crawler")
class HttpFetch(Fetcher):
    """Fetch a URL with one request, over HTTP/1.1 by default.

    Redirects are returned, not followed, and their bodies are not read. The body of an error
    response (400 and up) is not decoded: an encoded body is returned as an empty one, and so is
    the body of a robots.txt or a sitemap. With `job.validator` the request is conditional; a 304
    has an empty body. The first request of a check is HEAD; the next ones are GET and end after
    the head, unless the body has at most 64 KiB. All other requests are GET.

    A crawl reads nothing in a body whose Content-Type is neither HTML nor XML nor text, nor in
    that of an error response, nor in a download (`Content-Disposition: attachment`) that is not
    HTML. Such a body is left after the head if its Content-Length is more
    than `max_bytes`. Without `bodies` every body of such a type is, except one of at most 64 KiB
    by Content-Length, which is read to keep the connection. `Response.flaw` says why a body is
    not whole.

    The fetch connects to public addresses, and to private ones in three cases. A seed that is an
    address opens it, at the seed's port. A seed that is a name opens, for this name and the seed's
    port, the addresses of the first lookup, unless one of them is public. The ports 80 and 443 of
    a seed open each other. The third case is `allow_private`.

    - `seeds`: the URLs whose origins get `headers`, `auth`, `request` and `client_cert`. A user or
      a password in one of them is ignored;
    - `user_agent`, which is also an attribute of the fetch, and `contact`, an e-mail address for
      From: sent to every server;
    - `headers`, and `auth`, one (user, password) or a mapping from a URL to that of its origin;
    - `origin_headers`: by a URL of each, the headers that are sent to some origins, which need not
      be those of seeds. They replace headers of the same names;
    - `cookies`: stores and sends cookies, but stores none of a robots.txt; by default there are
      none. With it a login that leads back to its first URL is followed: see `Job.again`;
    - `request`, for a token that must be renewed or a signature: a function of a `Job`, or an
      async one, that returns headers. It is called for each request to the origins of `seeds`
      (each try, and robots.txt too), and its headers replace others of the same names;
    - `timeout`: the seconds of one fetch, from the lookup of the name to the end of the decoding;
    - `max_bytes`: the bytes of a body, both as sent and as decoded. A longer one is cut, and its
      connection is closed. A robots.txt is cut after 500 KiB; a sitemap may have 50 MiB, or
      `max_bytes` if that is more than 50 MiB or less than its default, and a longer one is a
      `TOO_LARGE` fault; `bodies`: see above;
    - `allow_private`: addresses and networks (`10.0.0.0/8`, `192.168.1.7`) that are opened for
      every name and port; only it opens the metadata addresses of clouds. `public_only`, for URLs
      that strangers choose: seeds open nothing;
    - `insecure_hosts`: names or addresses, without a port, whose certificates are not verified.
      All others are verified by `tls`, or against the authorities in `cacert`, a file in PEM, else
      those that the environment names with SSL_CERT_FILE and SSL_CERT_DIR, else the list of the
      certifi package. The protocols that `tls` offers (ALPN) are set anew before each handshake;
    - `client_cert`: shown to the servers that want a certificate of the client, but only at the
      origins of `seeds`, where an origin by http also stands for that by https. It is a file in
      PEM with a certificate and its key, or (file, file of the key), or these with the password;
    - `http2`: request an https server by HTTP/2 if it supports that;
    - `max_idle`: the most idle connections (default: 4,000, or half of the file descriptors that
      the process may have; by HTTP/2 100). They are not reused after 30 seconds;
    - `proxy`: the URL of a proxy for all requests, http, https, socks5 or socks5h, with or without
      a user and a password: `http://USER:PASSWORD@HOST:PORT`. `trust_env` uses those of
      HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY instead, with networks (`127.0.0.0/8`), `*`
      and `*.name` in NO_PROXY. A proxy, also one of socks5, looks up names itself and may connect
      to any address: then only an address that is written in a URL is checked, with `public_only`
      too. A `PROXY` fault is one of the proxy, which refuses a request or cannot be used.

    The caller closes the fetch, by `async with` or `aclose`.

    Raises TypeError or ValueError, naming the argument, if it is invalid or would have no effect.

    >>> async def ask(url: str) -> Response | Fault:
    ...     async with HttpFetch(seeds=[url], timeout=5.0, user_agent="checker/1.0") as fetch:
    ...         return await fetch(Job(url))
    >>> answer = trio.run(ask, "http://127.0.0.1:1/")
    >>> answer.reason, answer.phase
    (<Reason.CONNECTION_REFUSED: 'connection_refused'>, <Phase.CONNECT: 'connect'>)
    """

    def __init__(
        self,
        *,
        seeds: Iterable[str | httpx.URL] = (),
        user_agent: str | None = None,
        contact: str | None = None,
        headers: Headers = (),
        auth: Auth | None = None,
        origin_headers: Mapping[str, Headers] | None = None,
        cookies: CookieStore | None = None,
        request: Request | None = None,
        timeout: float = TIMEOUT,
        max_bytes: int = MAX_BYTES,
        bodies: bool = True,
        allow_private: Iterable[str] = (),
        public_only: bool = False,
        insecure_hosts: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        cacert: str | Path | None = None,
        client_cert: ClientCert | None = None,
        http2: bool = False,
        max_idle: int | None = None,
        proxy: str | httpx.URL | None = None,
        trust_env: bool = False,
    ) -> None:
        seeds = web_urls("seeds", seeds)
        defaults = default_fields(user_agent, contact)
        requests = Requests(
            defaults,
            seeds=seeds,
            headers=headers,
            auth=auth,
            cookies=cookies,
            origin_headers=origin_headers,
        )
        security = Security(tls, insecure_hosts, cacert, client_cert, seeds)
        wire = Wire(
            seeds=seeds,
            allow_private=allow_private,
            public_only=public_only,
            security=security,
            max_idle=max_idle,
            proxy=proxy,
            trust_env=trust_env,
        )
        if request is not None:
            check_function("request", request, "a function of a job that returns headers")
            if not seeds:
                raise ValueError("request is called only at the origins of seeds: name the seeds")
        check_flag("http2", http2)
        self._connector = wire.connector
        super().__init__(
            WireAdapter(requests, _by_http2(wire, max_idle) if http2 else wire),
            user_agent=DEFAULT_USER_AGENT if user_agent is None else user_agent,
            cookies=cookies,
            cookies_for=requests.cookies_for,
            sends_credentials=(
                requests.has_credentials or client_cert is not None or request is not None
            ),
            request=request,
            own=frozenset(map(url_origin, seeds)),
            timeout=timeout,
            max_bytes=max_bytes,
            bodies=bodies,
        )

    async def lookup(self, url: str) -> float:
        """Look up the name of a URL's host, so that a fetch of this host need not wait for that.

        Returns the seconds for which a fetch waits for no lookup: math.inf for a host that is an
        address, or that a proxy looks up. A lookup that fails, or takes longer than `timeout`, is
        no exception: in these seconds it is the fault of each fetch.

        Raises RuntimeError after `aclose`, and under asyncio.
        """
        check_in_trio("HttpFetch")
        self._check_open()
        resolver, origin = self._resolver(url)
        if resolver is None:
            await trio.lowlevel.checkpoint()
            return inf
        return await resolver.look_up_early(origin[1], self._timeout)

    def addresses(self, url: str) -> Sequence[str]:
        """Return the addresses of a URL's host that the last lookup found, as long as it holds.

        None are known of a host that a proxy looks up.
        """
        resolver, origin = self._resolver(url)
        return () if resolver is None else resolver.known(origin[1])

    def _resolver(self, url: str) -> tuple[Resolver | None, Origin]:
        """Return what looks up the host of a URL, None if it cannot be requested; its origin."""
        try:
            origin = Target.of(url).server
        except FetchError:
            # The fetch returns the fault, and looks nothing up.
            return None, ("", "", 0)
        return self._connector.resolver(origin), origin


def _by_http2(wire: Wire, max_idle: int | None) -> Http2Wire:
    if find_spec("h2") is None:
        remedy = "pip install 'trio-crawler[http2]'"
        raise ArgumentError("http2", f": HTTP/2 needs the package h2: {remedy}")
    # Imported late, since h2 takes 60 ms.
    from trio_crawler.net.http2.wire import Http2Wire

    return Http2Wire(wire) if max_idle is None else Http2Wire(wire, max_idle=max_idle)


class WireAdapter:
    """The wire as a Network, without the requests and responses of httpx."""

    def __init__(self, requests: Requests, wire: Wire | Http2Wire) -> None:
        self.wire = wire
        self.closes_late = isinstance(wire, Wire)
        self._requests = requests
        # What all requests to one origin have in common: the origin, its name, fields and lines.
        self._sites: dict[str, tuple[Origin, str, Fields, bytes]] = {}

    # Not `async`: ▶ each coroutine around another one takes 0.3 us.
    def ask(
        self,
        url: str,
        progress: Progress,
        max_bytes: int,
        added: Fields | None = None,
        *,
        head_only: bool = False,
    ) -> Coroutine[Any, Any, tuple[Connection | Http2Stream, Head, bytes]]:
        """Send a request; see `Network.ask`. Raises FetchError."""
        cut = url.find("/", _AFTER_SCHEME)
        site, target = self._sites.get(url[:cut]), url[cut:]
        if site is None or not is_target(target):
            about = Target.of(url)
            fields, target = self._requests.fields(about), about.target
            if len(self._sites) >= _MAX_SITES:
                self._sites.clear()
            site = about.server, about.authority, fields, _lines(fields)
            self._sites[about.origin] = site
        origin, progress.server, fields, lines = site
        if added or self._requests.cookies is not None:
            lines = _lines(merged(self._requests.with_cookies(url, fields), added or []))
        method = b"HEAD" if head_only else b"GET"
        request = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target.encode(), lines)
        return self.wire.ask(origin, request, progress, max_bytes, bodiless=head_only)

    async def release(self, source: Any) -> None:
        """Keep the connection if its body was read, else close it."""
        self.wire.release(source)

    def statistics(self) -> WireStatistics:
        """Return the counts of the connections and bytes of the wire."""
        return self.wire.statistics()

    async def aclose(self) -> None:
        """Close the wire."""
        await self.wire.aclose()


def _lines(fields: Fields) -> bytes:
    return b"".join(b"%b: %b\r\n" % field for field in fields)
