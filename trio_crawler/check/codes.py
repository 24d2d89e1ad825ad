"""The codes of findings, and the sentences for people that stand for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from trio_crawler.model import REDIRECTS
from trio_crawler.policy.verdict import PERMANENT, Defect
from trio_crawler.reason import REASONS

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
