"""Session ids: what a server writes into a URL to know its visitor again.

With a new one on every page each page has any number of URLs, and all of them are new.
"""

from __future__ import annotations

import re

from trio_crawler.page.urls import is_web, normalise, origin

# ";jsessionid=" of the servlets, and the segment "(S(24 characters))" of ASP.NET.
_IN_PATH = re.compile(";jsessionid=[^;/?]*", re.IGNORECASE)
_SEGMENT = re.compile(r"/\([Ss]\([0-9A-Za-z]{24}\)\)(?=/)")

_IN_QUERY = re.compile(
    "[?&](?:phpsessid|jsessionid|aspsessionid|oscsid|zenid|sid|session_?id|cfid|cftoken)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    "(?:phpsessid|jsessionid|aspsessionid[a-z]*|oscsid|zenid)=.*", re.IGNORECASE | re.DOTALL
)
# A conference has sessions, too: under these names a value must look like nobody's choice.
_UNCERTAIN = re.compile(
    "(?:sid|session_?id)=(?=[a-z]*[0-9])"
    "(?:[0-9a-z]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_COLD_FUSION = frozenset({"cfid", "cftoken"})


def without_session(url: str) -> str:
    """Cut the session ids out of a normalised URL; all else stays as it is written.

    Cut are `;jsessionid=` in a path, the segment `(S(...))` of ASP.NET, and the parameters
    PHPSESSID, jsessionid, ASPSESSIONID..., osCsid, zenid, CFID with CFTOKEN, and, if the value
    is a UUID or 16 letters and digits or more, sid, sessionid and session_id. Without any of
    them it is `url` itself that is returned.

    A redirect may be how a server hands out its ids: a target from which they are cut can be
    the very URL that led to it.
    """
    if ("?" not in url and ";" not in url and "(" not in url) or not is_web(url):
        return url
    site = origin(url)
    path, mark, query = url[len(site) :].partition("?")
    kept_path, kept = path, query
    if ";" in path or "(" in path:
        # In this order: what the first leaves behind can be what the second looks for.
        kept_path = _SEGMENT.sub("", _IN_PATH.sub("", path))
    if _IN_QUERY.search(mark + query):
        kept = _without_parameters(query)
    if kept_path == path and kept == query:
        return url
    # What was cut may have hidden a segment of dots.
    return normalise(site + kept_path + mark + kept if kept else site + kept_path)


def _without_parameters(query: str) -> str:
    parts = query.split("&")
    cold_fusion = _COLD_FUSION.issubset(map(_name, parts))
    return "&".join(part for part in parts if not _is_session(part, cold_fusion))


def _is_session(part: str, cold_fusion: bool) -> bool:
    if _NAMED.fullmatch(part) or _UNCERTAIN.fullmatch(part):
        return True
    return cold_fusion and _name(part) in _COLD_FUSION


def _name(part: str) -> str:
    return part.partition("=")[0].lower()
