"""Eager: a channel read without giving way while there is something to read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, Protocol, TypeVar

import trio

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

# A fetch or a caller that never waits must not keep the others from their turn for long.
_TURN = 16


class Receives(Protocol[_T_co]):
    """Give things as a memory channel does."""

    def receive_nowait(self) -> _T_co:
        """Receive at once. Raises trio.WouldBlock and trio.EndOfChannel."""

    async def receive(self) -> _T_co:
        """Receive or wait. Raises trio.EndOfChannel."""


class Eager(AsyncIterator[_T], Generic[_T]):
    """Iterate over a channel; a checkpoint only at every 16th item, or to wait for one.

    With a checkpoint at each, all answers that came together are read before the first worker
    sends its next request: 100 workers at a server that takes 200 ms got 414 pages/s of 500.
    """

    def __init__(self, channel: Receives[_T]) -> None:
        self._channel = channel
        self._taken = 0

    async def __anext__(self) -> _T:
        self._taken += 1
        try:
            if self._taken % _TURN:
                return self._channel.receive_nowait()
        except trio.WouldBlock:
            self._taken = 0
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
        try:
            return await self._channel.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
