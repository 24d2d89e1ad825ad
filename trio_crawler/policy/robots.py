"""Robots: the rules of a robots.txt for one agent (RFC 9309), and what each answer means.

The rules are written by hand because of the measured cost of Protego 0.7: 40 s to parse a file of
100 KB (half agents, half rules), 200 ms a URL for 500 KiB of short wildcards, and 138 of Google's
152 cases right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from trio_crawler.expressions import lazy
from trio_crawler.model import Answer, Fault, Job, Response, Validator
from trio_crawler.page.urls import normalise, origin

MAX_STEPS = 6_000_000
"""The most characters that are compared for one URL, in the worst case: some 3 ms."""

# Fixed cost, in characters compared, of trying a rule and of searching for one of its pieces.
_ATTEMPT = 500
_SEARCH = 400

# "*", "$" and "'" in a URL are escaped: the first two because they have a meaning in patterns
# (RFC 9309, 2.2.3), the last because the WHATWG URL standard escapes it in queries.
_PLAIN = lazy(r"[\w\-.~:/?#\[\]@!&()+,;=]*+", re.ASCII)
_ODD = lazy(r"%([0-9A-Fa-f]{2})|(?:[^\w\-.~:/?#\[\]@!&()+,;=%]|%(?![0-9A-Fa-f]{2}))++", re.ASCII)
_UNRESERVED = re.compile(r"[\w\-.~]", re.ASCII).fullmatch
_STARS = lazy(r"\*+")

MAX_BYTES = 500 * 1024
"""The most bytes that are read of a robots.txt (RFC 9309, 2.5)."""

MAX_LINE = 16_663
"""The most bytes that are read of a line, as in Google's parser."""

MAX_DELAY = 60.0
"""The most seconds of crawl-delay that are obeyed."""

MAX_SITEMAPS = 1_000
"""The most sitemaps that are read from one file."""

_TOKEN = re.compile("[A-Za-z_-]+")
_COMPATIBLE = lazy("compatible; *([A-Za-z_-]+)")
# The byte order mark of UTF-8, or its beginning, as in Google's parser.
_BOM = lazy(b"\xef(?:\xbb\xbf?+)?+")
_FIELD = lazy(r"^[ \t]*+[a-z][a-z-]++[ \t]*+:", re.ASCII | re.IGNORECASE | re.MULTILINE)
_EVERYONE = lazy(r"\*(?:\s|$)")
_DELAY = lazy(r"[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++", re.ASCII)

MAX_REDIRECTS = 5
"""The most redirects that are followed for one robots.txt (RFC 9309, 2.3.1.2)."""

FRESH = 86_400.0
"""Seconds for which a robots.txt is valid (RFC 9309, 2.4)."""

PATH = "/robots.txt"

_TOO_MANY_REQUESTS = 429
_MAX_SIZE = 3 * 1024 * 1024
# Characters of patterns; nearly all files have fewer.
_LONG = 16 * 1024
_MAX_TIMES = 3


class _Wild(NamedTuple):
    """A pattern with stars inside: the pieces between the stars.

    A higher `rank` wins. `least` is the least length of a path that matches, `longest` the length
    of the longest piece, `ends` whether the path must end with the last piece.
    """

    rank: int
    least: int
    longest: int
    head: str
    middle: tuple[str, ...]
    tail: str
    ends: bool

    def fits(self, path: str) -> bool:
        """Whether a path matches that has the least length and begins with the head."""
        at = len(self.head)
        for piece in self.middle:
            found = path.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        return path.endswith(self.tail, at) if self.ends else path.find(self.tail, at) >= 0


