"""The options of a crawl that say which links are checked besides its pages."""

from __future__ import annotations

from dataclasses import dataclass, field

from trio_crawler.cli import parsing
from trio_crawler.cli.declaration import Group, option
from trio_crawler.cli.request_options import RequestOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(RequestOptions):
    """What a crawl checks besides its pages; `owner` for the command "check"."""

    owner: bool = field(default=False, metadata={"declared": ()})
    """Whether the site's owner asks: nofollow is not obeyed, and the report is about links."""
    folder: str | None = field(default=None, metadata={"declared": ()})
    """The folder that is checked in place of a server."""
    files: tuple[str, ...] = field(default=(), metadata={"declared": ()})
    """The files in it that the check begins with, in place of all its pages."""
    checks: tuple[str, ...] = option(
        Group.CHECKED,
        "--check",
        metavar="KINDS",
        callback=parsing.kinds,
        same_crawl=True,
        help="Check external links, assets, fragments or all besides the pages of the site. "
        "Several are separated by commas. An external link leaves the site, assets are images, "
        "styles, scripts and the like, and a fragment is the #name of a link. [default of check: "
        "all]",
    )
    check_robots: bool = option(
        Group.CHECKED,
        "--check-robots",
        is_flag=True,
        same_crawl=True,
        help="Obey the robots.txt of hosts that the crawl only checks links to.",
    )
    check_delay: float | None = option(
        Group.CHECKED,
        "--check-delay",
        metavar="TIME",
        type=str,
        callback=parsing.seconds,
        show_default="0.5, and 0.1 after two good answers",
        recorded=True,
        help="Wait at least this time between two checks of one host.",
    )
    check_max_per_host: int | None = option(
        Group.CHECKED,
        "--check-max-per-host",
        metavar="N",
        type=int,
        recorded=True,
        help="Check at most N URLs of each host outside the site. [default: no limit]",
    )
    max_age: float = option(
        Group.CHECKED,
        "--max-age",
        metavar="TIME",
        type=str,
        callback=parsing.seconds,
        default=0.0,
        recorded=True,
        help="Do not ask again for a URL outside the site that an earlier check in DIR (-o) found "
        "fine less than this time ago, such as 12h or 7d. When the "
        "check in DIR is finished, the same command begins the next one, as with --refresh.",
    )
    base_url: str | None = option(
        Group.CHECKED,
        "--base-url",
        metavar="URL",
        same_crawl=True,
        help="Check a folder as the site at this URL, so that links to URL lead into the folder.",
    )
    clean_urls: bool = option(
        Group.CHECKED,
        "--clean-urls",
        is_flag=True,
        same_crawl=True,
        help="In a folder, let the link /a lead to a.html, as some servers do.",
    )
    linked_only: bool = option(
        Group.CHECKED,
        "--linked-only",
        is_flag=True,
        same_crawl=True,
        help="Of a folder, check the pages that links from its index.html lead to, not all.",
    )

    @property
    def checked_kinds(self) -> tuple[str, ...]:
        """The kinds of links that are checked; for an owner all of them, unless some are named."""
        return self.checks or (parsing.KINDS if self.owner else ())
