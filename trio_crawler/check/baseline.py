"""Baselines: the findings that are known, so that only new ones count."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trio_crawler.arguments import check_iterable, check_kind, check_whole, public, several_of
from trio_crawler.check.facts import writer
from trio_crawler.check.finding import Finding, Identity, in_order
from trio_crawler.report.visible import ascii_json

VERSION = 1
"""The version of the file's format."""

MOST = 1_000_000
"""The most entries that a file may have."""

_HEAD = "trio_crawler_baseline"
_KEYS = set(Identity._fields)


@public("trio_crawler.check")
@dataclass(frozen=True, slots=True)
class Comparison:
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
