"""Jobs on their way to the workers, each just when a worker can start it."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from trio_crawler.model import Job


class Jobs(trio.abc.ReceiveChannel[Job]):
    """Receive the jobs that `choose` gives; it must be synchronous, and return None for none.

    It is told whether it chooses for the last worker that is free.

    Whether a job may start is decided when a worker takes it. A job that lay in a channel
    meanwhile would start late, and then two starts at one host would come too close together, or
    one in spite of a Retry-After. So nothing ever waits in here: `hand_out` is to be called
    whenever there may be a job for the workers that wait.
    """

    def __init__(self, choose: Callable[[bool], Job | None]) -> None:
        self._choose = choose
        # Workers that wait and were not given a job; the channel's statistics take 1.5 us a call.
        self._waiting = 0
        self._sender, self._receiver = trio.open_memory_channel[Job](math.inf)

    def receive_nowait(self) -> Job:
        """Receive a job. Raises trio.WouldBlock, and trio.EndOfChannel when all are settled."""
        return self._choose(not self._waiting) or self._receiver.receive_nowait()

    async def receive(self) -> Job:
        """Receive a job, or wait for one. Raises trio.EndOfChannel when all are settled."""
        # Before the choice: a job that was chosen starts at once.
        await trio.lowlevel.checkpoint()
        return self._choose(not self._waiting) or await self._wait()

    async def _wait(self) -> Job:
        self._waiting += 1
        try:
            return await self._receiver.receive()
        except (trio.Cancelled, trio.EndOfChannel):
            self._waiting -= 1
            raise

    def hand_out(self) -> None:
        """Give jobs to the workers that wait, as long as there are both.

        They start in Trio's next pass, so an answer that comes in the same one is too late for
        them.
        """
        while self._waiting:
            job = self._choose(self._waiting == 1)
            if job is None:
                return
            self._waiting -= 1
            self._sender.send_nowait(job)

    def end(self) -> None:
        """Let the workers' loops end."""
        self._sender.close()

    async def aclose(self) -> None:
        """Close this end; there is nothing to wait for."""
        self._receiver.close()
        await trio.lowlevel.checkpoint()
