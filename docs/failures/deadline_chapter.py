"""Limit each read to 0.7 s, three times, on a page that comes a byte at a time."""

from __future__ import annotations

import asyncio
import socket
import sys

import aiohttp
import httpx
from web import address, body, request

LIMIT = 0.7


def by_socket(root: str) -> int:
    with socket.create_connection(address(root)) as sock:
        sock.settimeout(LIMIT)
        sock.sendall(request(root))
        return len(body(b"".join(iter(lambda: sock.recv(4096), b""))))


async def by_httpx(root: str) -> int:
    async with httpx.AsyncClient(timeout=LIMIT) as client:  # (1)
        return len((await client.get(root)).content)


async def by_aiohttp(root: str) -> int:
    limit = aiohttp.ClientTimeout(total=None, sock_read=LIMIT)
    async with aiohttp.ClientSession(timeout=limit) as session:
        async with session.get(root) as response:
            return len(await response.read())


async def main(root: str) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    sizes = await asyncio.gather(
        asyncio.to_thread(by_socket, root), by_httpx(root), by_aiohttp(root)
    )
    late = "more" if loop.time() - began > 2 * LIMIT else "less"
    for name, size in zip(("socket", "httpx", "aiohttp"), sizes, strict=True):
        print(f"{name}: {size} bytes, after {late} than twice the limit")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