class Rules:
    """The rules of one robots.txt for one agent. Immutable; may be shared between threads.

    `patterns` maps each pattern, as written, to whether it allows. `delay` is the crawl-delay in
    seconds, 0 for none; `sitemaps` are as written; `size` counts the characters of all patterns.
    """

    __slots__ = (
        "_exact",
        "_lengths",
        "_prefixes",
        "_wild",
        "delay",
        "sitemaps",
        "size",
    )

    def __init__(
        self,
        patterns: Mapping[str, bool],
        delay: float = 0.0,
        sitemaps: tuple[str, ...] = (),
    ) -> None:
        self.delay = delay
        self.sitemaps = sitemaps
        self.size = sum(map(len, patterns))
        self._exact: dict[str, int] = {}
        self._prefixes: dict[str, int] = {}
        wild: list[_Wild] = []
        for pattern, allows in patterns.items():
            ends = pattern.endswith("$")
            body = pattern[: len(pattern) - ends]
            head, *others = pieces = [spell(piece) for piece in _STARS.sub("*", body).split("*")]
            least = sum(map(len, pieces))
            rank = 2 * (least + body.count("*") + ends) + allows
            if ends and not others:
                self._exact[head] = max(rank, self._exact.get(head, 0))
            elif not any(others):
                # A star at the end only adds its length, with or without "$".
                self._prefixes[head] = max(rank, self._prefixes.get(head, 0))
            else:
                *middle, tail = others
                longest = max(map(len, pieces))
                wild.append(_Wild(rank, least, longest, head, tuple(middle), tail, ends))
        wild.sort(reverse=True)
        self._wild = tuple(wild)
        self._lengths = tuple(sorted({len(prefix) for prefix in self._prefixes}))

    def __repr__(self) -> str:
        patterns = len(self._exact) + len(self._prefixes) + len(self._wild)
        sitemaps = len(self.sitemaps)
        return f"<Rules: {patterns} patterns, delay {self.delay:g} s, {sitemaps} sitemaps>"

    def allows(self, url: str) -> bool:
        """Whether a normalised http(s) URL may be requested.

        The longest pattern that matches decides; of two equally long ones the one that allows.
        A URL that no pattern matches is allowed, and `/robots.txt` always is. A URL is disallowed
        if its wildcards would need more than `MAX_STEPS` comparisons.
        """
        if not (self._lengths or self._wild or self._exact):
            return True
        start = url.find("/", len("https://"))
        path = url[start:] if start >= 0 else "/"
        if not _PLAIN.fullmatch(path):
            path = spell(path)
        if path == "/robots.txt":
            return True
        # A rank, which is odd if it allows.
        best = self._exact.get(path, 1)
        for length in self._lengths:
            if length > len(path):
                break
            best = max(best, self._prefixes.get(path[:length], 0))
        return (self._by_wildcard(path, best) if self._wild else best) % 2 == 1

    def _by_wildcard(self, path: str, best: int) -> int:
        """Return the rank of the best rule; 0, which disallows, if the steps run out."""
        left = MAX_STEPS
        for rule in self._wild:
            if rule.rank <= best:
                break
            may_fit = rule.least <= len(path) and path.startswith(rule.head)
            # In the worst case: `str.find` is quadratic on short texts.
            search = _SEARCH * (len(rule.middle) + 1) + len(path) * rule.longest
            left -= search if may_fit else _ATTEMPT
            if left < 0:
                return 0
            if may_fit and rule.fits(path):
                return rule.rank
        return best


def spell(text: str) -> str:
    """Return a path in the form in which paths are compared (RFC 9309, 2.2.2).

    Unreserved characters are unescaped, all characters outside `_PLAIN` are escaped.
    """
    return text if _PLAIN.fullmatch(text) else _ODD.sub(_escaped, text)


def _escaped(odd: re.Match[str]) -> str:
    if odd[1] is None:
        return "%" + odd[0].encode().hex("%").upper()
    character = chr(int(odd[1], 16))
    return character if _UNRESERVED(character) else odd[0].upper()


