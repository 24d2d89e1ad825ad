"""Refuse memory to code in C, as a machine does that has none left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def refused(api: Any, allocation: int) -> Iterator[None]:
    """Refuse the allocation with this number, counted from 1; `api` is `_testcapi`.

    No other thread runs in the block unless the block lets go of the lock of the interpreter: the
    allocation may not be one of another thread.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    api.set_nomemory(allocation, allocation + 1)
    try:
        yield
    finally:
        api.remove_mem_hooks()
        sys.setswitchinterval(before)
