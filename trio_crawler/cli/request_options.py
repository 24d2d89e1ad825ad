"""The options of a crawl that are about its requests: what is sent, and how to connect."""

from __future__ import annotations

from dataclasses import dataclass, field

from trio_crawler.cli import parsing
from trio_crawler.cli.declaration import Group, option
from trio_crawler.cli.secrets import Login
from trio_crawler.cli.verdict_options import VerdictOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions(VerdictOptions):
    """What a crawl sends, and how it connects; passwords are not in its repr."""

    logins: tuple[tuple[str, Login], ...] = field(
        default=(), repr=False, metadata={"declared": ()}
    )
    """The URLs that have a user, with the user and the password."""
    user_agent: str | None = option(
        Group.SENT,
        "--user-agent",
        metavar="TEXT",
        help="Send TEXT as the User-Agent, and obey the rules of robots.txt for the name in it.",
    )
    contact: str | None = option(
        Group.SENT,
        "--from",
        metavar="ADDRESS",
        help="Send this e-mail address in the header From, so that a site can write to you.",
    )
    headers: tuple[tuple[str, str], ...] = option(
        Group.SENT,
        "--header",
        metavar="'NAME: VALUE'",
        multiple=True,
        callback=parsing.headers,
        secret=True,
        help="Send this header, but only to the schemes, hosts and ports of the given URLs. "
        "Repeatable.",
    )
    auth: tuple[str, str | None] | None = option(
        Group.SENT,
        "--auth",
        metavar="USER[:PASSWORD]",
        callback=parsing.credentials,
        secret=True,
        help="Log in by HTTP Basic authentication; sent only where --header is sent. Without "
        ":PASSWORD the terminal is asked for it. A URL may have its own: http://USER@HOST/.",
    )
    netrc: bool = option(
        Group.SENT,
        "--netrc",
        is_flag=True,
        help="Log in with the user and the password that ~/.netrc has for the host of a given "
        "URL.",
    )
    netrc_file: str | None = option(
        Group.SENT,
        "--netrc-file",
        metavar="FILE",
        help="As --netrc, with FILE instead of ~/.netrc.",
    )
    own_cookies: tuple[str, ...] = option(
        Group.SENT,
        "--cookie",
        metavar="'NAME=VALUE'",
        multiple=True,
        callback=parsing.cookies,
        secret=True,
        help="Send this cookie; sent only where --header is sent. Repeatable.",
    )
    cookies: bool = option(
        Group.SENT,
        "--cookies",
        is_flag=True,
        recorded=True,
        help="Store the cookies that a host sets, and send them back to it. A login that sets one "
        "and leads back to the URL that led there is followed.",
    )
    cacert: str | None = option(
        Group.CONNECTIONS,
        "--cacert",
        metavar="FILE",
        help="Verify certificates against the authorities in FILE (PEM) only. Without it, those "
        "of the environment variables SSL_CERT_FILE and SSL_CERT_DIR count, if one is set.",
    )
    client_cert: str | None = option(
        Group.CONNECTIONS,
        "--client-cert",
        metavar="FILE",
        help="Show the certificate in FILE (PEM) at the origins of the given URLs, where a server "
        "wants one.",
    )
    client_key: str | None = option(
        Group.CONNECTIONS,
        "--client-key",
        metavar="FILE",
        help="The key of --client-cert, if it is in a FILE of its own. The terminal is asked for "
        "its password, if it has one.",
    )
    client_password: str | None = field(default=None, repr=False, metadata={"declared": ()})
    """The password of the key."""
    insecure_hosts: tuple[str, ...] = option(
        Group.CONNECTIONS,
        "--insecure-host",
        metavar="HOST",
        multiple=True,
        callback=parsing.distinct,
        recorded=True,
        stored="insecure_hosts",
        help="Accept any certificate of HOST. Repeatable.",
    )
    allow_private: tuple[str, ...] = option(
        Group.CONNECTIONS,
        "--allow-private",
        metavar="CIDR",
        multiple=True,
        help="Connect to this private address or network too, such as 10.0.0.0/8. Repeatable.",
    )
    public_only: bool = option(
        Group.CONNECTIONS,
        "--public-only",
        is_flag=True,
        help="Connect to public addresses only, even for the given URLs: for URLs that others "
        "choose.",
    )
    http2: bool = option(
        Group.CONNECTIONS,
        "--http2",
        is_flag=True,
        help="Use HTTP/2 where a server has it: one connection, but 0.3 ms more of CPU a page.",
    )
    proxy: str | None = option(
        Group.CONNECTIONS,
        "--proxy",
        metavar="URL",
        callback=parsing.proxy,
        secret=True,
        help="Send all requests through this proxy: http, https or socks5. The proxy looks names "
        "up. For http://USER@HOST:PORT the terminal is asked for the password.",
    )
    trust_env: bool = option(
        Group.CONNECTIONS,
        "--trust-env",
        is_flag=True,
        help="Use the proxies of the environment variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY "
        "and NO_PROXY (names, *.NAME, addresses, networks).",
    )
