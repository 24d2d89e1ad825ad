from __future__ import annotations

import calendar
import itertools
import math
import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha1
from urllib.parse import parse_qsl, urlsplit

import pytest
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from trio_crawler.model import Job, Reason
from trio_crawler.page.read import read
from trio_crawler.page.urls import authority, normalise
from trio_crawler.policy.traps import HostTraps, Traps
from trio_crawler.policy.url_shapes import repeats, without_session

HTML = "text/html; charset=utf-8"
ENDLESS = 20_000
"""Pages after which a walk counts as one without an end."""

DEFAULTS = Traps()
NO_HOPS = Traps(max_hops=math.inf)


@dataclass(frozen=True)
class Moved:
    """An answer that leads elsewhere."""

    target: str


Site = Callable[[str], "str | Moved | None"]
"""Answer a target, such as `/a?b=1`, with HTML, a redirect or nothing."""


class Watch:
    """The traps of all hosts of one crawl, as a crawl asks them."""

    def __init__(self, traps: Traps) -> None:
        self._traps = traps
        self._by_digest = False
        self._hosts: dict[str, HostTraps] = {}
        self._recent = set[str]()

    def host(self, url: str) -> HostTraps:
        return self._hosts.setdefault(authority(url), HostTraps(self._traps))

    def rejection(self, job: Job) -> Reason | None:
        if job.url in self._recent:
            return None
        reason = self.host(job.url).rejection(job)
        if reason is None:
            self._recent.add(job.url)
        return reason

    def saw(self, url: str, body: bytes, content_type: str) -> str | None:
        digest = sha1(body).digest() if self._by_digest and body else None
        return self.host(url).original(url, body, content_type, digest)

    def led(self, url: str, body: bytes, links: Iterable[str]) -> None:
        self.host(url).record_links(url, body, links)

    def recall(self, urls: Iterable[str]) -> None:
        by_host: dict[str, list[str]] = {}
        for url in urls:
            self._recent.add(url)
            by_host.setdefault(authority(url), []).append(url)
        for found in by_host.values():
            self.host(found[0]).restore(found)

    def recall_copies(self, bodies: Iterable[tuple[str, bytes]]) -> None:
        self._by_digest = True
        for url, digest in bodies:
            self.host(url).restore_bodies([(url, digest)])


@dataclass
class Walk:
    """What a crawl found: the targets that were pages, and why links were refused."""

    pages: list[str] = field(default_factory=list)
    body: bytes = b""
    refused: Counter[Reason] = field(default_factory=Counter)
    copies: dict[str, str] = field(default_factory=dict)

    @property
    def beside(self) -> list[str]:
        """List the pages that are none of the good ones."""
        return [page for page in self.pages if page not in GOOD]


def walk(site: Site, traps: Traps = DEFAULTS, most: int = ENDLESS) -> Walk:
    """Crawl a site breadth first, until nothing is left or `most` URLs were asked for."""
    found, watch = Walk(), None if traps == Traps.off() else Watch(traps)
    waiting = [Job("http://h/")]
    seen = {"http://h/"}
    for job in growing(waiting, most):
        before = len(waiting)
        for successor in ask(site, job, watch, found):
            if successor.url in seen or successor.redirects < 0:
                continue
            if watch and (reason := watch.rejection(successor)):
                found.refused[reason] += 1
            else:
                seen.add(successor.url)
                waiting.append(successor)
        if watch:
            watch.led(job.url, found.body, [new.url for new in waiting[before:]])
    return found


def growing(waiting: list[Job], most: int) -> Iterator[Job]:
    for number in itertools.count():
        if number >= min(len(waiting), most):
            return
        yield waiting[number]


def ask(site: Site, job: Job, watch: Watch | None, found: Walk) -> list[Job]:
    """Answer a job as the site does, and return what follows from that."""
    target = job.url.removeprefix("http://h")
    answer = site(target)
    if answer is None:
        return []
    if isinstance(answer, Moved):
        url = normalise(answer.target, job.url)
        return [structs.replace(job, url=url, redirects=job.redirects - 1, referrer=job.url)]
    found.pages.append(target)
    found.body = body = answer.encode()
    if watch and (copy := watch.saw(job.url, body, HTML)):
        found.copies[target] = copy.removeprefix("http://h")
        return []
    links = read(body, HTML, job.url).links
    if watch:
        links = tuple(map(without_session, links))
    return [Job(url, job.depth + 1, referrer=job.url) for url in links]


