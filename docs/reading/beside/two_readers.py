"""Let two coroutines read one socket with the loop of `selecting.py`."""

from __future__ import annotations

import socket
import sys

from selecting import AsyncRead, run
from web import address, request

came_back = 0


async def reader(sock: socket.socket) -> None:
    global came_back
    print("a reader waits")
    await AsyncRead(sock)
    came_back += 1


def main(url: str) -> None:
    with socket.create_connection(address(url)) as sock:
        sock.sendall(request(url))
        run(reader(sock), reader(sock))
    print(f"the loop has ended; of two readers came back: {came_back}")


if __name__ == "__main__":
    main(sys.argv[1])
