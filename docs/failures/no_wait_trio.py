"""Read from a channel that is never empty, for a tenth of a second at most."""

from __future__ import annotations

import time

import trio

LIMIT = 0.1
OWN_STOP = 0.5


async def main(awaiting: bool) -> None:
    send, receive = trio.open_memory_channel[int](1)
    send.send_nowait(0)
    stop = time.monotonic() + OWN_STOP
    with trio.move_on_after(LIMIT) as scope:  # (1)
        while time.monotonic() < stop:
            if awaiting:
                send.send_nowait(await receive.receive())  # (2)
    if scope.cancelled_caught:
        print("receiving: ended by the deadline")
    else:
        print("without an await: the deadline never came")


if __name__ == "__main__":
    trio.run(main, True)
    trio.run(main, False)