def link(*targets: str) -> str:
    return "".join(f'<li><a href="{target}">here</a>' for target in targets)


@cache
def words(seed: object, count: int = 30) -> str:
    """Give some text, the same for the same seed."""
    chance = random.Random(str(seed))
    return " ".join("".join(chance.choices("aeiourstlnm", k=7)) for _ in range(count))


GOOD = [f"/good-{letters}" for letters in map("".join, itertools.product("abcde", "abcdefghij"))]


def beside_good_pages(trap: Site, *entries: str) -> Site:
    """Put a trap beside 50 pages that are found in two steps; the trap's links come first."""

    def site(target: str) -> str | Moved | None:
        if target == "/":
            return "<h1>Home</h1>" + link(*entries, *GOOD[::10])
        if target in GOOD:
            at = GOOD.index(target)
            return f"<p>{words(target)}" + link("/", *GOOD[at + 1 : at - at % 10 + 10])
        return trap(target)

    return site


def parameters(target: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(target).query))


def months(target: str) -> str | None:
    """Show a month at /2031/3/ with links to two months, two years, and all days."""
    match = re.fullmatch(r"/([0-9]{4})/([0-9]{1,2})/(?:([0-9]{1,2})/)?", target)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), match[3]
    if day:
        return f"<h1>{calendar.month_name[month]} {day}, {year}</h1>No events on this day."
    near = [(year - (month == 1), (month - 2) % 12 + 1), (year + (month == 12), month % 12 + 1)]
    far = [(year - 1, month), (year + 1, month)]
    table = calendar.HTMLCalendar().formatmonth(year, month)
    linked = re.sub(">([0-9]+)<", rf'><a href="/{year}/{month}/\1/">\1</a><', table)
    return f"{linked} No events. " + link(*(f"/{y:04}/{m}/" for y, m in near + far))


FRENCH = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"


def french_months(target: str) -> str | None:
    """Show a month by parameters, in words nobody told us of, with a token for each visitor."""
    asked = parameters(target)
    if not asked:
        return None
    at = int(asked["year"]) * 12 + int(asked["month"]) - 1
    names = [FRENCH.split()[each % 12] for each in (at - 1, at, at + 1)]
    near = (f"/cal?year={each // 12}&amp;month={each % 12 + 1}" for each in (at - 1, at + 1))
    return (
        f'<form><input type="hidden" name="csrf" value="{secrets.token_urlsafe()}"></form>'
        f"<script nonce={secrets.token_hex()}>let state = '{secrets.token_hex()}'</script>"
        f"<h1>{names[1]} {at // 12}</h1>Rien. {names[0]} {names[2]}" + link(*near)
    )


def numbers(target: str) -> str:
    """Count for ever, with something new to say on each page."""
    number = int(parameters(target).get("n", "0"))
    return words(number) + link(f"/count?n={number + 1}")


def facets(target: str) -> str:
    """Let eight parameters be toggled, each at the end of the query, or out of it."""
    path, _, query = target.partition("?")
    chosen = query.split("&") if query else []
    every = [f"facet{letter}=yes" for letter in "abcdefgh"]
    toggled = [[each for each in chosen if each != facet] for facet in every if facet in chosen]
    toggled += [[*chosen, facet] for facet in every if facet not in chosen]
    shown = words(str(sorted(chosen)))
    return shown + link(*(path + "?" * bool(each) + "&amp;".join(each) for each in toggled))


def sessions(target: str) -> str | None:
    """Write a new session id into every link of ten pages, in one of three ways."""
    page = re.fullmatch("/shop/([a-j])(?:[;?].*)?", target)
    if page is None:
        return None
    new = secrets.token_hex(16)
    ways = (f";jsessionid={new}", f"?PHPSESSID={new}", f"?sid={new}")
    return words(page[1]) + link(*(f"/shop/{each}{random.choice(ways)}" for each in "abcdefghij"))


