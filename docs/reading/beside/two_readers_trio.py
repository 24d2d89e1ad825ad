"""Let two tasks read one socket with the `read` of `selecting_trio.py`."""

from __future__ import annotations

import socket
import sys

import trio
from selecting_trio import read
from web import address, request

came_back = 0


async def reader(sock: socket.socket) -> None:
    global came_back
    print("a reader waits")
    await read(sock)
    came_back += 1


async def main(url: str) -> None:
    with socket.create_connection(address(url)) as sock:
        sock.sendall(request(url))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader, sock)
            nursery.start_soon(reader, sock)
    print(f"the loop has ended; of two readers came back: {came_back}")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
