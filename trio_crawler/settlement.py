"""Settlements: the end of a job, its successors, and new facts about its host."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from trio_crawler.arguments import public
from trio_crawler.model import Answer, Job, Listing, Outcome, Response, Sitemap, Validator
from trio_crawler.policy.robots import Rules


@public("trio_crawler.frontier")
class RobotsRules(msgspec.Struct, frozen=True):
    """The robots.txt at `url` was read, and has these rules.

    `answer` is the response that they were read from, None if a later run must fetch it again,
    and `validator` that of the response.
    `rejected` are the sitemaps that the file names but the crawl does not fetch.
    """

    url: str
    rules: Rules
    validator: Validator | None = None
    answer: Response | None = None
    rejected: tuple[Sitemap, ...] = ()


@public("trio_crawler.frontier")
class RobotsRenewed(msgspec.Struct, frozen=True):
    """The old rules of the robots.txt at `url` are valid for `seconds` more."""

    url: str
    seconds: float


@public("trio_crawler.frontier")
class RobotsMissing(msgspec.Struct, frozen=True):
    """The robots.txt at `url` could not be fetched, as `answer` says."""

    url: str
    answer: Answer


@public("trio_crawler.frontier")
class RobotsMoved(msgspec.Struct, frozen=True):
    """A robots.txt was redirected; `job` fetches its target."""

    job: Job


@public("trio_crawler.frontier")
class ProbeAnswered(msgspec.Struct, frozen=True):
    """The page at `url` was fetched again, to see whether its host is back; `answer` came."""

    url: str
    answer: Answer


@public("trio_crawler.frontier")
class SitemapRead(msgspec.Struct, frozen=True):
    """A sitemap was read, or will not be; `sitemap` is None if it redirects or the crawl ended.

    `listings` are its entries, by the seen key of the URL; `rejected` are the sitemaps that it
    names but the crawl does not fetch.
    """

    sitemap: Sitemap | None
    listings: Mapping[str, Listing] = {}
    rejected: tuple[Sitemap, ...] = ()


Learned: TypeAlias = (
    RobotsRules | RobotsRenewed | RobotsMissing | RobotsMoved | ProbeAnswered | SitemapRead
)
"""A new fact about a host, for the record of the host and for the store."""


@public("trio_crawler.frontier")
class Repeated(msgspec.Struct, frozen=True):
    """How the second fetch of a page that a refresh fetched twice differs from the first.

    `blocks` are the hashes of the blocks of its text, two bytes for each. `retitled` is whether
    its title was another. `links` are the shapes of the links that only one of the two fetches
    had.
    """

    blocks: bytes
    retitled: bool = False
    links: tuple[str, ...] = ()


@public("trio_crawler.frontier")
class Settlement(msgspec.Struct, frozen=True):
    """The end of one job, and the jobs that follow from it.

    `outcome` is None for a robots.txt, a sitemap or a probe: `learned` has what was found there.
    `successors` are admitted if they are new. The pages that a sitemap lists are not among them:
    `Frontier.add` admitted them before. `size` is about the bytes of memory that the outcome
    takes. `repeated` is set for a page that was fetched twice, and `digest` is the SHA-1 of the
    body of a page, if it is known.
    """

    job: Job
    outcome: Outcome | None = None
    successors: Sequence[Job] = ()
    learned: Learned | None = None
    size: int = 0
    repeated: Repeated | None = None
    digest: bytes | None = None
