"""URLs that change something when they are fetched: log out, delete, unsubscribe, edit.

A GET request should change nothing (RFC 9110, 9.2.1), but applications have links that do: Django
`/item/5/delete/`, GitLab `/users/sign_out`, MediaWiki `?action=delete`, DokuWiki `?do=logout`,
WordPress `wp-login.php?action=logout`, WooCommerce `?add-to-cart=5`, phpBB `?mode=logout`. A
visitor without a login can do little harm with them; a crawler that sends cookies logs itself out.

Whole words count: a segment of the path, or the name or the value of a parameter. An article about
them (`/how-to-delete-a-file`, `/lang_delete.html`) is no such URL.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from trio_crawler.expressions import lazy

# Few URLs have one of these pieces, and nothing else is done for all others. ▶ Without IGNORECASE
# it takes a tenth of the time.
_MAY_CHANGE = lazy(
    r"""
    (?:log|sign)[-_+]?o(?:ut|ff) | delet | remov | destroy | erase | subscribe | revoke | purge
    | deactivate | trash | add[-_+]to | action | [?&;] (?: act|do|mode|op|cmd|task ) = | %
    """,
    re.VERBOSE,
)
_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-_+ ]+")
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


def changes_something(url: str) -> bool:
    """Whether a normalised http(s) URL looks as if it changes something when it is fetched."""
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
