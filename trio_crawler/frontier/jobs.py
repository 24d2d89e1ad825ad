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
        self._sender, self._receiver = trio.open_memory_channel[Job](math.inf)

    def receive_nowait(self) -> Job:
        """Receive a job. Raises trio.WouldBlock, and trio.EndOfChannel when all are settled."""
        return self._choose(not self._waiting) or self._receiver.receive_nowait()

    async def receive(self) -> Job:
        """Receive a job, or wait for one. Raises trio.EndOfChannel when all are settled."""
        await trio.lowlevel.checkpoint_if_cancelled()
        job = self._choose(not self._waiting)
        if job is None:
            return await self._receiver.receive()
        await trio.lowlevel.cancel_shielded_checkpoint()
        return job

    @property
    def _waiting(self) -> int:
        return self._receiver.statistics().tasks_waiting_receive

    def hand_out(self) -> None:
        """Give jobs to the workers that wait, as long as there are both."""
        for left in reversed(range(self._waiting)):
            job = self._choose(not left)
            if job is None:
                return
            self._sender.send_nowait(job)

    def end(self) -> None:
        """Let the workers' loops end."""
        self._sender.close()

    async def aclose(self) -> None:
        """Close this end; there is nothing to wait for."""
        self._receiver.close()
        await trio.lowlevel.checkpoint()
