"""Real proxies, each with its own configuration.

with started("squid", login=True) as url:
    ...
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sites.servers import free_port, is_ready, running

USER, PASSWORD = "me", "right"

SQUID = """
http_port 127.0.0.1:{port}
pid_filename none
cache deny all
access_log none
cache_log {home}/cache.log
coredump_dir {home}
shutdown_lifetime 0 seconds
visible_hostname proxy.test
{login}
"""

SQUID_LOGIN = """
auth_param basic program {home}/check
auth_param basic children 1 startup=1
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
"""


def squid(home: Path, port: int, login: bool) -> Sequence[str]:
    check = home / "check"
    right = f'while read u p; do [ "$u $p" = "{USER} {PASSWORD}" ] && echo OK || echo ERR; done'
    check.write_text(f"#!/bin/sh\n{right}\n")
    check.chmod(0o755)
    rules = SQUID_LOGIN.format(home=home) if login else "http_access allow all"
    config = home / "squid.conf"
    config.write_text(SQUID.format(home=home, port=port, login=rules))
    return [program("squid"), "-N", "-f", str(config)]


def tinyproxy(home: Path, port: int, login: bool) -> Sequence[str]:
    lines = [f"Port {port}", "Listen 127.0.0.1", "Timeout 60", "MaxClients 100"]
    lines += [f'LogFile "{home}/log"', *([f"BasicAuth {USER} {PASSWORD}"] if login else [])]
    config = home / "tinyproxy.conf"
    config.write_text("\n".join(lines) + "\n")
    return [program("tinyproxy"), "-d", "-c", str(config)]


def privoxy(home: Path, port: int, login: bool) -> Sequence[str]:
    assert not login
    config = home / "config"
    lines = [f"listen-address 127.0.0.1:{port}", "keep-alive-timeout 300", f"logdir {home}"]
    config.write_text("\n".join([*lines, "confdir /etc/privoxy"]) + "\n")
    return [program("privoxy"), "--no-daemon", str(config)]


def microsocks(home: Path, port: int, login: bool) -> Sequence[str]:
    known = ["-u", USER, "-P", PASSWORD] if login else []
    return [program("microsocks"), "-i", "127.0.0.1", "-p", str(port), *known]


PROGRAMS: dict[str, Callable[[Path, int, bool], Sequence[str]]] = {
    "squid": squid,
    "tinyproxy": tinyproxy,
    "privoxy": privoxy,
    "microsocks": microsocks,
}


def program(name: str) -> str:
    """Return the path of a program; without it the test is skipped."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@contextmanager
def started(name: str, *, login: bool = False) -> Iterator[str]:
    """Run a proxy until the block ends; yield its URL, without user."""
    port = free_port()
    with TemporaryDirectory() as directory:
        home = Path(directory)
        # The program may use it after it has given up being root.
        home.chmod(0o777)
        with running(PROGRAMS[name](home, port, login)) as process:
            assert is_ready(process, [port])
            yield f"{'socks5' if name == 'microsocks' else 'http'}://127.0.0.1:{port}"
