"""A visit may last half a second; its save takes one, is shielded, and fails."""

from __future__ import annotations

import trio

from virtual import run_trio


async def save() -> None:
    try:
        await trio.sleep(1)
        raise OSError("no room on the disk")
    except BaseException as error:
        say("save", error)
        raise


def say(who: str, error: BaseException) -> None:
    print(f"  the {who} ends at {trio.current_time():g} s: {type(error).__name__}")


async def main(rest: float) -> None:
    print("the program goes on for", rest, "s")
    try:
        with trio.fail_after(0.5):  # (1)
            with trio.CancelScope(shield=True):  # (2)
                await save()
    except (trio.TooSlowError, OSError) as error:  # (3)
        say("visit", error)
    await trio.sleep(rest)


if __name__ == "__main__":
    run_trio(main, 9)
    run_trio(main, 0)
