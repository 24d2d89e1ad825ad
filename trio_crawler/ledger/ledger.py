"""The ledger of a crawl: the end of each URL, and the links of each page, as numbers.

▶ An outcome takes 5 to 15 us, a URL some 80 bytes and a link 1 to 2, packed.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, compress
from typing import Any, Self, TypeAlias

from msgspec.structs import asdict, replace

from trio_crawler.arguments import check_flag, check_kind, check_number, public
from trio_crawler.expressions import lazy
from trio_crawler.facts import PageFacts
from trio_crawler.ledger.tables import (
    AGAIN,
    CHECKED,
    DEEP,
    FAILURE,
    FOLDED,
    HTML,
    NO_URL,
    NOINDEX,
    NUMBER_OF,
    OTHER_CANONICAL,
    OWN_FRAGMENT,
    PAGE,
    REDIRECT,
    ROBOTS,
    SKIPPED,
    TRIED,
    Row,
    Rows,
    Spool,
    Traits,
    UrlTable,
)
from trio_crawler.link import Link, LinkKind
from trio_crawler.model import (
    Checked,
    Failure,
    Outcome,
    Page,
    Purpose,
    Reason,
    Record,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.page.fragments import Places
from trio_crawler.page.link_targets import Wanted
from trio_crawler.page.links import PageLinks, Source, pointed_of
from trio_crawler.page.urls import origin, seen_key

_UNAUTHORIZED, _NOT_MODIFIED = 401, 304
_MARKUP = ("text/html", "application/xhtml+xml")
# The texts of reasons and kinds, for `marshal`. ▶ Python 3.11 takes 0.7 us for a `.value`.
_TEXT_OF = {each: each.value for each in (*Reason, *LinkKind)}
# Links that are counted only: most pages have some, and a crawl has nothing to say of them.
_COUNTED = (Reason.OTHER_SITE, Reason.OTHER_SCHEME)
MOST_REJECTED = 1_000_000
"""The most rejected URLs whose links are kept."""

# The records of the pages that are packed together.
_BLOCK = 128
# Bytes of places in memory, unpacked: their ids, or keys, which become no smaller.
_PLACES = 8 * 1024 * 1024
# Bytes of the facts of pages in memory, unpacked.
_FACTS = 16 * 1024 * 1024
# Bytes of the links of pages in memory, unpacked, for a check.
_LINKS = 16 * 1024 * 1024
# Bytes that a record of places takes in memory besides them, that of links, the fragments of one
# URL, and each place.
_RECORD, _OUTLINKS, _NAMED, _PLACE = 100, 1_000, 200, 80
_MAX_CHALLENGES = 2_000
_QUOTED = lazy(r'"(?:[^"\\]|\\.)*"')
# The scheme of a challenge, before its parameters (RFC 9110, 11.6.1).
_schemes = lazy(r"(?:^|,)\s*([A-Za-z][A-Za-z0-9-]{0,39})(?=\s*$|\s*,|\s+[^\s=,])")

Numbers: TypeAlias = "array[int]"


class Pointed(Record, frozen=True):
    """What a page points to, for a check.

    `kinds` has by the kind of the links the numbers of their URLs, each once;
    `malformed` those of hrefs that are no URLs; `fragments` those of the numbers of a kind that
    have any, for `link_targets.fragments_in`. `source` is the place of the body, or the links,
    that `Ledger.source` reads.
    """

    kinds: Mapping[str, bytes]
    malformed: Mapping[str, bytes]
    fragments: Mapping[str, Mapping[int, bytes | bytearray]]
    source: int


class KeptFacts(Record, frozen=True):
    """The facts of a good page, without its headers; and what else of it a report reads."""

    url: str
    row: Row
    title: str | None
    canonical: str | None
    facts: PageFacts


class Outlinks(Record, frozen=True):
    """The links of a page, as numbers: those that were followed, and by reason the rejected ones.

    `pointed` is None unless the ledger is for a check.
    """

    page: int
    followed: Numbers
    rejected: Mapping[str, bytes]
    pointed: Pointed | None


def numbers_of(packed: bytes) -> Numbers:
    """Return the numbers that a record has."""
    return array("I", packed)


@public("trio_crawler.ledger")
class Ledger:
    """The ends of the URLs of a crawl, and the links of its pages.

    `add` records an outcome; they come in any order. Of two with one URL the later counts, and the
    links of both.
    With `outside` the links to other sites and schemes are kept, too, and not only counted; with
    `checks` also what a check needs: everything that a page points to, the places that fragments
    may name, and the bodies or texts of the links. What is too much for memory is in temporary
    files without a name, which `close` removes at once, and the end of the ledger in any case.
    With `traits` it keeps the title, type and depth of each URL, and the time that `add_time`
    records: `Report.html` shows them. If pages have `facts`, it keeps these.

    `changes` counts what was added, `kinds` the ends by kind, `rejected` the rejected links by
    reason, once for each page; `waiting` are the URLs that wait for a later run. `errors` is the
    number of broken URLs so far, without loops. Of 1,000,000 rejected URLs the links are kept,
    with `outside` of all; then `exact` becomes False.
    """

    def __init__(
        self, *, outside: bool = False, checks: bool = False, traits: bool = False
    ) -> None:
        check_flag("outside", outside)
        check_flag("checks", checks)
        check_flag("traits", traits)
        self.outside = outside or checks
        self.checks = checks
        self.traits = Traits() if traits else None
        self.urls = UrlTable()
        self.kinds = [0] * 6
        self.changes = 0
        self.rejected: Counter[Reason] = Counter()
        self.malformed: set[int] = set()
        self.exact = True
        # By the number of a URL: the sentence about a failure; the links that were cut off; the
        # flaws of a page, as an index.
        self.details: dict[int, str] = {}
        self.beyond: dict[int, int] = {}
        self.flaws: list[tuple[Reason, ...]] = [()]
        # For each origin that answered with 401 the scheme of the login, "" for Basic.
        self.logins: dict[str, str] = {}
        self.waiting: list[str] = []
        self._failing = 0
        self._rejected_urls = 0
        self._rows = Rows()
        # By the number of a URL another spelling that its outcome has.
        self._spelled: dict[int, int] = {}
        self._tail: list[tuple[Any, ...]] = []
        self._tail_size = 0
        self._links, self._sources = Spool(_LINKS, in_order=True), Spool()
        self._places = Spool(_PLACES, in_order=True)
        # The facts of pages, and by the number of a URL the index of its last ones.
        self._facts, self._facts_at = Spool(_FACTS, in_order=True), dict[int, int]()

    def __repr__(self) -> str:
        return f"<Ledger: {len(self)} ends, {len(self.urls)} URLs>"

    def __len__(self) -> int:
        return len(self._rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory and the files of the links."""
        for spool in (self._links, self._sources, self._places, self._facts):
            spool.close()

    @property
    def errors(self) -> int:
        """The number of failures, error statuses and malformed hrefs."""
        return self._failing + len(self.malformed)

    def add(self, outcome: Outcome, *, earlier: bool = False) -> None:
        """Record an outcome; one of an `earlier` run does not count if its URL has a later one."""
        check_kind("outcome", outcome, Outcome, "an outcome")
        check_flag("earlier", earlier)
        number = self.urls.number(outcome.url)
        if earlier and self.usual(number) in self._rows:
            return
        self.changes += 1
        if self.traits is not None:
            self.traits.add(self.usual(number), outcome)
        flags = (DEEP if outcome.depth else 0) | (AGAIN if outcome.again else 0)
        referrer = NO_URL if outcome.referrer is None else self.urls.number(outcome.referrer)
        match outcome:
            case Page():
                self._add_page(number, outcome, referrer, flags, earlier)
            case Redirect():
                self._add_redirect(number, outcome, referrer, flags)
            case Failure(reason=reason, detail=detail, seconds=seconds):
                flags |= (TRIED if outcome.tries else 0) | (
                    ROBOTS if outcome.about is Purpose.ROBOTS else 0
                )
                target = NO_URL if outcome.target is None else self.urls.number(outcome.target)
                about = (NUMBER_OF[reason], 0, flags, target, referrer, seconds)
                self._put(number, FAILURE, *about, detail=detail)
            case Skipped(reason=reason):
                about = (NUMBER_OF[reason], 0, flags, NO_URL, referrer, 0.0)
                self._put(number, SKIPPED, *about)
            case Checked():
                self._add_checked(number, outcome, referrer, flags)

    def add_time(self, url: str, ended: float) -> None:
        """Record the Unix time at which a `url` ended, if the ledger keeps `traits`."""
        check_kind("url", url, str, "a URL as a str")
        check_number("ended", ended, least=0)
        if self.traits is not None:
            self.traits.at(self.usual(self.urls.number(url)), ended)

    def add_waiting(self, url: str) -> None:
        """Record a `url` that has no outcome yet: it waits in the directory for a later run."""
        check_kind("url", url, str, "a URL as a str")
        self.changes += 1
        self.waiting.append(url)

    def number(self, url: str) -> int | None:
        """Return the number of a `url`, in its usual spelling; None if it has none."""
        return self.urls.known(seen_key(url))

    def knows(self, url: str) -> bool:
        """Whether the `url` has an end."""
        number = self.number(url)
        return number is not None and number in self._rows

    def end(self, number: int) -> Row | None:
        """Return the end of a URL; None if it has none."""
        return self._rows.get(self.usual(number))

    def url(self, number: int) -> str:
        """Return the URL with a number, as its outcome spells it if it has one."""
        number = self.urls.same.get(number, number)
        return self.urls.urls[self._spelled.get(number, number)]

    def ends(self, *kinds: int) -> Iterator[tuple[str, Row]]:
        """Yield the URLs that have an end, with it; of some `kinds`, if there are any."""
        wanted = [kind for kind in kinds or range(6) if self.kinds[kind]]
        spelled, urls = self._spelled, self.urls.urls
        for url, row in self._rows.of(urls, wanted) if wanted else ():
            yield (urls[spelled[row.number]] if row.number in spelled else url), row

    def outlinks(self) -> Iterator[Outlinks]:
        """Yield the links of each page that has some, in the order of the outcomes."""
        for block in chain(self._links, (self._tail,)):
            for page, followed, rejected, pointed in block:
                about = None if pointed is None else Pointed(*pointed)
                yield Outlinks(page, array("I", followed), rejected, about)

    def inlinks(self) -> Counter[int]:
        """Count the pages that link to each URL inside the scope, by its number."""
        found = Counter[int]()
        for each in self.outlinks():
            found.update(each.followed)
        for number, usual in self.urls.same.items():
            found[usual] += found.pop(number, 0)
        return found

    def places(self) -> Iterator[tuple[int, AbstractSet[int]]]:
        """Yield the number of each page whose places are known, and their keys."""
        for number, kept in self._places:
            keys = isinstance(kept, bytes)
            yield number, frozenset(array("Q", kept)) if keys else Places(kept)

    @property
    def has_facts(self) -> bool:
        """Whether any page has facts."""
        return len(self._facts) > 0

    def facts(self) -> Iterator[KeptFacts]:
        """Yield the facts of the good HTML pages that have some, in the order of the outcomes."""
        for at, (number, *about, fields) in enumerate(self._facts):
            row = self.end(number)
            if self._facts_at[number] == at and row is not None and row.good:
                yield KeptFacts(about[0], row, about[1], about[2], PageFacts(**fields))

    def source(self, at: int, wanted: Mapping[str, Wanted]) -> Sequence[Link]:
        """Return links of a page with places and texts: those `wanted` of each kind at least."""
        response, rows = self._sources[at]
        if response is not None:
            return Source(*response).links(wanted)
        return [Link(*row) for row in rows if row[0] in wanted.get(row[1], ())]

    def usual(self, number: int) -> int:
        """Return the number of the usual spelling of a URL."""
        return self.urls.same.get(number, number)

    def spellings(self, numbers: Iterable[int]) -> set[int]:
        """Return numbers, and those of all other spellings of their URLs."""
        wanted = set(numbers)
        others = self.urls.same.items()
        return (
            wanted | {number for number, usual in others if usual in wanted} if others else wanted
        )

    def _put(self, number: int, *about: Any, detail: str = "") -> None:
        """Write the row of a URL, in place of an earlier one; `about` are the other columns."""
        usual = self.urls.same.get(number, number)
        row = Row(usual, *about)
        before = self._rows.put(row, len(self.urls))
        self.kinds[row.kind] += 1
        self._failing += _is_failing(row)
        if before is not None:
            self.kinds[before.kind] -= 1
            self._failing -= _is_failing(before)
            for known in (self.details, self.beyond, self._spelled):
                known.pop(usual, None)
        if usual != number:
            self._spelled[usual] = number
        if detail:
            self.details[usual] = detail

    def _add_page(self, number: int, page: Page, referrer: int, flags: int, earlier: bool) -> None:
        table = self.urls
        flags |= (HTML if is_html(page.content_type) else 0) | (TRIED if page.tries else 0)
        if page.robots and "noindex" in page.robots:
            flags |= NOINDEX
        if page.canonical and seen_key(page.canonical) != seen_key(page.url):
            flags |= OTHER_CANONICAL
        original = page.duplicate_of
        target = NO_URL if original is None else table.number(original)
        flaws = 0
        if page.flaws:
            if page.flaws not in self.flaws:
                self.flaws.append(page.flaws)
            flaws = self.flaws.index(page.flaws)
        if page.status == _UNAUTHORIZED:
            home, scheme = origin(page.url), _login_scheme(page)
            # A directory has no headers.
            self.logins[home] = self.logins.get(home, scheme) if earlier else scheme
        followed = table.numbers(page.links)
        if page.folded_into is not None:
            # The crawl requested the canonical page as if this page linked to it.
            flags |= FOLDED
            followed.append(table.number(page.folded_into))
        title = hash(page.title) & 0xFFFF_FFFF or 1 if page.title else 0
        # What a crawl and its directory both know of the text of a page.
        told = page.url if page.status == _NOT_MODIFIED else (page.content_type, page.links)
        text = hash((told, page.size)) & 0xFFFF_FFFF
        about = (page.status, flags, target, referrer, page.seconds, page.size, title, text)
        self._put(number, PAGE, flaws, *about)
        if page.links_beyond:
            self.beyond[self.usual(number)] = page.links_beyond
        rejected = self._rejected(page.rejected) if page.rejected else {}
        pointed = self._pointed(page) if self.checks else None
        if followed or rejected or pointed:
            self._tail.append((number, followed.tobytes(), rejected, pointed))
            if pointed is not None:
                # Each link is followed or rejected, and is pointed to.
                size = 8 * (len(page.links) + len(page.rejected))
                for named in pointed[2].values():
                    size += _NAMED * len(named) + sum(map(len, named.values()))
                self._tail_size += _OUTLINKS + size
            if len(self._tail) >= _BLOCK:
                # Only a check reads them several times.
                self._links.append(self._tail, self._tail_size if self.checks else None)
                self._tail, self._tail_size = [], 0
        if page.targets is not None:
            self._add_places(number, page.targets)
        if page.facts is not None and flags & HTML:
            self._add_facts(self.usual(number), page, page.facts)

    def _add_facts(self, number: int, page: Page, facts: PageFacts) -> None:
        every = asdict(replace(facts, headers={}, fetched=0.0))
        fields = {name: value for name, value in every.items() if value}
        size = _RECORD + sum(len(text) for text in fields.values() if isinstance(text, str))
        self._facts_at[number] = len(self._facts)
        self._facts.append((number, page.url, page.title, page.canonical, fields), size)

    def _rejected(self, links: Sequence[RejectedLink]) -> dict[str, bytes]:
        """Return the rejected links by reason, as numbers, as far as they are kept."""
        found = dict[str, bytes]()
        by_reason = dict[Reason, list[str]]()
        for url, reason in links:
            by_reason.setdefault(reason, []).append(url)
        for reason, urls in by_reason.items():
            self.rejected[reason] += len(urls)
            if not self.outside and reason in _COUNTED:
                continue
            before = len(self.urls)
            if self.outside or reason is Reason.BAD_URL or self._rejected_urls < MOST_REJECTED:
                numbers = self.urls.numbers(urls)
            else:
                self.exact = False
                known = map(self.urls.known, urls)
                numbers = array("I", [number for number in known if number is not None])
            self._rejected_urls += len(self.urls) - before
            if reason is Reason.BAD_URL:
                self.malformed.update(numbers)
            found[_TEXT_OF[reason]] = numbers.tobytes()
        return found

    def _pointed(self, page: Page) -> tuple[Any, ...] | None:
        """Return what a check needs of the links of a page; None if it has none."""
        found = page.found
        if not found:
            # The crawl has read the links without their places.
            urls = dict.fromkeys((*page.links, *(url for url, _ in page.rejected)))
            texts = {url: anchor.text for url, anchor in page.anchors.items()}
            found = [Link(url, text=texts.get(url, "")) for url in urls]
        if not found:
            return None
        pointed = pointed_of(found)
        numbers, kinds, fragments = self.urls.numbers, dict[str, bytes](), {}
        for kind, urls in pointed.kinds.items():
            text = _TEXT_OF[kind]
            kinds[text] = (here := numbers(urls)).tobytes()
            if any(named := urls.values()):
                fragments[text] = dict(compress(zip(here, named, strict=True), named))
        malformed = {
            _TEXT_OF[kind]: numbers(texts).tobytes() for kind, texts in pointed.malformed.items()
        }
        if isinstance(found, PageLinks):
            source = self._sources.append((tuple(found.kept), None), len(found.kept.body))
        else:
            # Plain values, which `marshal` can write.
            rows = [(link.url, str(link.kind), *link[2:]) for link in found]
            source = self._sources.append((None, rows))
        return kinds, malformed, fragments, source

    def _add_redirect(self, number: int, redirect: Redirect, referrer: int, flags: int) -> None:
        flags |= (TRIED if redirect.tries else 0) | (OWN_FRAGMENT if redirect.fragment else 0)
        reason = redirect.rejected
        # Requests have no fragment; what is no web URL is shown as it is.
        whole = reason in (Reason.BAD_URL, Reason.OTHER_SCHEME)
        target = redirect.target if whole else redirect.target.partition("#")[0]
        if reason is not None:
            self.rejected[reason] += 1
        about = (redirect.status, flags, self.urls.number(target), referrer, redirect.seconds)
        self._put(number, REDIRECT, NUMBER_OF[reason], *about)

    def _add_checked(self, number: int, checked: Checked, referrer: int, flags: int) -> None:
        flags |= (TRIED if checked.tries else 0) | (OWN_FRAGMENT if checked.fragment else 0)
        target, code = NO_URL, NUMBER_OF[checked.reason]
        if checked.target is not None and not checked.reason:
            target = self.urls.number(checked.target.partition("#")[0])
        about = (checked.status or 0, flags, target, referrer, checked.seconds)
        self._put(number, CHECKED, code, *about, detail=checked.detail)
        if checked.targets is not None:
            self._add_places(number, checked.targets)

    def _add_places(self, number: int, places: AbstractSet[int]) -> None:
        names = places.names if isinstance(places, Places) else ()
        kept = names or array("Q", places).tobytes()
        size = len("".join(names)) + _PLACE * len(names) or len(kept)
        self._places.append((self.usual(number), kept), size + _RECORD)


def _is_failing(row: Row) -> bool:
    return row.kind == FAILURE or (row.kind == PAGE and row.status >= 400)


def is_html(content_type: str) -> bool:
    """Whether a Content-Type is that of HTML."""
    return content_type in _MARKUP or content_type.partition(";")[0].strip().lower() in _MARKUP


def _login_scheme(page: Page) -> str:
    """Return the first scheme of authentication that a 401 names; "" for Basic, and if none is."""
    challenges = ",".join(page.headers.get_list("www-authenticate"))[:_MAX_CHALLENGES]
    schemes = _schemes.findall(_QUOTED.sub('""', challenges))
    if not schemes or any(scheme.lower() == "basic" for scheme in schemes):
        return ""
    return str(schemes[0])