def same_everywhere(target: str) -> str:
    return "There is nothing, and everything is here." + link("a/", "b/", "c/", "/top/")


@for_each(
    "trap, entry, traps, most, reason",
    [
        (months, "/2031/3/", DEFAULTS, 4_000, Reason.NOTHING_NEW),
        (months, "/2031/3/", NO_HOPS, 4_000, Reason.NOTHING_NEW),
        (french_months, "/cal?year=2031&amp;month=3", NO_HOPS, 300, Reason.NOTHING_NEW),
        (numbers, "/count?n=1", Traps(max_hops=20), 20, Reason.TOO_MANY_HOPS),
        (numbers, "/count?n=1", Traps(per_pattern=7), 7, Reason.PATTERN_BUDGET),
        (numbers, "/count?n=1", Traps(per_host=57), 7, Reason.HOST_BUDGET),
        (facets, "/list", DEFAULTS, 256, Reason.PERMUTED_QUERY),
        (facets, "/list", NO_HOPS, 256, Reason.PERMUTED_QUERY),
        (sessions, "/shop/a", DEFAULTS, 10, None),
        (same_everywhere, "/any/", DEFAULTS, 60, None),
        (same_everywhere, "/any/", NO_HOPS, 60, None),
        (lambda target: words(target) + link("a/"), "/x/", NO_HOPS, 3, Reason.REPEATED_PATH),
        (
            lambda target: words(target) + link("a/" if target.endswith("b/") else "b/"),
            "/x/",
            NO_HOPS,
            6,
            Reason.REPEATED_PATH,
        ),
        (
            lambda target: words(target) + link(f"{words(target, 1)}/"),
            "/x/",
            NO_HOPS,
            20,
            Reason.DEEP_PATH,
        ),
        (
            lambda target: words(target) + link(f"{target}{words(target, 10).replace(' ', '-')}"),
            "/x",
            NO_HOPS,
            27,
            Reason.LONG_URL,
        ),
    ],
)
def test_a_trap_ends_and_the_good_pages_beside_it_are_all_found(trap, entry, traps, most, reason):
    found = walk(beside_good_pages(trap, entry), traps)
    assert set(GOOD) <= set(found.pages)
    assert len(found.beside) - 1 <= most  # without the home page
    assert reason is None or found.refused[reason]


def test_redirects_to_a_directory_and_to_the_order_of_the_server_are_followed():
    def tidy(target: str) -> str | Moved | None:
        path, _, query = target.partition("?")
        if path == "/list":
            return Moved(f"/list/?{query}")
        in_order = "&".join(sorted(query.split("&")))
        return words(in_order) if query == in_order else Moved(f"/list/?{in_order}")

    links = ("/list?b=1&amp;a=2", "/list/?d=1&amp;c=2&amp;b=3", "/list/?b=3&amp;d=1&amp;c=2")
    found = walk(beside_good_pages(tidy, *links))
    assert found.beside == ["/", "/list/?b=3&c=2&d=1", "/list/?a=2&b=1"]
    assert found.refused == {Reason.PERMUTED_QUERY: 1}


def test_another_value_or_one_more_of_the_same_is_another_query():
    watch = Watch(Traps())
    queries = ("a=1&b=2", "b=2", "a=1", "a=2&b=1", "a=1&b=2&b=2", "a=1&b=2&", "b=2?&a=1")
    assert [watch.rejection(Job(f"http://h/?{query}")) for query in queries] == [None] * 7
    assert watch.rejection(Job("http://h/?b=2&a=1")) == Reason.PERMUTED_QUERY
    assert watch.rejection(Job("http://h/?b=2&b=2&a=1")) == Reason.PERMUTED_QUERY
    assert watch.rejection(Job("http://h/x?b=2&a=1")) is None
    assert watch.rejection(Job("http://g/?b=2&a=1")) is None


