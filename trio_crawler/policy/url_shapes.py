"""What a URL looks like: its pattern, session ids in it, and whether it changes something.

A calendar has endless URLs of one pattern. If every answer has a new session id in its links, each
page has an endless number of URLs.

A GET request should change nothing (RFC 9110, 9.2.1), but applications have links that do: Django
`/item/5/delete/`, GitLab `/users/sign_out`, MediaWiki `?action=delete`, DokuWiki `?do=logout`,
WordPress `wp-login.php?action=logout`, WooCommerce `?add-to-cart=5`, phpBB `?mode=logout`. A
visitor without a login can do little harm with them; a crawler that sends cookies logs itself out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from string import hexdigits
from urllib.parse import unquote_plus

from trio_crawler.expressions import lazy
from trio_crawler.page.urls import directory, is_web, normalise, origin

# UUIDs, long hexadecimal numbers, and numbers; not the digits of a percent-encoded character.
_NUMBER = lazy(
    "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    "|(?<![0-9A-Za-z%])[0-9A-Fa-f]{16,}(?![0-9A-Za-z])"
    "|(?<!%)(?<!%[0-9A-Fa-f])[0-9]+"
)
GENERATED = lazy(
    "(?<![0-9])(?:1[5-9]|2[0-9])[0-9]{2}[-/_.](?:0?[1-9]|1[0-2])"
    "(?:[-/_.](?:0?[1-9]|[12][0-9]|3[01]))?(?![0-9])"
    "|[?&](?:year|month|week|day|date|y(?==[0-9]{4}(?![0-9])))[a-z_-]*="
    "|(?<![0-9A-Za-z%])[0-9A-Fa-f]{8}(?:[0-9A-Fa-f]{8,}|(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
    "(?![0-9A-Za-z])",
    re.IGNORECASE,
)
"""A year with a month, a parameter with such a name, or a random token."""

DATE = lazy("(?<![0-9])(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])?(?![0-9])")
"""A date without separators: 203103 or 20310321. Of mere numbers 1 of 8 looks so at worst."""

_may_have_pattern = re.compile("[0-9?]").search
_ZERO = ord("0")
_DIGITS_AS_ZERO = bytes(_ZERO if 48 <= byte <= 57 else byte for byte in range(256))
_HEX_AS_ZERO = bytes(_ZERO if chr(byte) in hexdigits else byte for byte in range(256))
_VALUE = lazy("=[^&]*")
# Every UUID and every long hexadecimal number begins so, once its digits are replaced by 0.
_LONG_NUMBER = b"0" * 8

# A number of a URL, with the sign that it has as the value of a parameter.
_SIGNED = lazy("(?<==)-?[0-9]{1,18}|[0-9]{1,18}")
# A calendar leads back, on, and further on; a list leads to the pages before and after.
_LEAST_STEPS = 3
_LINKS_READ = 1_000

# ";jsessionid=" of Java servlets, and the segment "(S(24 characters))" of ASP.NET.
_IN_PATH = lazy(";jsessionid=[^;/?]*", re.IGNORECASE)
_SEGMENT = lazy(r"/\([Ss]\([0-9A-Za-z]{24}\)\)(?=/)")

_IN_QUERY = lazy(
    "[?&](?:phpsessid|jsessionid|aspsessionid|oscsid|zenid|sid|session_?id|cfid|cftoken)",
    re.IGNORECASE,
)
_NAMED = lazy(
    "(?:phpsessid|jsessionid|aspsessionid[a-z]*|oscsid|zenid)=.*", re.IGNORECASE | re.DOTALL
)
# A conference has sessions, too: with these names a value must look random to be an id.
_UNCERTAIN = lazy(
    "(?:sid|session_?id)=(?=[a-z]*[0-9])"
    "(?:[0-9a-z]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_COLD_FUSION = frozenset({"cfid", "cftoken"})

# Few URLs have one of these pieces, and nothing else is done for all others. ▶ Without IGNORECASE
# it takes a tenth of the time.
_MAY_CHANGE = lazy(
    r"""
    (?:log|sign)[-_+]?o(?:ut|ff) | delet | remov | destroy | erase | subscribe | revoke | purge
    | deactivate | trash | add[-_+]to | action | [?&;] (?: act|do|mode|op|cmd|task ) = | %
    """,
    re.VERBOSE,
)
_PARTS = lazy(r"(?<=[a-z0-9])(?=[A-Z])|[-_+ ]+")
_LEAVE = r"(?: log | sign ) -? (?: out | off )"
_CHANGE = (
    "delete|remove|destroy|erase|unsubscribe|revoke|purge|deactivate"
    "|add-to-(?:cart|basket|bag|wishlist)"
)
# Of a segment, in lower case and with "-" between its words: also wp-logout, Special:UserLogout.
_LEAVES = lazy(rf"(?: [a-z]{{1,12}}: )? (?: [a-z]{{1,12}}- | user )? {_LEAVE}", re.VERBOSE)
_CHANGES = lazy(_CHANGE)
# Words before or behind them, where an object follows: delete-item/5, remove_user?id=5.
_CHANGES_OBJECT = lazy(rf"(?:confirm-|do-)? (?:{_CHANGE}) (?: -[a-z]+ )?", re.VERBOSE)
_IN_ACTIONS = lazy(
    rf"""
    (?<![a-z]) (?: {_LEAVE} | {_CHANGE} | edit | save | submit | trash | untrash | rollback
    | revert | restore | protect | unprotect | watch | unwatch | move | rename | block | ban | vote
    | approve | unapprove | spam | bump | draftdel ) (?![a-z])
    """,
    re.VERBOSE,
)
_IN_NAMES = lazy(rf"(?<![a-z]) (?: {_LEAVE} | {_CHANGE} ) (?![a-z])", re.VERBOSE)
# The parameters whose values are what to do, and those whose values are paths or pages.
_ACTIONS = frozenset({"action", "act", "do", "mode", "op", "cmd", "task", "method", "event"})
_PAGES = frozenset({"page", "p", "q", "r", "route", "view", "title", "path", "module", "section"})
# A static page is an article: /library/delete.html.
_PROGRAM = lazy(r"\.(?:php\d?|aspx?|jspx?|do|action|cgi|pl|py|cfm)$", re.IGNORECASE)
_SPLIT = re.compile("[&;]").split


def pattern(url: str) -> str | None:
    """Return the pattern of a normalised http(s) URL; None if it has none.

    In a pattern every number, UUID and long hexadecimal number of the path is "0", and the query
    is its names, sorted. A URL without a query and without a number has no pattern.
    """
    start = url.index("/", 8)
    if not _may_have_pattern(url, start):
        return None
    path, mark, query = url[start:].partition("?")
    written = path.encode()
    if "%" in path or _LONG_NUMBER in written.translate(_HEX_AS_ZERO):
        folded, numbers = _NUMBER.subn("0", path)
    else:
        # Only numbers of up to seven digits are left: this takes a third of the time.
        folded = written.translate(_DIGITS_AS_ZERO).decode()
        folded = folded.replace("0000", "0").replace("00", "0").replace("00", "0")
        numbers = folded.count("0")
    if mark:
        return f"{url[:start]}{folded}?{_names(query)}"
    return url[:start] + folded if numbers else None


def url_shape(url: str) -> str:
    """Return the pattern of a normalised http(s) URL; that of its directory if it has none."""
    return pattern(url) or f"{directory(url)}*"


@lru_cache(maxsize=1_024)
def key_of(url: str) -> int | None:
    """Return the hash of the pattern of a normalised http(s) URL; None if it has none."""
    found = pattern(url)
    return None if found is None else hash(found)


def keys_of_one_host(urls: Iterable[str]) -> Counter[int]:
    """Return how many URLs of one host have each key, in a tenth of the time of `key_of`."""
    plain: list[str] = []
    others: list[str] = []
    for url in urls:
        (others if "?" in url or "%" in url else plain).append(url)
    found = Counter(key for key in map(key_of, others) if key is not None)
    # Paths that differ only in their digits have one pattern, unless a digit is part of an escape.
    forms = "\n".join(plain).encode().translate(_DIGITS_AS_ZERO).split(b"\n") if plain else []
    examples = dict(zip(forms, plain, strict=True))
    for form, count in Counter(forms).items():
        if (key := key_of(examples[form])) is not None:
            found[key] += count
    return found


def _names(query: str) -> str:
    if "&" not in query:
        return query.partition("=")[0]
    return _sorted(_VALUE.sub("", query))


@lru_cache(maxsize=256)
def _sorted(names: str) -> str:
    return "&".join(sorted(set(names.split("&"))))


def steps(url: str, links: Iterable[str]) -> frozenset[object]:
    """Return how far the links of a page that have its pattern are from its URL.

    The distances of `/h?d=5` to `/h?d=4` and `/h?d=35` are -1 and 30. The result is empty unless
    there are at least three of them, in both directions: a list of honest pages leads to the page
    before and the page after, too. Of the links the first 1,000 are read.
    """
    own, key, found = _numbers(url), key_of(url), set[tuple[str, tuple[int, ...]]]()
    for link in islice(links, _LINKS_READ):
        if link != url and key_of(link) == key:
            pairs = zip(_numbers(link), own, strict=False)
            found.add((_SIGNED.sub("0", link), tuple([there - here for there, here in pairs])))
    ways = {step > 0 for _, distance in found for step in distance if step}
    return frozenset(found if len(found) >= _LEAST_STEPS and len(ways) > 1 else ())


def _numbers(url: str) -> list[int]:
    return list(map(int, _SIGNED.findall(url, url.index("/", 8))))


def segments(path: str) -> int:
    """Return the number of segments of a path; a slash at the end begins none."""
    return path.count("/") - path.endswith("/")


def repeats(path: str, most: float) -> bool:
    """Whether a directory, or a run of directories, comes more than `most` times in a row.

    A relative link that is followed from page to page makes such paths: /a/a/a/x, or
    /a/b/a/b/a/b/x. The name after the last slash is not a directory: 2011/11/11/11 is a date and
    a number.
    """
    if path.count("/") - 1 <= most:
        return False
    directories = path.split("/")[1:-1]
    # A name that comes more than `most` times makes the set smaller by at least `most`.
    if len(directories) - len(set(directories)) < most:
        return False
    longest = int(len(directories) // (most + 1))
    return any(_in_a_row(directories, run, most) for run in range(1, longest + 1))


def _in_a_row(names: Sequence[str], run: int, most: float) -> bool:
    same = 0
    for name, later in zip(names, names[run:], strict=False):
        same = same + 1 if name == later else 0
        if same >= run * most:
            return True
    return False


def without_session(url: str) -> str:
    """Return a normalised URL without its session ids; `url` itself if it has none.

    Removed are `;jsessionid=` in a path, the segment `(S(...))` of ASP.NET, and the parameters
    PHPSESSID, jsessionid, ASPSESSIONID..., osCsid, zenid, and CFID with CFTOKEN. The parameters
    sid, sessionid and session_id are removed if the value is a UUID or has 16 letters and digits
    or more.

    The result for the target of a redirect can be the URL that redirected, if the server assigns
    its ids by redirects.
    """
    if ("?" not in url and ";" not in url and "(" not in url) or not is_web(url):
        return url
    site = origin(url)
    path, mark, query = url[len(site) :].partition("?")
    kept_path, kept = path, query
    if ";" in path or "(" in path:
        # In this order: without ";jsessionid=..." the rest can be a segment of ASP.NET.
        kept_path = _SEGMENT.sub("", _IN_PATH.sub("", path))
    if _IN_QUERY.search(mark + query):
        kept = _without_parameters(query)
    if kept_path == path and kept == query:
        return url
    # The part that was removed may have hidden a segment of dots.
    return normalise(site + kept_path + mark + kept if kept else site + kept_path)


def _without_parameters(query: str) -> str:
    named = [(part, part.partition("=")[0].lower()) for part in query.split("&")]
    cold_fusion = _COLD_FUSION if {name for _, name in named} >= _COLD_FUSION else ()
    return "&".join(
        part
        for part, name in named
        if not (_NAMED.fullmatch(part) or _UNCERTAIN.fullmatch(part) or name in cold_fusion)
    )


def changes_something(url: str) -> bool:
    """Whether a normalised http(s) URL looks as if it changes something when it is fetched.

    Whole words count: a segment of the path, or the name or the value of a parameter. An article
    about them (`/how-to-delete-a-file`, `/lang_delete.html`) is no such URL.
    """
    start = url.find("/", len("https://"))
    if start < 0 or not _MAY_CHANGE.search(url.lower(), start):
        return False
    path, _, query = url[start:].partition("?")
    return _path_changes(path, object_follows=bool(query)) or any(
        _parameter_changes(*parameter.partition("=")[::2])
        for parameter in _SPLIT(query)
        if parameter
    )


def _path_changes(path: str, *, object_follows: bool) -> bool:
    segments = [_words(segment) for segment in path.strip("/").split("/")]
    last = len(segments) - 1
    return any(
        _LEAVES.fullmatch(segment)
        or _CHANGES.fullmatch(segment)
        or (_CHANGES_OBJECT.fullmatch(segment) and (object_follows or at < last))
        for at, segment in enumerate(segments)
    )


def _parameter_changes(name: str, value: str) -> bool:
    key, words = _words(name), _words(value)
    if _IN_NAMES.search(key):
        return True
    if key.rpartition("-")[2] in _ACTIONS:
        return _IN_ACTIONS.search(words) is not None
    if key not in _PAGES or "://" in words:
        # The URL of another page, as in ?next=/logout, is not that page.
        return False
    return bool(_LEAVES.fullmatch(words)) or (
        "/" in words and _path_changes(words, object_follows=False)
    )


def _words(text: str) -> str:
    """Return a segment or a parameter in lower case, decoded, with "-" between its words."""
    plain = unquote_plus(text) if "%" in text else text
    plain = _PROGRAM.sub("", plain.partition(";")[0])
    return _PARTS.sub("-", plain).lower()
