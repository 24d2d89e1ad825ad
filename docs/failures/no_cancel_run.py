"""Forget to cancel the workers in the same way, under `asyncio.run`."""

from __future__ import annotations

import asyncio
import sys

from no_cancel_chapter import main

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