ALLOW_ALL = Rules({})
"""The rules of a file that is empty or missing."""


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
    ours, everyone = _Group(), _Group()
    groups = {token.lower(): ours, "*": everyone} if token else {"*": everyone}
    sitemaps: dict[str, None] = {}
    # The groups that the next line belongs to: a rule, and a delay. Only rules end the list of
    # agents of a group (RFC 9309, 2.2.4): "User-agent: a", "Crawl-delay: 5", "User-agent: b",
    # "Disallow: /" disallows both. But the delay is for `a`.
    ruled, delayed = set[_Group](), set[_Group]()
    rules_seen = delay_seen = False
    for key, value in _fields(_clean(body)):
        if key == "user-agent":
            if rules_seen:
                ruled.clear()
            if rules_seen or delay_seen:
                delayed.clear()
            rules_seen = delay_seen = False
            name = "*" if _EVERYONE.match(value) else product_token(value).lower()
            if (named := groups.get(name)) is not None:
                named.named = True
                ruled.add(named)
                delayed.add(named)
        elif key in ("allow", "disallow"):
            rules_seen, allows = True, key == "allow"
            # Any other pattern never matches: a path begins with "/" (RFC 9309, 2.2).
            for group in ruled if value.startswith(("/", "*")) else ():
                group.patterns[value] = allows or group.patterns.get(value, False)
        elif key == "crawl-delay":
            delay_seen = True
            for group in delayed if _DELAY.fullmatch(value) else ():
                group.delay = max(group.delay, min(float(value), MAX_DELAY))
        elif key == "sitemap" and len(sitemaps) < MAX_SITEMAPS and _is_web(value):
            sitemaps[value] = None
    group = ours if ours.named else everyone
    patterns = group.patterns if False in group.patterns.values() else {}
    if not patterns and not group.delay and not sitemaps:
        return ALLOW_ALL
    return Rules(patterns, group.delay, tuple(sitemaps))


class _Group(msgspec.Struct, eq=False):
    """The merged groups of one agent."""

    named: bool = False
    delay: float = 0.0
    patterns: dict[str, bool] = msgspec.field(default_factory=dict)


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


class KnownRules(msgspec.Struct, frozen=True, gc=False):
    """The rules of one origin, the time since which they are valid, and the file's validator.

    The time is in seconds, of any clock that does not change.
    """

    rules: Rules
    since: float
    validator: Validator | None = None

    def is_fresh(self, now: float) -> bool:
        """Whether the rules are still valid, so that the file need not be fetched again."""
        return now - self.since <= FRESH

    def renewed(self, now: float, seconds: float = FRESH) -> KnownRules:
        """Return the rules, valid for `seconds` from `now` on.

        For use after a 304, and while the file cannot be fetched (RFC 9309, 2.4).
        """
        return replace(self, since=now + seconds - FRESH)


class LongFiles:
    """The origins with a long robots.txt; the rules of the oldest are dropped to save memory.

    The patterns of long files are kept up to 3 MiB, which take 60 MiB of memory. A file that was
    dropped is fetched again before the next request to its origin.
    """

    def __init__(self) -> None:
        # The size of each file, the oldest first.
        self._sizes: dict[str, int] = {}
        self._size = 0
        self._times: Counter[str] = Counter()

    def add(self, origin: str, rules: Rules) -> tuple[Rules, list[str]]:
        """Record the rules of an origin; return those to keep, and the origins that drop theirs.

        After its long file was dropped three times an origin allows nothing. Otherwise, with many
        such origins, their files would be fetched for ever, and nothing else.
        """
        self._size -= self._sizes.pop(origin, 0)
        if rules.size >= _LONG and self._times[origin] >= _MAX_TIMES:
            rules = Rules({"/": False}, rules.delay, rules.sitemaps)
        if rules.size >= _LONG:
            self._sizes[origin] = rules.size
            self._size += rules.size
        dropped = list[str]()
        while self._size > _MAX_SIZE and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self._times[oldest] += 1
            self._size -= self._sizes.pop(oldest)
            dropped.append(oldest)
        return rules, dropped


def is_self_named(job: Job) -> bool:
    """Whether a sitemap needs no look at robots.txt: it was given, or robots.txt names it."""
    return job.referrer in (None, origin(job.url) + PATH)


def interpret(answer: Answer, token: str) -> Rules | None:
    """Return the rules that follow from an answer for a robots.txt (RFC 9309, 2.3.1).

    2xx is parsed; 4xx other than 429 allows everything, as does a redirect too many. None means
    that the file is not available now: a fault, 429, 5xx, 1xx and 304. For the 304 of a
    conditional request use `KnownRules.renewed` instead.
    """
    if isinstance(answer, Fault) or answer.status in (304, _TOO_MANY_REQUESTS):
        return None
    if 200 <= answer.status < 300:
        return parse_rules(answer.body, token)
    return ALLOW_ALL if 300 <= answer.status < 500 else None


def is_lasting(answer: Response) -> bool:
    """Whether a later run can use the rules of an answer, so that it need not ask again."""
    return 200 <= answer.status < 300 or 400 <= answer.status < 500
