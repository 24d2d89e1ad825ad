"""Give a visit half a second; its goodbye takes three, or is held to one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from virtual import run_trio


async def goodbye() -> None:
    await trio.sleep(3)
    print("  goodbye is said")


async def limited() -> None:
    with trio.move_on_after(1, shield=True):  # (2)
        await goodbye()


async def main(name: str, end: Callable[[], Awaitable[None]]) -> None:
    print(name)
    began = trio.current_time()
    with trio.move_on_after(0.5):  # (1)
        try:
            await trio.sleep(60)
        finally:
            await end()
    print(f"  over at {trio.current_time() - began:g} s")


if __name__ == "__main__":
    run_trio(main, "goodbye", goodbye)
    run_trio(main, "goodbye, held to one second", limited)
