"""Findings: each a fault or a note on one link, at one place of one page; their codes."""

# No `from __future__ import annotations` here: msgspec and `typing.get_type_hints` would look the
# names up in `__module__`, which is set to another module.
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import copy
from itertools import chain
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec.structs import force_setattr

from trio_crawler.arguments import ArgumentError, check_flag, check_kind, check_whole, public
from trio_crawler.expressions import lazy
from trio_crawler.link import Link
from trio_crawler.model import REDIRECTS
from trio_crawler.page.urls import BARE_PERCENT, NOWHERE, is_web
from trio_crawler.policy.verdict import (
    BY_REASON,
    BY_STATUS,
    DOUBTFUL,
    GIVEN_UP,
    Defect,
    Verdict,
)
from trio_crawler.report.codes import SENTENCES, is_code, is_status, sentence
from trio_crawler.report.visible import count, readable

_AFTER_SCHEME = len("https://")
_SHOWN = 500
_OF_FILES = {
    "400": 'A "%" in the path is not followed by two hexadecimal digits',
    "403": "The file may not be read",
    "404": "There is no such file",
}
_RULES = {str(key): rule for key, rule in (*BY_REASON.items(), *BY_STATUS.items())}


PathOf: TypeAlias = Callable[[str], str | None]
"""Returns the path of what a URL names in a folder that is checked, None for all other URLs."""


def name_of(url: str, path_of: PathOf) -> str:
    """Return a URL as people see it: in a folder that is checked, the path of its file."""
    return path_of(url) or url


def data_name_of(url: str, path_of: PathOf) -> str:
    """Return a URL as programs see it: the path of its file, if the folder has no URL."""
    return name_of(url, path_of) if url.startswith(NOWHERE) else url


@public("trio_crawler.check")
class Hop(NamedTuple):
    """One redirect: its status, and the URL that it leads to.

    >>> Hop(301, "https://e.org/new")
    Hop(status=301, url='https://e.org/new')
    """

    status: int
    url: str


@public("trio_crawler.check")
class Identity(NamedTuple):
    """What makes two findings the same in two runs: not the line, the text or the host.

    `page` is the path and query of the page, "" for a seed. `target` has the fragment; on the host
    of the page it is the path and query as well, so that a finding on a staging server is that of
    production.

    >>> Identity(page="/about.html", target="/gone", code="404")
    Identity(page='/about.html', target='/gone', code='404')
    """

    page: str
    target: str
    code: str


