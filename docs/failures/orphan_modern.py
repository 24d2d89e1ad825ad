"""A visit may last half a second; its save takes one, is shielded, and fails."""

from __future__ import annotations

import asyncio

from virtual import run_asyncio


async def save() -> None:
    try:
        await asyncio.sleep(1)
        raise OSError("no room on the disk")
    except BaseException as error:
        say("save", error)
        raise


def say(who: str, error: BaseException) -> None:
    seconds = asyncio.get_running_loop().time()
    print(f"  the {who} ends at {seconds:g} s: {type(error).__name__}")


async def main(rest: float) -> None:
    print("the program goes on for", rest, "s")
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, said: print("  log:", said["message"]))
    try:
        async with asyncio.timeout(0.5):  # (1)
            await asyncio.shield(save())  # (2)
    except (TimeoutError, OSError) as error:  # (3)
        say("visit", error)
    await asyncio.sleep(rest)


if __name__ == "__main__":
    run_asyncio(main, 9)
    run_asyncio(main, 0)
