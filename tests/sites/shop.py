"""Applications of our own, as frameworks make them: known content behind endless URLs.

    shop = Shop(page_size=20)
    fetch = Canned(shop)                     # a fetch, for virtual time
    async with raw_server(served(shop)):     # the same over sockets
    assert shop.found(outcomes) == shop.articles

An application is a function of the target of a request (path and query) to a response; the same
target has the same response each time. Only the session of `Shop` is a state.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from html import escape
from typing import TypeAlias
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
import trio

from trio_crawler import Job, Page, Response
from trio_crawler.model import Outcome, Purpose
from trio_crawler.testing import redirect

from .raw import Handler, Request, reply

Application: TypeAlias = Callable[[str], Response]

HOME = "http://shop.test/"
EVERYTHING = frozenset({"filters", "calendar", "login", "print", "language", "delete"})
"""The features of a shop that make its URLs endless, or change it."""

_SYLLABLES = (
    "ba be bi bo da de di do fa fe ka ke ki la le li lo ma me mi na ne no ra re ri".split()
)
_FIRST_DAY = date(2019, 1, 7)
_CATEGORIES = "garden kitchen workshop library cellar attic porch hall".split()
_TAGS = [f"tag-{name}" for name in "oak pine iron clay wool silk glass cork slate brass".split()]
_SORTS = ("date", "title", "price")
_YEARS = range(2019, 2025)


class Canned:
    """Answer the jobs of a crawl from an application; `targets` are counted."""

    def __init__(self, application: Application, *, delay: float = 0.01) -> None:
        self.targets: Counter[str] = Counter()
        self._application = application
        self._delay = delay

    @property
    def requests(self) -> int:
        """The number of requests, without those for robots.txt."""
        return self.targets.total()

    async def __call__(self, job: Job) -> Response:
        await trio.sleep(self._delay)
        target = target_of(job.url)
        if job.purpose is Purpose.ROBOTS:
            return Response(404)
        self.targets[target] += 1
        return self._application(target)


def served(application: Application) -> Handler:
    """Return a handler of `raw.raw_server` for an application."""

    async def handler(request: Request, stream: trio.abc.Stream) -> None:
        if isinstance(application, Shop):
            member = application.admits(request.headers.get("cookie", ""))
            answer = application.answer(request.target, member)
        else:
            answer = application(request.target)
        pairs = [(key.decode(), value.decode()) for key, value in answer.headers.raw]
        await stream.send_all(reply(answer.status, pairs, answer.body))

    return handler


def target_of(url: str) -> str:
    """Return the path and the query of a URL."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def page(title: str, *parts: str, head: str = "", status: int = 200) -> Response:
    """Return a page; the parts are HTML."""
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>{head}</head>\n<body><h1>{escape(title)}</h1>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )
    return Response(
        status, httpx.Headers({"content-type": "text/html; charset=utf-8"}), text.encode()
    )


def link(target: str, text: str) -> str:
    """Return an anchor."""
    return f'<a href="{escape(target)}">{escape(text)}</a>'


def words(seed: object, number: int) -> str:
    """Return so many made words, always the same for a seed."""
    chance = random.Random(str(seed))
    return " ".join(
        "".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(number)
    )


@dataclass(frozen=True, slots=True)
class Article:
    """An article of a shop."""

    number: int
    title: str
    text: str
    day: date
    category: str
    tags: tuple[str, ...]
    price: int

    @property
    def target(self) -> str:
        """The path of its page."""
        return f"/articles/{self.number}-{self.title.replace(' ', '-')}/"


@lru_cache(maxsize=8)
def articles_of(count: int) -> tuple[Article, ...]:
    """Return the articles 1 to `count`."""
    chance = random.Random(count)
    return tuple(
        Article(
            number,
            words(f"title {number}", 3),
            words(f"text {number}", 120),
            _FIRST_DAY + timedelta(days=number * 5),
            chance.choice(_CATEGORIES),
            tuple(sorted(chance.sample(_TAGS, 2))),
            chance.randrange(100, 9_000),
        )
        for number in range(1, count + 1)
    )


