"""One task of a nursery raises."""

import trio


async def wait() -> None:
    try:
        await trio.sleep_forever()
    finally:
        print("wait: cancelled")


async def fail() -> None:
    await trio.sleep(0.1)
    raise ValueError("page 7 is broken")


async def main() -> None:
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(fail)
    except* ValueError as group:
        print("main:", *group.exceptions)


trio.run(main)
