"""Cancel visits that swallow it, after half a second, and wait for the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from virtual import run_trio


async def once() -> None:
    try:
        await trio.sleep(60)
    except:
        pass  # (1)
    await trio.Event().wait()  # (2)


async def always() -> None:
    for _ in range(1000):  # (3)
        try:
            await trio.sleep(60)
        except:
            pass


async def exception() -> None:
    try:
        await trio.sleep(60)
    except Exception:
        await trio.Event().wait()


async def main(visit: Callable[[], Awaitable[None]]) -> None:
    began = trio.current_time()
    with trio.move_on_after(0.5):
        await visit()
    print(f"{visit.__name__}: over at {trio.current_time() - began:g} s")


if __name__ == "__main__":
    for visit in once, always, exception:
        run_trio(main, visit)
