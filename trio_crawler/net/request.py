"""Requests: what is sent for a URL, and to whom the caller's own headers go."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import httpx

from trio_crawler._version import __version__
from trio_crawler.net.decode import OFFERED

DEFAULT_USER_AGENT = f"trio_crawler/{__version__} (+https://pypi.org/project/trio-crawler/)"

Headers: TypeAlias = Mapping[str, str] | Sequence[tuple[str, str]]
Trace: TypeAlias = Callable[[str, Any], Awaitable[None]]

_ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.8"
# RFC 9110: 5.6.2 (token) and 5.5 (field values).
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# These say where a request goes and where it ends.
_OURS = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_ORIGIN = re.compile(r"https?://[^/?#@\s]+")
_URL = re.compile(
    r"(https?://((?:\[[0-9a-f:.]+\]|[^/?#@:\[\]\s]+)(?::[0-9]+)?))([/?][\x21-\x22\x24-\x7e]*)?(?:#.*)?"
)

_Fields: TypeAlias = list[tuple[bytes, bytes]]


class Requests:
    """Make the request for a URL; `headers` go only to `origins`, or everywhere if it is None.

    A client's own User-Agent and Accept, if they are not httpx's, come before the defaults;
    `headers` and a `user_agent` that is not the default come before everything.

    Raises ValueError, naming it, for a header or an origin that cannot be meant.
    """

    def __init__(
        self,
        client: httpx.AsyncClient | None = None,
        *,
        headers: Headers = (),
        user_agent: str = DEFAULT_USER_AGENT,
        origins: Collection[str] | None = None,
    ) -> None:
        self._client = client
        self._origins = None if origins is None else frozenset(map(_origin, origins))
        self._fields = _defaults(user_agent, client)
        self._fields_and_own = _merged(self._fields, _fields(headers))

    def make(self, url: str, trace: Trace) -> httpx.Request:
        """Ask for `url` with GET, its path and query sent byte for byte.

        `trace` is httpcore's extension of that name. Raises httpx.InvalidURL or UnicodeError for
        what is not an http or https URL as the WHATWG URL Standard serialises it, or has a user
        name in it.
        """
        parts = _URL.fullmatch(url)
        if parts is None or not url.isascii():
            raise httpx.InvalidURL("not an absolute http or https URL in its normal form")
        origin, authority, target = parts.groups("/")
        _check(authority)
        own = self._origins is None or origin in self._origins
        # With a Host of ours httpx does not decode the name, which fails for half of the emoji.
        fields = [(b"Host", authority.encode()), *(self._fields_and_own if own else self._fields)]
        slash = "" if target.startswith("/") else "/"
        extensions = {"target": (slash + target).encode(), "trace": trace}
        if self._client is not None:
            return self._client.build_request("GET", url, headers=fields, extensions=extensions)
        return httpx.Request("GET", url, headers=fields, extensions=extensions)


def _check(authority: str) -> None:
    """Refuse what Python's resolver raises for, where it should not find it."""
    name, _, port = authority.rpartition("]")[2].partition(":")
    if len(port) > 5 or (port and int(port) > 65535):
        raise httpx.InvalidURL("the port is above 65535")
    # RFC 1035, 2.3.4. An IPv6 address leaves no name here.
    labels = name.removesuffix(".").split(".")
    if not authority.startswith("[") and not all(0 < len(label) < 64 for label in labels):
        raise httpx.InvalidURL("a part of the host name is empty or has over 63 characters")


def authority(url: str) -> str:
    """Return the host of a URL, with its port if it names one."""
    return url.partition("://")[2].partition("/")[0]


def _defaults(user_agent: str, client: httpx.AsyncClient | None) -> _Fields:
    defaults = {"User-Agent": user_agent, "Accept": _ACCEPT, "Accept-Encoding": OFFERED}
    if client is not None:
        plain = {"User-Agent": f"python-httpx/{httpx.__version__}", "Accept": "*/*"}
        if user_agent != DEFAULT_USER_AGENT:
            del plain["User-Agent"]
        for name, value in plain.items():
            if client.headers.get(name, value) != value:
                del defaults[name]
    return _fields(defaults)


def _fields(headers: Headers) -> _Fields:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [_field(name, value) for name, value in pairs]


def _field(name: str, value: str) -> tuple[bytes, bytes]:
    # A value may be a credential: the messages show names only.
    if not _NAME.fullmatch(name):
        raise ValueError(f"not a header name: {name!r}")
    if name.lower() in _OURS:
        raise ValueError(f"the header {name} is for the crawler to set")
    if _CONTROL.search(value):
        raise ValueError(f"the value of the header {name} has control characters in it")
    try:
        return name.encode(), value.strip(" \t").encode()
    except UnicodeEncodeError:
        raise ValueError(f"the value of the header {name} is not Unicode text") from None


def _merged(defaults: _Fields, own: _Fields) -> _Fields:
    named = {name.lower() for name, _ in own}
    return [field for field in defaults if field[0].lower() not in named] + own


def _origin(origin: str) -> str:
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(f"not an origin such as https://example.org: {origin!r}")
    return origin
