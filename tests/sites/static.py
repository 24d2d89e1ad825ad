"""Serve a directory over HTTP/1.1 in a process of its own: `static.py DIRECTORY LOG`.

Prints the port, then serves until its standard input ends, so that it never outlives the tests.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TextIO


class Handler(SimpleHTTPRequestHandler):
    """Serve files, and log one line `METHOD TARGET STATUS` for each request."""

    protocol_version = "HTTP/1.1"
    # Else the second packet of an answer waits 40 ms for the client to acknowledge the first.
    disable_nagle_algorithm = True
    wbufsize = 256 * 1024
    lock = threading.Lock()
    log: TextIO

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        with self.lock:
            self.log.write(f"{self.command} {self.path} {int(code)}\n")
            self.log.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Take as many connections at once as a crawler opens."""

    daemon_threads = True
    request_queue_size = 1024


def main(directory: str, log: str) -> None:
    """Serve `directory`, logging into the file `log`."""
    with open(log, "a", encoding="utf-8") as Handler.log:
        server = Server(("127.0.0.1", 0), partial(Handler, directory=directory))
        print(server.server_address[1], flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
