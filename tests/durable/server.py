"""The server of a site, in a process of its own: it lives on when the crawler is killed.

Every request is a line in a log, written before it is answered. Asked for `/.control?...` it
begins a new log and changes the version of the site.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode
from urllib.request import urlopen

HERE = Path(__file__).resolve()
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1]))

from durable.site import Answer, Site, packed  # noqa: E402

RUN = "x-run"
"""The header in which a run of the crawler gives its number."""


class Asked(NamedTuple):
    """One request, as the server saw it: when, in which run, for what, and what it answered."""

    seconds: float
    run: int
    path: str
    conditional: bool
    status: int


@dataclass
class Served:
    """A server that runs; `url` is its root."""

    url: str
    site: Site

    def begin(self, log: Path, version: int = 1) -> None:
        """Forget who has asked for what, and write to this log from now on."""
        self.log = log
        self._control(log=str(log), version=str(version))

    def slow_down(self, seconds: float) -> None:
        """Let the slow pages take so long, or as long as they usually do for 0."""
        self._control(wait=str(seconds))

    def _control(self, **told: str) -> None:
        with urlopen(f"{self.url}.control?{urlencode(told)}") as answer:
            answer.read()

    def asked(self, run: int | None = None) -> list[Asked]:
        """Read the log, or what stands in it of one run."""
        rows = (line.split("\t") for line in self.log.read_text().splitlines())
        all_ = (Asked(float(a), int(b), c, d == "1", int(e)) for a, b, c, d, e in rows)
        return [asked for asked in all_ if run in (None, asked.run)]


@contextmanager
def served(site: Site, pages: int, seed: int) -> Iterator[Served]:
    """Serve a site, that was made with these figures, until the block is left."""
    words = ["--pages", str(pages), "--seed", str(seed)]
    command = [sys.executable, str(HERE), *words]
    pipe = subprocess.PIPE
    # The end of its standard input tells it that we are gone, however we went.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            yield Served(process.stdout.readline().strip(), site)
        finally:
            process.kill()


class _Server:
    def __init__(self, pages: int, seed: int) -> None:
        self._sites = {version: Site(pages, seed, version) for version in (1, 2)}
        self._site = self._sites[1]
        self._log = os.open(os.devnull, os.O_WRONLY)
        self._hits: Counter[str] = Counter()
        self._wait = 0.0
        self.url = ""

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")[:-2]
                pairs = (line.partition(":") for line in lines)
                fields = {name.lower(): value.strip() for name, _, value in pairs}
                path = first.split(" ")[1]
                answer = self._control(path) if path[:10] == "/.control?" else None
                answer = answer or self._answer(path, fields)
                await asyncio.sleep(self._wait if answer.wait and self._wait else answer.wait)
                writer.write(self._written(answer, fields))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _control(self, path: str) -> Answer:
        asked = parse_qs(path.partition("?")[2])
        if "wait" in asked:
            self._wait = float(asked["wait"][0])
            return Answer(204)
        os.close(self._log)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC
        self._log = os.open(asked["log"][0], flags)
        self._site = self._sites[int(asked["version"][0])]
        self._hits.clear()
        return Answer(204)

    def _answer(self, path: str, fields: dict[str, str]) -> Answer:
        self._hits[path] += 1
        answer = self._site.answers.get(path, Answer(404, body=b"nothing"))
        if path in self._site.busy and self._hits[path] == 1:
            answer = Answer(503, headers={"Retry-After": "0"}, body=b"later")
        elif _unchanged(answer, fields):
            answer = Answer(304, headers=answer.headers)
        self._note(path, fields, answer.status)
        return answer

    def _note(self, path: str, fields: dict[str, str], status: int) -> None:
        now, run = asyncio.get_running_loop().time(), fields.get(RUN, "0")
        conditional = "if-none-match" in fields or "if-modified-since" in fields
        line = f"{now:.6f}\t{run}\t{path}\t{conditional:d}\t{status}\n"
        os.write(self._log, line.encode())

    def _written(self, answer: Answer, fields: dict[str, str]) -> bytes:
        body = answer.body.replace(b"{base}/", self.url.encode())
        headers = dict(answer.headers)
        if headers.pop("Content-Encoding", "") and "gzip" in fields.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            body = packed(body)
        if answer.status not in (204, 304):
            headers |= {"Content-Type": answer.media, "Content-Length": str(len(body))}
        if answer.location:
            headers["Location"] = answer.location
        lines = [f"HTTP/1.1 {answer.status} Said", *(f"{n}: {v}" for n, v in headers.items())]
        return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + body


def _unchanged(answer: Answer, fields: dict[str, str]) -> bool:
    if answer.status != 200:
        return False
    if "if-none-match" in fields:
        return fields["if-none-match"] == answer.headers.get("ETag")
    since = fields.get("if-modified-since")
    return since is not None and since == answer.headers.get("Last-Modified")


async def _serve(pages: int, seed: int) -> None:
    server = _Server(pages, seed)
    listening = await asyncio.start_server(server.converse, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{port}/"
    print(server.url, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    asyncio.run(_serve(options.pages, options.seed))


if __name__ == "__main__":
    main()
