"""Verdicts: which ends of a link are fine, which are worth a note, and which are faults.

The weights in `REASONS` and the table `BY_STATUS` decide.
"""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from trio_crawler.arguments import (
    ArgumentError,
    check_flag,
    check_iterable,
    check_kind,
    check_whole,
    checked_pattern,
    public,
    several,
)
from trio_crawler.model import REDIRECTS
from trio_crawler.page.urls import host, host_name, is_web
from trio_crawler.reason import REASONS, Reason, Weight

PERMANENT = frozenset({301, 308})
"""The redirects that ask for an update of the link (RFC 9110, 15.4.2 and 15.4.9)."""

UNCHANGED = 304
"""The answer to a request for what was fetched before (RFC 9110, 15.4.5): never a fault."""

MOST_PATTERNS = 10_000
"""The most patterns that a file may have."""

_LEAST, _MOST = 100, 999
_NUMBERS = re.compile(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?")
_COMMENT = re.compile(r"(?:^|\s)#.*", re.DOTALL)


@public("trio_crawler.check")
class Verdict(StrEnum):
    """What an end means for a link: a fault is more than a note, and a note more than fine.

    `<`, `max` and `sorted` follow that order, not the alphabet. A note is something to know: a
    link that should be updated, or one that could not be checked.

    >>> Verdict("note") is Verdict.NOTE
    True
    """

    FINE = "fine"
    NOTE = "note"
    FAULT = "fault"

    def __lt__(self, other: str) -> bool:
        return _RANKS[self] < _RANKS[other] if isinstance(other, Verdict) else NotImplemented

    def __le__(self, other: str) -> bool:
        return _RANKS[self] <= _RANKS[other] if isinstance(other, Verdict) else NotImplemented

    def __gt__(self, other: str) -> bool:
        return _RANKS[self] > _RANKS[other] if isinstance(other, Verdict) else NotImplemented

    def __ge__(self, other: str) -> bool:
        return _RANKS[self] >= _RANKS[other] if isinstance(other, Verdict) else NotImplemented


_RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}


@public("trio_crawler.check")
class Defect(StrEnum):
    """What is wrong with a link, although no request for its URL failed.

    >>> Defect("missing_fragment") is Defect.MISSING_FRAGMENT
    True
    >>> [each.value for each in Defect]
    ['missing_fragment', 'bad_mailto', 'bad_scheme']
    """

    MISSING_FRAGMENT = "missing_fragment"
    """The page has no element with the id or name after the `#`."""
    BAD_MAILTO = "bad_mailto"
    """No mail address, or not the syntax of RFC 6068."""
    BAD_SCHEME = "bad_scheme"
    """Nearly http, https or mailto; or file, which leads to the disk of the reader."""


class Rule(NamedTuple):
    """The verdict on a link of one's own site, on an external one, and on that when strict."""

    own: Verdict
    external: Verdict
    strict: Verdict


BROKEN = Rule(Verdict.FAULT, Verdict.FAULT, Verdict.FAULT)
DOUBTFUL = Rule(Verdict.FAULT, Verdict.NOTE, Verdict.FAULT)
GIVEN_UP = Rule(Verdict.FAULT, Verdict.NOTE, Verdict.NOTE)
NOTED = Rule(Verdict.NOTE, Verdict.NOTE, Verdict.NOTE)
CHOSEN = Rule(Verdict.FINE, Verdict.FINE, Verdict.FINE)
_RULES = {
    Weight.BROKEN: BROKEN,
    Weight.DOUBTFUL: DOUBTFUL,
    Weight.GIVEN_UP: GIVEN_UP,
    Weight.NOTED: NOTED,
    Weight.CHOSEN: CHOSEN,
}

