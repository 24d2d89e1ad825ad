"""What stands beside the findings of a check: its date, its command, its counts, its baseline."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, wraps
from inspect import signature
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, ParamSpec

from msgspec.structs import force_setattr

from trio_crawler._version import __version__
from trio_crawler.arguments import (
    ArgumentError,
    check_function,
    check_iterable,
    check_kind,
    check_whole,
    public,
    several_of,
    several_strings,
)
from trio_crawler.check.finding import Finding, Identity, in_order
from trio_crawler.expressions import lazy
from trio_crawler.ledger.ledger import Ledger, Numbers, Outlinks
from trio_crawler.link import Link
from trio_crawler.model import Record
from trio_crawler.report.visible import ascii_json

HIDDEN = "***"
"""What stands for a secret."""

_IN_URL = lazy(r"([a-z][a-z0-9+.-]*:[/\\]+)[^/?#\\]*@", re.I)
_IN_WORD = lazy(r"(?!mailto:)[^/?#\\@=]*:[^/?#\\]*@", re.I)
_SHORT = lazy(r"-[A-Za-z]")


@public("trio_crawler.check")
class NotChecked(NamedTuple):
    """A link that was not checked: its kind (or scheme), the reason, and its page and place.

    >>> web = Web({"/": html("https://other.test/")})
    >>> async def unchecked() -> list[NotChecked]:
    ...     with LinkCheck(why=10) as check:
    ...         async with Crawler([web.url], fetch=web).outcomes() as outcomes:
    ...             async for outcome in outcomes:
    ...                 check.add(outcome)
    ...         list(check.findings())
    ...         return list(check.listed)
    >>> [(each.kind, each.reason, each.link.url) for each in trio.run(unchecked)]
    [(<LinkKind.A: 'a'>, 'other_site', 'https://other.test/')]
    """

    kind: str
    reason: str
    page: str
    link: Link


class Unasked:
    """The links that nothing was asked for, each with the first of the pages that have it."""

    def __init__(self, ledger: Ledger, most: int) -> None:
        self._ledger = ledger
        self._most = most
        self._urls = ledger.urls.urls
        # By the kind and the number of a link: the reason, and the page with the place of its
        # links.
        self._found: defaultdict[str, dict[int, tuple[tuple[str, str], str, int]]]
        self._found = defaultdict(dict)

    def add(self, why: tuple[str, str], kind: str, number: int, page: Outlinks) -> None:
        """Record a link that was looked at for the first time."""
        assert page.pointed is not None  # noqa: S101 - for mypy
        self._found[kind].setdefault(number, (why, self._urls[page.page], page.pointed.source))

    def again(self, kind: str, numbers: Numbers, page: Outlinks) -> None:
        """Record the links of another page."""
        known = self._found[kind]
        for number in known.keys() & numbers:
            why, first, _ = known[number]
            if (url := self._urls[page.page]) < first and page.pointed is not None:
                known[number] = why, url, page.pointed.source

    def listed(self) -> Iterator[NotChecked]:
        """Yield the first of each kind and reason, by page, each at one place."""
        rows = sorted(
            (page, kind, self._urls[number], why, source)
            for kind, found in self._found.items()
            for number, (why, page, source) in found.items()
        )
        told = Counter[tuple[str, str]]()
        for page, group in groupby(rows, key=itemgetter(0)):
            here = {
                (kind, url): (why, source)
                for _, kind, url, why, source in group
                if told[why] < self._most
            }
            at = next((source for _, source in here.values()), 0)
            wanted: dict[str, dict[str, None]] = {}
            for kind, url in here:
                wanted.setdefault(kind, {})[url] = None
            for link in self._ledger.source(at, wanted) if here else ():
                why, _ = here.pop((link.kind, link.url), (("", ""), 0))
                told[why] += 1
                if why[0] and told[why] <= self._most:
                    yield NotChecked(*why, page, link)


@public("trio_crawler.check")
class CheckFacts(Record, frozen=True):
    """What a check knows beside its findings.

    - `date` is when it began, with a time zone;
    - `command` is its command line without secrets: see `command_line`;
    - `checked` counts the distinct links that were checked, by kind;
    - `not_checked` counts those that were not, by kind and by reason; the kind of a link that is
      no web link may be its scheme; `listed` are those of them that are shown, each at one place,
      None if none are wanted (see `LinkCheck`);
    - `recalled` is how many URLs were not asked for, since an earlier check found them fine;
    - `unlinked` are the pages of a folder that no link leads to, None where all pages are found
      by links; `unread` counts its other files that were not asked for, by the endings of their
      names, such as `.pdf`;
    - `mended` are the entries of the baseline that were not found again, None without a baseline;
    - `ended` says why the check ended early, "" if it did not;
    - `version` is that of the program.

    Raises TypeError or ValueError, naming the fact, for an invalid value.

    >>> facts = CheckFacts(datetime(2026, 11, 28, tzinfo=UTC), checked={"a": 12})
    >>> facts.date.year, facts.checked, facts.mended
    (2026, {'a': 12}, None)
    """

    date: datetime
    command: str = ""
    checked: Mapping[str, int] = {}
    not_checked: Mapping[tuple[str, str], int] = {}
    listed: Sequence[NotChecked] | None = None
    recalled: int = 0
    unlinked: Sequence[str] | None = None
    unread: Mapping[str, int] = {}
    mended: Sequence[Identity] | None = None
    ended: str = ""
    version: str = __version__

    def __post_init__(self) -> None:
        check_kind("date", self.date, datetime, "a datetime")
        if self.date.tzinfo is None:
            raise ArgumentError("date", " must have a time zone")
        for name in ("command", "ended", "version"):
            check_kind(name, getattr(self, name), str, "a str")
        for name in ("checked", "not_checked", "unread"):
            counts = getattr(self, name)
            check_kind(name, counts, Mapping, "numbers by kind")
            for number in counts.values():
                check_whole(f"each number of {name}", number)
            force_setattr(self, name, dict(counts))
        if self.listed is not None:
            force_setattr(self, "listed", several_of("listed", self.listed, NotChecked))
        check_whole("recalled", self.recalled)
        if self.unlinked is not None:
            force_setattr(self, "unlinked", several_strings("unlinked", self.unlinked))
        if self.mended is not None:
            force_setattr(self, "mended", several_of("mended", self.mended, Identity))

    @property
    def when(self) -> str:
        """The date in UTC, as RFC 3339 writes it, to the second."""
        return f"{self.date.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

    @property
    def total(self) -> int:
        """The number of distinct links that were checked."""
        return sum(self.checked.values())


_TAKEN: dict[str, Callable[[str, object], None]] = {
    "findings": partial(check_iterable, wanted="findings"),
    "facts": partial(check_kind, kind=CheckFacts, wanted="a CheckFacts"),
    "path_of": partial(check_function, wanted="a function of a URL"),
    "max_bytes": check_whole,
}
P = ParamSpec("P")


def writer(write: Callable[P, Iterator[bytes]]) -> Callable[P, Iterator[bytes]]:
    """Let a public generator of the pieces of a file check its arguments when it is called."""
    parameters = signature(write)

    @public("trio_crawler.check")
    @wraps(write)
    def checked(*args: P.args, **more: P.kwargs) -> Iterator[bytes]:
        for name, value in parameters.bind(*args, **more).arguments.items():
            _TAKEN[name](name, value)
        return write(*args, **more)

    return checked


@public("trio_crawler.check")
def command_line(words: Iterable[str], secret: Iterable[str] = ()) -> str:
    """Return the `words` of a command as a line for a shell, with `***` for each secret.

    Secrets are the values of the options that `secret` names (`--auth`, `-H`), in the next word,
    after an equals sign or joined to a short option; and what stands before the `@` of a URL. A
    value that begins with `@` only names where the secret is, and stays.

    >>> command_line(["trio-crawler", "--auth", "me:secret", "https://e.org/"], secret=["--auth"])
    'trio-crawler --auth *** https://e.org/'
    """
    flags = frozenset(several_strings("secret", secret))
    shown: list[str] = []
    follows = False
    for word in several_strings("words", words):
        shown.append(_hidden(word) if follows else _without_secrets(word, flags))
        follows = not follows and word in flags
    return " ".join(word if word == HIDDEN else shlex.quote(word) for word in shown)


def _hidden(value: str) -> str:
    return value if value.startswith("@") else HIDDEN


def _without_secrets(word: str, flags: frozenset[str]) -> str:
    flag, equals, value = word.partition("=")
    if equals and flag in flags:
        return f"{flag}={_hidden(value)}"
    if word[:2] in flags and _SHORT.fullmatch(word[:2]) and len(word) > 2:
        return word[:2] + _hidden(word[2:])
    if "@" not in word:
        return word
    bare = _IN_WORD.match(word)
    if bare and not _IN_URL.match(word):
        return f"{HIDDEN}@{word[bare.end() :]}"
    return _IN_URL.sub(rf"\1{HIDDEN}@", word)


VERSION = 1
"""The version of the file's format."""