@public("trio_crawler.check")
class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault or note: a link that is broken, should be updated, or could not be checked.

    - `verdict` is `Verdict.FAULT` or `Verdict.NOTE`;
    - `url` is the target without its fragment, `fragment` what follows its `#`; a malformed link
      has its text as `url`;
    - `code` is for programs: a status such as "404", a `Reason` such as "dns", or
      "missing_fragment" and "bad_mailto"; `detail` is a sentence about this case, "" if there is
      none;
    - `page` is the URL of the page that has the link, None for a seed; `kind` is the `LinkKind`
      of the link, "" if that is unknown;
    - `line` and `column` begin at 1, and are 0 if unknown; the column counts characters;
    - `text` is the text of the link, `as_written` its attribute as in the source;
    - `chain` are the redirects from `url` on, in order;
    - `external` is whether the target is outside of the site.

    Raises TypeError or ValueError for another verdict or a code that does not exist.

    >>> finding = Finding(
    ...     verdict=Verdict.FAULT, url="https://e.org/gone", code="404",
    ...     page="https://e.org/", line=3, column=8, text="Price list",
    ... )
    >>> finding.says, finding.target
    ('The server answers 404 (Not Found)', 'https://e.org/gone')
    """

    verdict: Verdict
    url: str
    code: str
    page: str | None = None
    kind: str = ""
    fragment: str = ""
    line: int = 0
    column: int = 0
    text: str = ""
    as_written: str = ""
    detail: str = ""
    chain: tuple[Hop, ...] = ()
    external: bool = False

    def __post_init__(self) -> None:
        check_kind("verdict", self.verdict, Verdict, "a Verdict")
        for name in ("url", "code", "kind", "fragment", "text", "as_written", "detail"):
            check_kind(name, getattr(self, name), str, "a str")
        check_kind("page", self.page, str | None, "a URL or None")
        for name in ("line", "column"):
            check_whole(name, getattr(self, name))
        check_kind("chain", self.chain, tuple, "a tuple of hops")
        check_flag("external", self.external)
        if self.verdict is Verdict.FINE:
            raise ArgumentError("verdict", " must be a note or a fault: a fine link is no finding")
        if not is_code(self.code):
            wanted = "a status, a Reason, or one of missing_fragment and bad_mailto"
            raise ArgumentError("code", f" must be {wanted}, not {self.code!r}")

    @property
    def target(self) -> str:
        """The URL with its fragment."""
        return f"{self.url}#{self.fragment}" if self.fragment else self.url

    @property
    def says(self) -> str:
        """What is wrong, as a sentence for people without its full stop; the URL is not in it."""
        return self.told(lambda url: None)

    def told(self, path_of: PathOf) -> str:
        """Return what is wrong, where `path_of` names the files of a folder that is checked."""
        code, end = self.code, self.chain[-1].url if self.chain else self.url
        last = readable(name_of(end, path_of)) if self.chain else ""
        if code in _OF_FILES and path_of(end) is not None:
            return _OF_FILES[code]
        told = self.detail if self.detail and code in SENTENCES else sentence(code, last)
        # Many a detail begins with the name of a host, which has no capitals.
        told = told[0].upper() + told[1:] if told.startswith(("the ", "a ", "an ")) else told
        if self.chain and not (is_status(code) and int(code) in REDIRECTS):
            told = f"{told}, after {count(len(self.chain), 'redirect')} to {last}"
        if self.verdict is Verdict.NOTE and code == Defect.MISSING_FRAGMENT:
            told = f"{told}, unless a script of the page makes it"
        elif self.verdict is Verdict.NOTE and _RULES.get(code) in (DOUBTFUL, GIVEN_UP):
            told = f"{told}, so the link could not be checked"
        return shortened(told)

    @property
    def identity(self) -> Identity:
        """What makes this finding the same in two runs."""
        page, home = self.page or "", origin_of(self.page or "")
        own = home and self.target.startswith(f"{home}/")
        target = self.target[len(home) :] if own else self.target
        return Identity(page[len(home) :], target, self.code)

    @property
    def fingerprint(self) -> str:
        """The identity as 32 hexadecimal digits."""
        named = json.dumps(self.identity, separators=(",", ":")).encode()
        return hashlib.sha256(named).hexdigest()[:32]


def finding_of(page: str | None, link: Link, verdict: Verdict, code: str, **about: Any) -> Finding:
    """Return the finding of a link of a page."""
    return Finding(
        verdict=verdict,
        url=link.url,
        code=str(code),
        page=page,
        kind=str(link.kind),
        fragment=link.fragment,
        line=link.line,
        column=link.column,
        text=link.text,
        as_written=link.as_written,
        **about,
    )


def placed(found: Iterable[Finding], page: str, links: Iterable[Link]) -> list[Finding]:
    """Return the findings at all places of a page, in the order of these places.

    A finding is about each link of its kind to its URL; that of a fragment, about this fragment.
    One without a link is the last, without a place.
    """
    by_target: defaultdict[tuple[str, str, str | None], list[Finding]] = defaultdict(list)
    for finding in found:
        fragment = finding.fragment if finding.code == Defect.MISSING_FRAGMENT else None
        by_target[finding.url, finding.kind, fragment].append(finding)
    placed: list[Finding] = []
    unplaced = dict(by_target)
    for link in links:
        for fragment in (None, link.fragment):
            key = link.url, link.kind, fragment
            unplaced.pop(key, None)
            for finding in by_target.get(key, ()):
                # `replace` would check again what is checked already.
                here = copy(finding)
                force_setattr(here, "page", page)
                for name in ("fragment", "line", "column", "text", "as_written"):
                    force_setattr(here, name, getattr(link, name))
                placed.append(here)
    for finding in chain.from_iterable(unplaced.values()):
        placed.append(here := copy(finding))
        force_setattr(here, "page", page)
    return placed


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by page, line, column and target: the same ones always in the same order.

    Those of seeds come first.
    """
    return sorted(findings, key=place)


