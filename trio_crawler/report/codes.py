"""The codes of faults: a sentence for each, and what mends it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from trio_crawler.ledger.join import LOOP
from trio_crawler.model import REDIRECTS
from trio_crawler.policy.verdict import PERMANENT, Defect
from trio_crawler.reason import REASONS, Kind, Reason

_STATUS = re.compile("[1-9][0-9]{2}").fullmatch
_PHRASES = {str(status.value): status.phrase for status in HTTPStatus}

SENTENCES: Mapping[str, str] = {
    **{reason: about.sentence for reason, about in REASONS.items()},
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


_GONE = "Correct the address or remove the link. If the page has moved, redirect its old address."
_REFUSED = (
    "Open the link in a browser. If it works there, the site refuses programs: --accept or "
    "--ignore lets it be fine."
)
_NAME = "Correct the name of the host, or remove the link. A site that has moved has a new name."
_LATER = "Check again later. If it lasts, look at the server, or remove the link to another site."
_OURS = "The link may well be fine: check again from another machine, or with a greater limit."
_TARGET = "Correct the redirect on the server, or let the link lead to its end."
_SITEMAP = "Correct the sitemap, or remove its line from robots.txt."

_REMEDIES: Mapping[str, str] = {
    "401": "Give the check a login by --auth, or let the status be fine by --accept.",
    **dict.fromkeys(("403", "429", "999"), _REFUSED),
    **dict.fromkeys(("404", "410"), _GONE),
    LOOP: _TARGET,
    Defect.MISSING_FRAGMENT: "Give an element of the page this id, or correct what follows the #.",
    Defect.BAD_MAILTO: "Correct the mail address in the link.",
    Defect.BAD_SCHEME: "Correct the scheme: most links begin with https: or mailto:.",
    Reason.BAD_URL: "Correct the attribute: browsers make no URL of it either.",
    Reason.ROBOTS: "Let robots.txt allow the file, or search engines see the page without it.",
    Reason.TLS: "Renew or complete the certificate of the server, or correct the link.",
    Reason.DNS: _NAME,
    Reason.NO_SUCH_HOST: _NAME,
    Reason.TOO_MANY_REDIRECTS: _TARGET,
    Reason.BAD_LOCATION: _TARGET,
    Reason.BAD_SITEMAP: _SITEMAP,
    Reason.BAD_STATUS: _SITEMAP,
    Reason.BAD_REPLY: "Correct the port or the scheme: no web server answers there.",
    Reason.BLOCKED_ADDRESS: "The address is private: --allow-private lets the crawl connect.",
    Reason.PROXY: "Look at the proxy: it did not pass the request on.",
    Reason.TOO_LARGE: "A greater --max-bytes reads the whole body.",
    Reason.NO_SOCKETS: "Fewer tasks (--max-tasks) need fewer sockets.",
    Reason.BAD_CHARSET: "Declare the encoding that the page is written in.",
}
_BY_KIND = {Kind.TRANSIENT: _LATER, Kind.LOST: _LATER, Kind.FAILED: _LATER, Kind.FLAW: _OURS}


def explained(code: str) -> tuple[str, str]:
    """Return what a code says, and what mends it, both as sentences."""
    if code == LOOP:
        told = "The redirects lead in a circle"
    else:
        told = sentence(code) if is_code(code) else code
    if code in _REMEDIES:
        return f"{told}.", _REMEDIES[code]
    if is_status(code):
        if int(code) in REDIRECTS:
            return f"{told}.", "Write the address that the redirect leads to into the page."
        return f"{told}.", _LATER if code[0] == "5" or code == "408" else _GONE
    about = REASONS.get(Reason(code)) if code in REASONS else None
    return f"{told}.", _BY_KIND.get(about.kind, _OURS) if about else _OURS
