"""Parse a robots.txt for one agent (RFC 9309, 2.1 and 2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from trio_crawler.page.urls import normalise
from trio_crawler.policy.robots.rules import ALLOW_ALL, Rules

MAX_BYTES = 500 * 1024
"""The most bytes that are read of a robots.txt (RFC 9309, 2.5)."""

MAX_LINE = 16_663
"""The most bytes that are read of a line, as in Google's parser."""

MAX_DELAY = 60.0
"""The most seconds of crawl-delay that are obeyed."""

MAX_SITEMAPS = 1_000
"""The most sitemaps that are read from one file."""

_TOKEN = re.compile("[A-Za-z_-]+")
_COMPATIBLE = re.compile("compatible; *([A-Za-z_-]+)")
# The byte order mark of UTF-8, or its beginning, as in Google's parser.
_BOM = re.compile(b"\xef(?:\xbb\xbf?+)?+")
_FIELD = re.compile(r"^[ \t]*+[a-z][a-z-]++[ \t]*+:", re.ASCII | re.IGNORECASE | re.MULTILINE)
_EVERYONE = re.compile(r"\*(?:\s|$)")
_DELAY = re.compile(r"[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++", re.ASCII)


def product_token(user_agent: str) -> str:
    """Return the product token of a User-Agent (RFC 9309, 2.2.1), "" for none.

    The token is the letters, "_" and "-" that the User-Agent begins with. If these are "Mozilla",
    the token is the name after "compatible;", if there is one: Googlebot and bingbot write theirs
    in such a comment.
    """
    first = _TOKEN.match(user_agent.strip())
    if first is None:
        return ""
    hidden = _COMPATIBLE.search(user_agent) if first[0].lower() == "mozilla" else None
    return hidden[1] if hidden else first[0]


def parse_rules(body: bytes, token: str) -> Rules:
    """Return the rules of a robots.txt for the agent with this product token ("" for no name).

    Any bytes are accepted; nothing is raised. All groups that name the agent are merged; if there
    are none, the groups for "*" are. Only whole lines in the first `MAX_BYTES` bytes count. May
    run in a thread: a body of 100 KB can take more than 50 ms.
    """
    text = _Text(token.lower())
    for key, value in _fields(_clean(body)):
        text.add(key, value)
    group = text.ours if text.ours.named else text.everyone
    patterns = group.patterns if False in group.patterns.values() else {}
    if not patterns and not group.delay and not text.sitemaps:
        return ALLOW_ALL
    return Rules(patterns, group.delay, tuple(text.sitemaps))


@dataclass(slots=True, eq=False)
class _Group:
    """The merged groups of one agent."""

    named: bool = False
    delay: float = 0.0
    patterns: dict[str, bool] = field(default_factory=dict)


class _Text:
    """The groups of the lines read so far, and the groups that the next line belongs to.

    Only rules end the list of agents of a group (RFC 9309, 2.2.4): "User-agent: a",
    "Crawl-delay: 5", "User-agent: b", "Disallow: /" disallows both. But the delay is for `a`.
    """

    def __init__(self, token: str) -> None:
        self.ours, self.everyone = _Group(), _Group()
        self.sitemaps: dict[str, None] = {}
        self._groups = {token: self.ours, "*": self.everyone} if token else {"*": self.everyone}
        self._ruled: set[_Group] = set()
        self._delayed: set[_Group] = set()
        self._rules_seen = self._delay_seen = False

    def add(self, key: str, value: str) -> None:
        """Add one line."""
        if key == "user-agent":
            self._agent(value)
        elif key in ("allow", "disallow"):
            self._rule(value, key == "allow")
        elif key == "crawl-delay":
            self._delay(value)
        elif key == "sitemap" and len(self.sitemaps) < MAX_SITEMAPS and _is_web(value):
            self.sitemaps[value] = None

    def _agent(self, value: str) -> None:
        if self._rules_seen:
            self._ruled.clear()
        if self._rules_seen or self._delay_seen:
            self._delayed.clear()
        self._rules_seen = self._delay_seen = False
        name = "*" if _EVERYONE.match(value) else product_token(value).lower()
        if (group := self._groups.get(name)) is not None:
            group.named = True
            self._ruled.add(group)
            self._delayed.add(group)

    def _rule(self, pattern: str, allows: bool) -> None:
        self._rules_seen = True
        # Any other pattern never matches: a path begins with "/" (RFC 9309, 2.2).
        if pattern.startswith(("/", "*")):
            for group in self._ruled:
                group.patterns[pattern] = allows or group.patterns.get(pattern, False)

    def _delay(self, value: str) -> None:
        self._delay_seen = True
        if _DELAY.fullmatch(value):
            for group in self._delayed:
                group.delay = max(group.delay, min(float(value), MAX_DELAY))


def _clean(body: bytes) -> bytes:
    """Return the bytes that count: UTF-16 as UTF-8, without a byte order mark and NUL bytes."""
    text = body[:MAX_BYTES]
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = _from_utf_16(text)
    if len(body) >= MAX_BYTES:
        # The body may have been cut by the fetch: half a line could be another rule.
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
    text = text.replace(b"\0", b"")
    mark = _BOM.match(text)
    return text if mark is None else text[mark.end() :]


def _from_utf_16(text: bytes) -> bytes:
    """Return a text in UTF-16 as UTF-8, or as it is unless it is surely UTF-16.

    A robots.txt must be UTF-8 (RFC 9309, 2.2), so a byte order mark of UTF-16 alone may be rubbish
    before its rules. In UTF-16 such rules have no field.
    """
    even = len(text) - len(text) % 2
    try:
        decoded = text[:even].decode("utf-16")
    except UnicodeDecodeError:
        return text
    return decoded.encode() if _FIELD.search(decoded.replace("\0", "")) else text


def _fields(text: bytes) -> Iterator[tuple[str, str]]:
    """Yield the key, in lower case, and the value of each line with a separator."""
    for line in text.replace(b"\r", b"\n").split(b"\n"):
        if line:
            key, colon, value = _decoded(line[:MAX_LINE].partition(b"#")[0]).partition(":")
            if colon:
                yield key.strip().lower(), value.strip()
            elif len(words := key.split()) == 2:
                # Two words without a colon are a key and a value, as in Google's parser.
                yield words[0].lower(), words[1]


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _is_web(text: str) -> bool:
    if not text[:8].lower().startswith(("http://", "https://")):
        return False
    try:
        normalise(text)
    except ValueError:
        return False
    return True
