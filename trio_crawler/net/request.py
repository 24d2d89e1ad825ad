"""Requests: what is sent for a URL, and to whom the caller's own headers go."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import httpx

from trio_crawler._version import __version__
from trio_crawler.model import Reason
from trio_crawler.net.decode import OFFERED
from trio_crawler.net.errors import Faulty
from trio_crawler.net.head import Fields
from trio_crawler.page.urls import normalise, origin, without_userinfo

if TYPE_CHECKING:
    from trio_crawler.net.cookies import CookieStore

DEFAULT_USER_AGENT = f"trio_crawler/{__version__} (+https://pypi.org/project/trio-crawler/)"

Headers: TypeAlias = Mapping[str, str] | Sequence[tuple[str, str]]

_ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.8"
# RFC 9110: 5.6.2 (token) and 5.5 (field values).
is_token = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
has_control = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search
_is_mailbox = re.compile(r"[!-?A-~]+@[!-?A-~]+").fullmatch
# What a request line may carry of a URL, from the first slash on (RFC 9112, 3.2.1).
is_target = re.compile(r"/[\x21-\x22\x24-\x7e]*").fullmatch
# These say where a request goes and where it ends.
_OURS = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_URL = re.compile(
    r"(https?://((?:\[[0-9a-f:.]+\]|[^/?#@:\[\]\s]+)(?::[0-9]+)?))([/?][\x21-\x22\x24-\x7e]*)?(?:#.*)?"
)


class Target(NamedTuple):
    """Hold a URL in the parts that a request needs; `origin` is as the URL spells it."""

    origin: str
    authority: str
    target: str

    @classmethod
    def of(cls, url: str) -> Target:
        """Take an http or https URL apart; what it says is to be sent byte for byte.

        Raises Faulty(BAD_URL) for what is not one as the WHATWG URL Standard serialises it, or
        has a user name in it.
        """
        parts = _URL.fullmatch(url)
        if parts is None or not url.isascii():
            raise bad_url("not an absolute http or https URL in its normal form")
        origin, authority, target = parts.groups("/")
        _check(authority)
        return cls(origin, authority, target if target.startswith("/") else "/" + target)


class Requests:
    """Say what is sent for a URL, and what only to the `seeds`.

    `headers` and `auth` (user, password) go only to the origins of `seeds`, which are normalised;
    they come before the defaults. `defaults` are sent to all, and `cookies`, if there is a store,
    to whom they belong.

    Raises ValueError, naming it, for a header that cannot be meant, and for headers that would
    go to nobody.
    """

    def __init__(
        self,
        defaults: Fields,
        *,
        seeds: Iterable[str] = (),
        headers: Headers = (),
        auth: tuple[str, str] | None = None,
        cookies: CookieStore | None = None,
    ) -> None:
        own = fields_of(headers)
        if auth is not None:
            if isinstance(auth, str) or len(auth) != 2:
                raise TypeError("auth must be a user and a password: write (user, password)")
            own.append((b"Authorization", _basic(*auth)))
        self._origins = frozenset(map(origin, seeds))
        if own and not self._origins:
            raise ValueError("headers and auth go only to the seeds' origins: name the seeds")
        self.cookies = cookies
        self._fields = defaults
        self._fields_and_own = merged(defaults, own)

    def fields(self, target: Target) -> Fields:
        """Return the fields for a URL without its cookies, Host first."""
        own = target.origin in self._origins
        host = (b"Host", target.authority.encode())
        return [host, *(self._fields_and_own if own else self._fields)]

    def with_cookies(self, url: str, fields: Fields) -> Fields:
        """Add the store's cookies to the fields for a URL."""
        kept = self.cookies and self.cookies.cookies_for(url)
        if not kept:
            return fields
        own = [value for name, value in fields if name.lower() == b"cookie"]
        others = [field for field in fields if field[0].lower() != b"cookie"]
        return [*others, (b"Cookie", b"; ".join([*own, kept.encode("latin-1")]))]


def seeds_of(seeds: Iterable[str]) -> tuple[str, ...]:
    """Normalise seeds.

    Raises TypeError for a str, and ValueError, naming it, for what is no http or https URL.
    """
    return tuple(map(_seed, several(seeds, "seeds")))


