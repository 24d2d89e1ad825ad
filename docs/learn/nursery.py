"""Two tasks in one nursery."""

import trio


async def count(name: str, seconds: float) -> None:
    for number in (1, 2, 3):
        await trio.sleep(seconds)
        print(name, number)


async def main() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count, "quick", 0.1)
        nursery.start_soon(count, "slow", 0.25)
    print("both have ended")


trio.run(main)
