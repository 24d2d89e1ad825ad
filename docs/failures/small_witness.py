"""What a small site was asked for, and how it hangs up in memory."""

from __future__ import annotations

import httpx

from sites.serving import Answer, Site
from sites.small import SITES, answer


def answer_in_memory(path: str) -> Answer:
    """Hang up as httpx tells of it on a network."""
    said = answer(path)
    if said.hang_up:
        raise httpx.RemoteProtocolError(
            "Server disconnected without sending a response."
        )
    return said


def asked(site: Site) -> str:
    """Say what the small site was asked for, and how often."""
    hits = {short(path): n for path, n in sorted(site.hits.items()) if short(path)}
    return "  ".join(f"{path} {n}x" for path, n in hits.items())


def short(path: str) -> str:
    """Return the path inside its small site, "" for what belongs to none."""
    name, _, rest = path.removeprefix("/").partition("/")
    return f"/{rest}" if name in SITES else ""
