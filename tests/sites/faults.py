"""The site of seeded faults: a web in memory, and servers on 127.0.0.1, 127.0.0.2 and so on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import trio
from sites.fault_cases import HOME, HOSTS, LARGE, NOWHERE, REFUSED, Case, Row, Said, site
from sites.raw import Request, Server, hang_up, raw_server, reply, reset

from trio_crawler import Reason
from trio_crawler.check import Finding
from trio_crawler.model import Fault
from trio_crawler.testing import Web


def web() -> Web:
    """Return the site and the hosts around it in memory."""
    answers = {url: said.to for url, said in site().items()}
    dead = {REFUSED: Fault(Reason.CONNECTION_REFUSED), NOWHERE: Fault(Reason.NO_SUCH_HOST)}
    return Web({**answers, **dead}, url=HOME)


class Served(NamedTuple):
    """The servers by host as it is called here, and what their URLs are called really."""

    servers: dict[str, Server]

    def real(self, text: str) -> str:
        """Return a text with the real URLs."""
        for host, server in self.servers.items():
            text = text.replace(host, server.url)
            text = text.replace(host.removeprefix("http:"), server.url.removeprefix("http:"))
            text = text.replace(host.upper(), server.url.upper())
        return text

    def named(self, text: str) -> str:
        """Return a text with the names of this module."""
        for host, server in self.servers.items():
            text = text.replace(server.url, host)
        return text


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    """Serve the site and the hosts around it, each on an address of its own."""
    all_said = site()
    async with AsyncExitStack() as stack:
        servers: dict[str, Server] = {}
        found = Served(servers)

        async def answer(host: str, request: Request, stream: trio.abc.Stream) -> None:
            said = all_said.get(host.rstrip("/") + request.target, Said(404))
            await _send(found, said, request, stream)

        for number, host in enumerate(HOSTS, 1):

            async def handler(request: Request, stream: trio.abc.Stream, host: str = host) -> None:
                await answer(host, request, stream)

            address = f"127.0.0.{number}"
            if host == REFUSED:
                # It has a port only as long as this block lasts.
                async with raw_server(handler, host=address) as server:
                    servers[host] = server
            else:
                servers[host] = await stack.enter_async_context(raw_server(handler, host=address))
        yield found


async def _send(found: Served, said: Said, request: Request, stream: trio.abc.Stream) -> None:
    by_head = request.method == "HEAD"
    if said.fault is Reason.RESET or (by_head and said.head is Reason.RESET):
        await reset(request, stream)
        return
    status = said.head if by_head and isinstance(said.head, int) else said.status
    fields = {name: found.real(value) for name, value in said.fields.items()}
    body = found.real(said.body).encode()
    length = LARGE if said.large else len(body) + (said.fault is Reason.INCOMPLETE)
    whole = reply(status, {**fields, "Content-Length": str(length)})
    await stream.send_all(whole if by_head else whole + body)
    if said.fault is Reason.INCOMPLETE and not by_head:
        await hang_up(request, stream)


def rows(findings: list[Finding], case: Case) -> set[Row]:
    """Return the findings on the pages of one case; a target of the site is a path."""
    home = HOME.rstrip("/")
    return {
        Row(str(each.verdict), _code(each.code), each.target.removeprefix(home))
        for each in findings
        if each.page in case.pages
    }


def _code(code: str) -> str:
    # The resolver of a machine may not say which.
    return Reason.NO_SUCH_HOST.value if code == Reason.DNS else code