def test_the_first_order_is_let_through_however_often_it_is_asked_about():
    watch = Watch(Traps())
    first, other = Job("http://h/?b=2&a=1"), Job("http://h/?a=1&b=2", referrer="http://h/")
    answers = [watch.rejection(job) for job in (first, other, first, other, first)]
    assert answers == [None, Reason.PERMUTED_QUERY] * 2 + [None]


@for_each(
    "url, reason",
    [
        ("http://h/" + "a" * 2_074, None),
        ("http://h/" + "a" * 2_075, Reason.LONG_URL),
        ("http://h/" + "/".join("abcdefghijklmnopqrst"), None),
        ("http://h/" + "/".join("abcdefghijklmnopqrst") + "/?/u/v", None),
        ("http://h/" + "/".join("abcdefghijklmnopqrstu"), Reason.DEEP_PATH),
        ("http://h/a/a/x", None),
        ("http://h/a/a/a", None),
        ("http://h/a/a/a/", Reason.REPEATED_PATH),
        ("http://h/x/a/b/a/b/a/b/y", Reason.REPEATED_PATH),
        ("http://h/x/a/b/a/b/a/c/y", None),
        ("http://h/a/b/c/a/b/c/a/b/c/", Reason.REPEATED_PATH),
        ("http://h/2011/11/11/11", None),
        ("http://h////", Reason.REPEATED_PATH),
        ("http://h/?q=/a/a/a/a/", None),
        ("http://a.a.a.a/", None),
        ("http://a/a/a/b/", None),
    ],
)
def test_a_url_tells_by_itself_that_it_goes_nowhere(url, reason):
    assert Watch(Traps()).rejection(Job(url)) == reason


@given(st.text("ab/", max_size=16), st.integers(1, 3))
def test_what_comes_too_often_in_a_row_is_what_a_regular_expression_finds(names, most):
    path = f"/{names}"
    expected = re.search(rf"/((?:[^/]*/)+?)\1{{{most}}}", path) is not None
    assert repeats(path, most) is expected


def hops(texts: Iterable[str], traps: Traps = DEFAULTS) -> int:
    """Follow a chain of pages with these texts; return how many links it is let go on."""
    host = HostTraps(traps)
    for depth, text in enumerate(texts):
        if host.rejection(Job(f"http://h/{chr(97 + depth % 26)}/{depth}x", depth=depth)):
            return depth
        host.record_links(f"http://h/{depth}", text.encode(), [], depth=depth)
    return depth + 1


SAME = "<h1>The same</h1>" + "<p>Nothing" * 9


def test_a_chain_of_links_goes_on_as_long_as_its_pages_say_something_new():
    assert hops(f"{SAME}<p>{words(str(n), 3)}<p>{words(f'{n}b', 2)}" for n in range(600)) == 600


def test_a_chain_ends_after_a_hundred_pages_that_say_nothing_new():
    # The first page far from the seed is new itself.
    assert hops([SAME] * 600) == 21 + 100


def test_pages_that_differ_in_few_numbers_end_a_chain_after_a_thousand():
    texts = (
        f"{SAME}{''.join(f'<p>{word}' for word in TERMS.split())}<p>{n}" for n in range(3_000)
    )
    assert 1_000 < hops(texts) <= 1_025


def test_each_url_is_counted_once():
    watch = Watch(Traps(per_pattern=3, per_host=5))
    for number in (1, 1, 2, 2, 1, 3):
        assert watch.rejection(Job(f"http://h/{number}")) is None
    assert watch.rejection(Job("http://h/4")) == Reason.PATTERN_BUDGET
    assert watch.rejection(Job("http://h/a")) is None
    assert watch.rejection(Job("http://h/3")) is None
    assert watch.rejection(Job("http://h/b")) is None
    assert watch.rejection(Job("http://h/c")) == Reason.HOST_BUDGET
    assert watch.rejection(Job("http://h:81/c")) is None
    assert watch.rejection(Job("http://h:81/3")) is None


