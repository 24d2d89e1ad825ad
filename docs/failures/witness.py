"""Ask the site how often it was asked: no program proves its own end."""

from __future__ import annotations

import httpx


async def asked(client: httpx.AsyncClient, root: str) -> int:
    """Return the requests that the site has counted; this one is not."""
    return int((await client.get(f"{root}~hits")).text)


def told(count: int) -> str:
    """Say how many, so that the speed of a machine does not matter."""
    return str(count or "none") if count <= 20 else "more than 20"