MOST = 1_000_000
"""The most entries that a file may have."""

_HEAD = "trio_crawler_baseline"
_KEYS = set(Identity._fields)


@public("trio_crawler.check")
class Comparison(NamedTuple):
    """The findings of a check beside those of a baseline.

    `new` are the findings that the baseline does not have, `known` those that it has, both by page
    and line. `mended` are the entries of the baseline that were not found again, in order.

    >>> known = Baseline([Identity(page="/", target="/mended", code="404")])
    >>> comparison = known.compare([])
    >>> comparison == Comparison(mended=(Identity("/", "/mended", "404"),))
    True
    """

    new: tuple[Finding, ...] = ()
    known: tuple[Finding, ...] = ()
    mended: tuple[Identity, ...] = ()


@public("trio_crawler.check")
@dataclass(frozen=True, slots=True)
class Baseline:
    """The findings that are known, each by its `Identity`.

    A page that has the same broken link twice has one entry, which knows both. Two pages with the
    same path on two hosts have one entry as well.

    Raises TypeError if one of `known` is not an `Identity`.

    >>> page, url = "https://e.org/", "https://e.org/x"
    >>> finding = Finding(verdict=Verdict.FAULT, url=url, code="404", page=page)
    >>> baseline = Baseline([Identity(page="/", target="/x", code="404")])
    >>> baseline.compare([finding]).known == (finding,)
    True
    """

    known: frozenset[Identity]

    def __init__(self, known: Iterable[Identity] = ()) -> None:
        object.__setattr__(self, "known", frozenset(several_of("known", known, Identity)))

    def __contains__(self, finding: Finding) -> bool:
        return finding.identity in self.known

    def compare(self, findings: Iterable[Finding]) -> Comparison:
        """Return which findings are new, which are known, and which entries are mended.

        The findings must be those of a whole check: the entries of pages that were not fetched
        would count as mended.
        """
        found = in_order(findings)
        seen = {finding.identity for finding in found}
        return Comparison(
            tuple(finding for finding in found if finding not in self),
            tuple(finding for finding in found if finding in self),
            tuple(sorted(self.known - seen)),
        )


