"""Run a program beside this one, and print each kind of line that it writes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path


def kind(line: str) -> str:
    """Return the line if it is of a kind, and empty what is about one object."""
    if line.startswith("Unclosed"):
        return "Unclosed ..."
    about = line[:1] in " [" or "<" in line or line.startswith("Traceback")
    return "" if about else line


def main(root: str, name: str) -> None:
    command = [sys.executable, "-u", str(Path(__file__).with_name(name)), root]
    program = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    signal.signal(signal.SIGINT, lambda *_: program.send_signal(signal.SIGINT))
    said = program.communicate()[0].splitlines()
    for line in sorted({kind(line) for line in said} - {""}):
        print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
