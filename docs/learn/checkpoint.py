"""An await that is a checkpoint, and one that is not."""

import trio


async def no_checkpoint() -> str:
    return "returned, although the block is cancelled"


async def main() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        print("no_checkpoint:", await no_checkpoint())
        await trio.lowlevel.checkpoint()
        print("this is never printed")
    print("checkpoint: cancelled")


trio.run(main)
