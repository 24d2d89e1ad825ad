"""Links to https at a port that speaks HTTP without TLS, such as https://host:8080/."""

from __future__ import annotations

from collections import defaultdict

from trio_crawler.model import Failure, Page, Reason

_HTTP, _HTTPS = "http://", "https://"


class TlsTwins:
    """The failed https URLs of ports at which a good page came by http.

    A port speaks either TLS or not, so such a link is wrong, but its host is well. Only URLs with
    a port can be meant: the default ports of http and https differ.
    """

    def __init__(self) -> None:
        # By host and port.
        self._failed: defaultdict[str, set[int]] = defaultdict(set)
        self._plain: set[str] = set()

    def add_page(self, page: Page) -> None:
        """Record a good page."""
        if authority := _with_port(page.url, _HTTP):
            self._plain.add(authority)

    def add_failure(self, number: int, failure: Failure) -> None:
        """Record a failure, and the number of its URL."""
        if failure.reason is Reason.TLS and (authority := _with_port(failure.url, _HTTPS)):
            self._failed[authority].add(number)

    @property
    def numbers(self) -> set[int]:
        """The numbers of these URLs."""
        found = (self._failed[authority] for authority in self._failed.keys() & self._plain)
        return set().union(*found)

    @property
    def origins(self) -> frozenset[str]:
        """The origins of these URLs."""
        return frozenset(_HTTPS + each for each in self._failed.keys() & self._plain)


def _with_port(url: str, scheme: str) -> str:
    """Return the host and port of a URL with this scheme and a port; "" for others."""
    if not url.startswith(scheme):
        return ""
    authority, _, _ = url[len(scheme) :].partition("/")
    return authority if authority.rpartition(":")[2].isdecimal() else ""