def barren_watch(pages: int, page: str = "", leads_to: str = "http://h/new/{}") -> Watch:
    """Watch 300 URLs of a pattern enter, and so many pages come, which lead to new ones."""
    watch = Watch(Traps(barren_numbers=200))
    for number in range(300):
        assert watch.rejection(Job(f"http://h/new/{number}")) is None
    for number in range(pages):
        body = (page or f"<p>{number} items").encode()
        watch.led(f"http://h/new/{number}", body, [leads_to.format(number)])
    return watch


NEXT = "http://h/new/300"


def test_two_hundred_pages_that_lead_on_and_say_the_same_make_a_pattern_a_trap():
    assert barren_watch(200).rejection(Job(NEXT)) is None
    assert barren_watch(210).rejection(Job(NEXT)) == Reason.NOTHING_NEW


@pytest.mark.parametrize("leads_to", ["http://h/other", "http://h/new/{}/x", "http://g/new/{}"])
def test_pages_that_lead_to_none_of_their_own_kind_are_no_trap(leads_to):
    assert barren_watch(300, leads_to=leads_to).rejection(Job(NEXT)) is None


@for_each(
    "url, trap",
    [
        ("http://h/{}", False),
        ("http://h/p?n={}", False),
        ("http://h/page-1{:03}.html", False),
        ("http://h/entry?name={}", False),
        ("http://h/2031/3/{}/", True),
        ("http://h/events?year={}&month=1", True),
        ("http://h/x?date=2{:03}-01-01", True),
        ("http://h/r/{:032x}", True),
    ],
)
def test_by_default_only_dates_and_random_tokens_are_soon_a_trap(url, trap):
    watch = Watch(Traps())
    for number in range(300):
        here = url.format(number % 31)
        watch.rejection(Job(url.format(number)))
        watch.led(here, f"<p>{number} items".encode(), [url.format(number)])
    refused = watch.rejection(Job(url.format(999)))
    assert refused == (Reason.NOTHING_NEW if trap else None)


TERMS = words("terms", 100)


def test_the_same_body_again_is_a_copy_of_the_first():
    watch = Watch(Traps())
    page = link("a", "/b")
    assert watch.saw("http://h/x/", page.encode(), HTML) is None
    assert watch.saw("http://h/x/index.html", page.encode(), "text/html") == "http://h/x/"
    assert watch.saw("http://h/x/?page=2/3", page.encode(), "text/html") == "http://h/x/"
    assert watch.saw("http://h/x/", page.encode(), HTML) is None
    assert watch.saw("http://h/x/other", page.encode() + b" ", HTML) is None
    assert watch.saw("http://g/x/index.html", page.encode(), HTML) is None


def test_empty_bodies_and_what_is_no_html_are_no_copies():
    watch = Watch(Traps())
    for url in ("http://h/a", "http://h/b"):
        assert watch.saw(url, b"", HTML) is None
        assert watch.saw(url, b"a", "text/plain") is None
        assert watch.saw(url, b"a", "") is None
    assert watch.saw("http://h/a", b"<p>", "application/xhtml+xml") is None
    assert watch.saw("http://h/b", b"<p>", "Text/HTML") == "http://h/a"


def test_a_mirror_of_a_part_of_a_site_loses_no_page():
    def mirrored(target: str) -> str | None:
        place = re.fullmatch("/v[a-t]/([a-e]*)", target)
        if place is None or len(place[1]) > 2:
            return None
        return words(place[1]) + link(*(place[1] + letter for letter in "abcde"))

    found = walk(
        beside_good_pages(mirrored, *(f"/v{letter}/" for letter in "abcdefghijklmnopqrst"))
    )
    assert len(found.beside) == 1 + 20 * (1 + 5 + 25)


def test_in_many_directories_the_links_of_one_body_are_followed_no_further():
    watch = Watch(Traps(copies=3))
    answers = [watch.saw(f"http://h/{letter}/", b"<a href=a>", HTML) for letter in "abcdb"]
    assert answers == [None, None, None, "http://h/a/", "http://h/a/"]
    assert watch.saw("http://g/e/", b"<a href=a>", HTML) is None


# What an earlier run has let through.

NARROW = Traps(per_pattern=3, per_host=12, copies=2)