class Shop:
    """A site as Django makes it, with `count` articles.

    `/articles/` is the list, `page_size` a page, with links to the page before and the next one.
    `features` are the traps that every page has: "filters" (`?category=`, `tag`, `year`, `sort`
    and `order`, each of which keeps the others), "calendar" (months in both directions for ever),
    "login" (`/accounts/login/?next=URL`), "print" (`/print/?url=URL`), "language"
    (`/lang/de/?next=URL`, which leads back) and "delete" (`/articles/N/delete/`).

    With `members` there are so many pages below `/members/` for a session, and "log out" is the
    first link of each. `session` is whether the session is still valid.
    """

    def __init__(
        self,
        count: int = 400,
        *,
        page_size: int = 20,
        features: Iterable[str] = EVERYTHING,
        members: int = 0,
    ) -> None:
        self.articles = articles_of(count)
        self.members = members
        self.session = members > 0
        self.deleted: list[str] = []
        """The targets of the requests that delete an article."""
        self._size = page_size
        self._features = frozenset(features)
        if unknown := self._features - EVERYTHING:
            raise ValueError(f"unknown features: {sorted(unknown)}")
        self._by_target = {article.target: article for article in self.articles}

    def __call__(self, target: str) -> Response:
        """Return the response to a visitor, who has the session as long as it is valid."""
        return self.answer(target, self.session)

    def admits(self, cookie: str) -> bool:
        """Whether a Cookie header has the session."""
        return self.session and "session=member" in cookie

    def answer(self, target: str, member: bool) -> Response:
        """Return the response to a visitor, with or without a session."""
        path, _, query = target.partition("?")
        given = dict(parse_qsl(query))
        if path == "/":
            return self._home(member)
        if path == "/articles/":
            return self._list(target, given)
        if path in self._by_target:
            return self._article(self._by_target[path])
        if re.fullmatch(r"/articles/[0-9]+/delete/", path):
            # A careful application asks first; this one is not careful.
            self.deleted.append(target)
            return redirect("/articles/")
        if match := re.fullmatch(r"/calendar/([0-9]{1,4})/([0-9]{2})/", path):
            return self._month(target, int(match[1]), int(match[2]))
        if path == "/accounts/login/":
            return self._login(given.get("next", "/"))
        if path == "/accounts/logout/" and self.members:
            self.session = False
            return redirect("/")
        if path == "/print/":
            return self._print(given.get("url", "/"))
        if path == "/lang/de/":
            return redirect(given.get("next", "/"))
        if path.startswith("/members/") and self.members:
            return self._member(target, member)
        return page("Not found", "<p>There is nothing here.</p>", status=404)

    def found(self, pages: Iterable[Outcome]) -> set[int]:
        """Return the numbers of the articles whose pages are among some outcomes."""
        targets = {target_of(each.url) for each in pages if isinstance(each, Page)}
        return {self._by_target[target].number for target in targets & self._by_target.keys()}

    def found_members(self, pages: Iterable[Outcome]) -> set[str]:
        """Return the targets of the pages for members that are among some outcomes."""
        return {
            target_of(each.url)
            for each in pages
            if isinstance(each, Page) and target_of(each.url).startswith("/members/")
        }

    def _page(self, target: str, title: str, *parts: str, member: bool = False) -> Response:
        at = quote(target, safe="/")
        links = [link("/", "Home"), link("/articles/", "Articles")]
        if member:
            links.insert(0, link("/accounts/logout/", "Log out"))
        if self.members:
            links.append(link("/members/", "Members"))
        if "calendar" in self._features:
            links.append(link("/calendar/2024/05/", "Calendar"))
        if "login" in self._features:
            links.append(link(f"/accounts/login/?next={at}", "Log in"))
        if "print" in self._features:
            links.append(link(f"/print/?url={at}", "Print"))
        if "language" in self._features:
            links.append(link(f"/lang/de/?next={at}", "Deutsch"))
        return page(title, f"<nav>{' '.join(links)}</nav>", *parts)

    def _home(self, member: bool) -> Response:
        newest = _items(self.articles[:-6:-1])
        return self._page("/", "Shop of articles", newest, member=member)

    def _list(self, target: str, given: Mapping[str, str]) -> Response:
        chosen = [article for article in self.articles if _matches(article, given)]
        key = given.get("sort", "date")
        if key in _SORTS:
            chosen.sort(key=lambda article: (_sort_value(article, key), article.number))
        if given.get("order") == "desc":
            chosen.reverse()
        number = int(given.get("page", "1"))
        pages = max(1, -(-len(chosen) // self._size))
        if not 1 <= number <= pages:
            return page("Not found", "<p>That page has no results.</p>", status=404)
        shown = chosen[(number - 1) * self._size : number * self._size]
        steps = [
            link(_changed(given, page=str(other)), text)
            for other, text in ((number - 1, "Previous"), (number + 1, "Next"))
            if 1 <= other <= pages
        ]
        parts = [_items(shown), f"<p>{' '.join(steps)}</p>"]
        if "filters" in self._features:
            parts.append(_filters(given))
        return self._page(target, "Articles", *parts)

    def _article(self, article: Article) -> Response:
        parts = [
            f"<p>{article.day:%d %B %Y}, {article.price / 100:.2f} EUR</p>",
            f"<p>{article.text}</p>",
        ]
        if "filters" in self._features:
            facets = [link(f"/articles/?category={article.category}", article.category)]
            facets += [link(f"/articles/?tag={tag}", tag) for tag in article.tags]
            parts.append(f"<p>{' '.join(facets)}</p>")
        if "delete" in self._features:
            parts.append(link(f"/articles/{article.number}/delete/", "Delete"))
        return self._page(article.target, article.title, *parts)

    def _month(self, target: str, year: int, month: int) -> Response:
        if not (1 <= year <= 9999 and 1 <= month <= 12):
            return page("Not found", "<p>There is no such month.</p>", status=404)
        shown = [
            each for each in self.articles if (each.day.year, each.day.month) == (year, month)
        ]
        before = (year - (month == 1), (month - 2) % 12 + 1)
        after = (year + (month == 12), month % 12 + 1)
        steps = [
            link("/calendar/{}/{:02}/".format(*each), text)
            for each, text in ((before, "Earlier"), (after, "Later"))
        ]
        title = f"{date(year, month, 1):%B} {year}"
        return self._page(target, title, _items(shown), f"<p>{' '.join(steps)}</p>")

    def _login(self, back: str) -> Response:
        form = (
            '<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="one">'
            f'<input type="hidden" name="next" value="{escape(back)}">'
            '<input name="username"><input type="password" name="password"></form>'
        )
        return page("Log in", form, link("/", "Home"))

    def _print(self, target: str) -> Response:
        article = self._by_target.get(target)
        if article is None:
            return page("Print", "<p>A page of the shop</p>", link(target, "Back"))
        return page(article.title, f"<p>{article.text}</p>", link(target, "Back"))

    def _member(self, target: str, member: bool) -> Response:
        if not member:
            return redirect(f"/accounts/login/?next={quote(target, safe='/')}")
        number = target.removeprefix("/members/").rstrip("/")
        if not number:
            listed = [link(f"/members/{each}/", f"Member {each}") for each in range(self.members)]
            return self._page(target, "Members", *listed, member=True)
        if not number.isdigit() or int(number) >= self.members:
            return page("Not found", "<p>There is no such member.</p>", status=404)
        text = f"<p>{words(f'member {number}', 40)}</p>"
        return self._page(target, f"Member {number}", text, member=True)


class Blog:
    """A blog with `count` posts, `page_size` a page, with "older posts" as the only way on."""

    def __init__(self, count: int = 200, *, page_size: int = 4) -> None:
        self._size = page_size
        titles = [words(f"post {number}", 4) for number in range(count)]
        self.posts = {f"/posts/{title.replace(' ', '-')}/": title for title in titles}
        assert len(self.posts) == count

    def __call__(self, target: str) -> Response:
        """Return the response to a request."""
        if title := self.posts.get(target):
            return page(title, f"<p>{words(title, 80)}</p>", link("/", "Home"))
        match = re.fullmatch(r"/(?:page/([0-9]+)/)?", target)
        number = int(match[1] or 1) if match else 0
        shown = list(self.posts.items())[(number - 1) * self._size : number * self._size]
        if number < 1 or not shown:
            return page("Not found", status=404)
        parts = [f"<h2>{link(path, title)}</h2>" for path, title in shown]
        if number * self._size < len(self.posts):
            parts.append(link(f"/page/{number + 1}/", "Older posts"))
        return page("A blog", *parts)

    def found(self, pages: Iterable[Outcome]) -> set[str]:
        """Return the targets of the posts that are among some outcomes."""
        return {
            target_of(each.url) for each in pages if isinstance(each, Page)
        } & self.posts.keys()


class FoldedList:
    """A list of articles whose pages all name the first one as their canonical page."""

    def __init__(self, count: int = 400, *, page_size: int = 20) -> None:
        self.articles = {article.target: article for article in articles_of(count)}
        self._size = page_size

    def __call__(self, target: str) -> Response:
        """Return the response to a request."""
        path, _, query = target.partition("?")
        if path in self.articles:
            article = self.articles[path]
            return page(article.title, f"<p>{article.text}</p>", link("/", "Home"))
        number = int(dict(parse_qsl(query)).get("page", "1"))
        shown = list(self.articles.values())[(number - 1) * self._size : number * self._size]
        if path != "/" or not shown:
            return page("Not found", status=404)
        parts = [_items(shown)]
        if number * self._size < len(self.articles):
            parts.append(link(f"/?page={number + 1}", "Next"))
        return page("Articles", *parts, head='<link rel="canonical" href="/">')

    def found(self, pages: Iterable[Outcome]) -> set[str]:
        """Return the targets of the articles that are among some outcomes."""
        targets = {target_of(each.url) for each in pages if isinstance(each, Page)}
        return targets & self.articles.keys()


def _items(articles: Sequence[Article]) -> str:
    listed = "".join(f"<li>{link(each.target, each.title)}</li>" for each in articles)
    return f"<ul>{listed}</ul>"


def _matches(article: Article, given: Mapping[str, str]) -> bool:
    return (
        given.get("category", article.category) == article.category
        and given.get("tag", article.tags[0]) in article.tags
        and given.get("year", str(article.day.year)) == str(article.day.year)
    )


def _sort_value(article: Article, key: str) -> object:
    return {"date": article.day, "title": article.title, "price": article.price}[key]


def _changed(given: Mapping[str, str], **changes: str) -> str:
    """Return the target of the list with other parameters; it begins with page 1 again."""
    kept = {key: value for key, value in given.items() if key != "page"} | changes
    return f"/articles/?{urlencode(kept)}"


def _filters(given: Mapping[str, str]) -> str:
    values: dict[str, Iterable[str]] = {
        "category": _CATEGORIES,
        "tag": _TAGS,
        "year": map(str, _YEARS),
        "sort": _SORTS,
        "order": ("asc", "desc"),
    }
    links = [
        link(_changed(given, **{key: value}), f"{key}: {value}")
        for key, chosen in values.items()
        for value in chosen
    ]
    return f"<aside>{' '.join(links)}</aside>"