@writer
def write_baseline(findings: Iterable[Finding]) -> Iterator[bytes]:
    r"""Yield the lines of a baseline file with these `findings`.

    The file is JSON Lines in ASCII. The first line is `{"trio_crawler_baseline":1}`, with the
    version of the format. Each other line is one entry with the keys `page`, `target` and `code`
    of an `Identity`. The lines are sorted and distinct, so that two versions can be compared and
    merged line by line.

    >>> page, url = "https://e.org/", "https://e.org/x"
    >>> finding = Finding(verdict=Verdict.FAULT, url=url, code="404", page=page)
    >>> b"".join(write_baseline([finding])).decode().splitlines()
    ['{"trio_crawler_baseline":1}', '{"page":"/","target":"/x","code":"404"}']
    """
    yield ascii_json({_HEAD: VERSION}) + b"\n"
    for known in sorted({finding.identity for finding in findings}):
        yield ascii_json(known._asdict()) + b"\n"


@public("trio_crawler.check")
def read_baseline(lines: Iterable[bytes], file: str, *, most: int = MOST) -> Baseline:
    """Return the baseline that a file has, from its lines.

    Blank lines are left out, and the order of the entries does not matter. Raises ValueError,
    naming the file and the line, for any other content, for another version, and if there are
    more than `most` distinct entries.

    >>> lines = [b'{"trio_crawler_baseline":1}', b'{"page":"/","target":"/x","code":"404"}']
    >>> read_baseline(lines, "known.jsonl")
    Baseline(known=frozenset({Identity(page='/', target='/x', code='404')}))
    """
    check_iterable("lines", lines, "lines")
    check_kind("file", file, str, "the name of a file")
    check_whole("most", most)
    known: set[Identity] = set()
    begun = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        try:
            found = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError):
            raise ValueError(f"{where}: no JSON") from None
        if not isinstance(found, dict):
            raise ValueError(f"{where}: an object in braces is expected")
        if begun:
            if found.keys() != _KEYS or not all(isinstance(each, str) for each in found.values()):
                keys = ", ".join(Identity._fields)
                raise ValueError(f"{where}: an entry has the strings {keys} and nothing else")
            known.add(Identity(**found))
        elif found.keys() != {_HEAD}:
            head = f'{{"{_HEAD}":{VERSION}}}'
            raise ValueError(f"{where}: no baseline: it does not begin with {head}")
        elif (version := found[_HEAD]) != VERSION or isinstance(version, bool):
            only = f"and only {VERSION} can be read"
            raise ValueError(f"{where}: version {version!r} of the format, {only}")
        begun = True
        if len(known) > most:
            raise ValueError(f"{where}: more than {most:,} entries")
    if not begun:
        raise ValueError(f"{file}, line 1: no baseline: the file is empty")
    return Baseline(known)
