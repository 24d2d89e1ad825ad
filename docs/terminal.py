"""Draw the terminal of README: a check of the demo's site, Ctrl-C, and the same command again.

    python docs/terminal.py > docs/terminal.svg

Both runs are real, in a terminal of their own. The port is shown as 8000, and what is left
out stands as "[...]".
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html import escape
from tempfile import TemporaryDirectory

COMMAND = [sys.executable, "-m", "trio_crawler"]
STYLES = {"1": "b", "31": "fault", "33": "note", "32": "good"}
COLUMNS, LINE, CHARACTER, EDGE = 94, 19, 7.83, 16
SHOWN = b"timetable.html", b"volunteers.jpg", rb"[2-9] errors"
LIVE = re.compile(r"\d+ pages? .* in flight")
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height}">
<title>A link check is stopped by Ctrl-C, and the same command goes on</title>
<style>
.paper {{ fill: #fff; stroke: #d0d7de; }} text {{ fill: #1f2328; }}
.fault {{ fill: #c0201c; }} .note {{ fill: #7d5200; }} .good {{ fill: #116329; }}
.b {{ font-weight: bold; }} .typed {{ fill: #0550ae; font-weight: bold; }}
.dim {{ fill: #59636e; }}
@media (prefers-color-scheme: dark) {{
.paper {{ fill: #0d1117; stroke: #3d444d; }} text {{ fill: #e6edf3; }}
.fault {{ fill: #ff7b72; }} .note {{ fill: #e3b341; }} .good {{ fill: #56d364; }}
.typed {{ fill: #79c0ff; }} .dim {{ fill: #9198a1; }} }}
text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
</style>
<rect class="paper" x="1" y="1" width="{inner:.0f}" height="{deep}" rx="8"/>"""


def run(
    folder: str, url: str, *, stop_after: Sequence[bytes] = ()
) -> tuple[list[str], int]:
    """Check the site; return the lines of the terminal, and the exit status.

    With `stop_after`, Ctrl-C comes when all these patterns have been shown.
    """
    child, terminal = pty.fork()
    if not child:
        os.environ |= {"TERM": "xterm", "COLUMNS": "200"}
        os.chdir(folder)
        os.execv(COMMAND[0], [*COMMAND, "check", "-o", "site", url])  # noqa: S606
    printed = b""
    while True:
        try:
            printed += os.read(terminal, 65_536)
        except OSError:  # The end of a terminal.
            break
        if stop_after and all(re.search(word, printed) for word in stop_after):
            stop_after = ()
            os.kill(child, signal.SIGINT)
    os.close(terminal)
    lines = re.split(
        r"\r\n|\r\x1b\[2K", re.sub(r"\x1b\[(\?25[lh]|1A)", "", printed.decode())
    )
    return lines, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def transcript() -> list[str]:
    """Run both checks; return the lines of the picture."""
    serve = [*COMMAND, "demo", "--serve", "--port", "0"]
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server,  # noqa: S603
    ):
        # The site of the demo is at URL until Ctrl-C
        url = next(iter(server.stdout or ())).split()[7]
        first, _ = run(folder, url, stop_after=SHOWN)
        second, status = run(folder, url)
        server.terminate()
    typed = "\x1b[typedm$ trio-crawler check -o site http://127.0.0.1:8000/\x1b[0m"
    stopped = next(at for at, line in enumerate(first) if line.startswith("Ctrl-C"))
    faults = [
        line
        for word in SHOWN[:2]
        for line in first[:stopped]
        if word.decode() in line
    ]
    head = next(
        at for at, line in enumerate(second) if "visit.html\x1b[0m (2" in line
    )
    left_out = "\x1b[dimm[...]\x1b[0m"
    lines = [
        typed,
        *faults,
        next(line for line in reversed(first[:stopped]) if LIVE.match(line)),
        "^C",
        first[stopped],
        left_out,
        next(line for line in first if line.endswith("goes on")),
        typed,
        left_out,
        *second[head : head + 6],
        left_out,
        next(line for line in reversed(second) if "links checked" in line),
        "\x1b[typedm$ echo $?\x1b[0m",
        str(status),
    ]
    return [line.replace(url, "http://127.0.0.1:8000/") for line in lines]


def spans(line: str) -> Iterator[str]:
    """Yield the parts of a line, each in the style that it has in the terminal."""
    style = ""
    for part in re.split(r"(\x1b\[(?:\d+|dim|typed)m)", line):
        if part.startswith("\x1b"):
            style = STYLES.get(part[2:-1], "" if part == "\x1b[0m" else part[2:-1])
        elif part:
            text = escape(part, quote=False)
            yield f'<tspan class="{style}">{text}</tspan>' if style else text


def drawn(lines: list[str]) -> str:
    """Return the lines as a picture, for a light and for a dark page."""
    width, height = 2 * EDGE + COLUMNS * CHARACTER, 2 * EDGE + LINE * len(lines)
    parts = [
        HEAD.format(width=width, height=height, inner=width - 2, deep=height - 2)
    ]
    for number, line in enumerate(lines):
        y = EDGE + LINE * number + 14
        parts.append(
            f'<text x="{EDGE}" y="{y}" xml:space="preserve">{"".join(spans(line))}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    print(drawn(transcript()), end="")
