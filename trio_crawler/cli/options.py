"""What the command understands: its options in their groups, as its help shows them."""

from __future__ import annotations

import click

from trio_crawler.cli import parsing as values
from trio_crawler.cli.output import ARCHIVE, DIRECTORY, EXPORTS, TALK, WHY, Command, Option

_count = click.IntRange(min=0)
_some = click.IntRange(min=1)
_seconds = click.FloatRange(min=0, min_open=True)

_CRAWLED: tuple[Option, ...] = (
    click.option(
        "--strict/--lenient",
        default=True,
        help="Stay on the host of a URL, with or "
        "without www. (strict, the default), or on its registrable domain (lenient).",
    ),
    click.option(
        "--include",
        metavar="REGEX",
        multiple=True,
        help="Follow only URLs in which REGEX is found. Repeatable: one must be found.",
    ),
    click.option(
        "--exclude",
        metavar="REGEX",
        multiple=True,
        help="Do not follow URLs in which REGEX is found. Repeatable.",
    ),
    click.option(
        "--under",
        metavar="PREFIX",
        multiple=True,
        callback=values.prefixes,
        help="Follow only URLs that begin with "
        "PREFIX: a URL, or a path on the hosts given. Repeatable.",
    ),
    click.option(
        "--sitemap",
        metavar="URL",
        multiple=True,
        callback=values.sitemaps,
        help="Read this sitemap besides those that robots.txt names: "
        "a URL, or a path on the hosts given. Repeatable.",
    ),
    click.option("--no-sitemaps", is_flag=True, help="Read no sitemap at all."),
    click.option(
        "--canonical",
        is_flag=True,
        help="Take a page that names another as its canonical one for a duplicate of that.",
    ),
    click.option("--ignore-robots", is_flag=True, help="Do not ask for robots.txt."),
    click.option(
        "--ignore-nofollow",
        is_flag=True,
        help="Follow links also where rel=nofollow, a robots meta element or X-Robots-Tag "
        "asks not to.",
    ),
    click.option(
        "--no-traps", is_flag=True, help="Follow also URLs that look as if there were no end."
    ),
)

_FAR: tuple[Option, ...] = (
    click.option("--depth", metavar="N", type=_count, help="Follow links at most N deep."),
    click.option("--max-pages", metavar="N", type=_some, help="Fetch at most N pages."),
    click.option(
        "--max-time",
        metavar="SECONDS",
        type=_seconds,
        help="Start nothing more after so many seconds; end 5 seconds later at the latest.",
    ),
    click.option(
        "--max-redirect",
        metavar="N",
        type=_count,
        default=10,
        show_default=True,
        help="Follow at most N redirects in a row.",
    ),
)

_HOW: tuple[Option, ...] = (
    click.option(
        "--max-tries",
        metavar="N",
        type=_some,
        default=4,
        show_default=True,
        help="Try a URL at most N times when the network fails or the server is busy.",
    ),
    click.option(
        "--max-tasks",
        metavar="N",
        type=_some,
        default=10,
        show_default=True,
        help="Fetch at most N URLs at the same time.",
    ),
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=30.0,
        show_default=True,
        help="Give up on one try of one URL after so many seconds, all in all.",
    ),
    click.option(
        "--per-host",
        metavar="N",
        type=_some,
        default=4,
        show_default=True,
        help="Fetch at most N URLs of one host at the same time.",
    ),
    click.option(
        "--delay",
        metavar="SECONDS",
        type=float,
        callback=values.seconds,
        default=0.0,
        show_default=True,
        help="Wait so long between two requests to one host; longer if its robots.txt says so.",
    ),
    click.option(
        "--adaptive",
        is_flag=True,
        help="Begin with --per-host, then fetch more at the same time from hosts that are quick "
        "and less from those that are slow.",
    ),
    click.option(
        "--patience",
        metavar="SECONDS",
        type=float,
        callback=values.seconds,
        default=360.0,
        show_default=True,
        help="Give up a host that has answered before when it fails for so long.",
    ),
    click.option(
        "--order",
        metavar="WORD",
        type=click.Choice(["breadth", "depth", "sitemap"]),
        default="breadth",
        show_default=True,
        help="Fetch first what is nearest to a seed (breadth), what is farthest (depth), or what "
        "sitemaps give the highest priority (sitemap).",
    ),
)

_SENT: tuple[Option, ...] = (
    click.option(
        "--user-agent",
        metavar="TEXT",
        help="Say TEXT as the User-Agent; robots.txt is read for the name in it.",
    ),
    click.option(
        "--from",
        "contact",
        metavar="ADDRESS",
        callback=values.address,
        help="Say in From whom to write to: an e-mail address.",
    ),
    click.option(
        "--header",
        metavar="'NAME: VALUE'",
        multiple=True,
        callback=values.headers,
        help="Send this header to the scheme, host and port of the given URLs, and to no "
        "other. Repeatable.",
    ),
    click.option(
        "--auth",
        metavar="USER:PASSWORD",
        callback=values.credentials,
        help="Log in by HTTP Basic authentication, to the same ones only.",
    ),
    click.option(
        "--cookie",
        metavar="'NAME=VALUE'",
        multiple=True,
        callback=values.cookies,
        help="Send this cookie to the same ones only. Repeatable.",
    ),
    click.option(
        "--cookies", is_flag=True, help="Keep the cookies of each host and send them back."
    ),
)

_WAY: tuple[Option, ...] = (
    click.option(
        "--insecure-host",
        metavar="HOST",
        multiple=True,
        callback=values.hosts,
        help="Do not verify the certificate of HOST. Repeatable.",
    ),
    click.option(
        "--allow-private",
        metavar="CIDR",
        multiple=True,
        help="Connect also to these private addresses, such as 10.0.0.0/8. Repeatable.",
    ),
    click.option("--http2", is_flag=True, help="Speak HTTP/2 with servers that know it."),
    click.option(
        "--proxy",
        metavar="URL",
        callback=values.proxy,
        help="Go through this proxy: http, https or socks5.",
    ),
    click.option(
        "--trust-env", is_flag=True, help="Go through the proxies of HTTP_PROXY, NO_PROXY, etc."
    ),
)

HEADINGS = {
    "strict": "What is crawled",
    "depth": "How far",
    "max_tries": "How",
    "user_agent": "What is sent",
    "insecure_host": "By which way",
    "output": "What is kept",
    "why": "What is shown",
}
"""The first option of each group, and the heading above it."""


def declared(command: Command) -> Command:
    """Give a command all the options, in this order."""
    crawled = (*_CRAWLED, *_FAR, *_HOW, *_SENT, *_WAY)
    for option in reversed((*crawled, *DIRECTORY, *EXPORTS, *ARCHIVE, *WHY, *TALK)):
        command = option(command)
    return command
