"""What a test leaves open: file descriptors, by what they lead to."""

from __future__ import annotations

import os


def descriptors() -> dict[str, str]:
    """Return the file descriptors this process has open, and what each leads to."""
    links = {fd: f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")}
    return {fd: os.readlink(link) for fd, link in links.items() if os.path.lexists(link)}


def sockets() -> int:
    """Count the sockets this process has open."""
    return sum(target.startswith("socket:") for target in descriptors().values())
