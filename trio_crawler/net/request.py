"""The header fields of requests, and the origins to which the caller's headers are sent."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Container, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from trio_crawler._version import __version__
from trio_crawler.arguments import ArgumentError, check_kind, several
from trio_crawler.expressions import lazy
from trio_crawler.model import Reason, Record
from trio_crawler.net.decode import OFFERED
from trio_crawler.net.dial.addresses import bare
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.connection import DEFAULT_PORTS, Origin
from trio_crawler.net.http1.message import Fields
from trio_crawler.page.urls import origin, web_url

if TYPE_CHECKING:
    from trio_crawler.net.cookies import CookieStore

DEFAULT_USER_AGENT = f"trio_crawler/{__version__} (+https://pypi.org/project/trio-crawler/)"

_T = TypeVar("_T")
Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
Auth: TypeAlias = tuple[str, str] | Mapping[str, tuple[str, str]]

_ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.8"
# Tokens (RFC 9110, 5.6.2), and the characters that a field value cannot have (5.5).
IS_TOKEN = lazy(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
has_control = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search
# A rough check of the mailbox that From has (RFC 9110, 10.1.2; RFC 5322).
_MAILBOX = lazy(r"[!-?A-~]+@[!-?A-~]+")
# The part of a URL that a request line may carry, from the first slash on (RFC 9112, 3.2.1).
is_target = re.compile(r"/[\x21-\x22\x24-\x7e]*").fullmatch
# The headers that decide where a request goes and where it ends.
_OURS = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_URL = lazy(
    r"((https?)://((\[[0-9a-f:.]+\]|[^/?#@:\[\]\x00-\x20\x7f]+)(?::([0-9]+))?))"
    r"([/?][\x21-\x22\x24-\x7e]*)?(?:#.*)?"
)


class Target(Record, frozen=True):
    """The parts of a URL that a request needs; `origin` is a prefix of the URL.

    `server` is what is connected to: scheme, host and port.
    """

    origin: str
    authority: str
    target: str
    server: Origin

    @classmethod
    def of(cls, url: str) -> Target:
        """Return the parts of an http or https URL; path and query are sent unchanged.

        Raises FetchError(BAD_URL) unless the URL is serialised as in the WHATWG URL Standard, and
        for a URL with a user name.
        """
        parts = _URL.fullmatch(url)
        if parts is None or not url.isascii():
            raise bad_url("not an absolute http or https URL in its normal form")
        origin, scheme, authority, host, port, target = parts.groups("")
        # For other hosts and ports Python's resolver would raise odd errors.
        if len(port) > 5 or int(port or 0) > 65535:
            raise bad_url("the port is above 65535")
        # RFC 1035, 2.3.4.
        labels = host.removesuffix(".").split(".")
        if not host.startswith("[") and not all(0 < len(label) < 64 for label in labels):
            raise bad_url("a part of the host name is empty or has over 63 characters")
        server = scheme, bare(host), int(port) if port else DEFAULT_PORTS[scheme]
        return cls(origin, authority, target if target.startswith("/") else "/" + target, server)


class Requests:
    """The header fields of requests: `defaults` for all origins, others only for some.

    `headers` and `auth` are sent only to the origins of `seeds`, which must be normalised; they
    replace fields of the same names among the `defaults`. `auth` is one (user, password) for all
    of these origins, or a mapping from a URL to the (user, password) for its origin.
    `origin_headers` has headers by URLs: each are sent to the origin of their URL, and replace all
    others of the same names. `cookies` are sent to the hosts that set them.

    Raises TypeError or ValueError for headers or credentials that cannot be sent, and for headers
    or credentials without seeds. The message names the argument and shows no value that may be a
    secret.
    """

    def __init__(
        self,
        defaults: Fields,
        *,
        seeds: Iterable[str] = (),
        headers: Headers = (),
        auth: Auth | None = None,
        cookies: CookieStore | None = None,
        origin_headers: Mapping[str, Headers] | None = None,
    ) -> None:
        given = {} if origin_headers is None else origin_headers
        own, named = fields_of(headers), _by_origin("origin_headers", given, "entry")
        others = {each: fields_of(fields, "origin_headers") for each, fields in named.items()}
        origins = frozenset(map(origin, seeds))
        logins = _logins(auth, origins)
        if (own or logins) and not origins:
            raise ValueError(
                "headers and auth are sent only to the origins of the seeds: name the seeds"
            )
        twice = any(_has(others.get(each, []), b"authorization") for each in logins)
        if twice or (logins and _has(own, b"authorization")):
            raise ValueError(
                "auth and a header Authorization exclude each other: give one of them"
            )
        if cookies is not None:
            # Imported only now: most crawls have none.
            from trio_crawler.net.cookies import CookieStore

            check_kind("cookies", cookies, CookieStore, "a CookieStore")
        self.cookies = cookies
        self.authorizes = bool(logins) or _has(own, b"authorization")
        """Whether an Authorization field is sent to a seed."""
        sent = [*own, *chain.from_iterable(others.values())]
        secret = _has(sent, b"authorization") or _has(sent, b"cookie")
        self.has_credentials = self.authorizes or cookies is not None or secret
        """Whether a login or cookies are sent."""
        self.has_own = bool(own or logins)
        """Whether there are fields that only seeds get."""
        self._fields = defaults
        self._fields_of = {each: merged(defaults, own + logins.get(each, [])) for each in origins}
        for each, fields in others.items():
            self._fields_of[each] = merged(self._fields_of.get(each, defaults), fields)

    def fields(self, target: Target) -> Fields:
        """Return the fields for a URL, without cookies, Host first."""
        host = (b"Host", target.authority.encode())
        return [host, *self._fields_of.get(target.origin, self._fields)]

    def cookies_for(self, url: str) -> str | None:
        """Return the value of the Cookie header for a URL at this moment, None if it has none."""
        try:
            fields = self.with_cookies(url, self.fields(Target.of(url)))
        except FetchError:
            return None
        values = [value.decode("latin-1") for name, value in fields if name.lower() == b"cookie"]
        return "; ".join(values) or None

    def with_cookies(self, url: str, fields: Fields) -> Fields:
        """Return `fields` with the cookies that are stored for a URL."""
        stored = self.cookies and self.cookies.cookies_for(url)
        if not stored:
            return fields
        own = [value for name, value in fields if name.lower() == b"cookie"]
        others = [field for field in fields if field[0].lower() != b"cookie"]
        return [*others, (b"Cookie", b"; ".join([*own, stored.encode("latin-1")]))]


def bad_url(why: str) -> FetchError:
    """Return the error for a URL that cannot be requested."""
    return FetchError(Reason.BAD_URL, f"this URL cannot be requested: {why}")


def default_fields(
    user_agent: str | None, contact: str | None, *, replaced: Container[str] = ()
) -> Fields:
    """Return the fields that are sent to every server; defaults in `replaced` are left out.

    Raises TypeError or ValueError, naming the argument, for a `user_agent` or a `contact` that
    cannot be sent.
    """
    fields = {}
    if user_agent is not None:
        check_kind("user_agent", user_agent, str, "a string")
        if not user_agent.strip() or not _is_text(user_agent):
            wanted = "one line of text that names the crawler"
            raise ArgumentError("user_agent", f" must be {wanted}, not {user_agent!a}")
        fields["User-Agent"] = user_agent
    elif "User-Agent" not in replaced:
        fields["User-Agent"] = DEFAULT_USER_AGENT
    if "Accept" not in replaced:
        fields["Accept"] = _ACCEPT
    fields["Accept-Encoding"] = OFFERED
    if contact is not None:
        wanted = "an e-mail address such as me@example.org"
        check_kind("contact", contact, str, wanted)
        if not _MAILBOX.fullmatch(contact):
            raise ArgumentError("contact", f" must be {wanted}, not {contact!a}")
        fields["From"] = contact
    return [(name.encode(), value.strip(" \t").encode()) for name, value in fields.items()]


def _logins(auth: Auth | None, origins: Collection[str]) -> dict[str, Fields]:
    """Return the Authorization field of each origin that gets one."""
    if auth is None:
        return {}
    if not isinstance(auth, Mapping):
        field = (b"Authorization", _basic(auth))
        return {each: [field] for each in origins or ("",)}
    found = _by_origin("auth", auth, "user")
    for own in found:
        if own not in origins:
            raise ArgumentError("auth", f": {own}/ is not the origin of a seed")
    return {own: [(b"Authorization", _basic(login))] for own, login in found.items()}


def _by_origin(argument: str, given: Mapping[str, _T], what: str) -> dict[str, _T]:
    """Return the value of each origin. Raises ArgumentError if an origin has two."""
    check_kind(argument, given, Mapping, "a mapping from the URLs of origins")
    found = dict[str, _T]()
    for url, value in given.items():
        own = origin(web_url(argument, url))
        if own in found:
            raise ArgumentError(argument, f" must have one {what} for {own}/, not two")
        found[own] = value
    return found


def _has(fields: Fields, wanted: bytes) -> bool:
    return any(name.lower() == wanted for name, _ in fields)


def fields_of(headers: Headers, argument: str = "headers") -> Fields:
    """Return encoded headers. Raises TypeError or ValueError, which never shows a value."""
    wanted = f"{argument} must be a mapping or pairs of strings"
    if isinstance(headers, str | bytes):
        raise TypeError(f"{wanted}, not a {type(headers).__name__}")
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    fields = []
    for pair in several(argument, pairs, "pairs of strings"):
        if not _is_pair(pair):
            raise TypeError(f"{wanted}, and one of them is not a pair of strings")
        name, value = pair
        # A value may be a credential, so the messages show names only.
        if not IS_TOKEN.fullmatch(name):
            wrong = f": a header needs a name such as X-Token, not {name!a}"
            raise ArgumentError(argument, wrong)
        if name.lower() in _OURS:
            raise ArgumentError(argument, f": the header {name} is set by the crawler itself")
        if not _is_text(value):
            wrong = f": the value of the header {name} must be one line of text"
            raise ArgumentError(argument, wrong)
        fields.append((name.encode(), value.strip(" \t").encode()))
    return fields


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(isinstance(part, str) for part in value)
    )


def _is_text(value: str) -> bool:
    """Whether a header can carry a value: it has no control character and no lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return not has_control(value)


def merged(defaults: Fields, own: Fields) -> Fields:
    """Return the default fields without those that `own` replaces by name, and then `own`."""
    named = {name.lower() for name, _ in own}
    return [field for field in defaults if field[0].lower() not in named] + own


def _basic(auth: tuple[str, str]) -> bytes:
    """Return credentials in UTF-8 (RFC 7617). The messages of errors never show them."""
    if not _is_pair(auth):
        raise TypeError("auth must be a user and a password: write (user, password)")
    user, password = auth
    if ":" in user:
        raise ArgumentError("auth", " must have a user without a colon (RFC 7617, 2)")
    if not _is_text(user) or not _is_text(password):
        raise ArgumentError("auth", " must be text without control characters (RFC 7617, 2)")
    return b"Basic " + b64encode(f"{user}:{password}".encode())
