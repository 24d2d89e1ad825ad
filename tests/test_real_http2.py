"""HTTP/2 by the servers that people run: every file arrives whole, each at its first asking."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import trio
from sites.servers import (
    SQLITE,
    TLS,
    Authority,
    Running,
    apache,
    haproxy,
    lighttpd,
    nghttpd,
    nginx,
)

from trio_crawler import HttpFetch
from trio_crawler.model import Fault, Job, Response

pytestmark = pytest.mark.real
pytest.importorskip("h2")

MISSING = 40
LISTEN = f"listen @PORT@ ssl http2; {TLS}"


def by_nginx(more: str) -> Callable[[dict[str, Path]], AbstractContextManager[Running]]:
    return lambda files: nginx(f"server {{ {LISTEN} {more} }}", **files)


def by_apache(files: dict[str, Path]) -> AbstractContextManager[Running]:
    tls = "SSLEngine on\nSSLCertificateFile @CERTIFICATE@\nSSLCertificateKeyFile @KEY@\n"
    return apache(f"Listen @PORT@\nProtocols h2 http/1.1\n{tls}", **files)


def by_haproxy(files: dict[str, Path]) -> AbstractContextManager[Running]:
    """Put haproxy with HTTP/2 before an nginx without it."""

    @contextmanager
    def both() -> Iterator[Running]:
        with nginx("server { listen 127.0.0.1:@PORT@; }") as behind:
            front = "frontend f\n  bind 127.0.0.1:@PORT@ ssl crt @BOTH@ alpn h2,http/1.1\n"
            back = f"  default_backend b\nbackend b\n  server s 127.0.0.1:{behind.port}\n"
            with haproxy(front + back, **files) as server:
                yield server

    return both()


def by_lighttpd(files: dict[str, Path]) -> AbstractContextManager[Running]:
    tls = 'ssl.engine = "enable"\nssl.pemfile = "@CERTIFICATE@"\nssl.privkey = "@KEY@"\n'
    return lighttpd(f'server.port = @PORT@\nserver.bind = "127.0.0.1"\n{tls}', **files)


def by_nghttpd(files: dict[str, Path]) -> AbstractContextManager[Running]:
    return nghttpd(**{name: files[name] for name in ("certificate", "key")})


SERVERS: dict[str, Callable[[dict[str, Path]], AbstractContextManager[Running]]] = {
    "nginx": by_nginx(""),
    "nginx, one request at a time": by_nginx("http2_max_concurrent_streams 1;"),
    "nginx, 100 requests for a connection": by_nginx("keepalive_requests 100;"),
    "nginx, 3 requests for a connection": by_nginx("keepalive_requests 3;"),
    "nginx, 1 request for a connection": by_nginx("keepalive_requests 1;"),
    "nginx, gzip": by_nginx("gzip on; gzip_types text/html text/css application/javascript;"),
    "apache": by_apache,
    "haproxy": by_haproxy,
    "lighttpd": by_lighttpd,
    "nghttpd": by_nghttpd,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    issued = authority.issue("127.0.0.1", "localhost")
    return {name: issued[name] for name in ("certificate", "key", "both")} | {
        "authority": authority.file
    }


# What a server allows shows with one request at a time, and with many.
CASES = [
    (server, at_once)
    for server in SERVERS
    for at_once in ((1, 8, 40) if server.startswith("nginx, ") else (8,))
]


@pytest.mark.parametrize(("server", "at_once"), CASES)
async def test_every_file_arrives_whole_at_its_first_asking(
    server: str, at_once: int, files: dict[str, Path]
) -> None:
    with SERVERS[server](files) as running:
        paths = [path for path in sorted(SQLITE.rglob("*")) if path.is_file()]
        wanted = {
            quote(f"/{path.relative_to(SQLITE)}"): _digest(path.read_bytes()) for path in paths
        }
        every = [*wanted, *(f"/missing-{number}" for number in range(MISSING))]
        answers: dict[str, Response | Fault] = {}
        left = iter(every)
        base = running.url("https").rstrip("/")

        async def work(fetch: HttpFetch) -> None:
            for path in left:
                answers[path] = await fetch(Job(base + path))

        with trio.fail_after(60):
            async with (
                HttpFetch(seeds=[base], http2=True, cacert=files["authority"]) as fetch,
                trio.open_nursery() as nursery,
            ):
                for _ in range(at_once):
                    nursery.start_soon(work, fetch)
            figures = fetch.statistics().wire
    faults = {path: answer for path, answer in answers.items() if isinstance(answer, Fault)}
    assert faults == {}
    statuses = {path: getattr(answer, "status", 0) for path, answer in answers.items()}
    assert statuses == {path: 200 if path in wanted else 404 for path in every}
    found = {path: _digest(answers[path].body) for path in wanted}  # type: ignore[union-attr]
    assert found == wanted
    assert figures is not None
    assert figures.reused + figures.made >= len(every)
    if "for a connection" not in server and "at a time" not in server:
        # nginx ends a connection after 1,000 requests.
        assert figures.made == 1 + server.startswith("nginx")


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