urls = st.builds(
    "http://{}{}{}".format,
    st.sampled_from(["h", "h:81"]),
    st.sampled_from(["/a", "/1", "/2", "/12", "/b/3", "/b/c-4", "/%41/5"]),
    st.sampled_from(["", "?", "?a=1", "?a=2", "?a=1&b=2", "?b=2&a=1", "?b=3&a=1", "?c&a=1&b=2"]),
)
jobs = st.builds(Job, urls, referrer=st.none() | urls)


@given(st.lists(jobs), st.lists(jobs))
def test_a_crawl_that_goes_on_refuses_what_it_would_have_refused_without_a_break(before, after):
    whole, resumed = Watch(NARROW), Watch(NARROW)
    let_through = [job.url for job in before if whole.rejection(job) is None]
    resumed.recall(dict.fromkeys(let_through))
    for job in after:
        assert resumed.rejection(job) == whole.rejection(job)


paths = st.lists(
    st.sampled_from(
        "a 1 23 / - . _ %41 %E3%81 0000 12345678 0123456789abcdef deadbeef ?x=1 &y2=3".split()
    ),
    max_size=6,
).map("".join)


@example(["1%41", "1%42"], ["2%41", "2%42"])
@given(st.lists(paths, max_size=30), st.lists(paths, max_size=10))
def test_many_urls_of_one_host_are_counted_as_each_of_them_would_be(before, after):
    host = "http://127.0.0.1:8001/"
    budget = Traps(per_pattern=2, max_repeats=math.inf)
    together, apart = Watch(budget), Watch(budget)
    together.recall(host + path for path in before)
    for path in before:
        # With one of another host each is counted by itself.
        apart.recall([host + path, "http://other/"])
    for path in after:
        job = Job(host + path)
        assert together.rejection(job) == apart.rejection(job)


pages = st.tuples(
    st.builds("http://{}/{}/{}".format, *map(st.sampled_from, ["gh", "abcd", "xy"])),
    st.sampled_from([b"", b"<p>", b"<a href=a>"]),
)


@given(st.lists(pages, unique_by=lambda page: page[0]), st.lists(pages))
def test_a_crawl_that_goes_on_knows_the_copies_of_what_came_before(before, after):
    whole, resumed = Watch(NARROW), Watch(NARROW)
    firsts = [(url, body) for url, body in before if whole.saw(url, body, HTML) is None]
    resumed.recall_copies((url, sha1(body).digest()) for url, body in firsts)
    for url, body in after:
        assert resumed.saw(url, body, HTML) == whole.saw(url, body, HTML)


def test_a_barren_pattern_costs_each_run_a_hundred_pages_more():
    watch = Watch(Traps())
    months = [f"http://h/{year}/{month}/" for year in range(2000, 2030) for month in range(1, 13)]
    watch.recall(months)
    came = 0
    while watch.rejection(Job(f"http://h/{2031 + came // 12}/{came % 12 + 1}/")) is None:
        came += 1
        watch.led(months[came], b"<p>Nothing planned", [f"http://h/2031/{came}/"])
    assert 100 < came <= 105


FLAGS = {"session_ids", "permuted_queries", "duplicates"}


@for_each("figure", sorted({*Traps.__struct_fields__} - FLAGS))
def test_a_figure_that_cannot_be_meant_is_named(figure):
    for nonsense in (-1, math.nan, -math.inf):
        with pytest.raises(ValueError, match=f"^{figure} must be [01] or more, not {nonsense}$"):
            Traps(**{figure: nonsense})


def test_copies_without_duplicates_would_have_no_effect_and_is_an_error():
    with pytest.raises(ValueError, match="copies has no effect without duplicates"):
        Traps(duplicates=False, copies=5)


def test_traps_that_are_off_let_everything_through():
    watch = Watch(Traps.off())
    for number in range(200):
        url = f"http://h/{'a/' * 40}{number}?{'x' * 3000}"
        assert watch.rejection(Job(url, depth=number)) is None
        watch.led(url, b"<p>", [f"{url}{number}"])
