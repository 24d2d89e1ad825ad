"""The errors of proxies: each names the proxy, and says what it refuses or cannot do."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError, one_line
from trio_crawler.net.http1.head import Fields, Head
from trio_crawler.net.proxy.choice import Proxy

# Statuses with which proxies say that a site cannot be reached, or not now. Privoxy sends 404 for
# an unknown name, tinyproxy 500 for a refused connection.
_UNREACHED = frozenset({404, 429}) | (frozenset(range(500, 600)) - {501, 505})
_REASONS = {
    # squid: the name of the page, and the number of the system's error.
    b"ERR_DNS_FAIL": Reason.DNS,
    b"ERR_CONNECT_FAIL %d" % errno.ECONNREFUSED: Reason.CONNECTION_REFUSED,
    # RFC 9209, 2.3.
    b"dns_error": Reason.DNS,
    b"connection_refused": Reason.CONNECTION_REFUSED,
}
_ERROR = re.compile(rb";[ \t]*error[ \t]*=[ \t]*\"?([a-z_]+)")
# Privoxy's own pages have no Server, and this Last-Modified.
_PRIVOXY = b"Wed, 08 Jun 1955 12:00:00 GMT"


def proxy_fault(detail: str) -> FetchError:
    """Return the error for a proxy that refuses, or that cannot be used."""
    return FetchError(Reason.PROXY, detail, Phase.CONNECT)


def lost(proxy: Proxy, site: str) -> FetchError:
    """Return the error for a connection to a proxy that ends before the site is reached."""
    detail = f"{proxy.label} closed the connection before it had connected to {site}"
    return FetchError(Reason.RESET, detail, Phase.CONNECT)


@contextmanager
def losing(proxy: Proxy, site: str) -> Iterator[None]:
    """Raise `lost` for an error of the connection to the proxy."""
    try:
        yield
    except OSError as error:
        raise lost(proxy, site) from error


def not_http(proxy: Proxy) -> FetchError:
    """Return the error for a server that does not answer as an HTTP proxy does."""
    return proxy_fault(f"{proxy.label} does not speak HTTP on this port")


def refusal(proxy: Proxy, site: str, head: Head) -> FetchError:
    """Return the error for a head with which a proxy itself answers a request for a site."""
    # tinyproxy answers a wrong password with 401.
    if head.status in (401, 407):
        return _login_wanted(proxy, head)
    answer = one_line(f"{head.status} {head.phrase.decode('latin-1')}".strip())
    reason = _reason(head.fields)
    if reason is None and head.status not in _UNREACHED:
        return proxy_fault(f"{proxy.label} refuses to ask {site}: {answer}")
    detail = f"{proxy.label} cannot reach {site}: {answer}"
    return FetchError(reason or Reason.UNREACHABLE, detail, Phase.CONNECT)


def login_refused(proxy: Proxy) -> FetchError:
    """Return the error for a proxy that wants a user and a password, or other ones."""
    source = proxy.source
    if proxy.has_login:
        detail = f"{proxy.label} does not accept the user and the password in {source}"
    else:
        # Only the option asks the terminal for a password.
        user = "USER" if source == "--proxy" else "USER:PASSWORD"
        as_in = f"{proxy.scheme}://{user}@HOST:PORT"
        detail = f"{proxy.label} wants a user and a password: give them in {source}, as {as_in}"
    return proxy_fault(detail)


def _login_wanted(proxy: Proxy, head: Head) -> FetchError:
    schemes = [value for name, value in head.fields if name.lower() == b"proxy-authenticate"]
    if not schemes or b"basic" in b",".join(schemes).lower():
        return login_refused(proxy)
    scheme = one_line(schemes[0].decode("latin-1").partition(" ")[0])
    return proxy_fault(f"{proxy.label} wants a login by {scheme}; only Basic is supported")


def is_of_proxy(head: Head) -> bool:
    """Whether a proxy that forwards requests has made this response itself.

    A site may stand behind proxies of its own, which also mark their errors. Their responses have
    a Via for each proxy on the way.
    """
    if head.status < 300:
        return False
    if head.status == 407:
        return True
    # Of several fields with one name the last one; most sites have none of these marks.
    named = {name.lower(): value for name, value in head.fields}
    # squid's deny_info leads to a page about the refusal.
    if head.status < 400 and b"x-squid-error" not in named:
        return False
    server = named.get(b"server")
    if server is None and named.get(b"last-modified") == _PRIVOXY:
        return True
    if server is not None and server.startswith(b"tinyproxy/") and b"via" not in named:
        return True
    if b"x-squid-error" not in named and not (b"proxy-status" in named and _error(head.fields)):
        return False
    vias = [value for name, value in head.fields if name.lower() == b"via"]
    return b"," not in b",".join(vias)


def _reason(fields: Fields) -> Reason | None:
    for name, value in fields:
        if name.lower() == b"x-squid-error":
            return _REASONS.get(value) or _REASONS.get(value.partition(b" ")[0])
    return _REASONS.get(_error(fields))


def _error(fields: Fields) -> bytes:
    """Return the error of the last proxy, which is the nearest one (RFC 9209, 2); else nothing."""
    statuses = b",".join(value for name, value in fields if name.lower() == b"proxy-status")
    found = _ERROR.search(statuses.rpartition(b",")[2])
    return found[1] if found else b""
