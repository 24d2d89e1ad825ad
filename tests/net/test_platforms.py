"""A fetch where the platform has less than Linux: modules and constants that may be missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
LESS = """
import errno, select, socket, sys
# All that others import, and what the server of this test needs, before it is hidden.
import certifi, httptools, httpx, trio, sites.raw
from trio_crawler import model, page, policy

assert not any(name.startswith("trio_crawler.net") for name in sys.modules)
HIDDEN = {
    select: ["poll"],
    socket: ["AF_UNIX", "EAI_NODATA", "SO_REUSEPORT"],
    errno: ["ENONET", "EHOSTDOWN", "ENETDOWN", "EPROTO", "ENOPROTOOPT", "EMSGSIZE", "EPIPE"],
}

def unknown(*name, **more):
    raise socket.gaierror(socket.EAI_NONAME, "unknown")

def hide():
    for module in ("resource", "fcntl", "pwd", "grp", "termios", "brotli", "h2", "httpcore"):
        sys.modules[module] = None
    for module, names in HIDDEN.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    socket.getaddrinfo = unknown

async def main():
    site = {"/": sites.raw.reply(body=b"page"), "/gone": sites.raw.hang_up}
    async with sites.raw.raw_server(site) as server:
        # Trio needs some of these to begin, and the server to listen.
        hide()
        from trio_crawler.model import Job
        from trio_crawler.net.fetch import HttpFetch
        from trio_crawler.net.httpx_fetch import HttpxFetch

        async with HttpFetch(seeds=[server.url]) as fetch:
            print([(await fetch(Job(server.url))).body for _ in range(2)], server.connections)
            print((await fetch(Job(server.url + "gone"))).reason)
            print((await fetch(Job("http://no-such-host.invalid/"))).reason)
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=b"mock"))
    print((await HttpxFetch(transport)(Job("http://h.test/"))).body)

trio.run(main)
"""


def test_a_fetch_needs_no_module_or_constant_that_only_some_platforms_have() -> None:
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    run = subprocess.run(
        [sys.executable, "-c", LESS],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    pages, gone, nameless, mock = run.stdout.splitlines()
    assert (pages, gone, mock) == ("[b'page', b'page'] 1", "reset", "b'mock'")
    # Without a network there is no answer.
    assert nameless in ("no_such_host", "dns")