def _seed(url: str) -> str:
    try:
        seed = normalise(url)
    except ValueError:
        seed = ""
    if not seed.startswith(("http://", "https://")):
        raise ValueError(f"not an http or https URL: {without_userinfo(url)!r}")
    return seed


def several(values: Iterable[str], name: str) -> tuple[str, ...]:
    """Take several strings. Raises TypeError for a single one, whose letters would be taken."""
    if isinstance(values, str):
        raise TypeError(f"{name} must be several strings: write [{values!r}]")
    return tuple(values)


def bad_url(why: str) -> Faulty:
    """Return the fault of a URL that nobody can be asked for."""
    return Faulty(Reason.BAD_URL, f"this URL cannot be asked for: {why}")


def _check(authority: str) -> None:
    """Refuse what Python's resolver raises for, where it should not find it."""
    name, _, port = authority.rpartition("]")[2].partition(":")
    if len(port) > 5 or (port and int(port) > 65535):
        raise bad_url("the port is above 65535")
    # RFC 1035, 2.3.4. An IPv6 address leaves no name here.
    labels = name.removesuffix(".").split(".")
    if not authority.startswith("[") and not all(0 < len(label) < 64 for label in labels):
        raise bad_url("a part of the host name is empty or has over 63 characters")


def defaults_for(
    user_agent: str, client: httpx.AsyncClient | None = None, contact: str | None = None
) -> Fields:
    """Return what is sent to everybody.

    A client's own User-Agent and Accept, if they are not httpx's, come before the defaults; a
    `user_agent` that is not the default, and a `contact`, come before everything.

    Raises ValueError, naming it, for a `user_agent` or a `contact` that cannot be meant.
    """
    if not user_agent.strip():
        raise ValueError("user_agent is empty: say who asks")
    defaults = {"User-Agent": user_agent, "Accept": _ACCEPT, "Accept-Encoding": OFFERED}
    if contact is not None:
        defaults["From"] = _mailbox(contact)
    if client is not None:
        plain = {"User-Agent": f"python-httpx/{httpx.__version__}", "Accept": "*/*"}
        if user_agent != DEFAULT_USER_AGENT:
            del plain["User-Agent"]
        for name, value in plain.items():
            if client.headers.get(name, value) != value:
                del defaults[name]
    return fields_of(defaults)


def user_agent_of(defaults: Fields, client: httpx.AsyncClient | None) -> str:
    """Return the User-Agent that everybody is told: the client's if it is not of the defaults."""
    for name, value in defaults:
        if name == b"User-Agent":
            return value.decode()
    return "" if client is None else client.headers.get("user-agent", "")


def _mailbox(contact: str) -> str:
    """Accept an address that From can hold (RFC 9110, 10.1.2), without judging it further."""
    if not _is_mailbox(contact):
        raise ValueError(f"contact is not an e-mail address: {contact!r}")
    return contact


def fields_of(headers: Headers) -> Fields:
    """Encode headers. Raises ValueError, naming it, for one that cannot be meant."""
    if isinstance(headers, str):
        raise TypeError("headers must be a mapping or pairs, not a str")
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [_field(name, value) for name, value in pairs]


def _field(name: str, value: str) -> tuple[bytes, bytes]:
    # A value may be a credential: the messages show names only.
    if not is_token(name):
        raise ValueError(f"not a header name: {name!r}")
    if name.lower() in _OURS:
        raise ValueError(f"the header {name} is for the crawler to set")
    if has_control(value):
        raise ValueError(f"the value of the header {name} has control characters in it")
    try:
        return name.encode(), value.strip(" \t").encode()
    except UnicodeEncodeError:
        raise ValueError(f"the value of the header {name} is not Unicode text") from None


def merged(defaults: Fields, own: Fields) -> Fields:
    """Put fields in the place of those that have the same names."""
    named = {name.lower() for name, _ in own}
    return [field for field in defaults if field[0].lower() not in named] + own


def _basic(user: str, password: str) -> bytes:
    """Write credentials as RFC 7617 has it, in UTF-8."""
    if ":" in user:
        raise ValueError("a user name for HTTP authentication cannot have a colon in it")
    return b"Basic " + b64encode(f"{user}:{password}".encode())
