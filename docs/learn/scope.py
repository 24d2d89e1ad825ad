"""A deadline over a block, and a cancellation by hand."""

import trio


async def main() -> None:
    with trio.move_on_after(0.1) as scope:
        await trio.sleep(60)
        print("this is never printed")
    print("the deadline has passed:", scope.cancelled_caught)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.cancel_scope.cancel()
    print("the task has ended")


trio.run(main)
