"""Errands: what is asked for besides pages, and what comes of it."""

from __future__ import annotations

from dataclasses import replace

import trio

from trio_crawler.engine.pages import is_redirect, location
from trio_crawler.engine.sitemaps import LARGE, Sitemaps
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import Fault, Job, Phase, Purpose, Reason, Response
from trio_crawler.page.urls import origin, web
from trio_crawler.policy.conditional import validator_of
from trio_crawler.policy.host_state import troubled
from trio_crawler.policy.robots.store import Robots, Rules, interpret

_A_WHILE = 600.0
_ABOUT_THE_HOST = (Phase.RESOLVE, Phase.CONNECT, Phase.TLS)


class Errands:
    """Take what comes for errands: robots.txt files, probes, and `sitemaps`."""

    def __init__(self, frontier: Frontier, robots: Robots, sitemaps: Sitemaps) -> None:
        self._frontier = frontier
        self._robots = robots
        self._sitemaps = sitemaps

    async def done(self, job: Job, answer: Response | Fault) -> None:
        """Take what came for an errand."""
        if job.purpose is Purpose.PROBE:
            self._frontier.learned(job.url, answer if troubled(answer) else None)
        elif job.purpose is Purpose.SITEMAP:
            await self._sitemaps.done(job, answer, _target(job, answer))
        else:
            await self._robots_done(job, answer, _target(job, answer))

    async def dropped(self, job: Job) -> None:
        """Take note that an errand came to nothing: the crawl is ending, or its host given up."""
        why = job.refused
        if job.purpose is Purpose.SITEMAP:
            await self._sitemaps.dropped(job)
        elif why is not None:
            trouble = why if isinstance(why, Fault) else Fault(Reason.UNREACHABLE, str(why))
            self._frontier.learned(job.referrer or job.url, trouble)

    async def _robots_done(self, job: Job, answer: Response | Fault, target: str | None) -> None:
        asked = job.referrer or job.url
        if target and job.redirects > 0:
            left = job.redirects - 1
            hop = replace(job, url=target, redirects=left, referrer=asked, validator=None)
            await self._frontier.hop(hop)
            return
        known = isinstance(answer, Response) and answer.status == 304 and job.validator is not None
        rules = None if known else await self._rules(answer)
        if rules is not None:
            await self._keep(asked, rules, answer)
        elif known:
            self._robots.renew(origin(asked), trio.current_time())
        elif self._robots.is_old(origin(asked), trio.current_time()):
            # Its old rules may hold while it cannot be had (RFC 9309, 2.4).
            self._robots.renew(origin(asked), trio.current_time(), _A_WHILE)
        else:
            self._frontier.learned(asked, _unavailable(answer))
            return
        self._frontier.learned(asked, None)

    async def _keep(self, asked: str, rules: Rules, answer: Response | Fault) -> None:
        validator = validator_of(answer.headers) if isinstance(answer, Response) else None
        self._robots.store(origin(asked), rules, trio.current_time(), validator)
        await self._sitemaps.named(rules.sitemaps, asked)

    async def _rules(self, answer: Response | Fault) -> Rules | None:
        if isinstance(answer, Fault) or len(answer.body) < LARGE:
            return interpret(answer, self._robots.token)
        return await trio.to_thread.run_sync(interpret, answer, self._robots.token)


def _target(job: Job, answer: Response | Fault) -> str | None:
    """Return where an errand was redirected to, if anybody can be asked there."""
    if isinstance(answer, Fault) or not is_redirect(answer):
        return None
    target = location(job, answer)
    return target if isinstance(target, str) and web(target) else None


def _unavailable(answer: Response | Fault) -> Response | Fault:
    """Say what kept robots.txt away, in words that fit each URL of its host."""
    if isinstance(answer, Response) or answer.phase in _ABOUT_THE_HOST:
        return answer
    return replace(answer, detail=f"robots.txt: {answer.detail}")