BY_REASON: Mapping[Reason | Defect, Rule] = {
    **{reason: _RULES[about.weight] for reason, about in REASONS.items()},
    Defect.BAD_MAILTO: BROKEN,
    # A browser may know it all the same, from a program of the reader.
    Defect.BAD_SCHEME: NOTED,
    # A program of the page may make the element; on one's own site its author knows.
    Defect.MISSING_FRAGMENT: DOUBTFUL,
}
"""The rule for each reason."""

BY_STATUS: Mapping[int, Rule] = {
    # The server wants a login, or no programs. 999 is what LinkedIn answers to programs.
    401: DOUBTFUL,
    403: DOUBTFUL,
    999: DOUBTFUL,
    # The server says "later" (RFC 9110, 15.5.9 and 15.6; RFC 6585, 4).
    408: DOUBTFUL,
    429: DOUBTFUL,
    502: DOUBTFUL,
    503: DOUBTFUL,
    504: DOUBTFUL,
}
"""The rule for a status that is not accepted and no redirect; any other one is `BROKEN`."""


class Ended(Protocol):
    """The outcome of a URL: it has a `status`, a `reason` or both."""

    @property
    def url(self) -> str: ...


@public("trio_crawler.check")
@dataclass(frozen=True, slots=True, init=False)
class Verdicts:
    r"""The policy of a link check: one function from the end of a URL to a verdict.

    - A status in `accept` is fine, also that of a redirect, and so is 304. `hosts` has the
      statuses that are fine in place of those at some hosts, by their names.
    - A URL in which `re.search` finds a pattern of `ignore` is fine, whatever its end. The URL of
      a missing fragment has its fragment.
    - `redirects` is the verdict on every redirect. None stands for a note if the redirect is
      permanent (301, 308), and fine otherwise. The target of the redirect is judged by itself.
    - A host without a name or an address, a refused connection, TLS that fails, any other status
      of an error, a malformed link and redirects without an end are faults.
    - A timeout, 401, 403, 408, 429, 502, 503, 504, 999, a lost connection and a missing fragment
      are faults on one's own site. Of an external URL they are notes, and with `strict_status`
      faults: the link could not be checked, or a script of the page may make what the fragment
      names.
    - A limit of the crawl is never a fault: at most a note.

    Raises TypeError or ValueError, naming the argument, for an invalid value.

    >>> Verdicts(accept=[200, 403], ignore=[r"^https://intern\."]).strict_status
    False
    """

    accept: frozenset[int]
    hosts: Mapping[str, frozenset[int]] = field(hash=False)
    ignore: tuple[re.Pattern[str], ...]
    redirects: Verdict | None
    strict_status: bool

    def __init__(
        self,
        accept: Iterable[int] = range(200, 300),
        ignore: Iterable[str | re.Pattern[str]] = (),
        redirects: Verdict | None = None,
        strict_status: bool = False,
        hosts: Mapping[str, Iterable[int]] | None = None,
    ) -> None:
        own = {} if hosts is None else hosts
        check_kind("hosts", own, Mapping, "statuses by the names of hosts")
        patterns = several("ignore", ignore, "regular expressions")
        check_kind("redirects", redirects, Verdict | None, "a Verdict or None")
        check_flag("strict_status", strict_status)
        values = {
            "accept": _statuses("accept", accept),
            "hosts": {host_name("hosts", each): _statuses("hosts", own[each]) for each in own},
            "ignore": tuple(checked_pattern("ignore", pattern) for pattern in patterns),
            "redirects": redirects,
            "strict_status": strict_status,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __call__(self, outcome: Ended, *, external: bool = False) -> Verdict:
        """Return the verdict on an outcome: of its status, its reason, or the worse of both.

        For a redirect whose target was not admitted, that reason counts as well. The flaws of a
        page do not count: they are no faults of the links to it.
        """
        reason = getattr(outcome, "reason", None) or getattr(outcome, "rejected", None)
        status = getattr(outcome, "status", None)
        # `rejected` of a page are its links.
        known = reason if isinstance(reason, Reason) else None
        return self.of(outcome.url, status=status, reason=known, external=external)

    def of(
        self,
        url: str,
        *,
        status: int | None = None,
        reason: Reason | Defect | None = None,
        external: bool = False,
    ) -> Verdict:
        """Return the verdict on a `url` that ended with a `status`, a `reason`, or both.

        Raises ValueError if it has neither.
        """
        if status is None and reason is None:
            raise ArgumentError("status", " or reason must be given")
        column = 0 if not external else 2 if self.strict_status else 1
        worst = Verdict.FINE
        if reason is not None:
            worst = BY_REASON[reason][column]
        if status is not None:
            worst = max(worst, self._of_status(url, status, column))
        return Verdict.FINE if worst is not Verdict.FINE and self.ignores(url) else worst

    def ignores(self, url: str) -> bool:
        """Whether a pattern of `ignore` is found in a `url`."""
        return any(pattern.search(url) for pattern in self.ignore)

    def _of_status(self, url: str, status: int, column: int) -> Verdict:
        fine = self.accept
        if self.hosts and is_web(url):
            fine = self.hosts.get(host(url), fine)
        if status in fine or status == UNCHANGED:
            return Verdict.FINE
        if status in REDIRECTS:
            usual = Verdict.NOTE if status in PERMANENT else Verdict.FINE
            return usual if self.redirects is None else self.redirects
        return BY_STATUS.get(status, BROKEN)[column]


def _statuses(argument: str, statuses: Iterable[int]) -> frozenset[int]:
    found = several(argument, statuses, "statuses")
    for status in found:
        check_whole(f"each of {argument}", status, least=_LEAST, most=_MOST)
    return frozenset(found)


@public("trio_crawler.check")
def parse_statuses(text: str) -> frozenset[int]:
    """Return the statuses of a `text` with ranges, such as `200..299,403,999`, ends included.

    Raises ValueError, whose `argument` is "accept", for anything else.

    >>> sorted(parse_statuses("200..202,404"))
    [200, 201, 202, 404]
    """
    check_kind("text", text, str, "a list of statuses")
    found: set[int] = set()
    for part in map(str.strip, text.split(",")):
        numbers = _NUMBERS.fullmatch(part)
        if not numbers:
            shown = repr(part) if part else "nothing between two commas"
            raise ArgumentError("accept", f" must be a list such as 200..299,403, not {shown}")
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        if not _LEAST <= first <= _MOST or not _LEAST <= last <= _MOST:
            raise ArgumentError("accept", f": a status is from {_LEAST} to {_MOST}, not {part}")
        if first > last:
            raise ArgumentError("accept", f": {part} ends before it begins")
        found.update(range(first, last + 1))
    return frozenset(found)


@public("trio_crawler.check")
def parse_patterns(lines: Iterable[str], file: str) -> tuple[re.Pattern[str], ...]:
    """Return the regular expressions of a file, one a line.

    A `#` at the start of a line or after white space begins a comment; write `[#]` for one that is
    part of a pattern. White space around a pattern is removed, and blank lines are left out.
    Raises ValueError, naming the file and the line, for what is no regular expression, and if
    there are more than 10,000.

    >>> parse_patterns(["^https://intern[.]  # the intranet", ""], "ignore.txt")[0].pattern
    '^https://intern[.]'
    """
    check_iterable("lines", lines, "lines")
    check_kind("file", file, str, "the name of a file")
    found: list[re.Pattern[str]] = []
    for number, line in enumerate(lines, 1):
        text = _COMMENT.sub("", line.removeprefix("\ufeff") if number == 1 else line).strip()
        if not text:
            continue
        if len(found) == MOST_PATTERNS:
            raise ValueError(f"{file}, line {number}: more than {MOST_PATTERNS:,} patterns")
        try:
            found.append(re.compile(text))
        except re.error as error:
            wrong = f"not a regular expression: {text!r} ({error})"
            raise ValueError(f"{file}, line {number}: {wrong}") from None
    return tuple(found)
