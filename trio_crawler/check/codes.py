"""The codes of findings, and the sentences for people that stand for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from trio_crawler.model import REDIRECTS, Reason
from trio_crawler.policy.verdict import PERMANENT, Defect

_STATUS = re.compile("[1-9][0-9]{2}").fullmatch
_PHRASES = {str(status.value): status.phrase for status in HTTPStatus}

SENTENCES: Mapping[str, str] = {
    Reason.OTHER_SITE: "The link leads to another site, which is not checked",
    Reason.OTHER_SCHEME: "The scheme of the link is not checked",
    Reason.BAD_URL: "The link is no valid URL",
    Reason.EXCLUDED: "An option excludes the URL",
    Reason.NOT_INCLUDED: "No option includes the URL",
    Reason.TOO_DEEP: "The URL is deeper in the site than the crawl may go",
    Reason.ROBOTS: "The robots.txt of the host disallows the URL",
    Reason.ROBOTS_UNAVAILABLE: "The robots.txt of the host cannot be read, so no URL is asked for",
    Reason.REL_NOFOLLOW: "The link asks not to be followed (rel=nofollow)",
    Reason.META_NOFOLLOW: "The page asks not to follow its links (robots meta nofollow)",
    Reason.HEADER_NOFOLLOW: "The page asks not to follow its links (X-Robots-Tag nofollow)",
    Reason.SIDE_EFFECT: "A request for the URL may change something",
    Reason.LONG_URL: "The URL is too long, as in a site without an end",
    Reason.DEEP_PATH: "The path of the URL is too deep, as in a site without an end",
    Reason.REPEATED_PATH: "The path of the URL repeats itself",
    Reason.PERMUTED_QUERY: "The URL is another one with its parameters in another order",
    Reason.TOO_MANY_HOPS: "The URL is too many links away from the start",
    Reason.NOTHING_NEW: "URLs like this one had nothing new",
    Reason.BARREN_QUERY: "URLs with a parameter of this one had nothing new",
    Reason.PATTERN_BUDGET: "Too many URLs like this one were crawled",
    Reason.HOST_BUDGET: "Too many URLs of the host were crawled",
    Reason.TOO_MANY_HOSTS: "Too many hosts were found",
    Reason.TOO_MANY_PORTS: "Too many ports of the host were found",
    Reason.CHECK_BUDGET: "Enough links to the host were checked",
    Reason.WAITING_BUDGET: "Too many URLs were waiting",
    Reason.DUPLICATE: "Only copies of another page link to the URL",
    Reason.HOST_GIVEN_UP: "The host no longer answered, so the URL was not asked for",
    Reason.PAGE_BUDGET: "The crawl reached its limit of pages before the URL",
    Reason.TIME_BUDGET: "The time of the crawl was over before the URL",
    Reason.STOPPED: "The crawl was stopped before the URL",
    Reason.DNS: "The name server cannot look up the name of the host",
    Reason.NO_SUCH_HOST: "The name of the host does not exist",
    Reason.CONNECTION_REFUSED: "The host refuses the connection",
    Reason.UNREACHABLE: "The host cannot be reached",
    Reason.BLOCKED_ADDRESS: "The crawl may not connect to the address of the host",
    Reason.PROXY: "The proxy does not pass the request on",
    Reason.NO_SOCKETS: "This machine had no socket left",
    Reason.CONNECT_TIMEOUT: "The host does not accept a connection in time",
    Reason.TLS: "The host has no valid certificate, or its TLS fails",
    Reason.TIMEOUT: "The server does not answer in time",
    Reason.RESET: "The server closes the connection before it answers",
    Reason.BAD_REPLY: "The server does not answer in HTTP",
    Reason.INCOMPLETE: "The server breaks off in the middle of its answer",
    Reason.TOO_LARGE: "The body is larger than the crawl reads",
    Reason.TOO_MANY_REDIRECTS: "The redirects have no end",
    Reason.BAD_LOCATION: "The redirect has no valid target",
    Reason.BAD_CHARSET: "The page is not in the encoding that it declares",
    Reason.TOO_MANY_LINKS: "The page has more links than the crawl follows",
    Reason.NOT_READ: "The body is of a type that has no links",
    Reason.BAD_SITEMAP: "The sitemap cannot be read",
    Reason.BAD_STATUS: "The server has no sitemap there",
    Reason.TOO_MANY_ENTRIES: "The sitemap has more entries than the crawl reads",
    Reason.TOO_MANY_LEVELS: "The sitemap is too many sitemaps away from the first",
    Defect.MISSING_FRAGMENT: "The page has no element with the id or the name after the #",
    Defect.BAD_MAILTO: "The mailto: link has no valid mail address",
    Defect.BAD_SCHEME: "The scheme of the link is none for a page of the web",
}
"""A sentence for each code but the statuses, without its full stop."""


def is_status(code: str) -> bool:
    """Whether a code is an HTTP status."""
    return _STATUS(code) is not None


def is_code(code: str) -> bool:
    """Whether a finding may have this code: a status, or the value of a Reason or a Defect."""
    return code in SENTENCES or is_status(code)


def sentence(code: str, target: str = "") -> str:
    """Return what a code says to people, without a full stop; `target` is that of a redirect."""
    if code in SENTENCES:
        return SENTENCES[code]
    status = int(code)
    if status in REDIRECTS:
        to = f" to {target}" if target else ""
        lasting = status in PERMANENT
        return f"The server redirects{' for good' if lasting else ''} ({code}){to}" + (
            ": update the link" if lasting else ""
        )
    return f"The server answers {code}{f' ({_PHRASES[code]})' if code in _PHRASES else ''}"
