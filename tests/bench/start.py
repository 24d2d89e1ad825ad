"""Measure what passes before the first request, and what `--help` and `--version` take.

    python tests/bench/start.py [--rounds 9]

Needs `pip install -e '.[bench]'` and Linux. Each figure is the median of new processes that take
turns, in seconds of CPU. The first request is the first bytes that a server reads: the CPU of the
client is looked at in that moment, and then the client is ended. All modules are compiled before.
Programs start in a folder without a project, whose file would be read, and name no certificates.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from statistics import median

from measure import CLIENT, client, compile_modules, load, pinned, taken_in_turns, usual
from peers import PEERS, Peer
from steady import cpu_of

PROGRAM = (sys.executable, "-m", "trio_crawler")
ENDING = {"--help": ("--help",), "--version": ("--version",)}
ASKING = ("command", "command-pure", "ours", "raw", "fast")


def once(case: str) -> float:
    """Return the seconds of CPU that a case takes."""
    return to_the_end(ENDING[case]) if case in ENDING else to_first_request(PEERS[case])


def to_the_end(options: Sequence[str]) -> float:
    """Return what our program takes that prints something and ends."""
    compile_modules()
    child = subprocess.Popen(
        [*PROGRAM, *options],
        stdout=subprocess.DEVNULL,
        cwd="/",
        env=usual(),
        preexec_fn=pinned(CLIENT),
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{options} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def to_first_request(peer: Peer) -> float:
    """Return what a crawler has taken when its first request comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with client(peer, [url], 1) as child:
            connection, _ = server.accept()
            with connection:
                connection.recv(1)
                seconds = cpu_of(child.process.pid)
                child.process.kill()
                child.process.communicate()
    return seconds


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description="Measure the start of the crawler.")
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(f"{rounds} rounds, {load()}")
    for case, each in taken_in_turns(rounds, [*ASKING, *ENDING], once).items():
        what = "its end" if case in ENDING else "its first request"
        print(f"{case:13}{median(each):7.3f} s of CPU until {what}"
              f" ({min(each):.3f} to {max(each):.3f})")  # fmt: skip


if __name__ == "__main__":
    main()
