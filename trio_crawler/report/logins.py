"""What to do about pages that want a user and a password (401)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trio_crawler.page.urls import without_userinfo
from trio_crawler.report.visible import visible

if TYPE_CHECKING:
    from trio_crawler.report.facts import CrawlFacts


def login_advice(wanted: Mapping[str, str], facts: CrawlFacts) -> dict[str, str]:
    """Return a sentence for each origin that answered with 401.

    `wanted` has the scheme of authentication that each of them wants, "" for Basic.
    """
    seeds = [f"{without_userinfo(seed)}/" for seed in facts.seeds] if wanted else []
    return {
        origin: _advice(
            origin,
            scheme,
            None if facts.authorized is None else origin in facts.authorized,
            not seeds or any(seed.startswith(f"{origin}/") for seed in seeds),
        )
        for origin, scheme in wanted.items()
    }


def _advice(wanting: str, scheme: str, is_authorized: bool | None, is_seed: bool) -> str:
    if scheme:
        return f"the server wants a login by {visible(scheme)}; --auth can only log in by Basic"
    if is_authorized is None:
        return "the server wants a user and a password, or refused those of --auth"
    if is_authorized:
        return "the server refused the user and the password that it was given"
    if is_seed:
        return "the server wants a user and a password: give --auth USER"
    where = f"crawl {visible(wanting)}/ by its own URL"
    return f"the server wants a user and a password: {where}, with --auth USER"
