"""Interrupt the crawl of the task group, run as asyncio runs a program today."""

from __future__ import annotations

import asyncio
import sys

from modern import main

if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except KeyboardInterrupt:
        print("caught: KeyboardInterrupt")
