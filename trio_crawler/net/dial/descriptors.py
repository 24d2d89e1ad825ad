"""The file descriptors that this process may have, which bound its sockets."""

from __future__ import annotations

from importlib import import_module


def descriptors(most: int) -> int:
    """Return the number of file descriptors that this process may have, at most `most`."""
    try:
        resource = import_module("resource")
    except ImportError:
        # Windows has no such limit.
        return most
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if soft == resource.RLIM_INFINITY else min(most, soft)