def place(finding: Finding) -> tuple[Any, ...]:
    """Return a key that sorts findings; only two that are equal have the same one."""
    where = (finding.page or "", finding.page is not None, finding.line, finding.column)
    what = (finding.url, finding.fragment, finding.code, finding.verdict, finding.kind)
    told = (finding.text, finding.as_written, finding.detail, finding.chain, finding.external)
    return *where, *what, *told


def shortened(text: str) -> str:
    """Return a text as one visible line of at most 500 characters, the last one a "…" if cut."""
    shown = readable(text[: _SHOWN * 2])
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def origin_of(url: str) -> str:
    """Return `scheme://host[:port]` of a web URL, "" for any other text."""
    end = url.find("/", _AFTER_SCHEME) if is_web(url) else -1
    return url[:end] if end > 0 else ""


# ▶ All other characters are named, since a range beyond ASCII takes 4 ms to compile.
_ATOM = r"""[^\x00-\x20"(),.:;<>@\[\\\]\x7f]++"""
# An addr-spec (RFC 6068, 2), percent-decoded: a dot-atom or a quoted string, and a domain.
_ADDRESS = lazy(
    rf"""
    (?: {_ATOM} (?: \. {_ATOM} )*+ | " (?: [^"\\\x00-\x1f\x7f]++ | \\ [\x20-\x7e] )*+ " )
    @
    (?: {_ATOM} (?: \. {_ATOM} )*+ | \[ [\x21-\x5a\x5e-\x7e]*+ \] )
    """,
    re.VERBOSE,
)
# RFC 3986 allows "/" and "?" in every query, and every mail program reads them.
_FIELD = lazy(r"(?P<name>[\w.~!$'()*+,;:@%/?-]++)=(?P<value>[\w.~!$'()*+,;:@%/?-]*+)")
_ADDRESS_FIELDS = frozenset({"to", "cc", "bcc"})
_MAX_PART = 80


_MEANT = ("http", "https", "mailto")


def note_of(scheme: str) -> str:
    """Return what is odd about the scheme of a link as a sentence, "" if it is not."""
    if scheme == "file":
        return "a file: link leads to the disk of the reader"
    # Imported late: hardly any page has a link with such a scheme.
    from difflib import get_close_matches

    meant = get_close_matches(scheme, _MEANT, n=1, cutoff=0.75)
    return f"{scheme}: may be meant as {meant[0]}:" if meant and scheme not in _MEANT else ""


def detail_of(url: str, code: str) -> str:
    """Return why a server may answer for a URL with this status as a sentence, "" if unknown."""
    if code == "400" and BARE_PERCENT.search(url):
        return 'a "%" is not followed by two hexadecimal digits: write %25'
    return ""


def mailto_fault(rest: str) -> str:
    """Return the fault of what follows the `mailto:` of a normalised URL, "" without one.

    It may be without an address (RFC 6068, 2).
    """
    addresses, _, query = rest.partition("?")
    if BARE_PERCENT.search(rest):
        return 'a "%" is not followed by two hexadecimal digits (RFC 6068)'
    if fault := _addresses_fault(addresses):
        return fault
    for field in query.split("&") if query else ():
        found = _FIELD.fullmatch(field)
        if found is None:
            return f"{_part(field)} is not a header field of the form name=value (RFC 6068)"
        if _decoded(found["name"]).lower() in _ADDRESS_FIELDS and (
            fault := _addresses_fault(found["value"])
        ):
            return fault
    return ""


def _addresses_fault(addresses: str) -> str:
    for address in addresses.split(",") if addresses else ():
        if not _ADDRESS.fullmatch(_decoded(address)):
            return f"{_part(_decoded(address))} is not an address of e-mail (RFC 6068)"
    return ""


def _decoded(source: str) -> str:
    return unquote_to_bytes(source).decode("utf-8", "replace")


def _part(text: str) -> str:
    return repr(text if len(text) <= _MAX_PART else text[:_MAX_PART] + "…")
