"""Checks: which links of the pages are asked for, although they lead outside of the crawl."""

import math
from dataclasses import dataclass

from trio_crawler.arguments import ArgumentError, check_flag, check_number, check_whole
from trio_crawler.model import Reason

CHECKED = frozenset({Reason.OTHER_SITE, Reason.NOT_INCLUDED, Reason.TOO_DEEP})
"""Why a URL is outside of the crawl and may be checked; what a user has excluded may not."""

DELAY, QUICK_DELAY = 0.5, 0.1
"""Seconds between two checks of one host, at first and after two good answers in a row."""


@dataclass(frozen=True, slots=True)
class Checks:
    """The links that a crawl checks besides the pages that it fetches.

    With `external` a URL that the scope keeps out of the crawl as `OTHER_SITE` or `NOT_INCLUDED`,
    or the depth as `TOO_DEEP`, is asked for once, by HEAD, and by GET where a server answers HEAD
    with an error; its redirects are followed, its links are not. An `EXCLUDED` URL is not asked
    for: a scope that answers False means that.

    With `assets` the images, style sheets, scripts and other parts of a page are asked for like
    pages, and style sheets and manifests are read for more of them. With `fragments` the places
    that `#fragments` name are looked up in their pages; an external page is then fetched whole,
    once, and so is one that a page of the crawl redirects to. With any of these, frames, refreshes
    and what `link` names are followed like links.

    A host that the crawl does not enter gets one request at a time, and the next one `delay`
    seconds later at the earliest. None stands for half a second, and for a tenth of a second after
    two good answers in a row that came within half a second each: until an answer is slower, or
    the host fails, and never again once it has refused a request. With `robots` its robots.txt is
    obeyed. By default it is not asked for: a check is what a reader does who clicks on the link,
    once and without going on, and most such hosts are named by one link only, so that the rules
    would double the requests.

    With `max_age` a refresh does not ask again for an external URL that an earlier walk found fine
    less than so many seconds ago: that it answered with a success (2xx), or redirected to one that
    did. Its outcome has the status of that walk, and no tries. All others are asked for again.

    At most `max_per_host` URLs of each host outside are checked, in one run, and none at more than
    ten of its ports. Others are rejected as `CHECK_BUDGET` and `TOO_MANY_PORTS`.

    Raises TypeError or ValueError, naming the argument, for an invalid value.
    """

    __module__ = "trio_crawler"

    external: bool = True
    assets: bool = True
    fragments: bool = True
    robots: bool = False
    delay: float | None = None
    max_age: float = 0.0
    max_per_host: float = math.inf

    def __post_init__(self) -> None:
        for name in ("external", "assets", "fragments", "robots"):
            check_flag(name, getattr(self, name))
        if self.delay is not None:
            check_number("delay", self.delay, finite=True)
        check_number("max_age", self.max_age)
        if self.max_per_host != math.inf:
            check_whole("max_per_host", self.max_per_host, least=1)
        for name in ("max_age", "max_per_host"):
            if getattr(self, name) not in (0, math.inf) and not self.external:
                raise ArgumentError(name, " needs external=True: it is about external URLs")

    @classmethod
    def off(cls) -> "Checks":
        """Return checks of nothing."""
        return cls(external=False, assets=False, fragments=False)

    @property
    def any(self) -> bool:
        """Whether anything is checked."""
        return self.external or self.assets or self.fragments

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of what is checked, sorted: they can be part of the meaning of a directory."""
        return tuple(name for name in ("assets", "external", "fragments") if getattr(self, name))
