"""Session ids in URLs: a server writes them there to recognise its visitor.

If every answer has a new id in its links, each page has an endless number of URLs.
"""

from __future__ import annotations

import re

from trio_crawler.page.urls import is_web, normalise, origin

# ";jsessionid=" of Java servlets, and the segment "(S(24 characters))" of ASP.NET.
_IN_PATH = re.compile(";jsessionid=[^;/?]*", re.IGNORECASE)
_SEGMENT = re.compile(r"/\([Ss]\([0-9A-Za-z]{24}\)\)(?=/)")

_IN_QUERY = re.compile(
    "[?&](?:phpsessid|jsessionid|aspsessionid|oscsid|zenid|sid|session_?id|cfid|cftoken)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    "(?:phpsessid|jsessionid|aspsessionid[a-z]*|oscsid|zenid)=.*", re.IGNORECASE | re.DOTALL
)
# A conference has sessions, too: with these names a value must look random to be an id.
_UNCERTAIN = re.compile(
    "(?:sid|session_?id)=(?=[a-z]*[0-9])"
    "(?:[0-9a-z]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_COLD_FUSION = frozenset({"cfid", "cftoken"})


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
    parts = query.split("&")
    cold_fusion = _COLD_FUSION.issubset(map(_name, parts))
    return "&".join(part for part in parts if not _is_session(part, cold_fusion))


def _is_session(part: str, cold_fusion: bool) -> bool:
    if _NAMED.fullmatch(part) or _UNCERTAIN.fullmatch(part):
        return True
    return cold_fusion and _name(part) in _COLD_FUSION


def _name(part: str) -> str:
    return part.partition("=")[0].lower()
