"""Interrupt the crawl of the nursery: a group comes out, not the interrupt."""

from __future__ import annotations

import sys

import trio
from workers import main

if __name__ == "__main__":
    try:
        trio.run(main, sys.argv[1])  # (1)
    except KeyboardInterrupt:  # (2)
        print("caught: KeyboardInterrupt")
    except BaseExceptionGroup as group:
        print("missed:", type(group).__name__, group.exceptions)
