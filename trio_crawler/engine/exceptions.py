"""Exceptions: a bug gets the URL as a note, an exception of the caller leaves bare."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import NoReturn

import msgspec
import trio

from trio_crawler.model import Job, Outcome


class url_noted(msgspec.Struct):
    """Add the URL as a note to a bug that leaves the block, without catching it."""

    at: Job | Outcome

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            via = f", linked from {self.at.referrer}" if self.at.referrer else ""
            error.add_note(f"while crawling {self.at.url}{via}")


class Caught:
    """Keep an exception of a kind that would leave the block, in `error`."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.error: BaseException | None = None
        self._kind = kind

    def __enter__(self) -> Caught:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, self._kind):
            self.error = error
        return self.error is not None


class BareExceptions:
    """Carry the caller's own exception past a nursery, which would make a group of it.

    It ends in the inner `with bare.carried:`, unless it is Trio's cancellation, and is raised
    again by the outer `with bare:`, once the nursery between them has ended.
    """

    def __init__(self) -> None:
        self.carried = _Carried()

    def __enter__(self) -> BareExceptions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mine = self.carried.error
        if mine is None:
            mine = _interrupt(error)
        elif error is not None and not _is_all_cancellation(error):
            # A bug that ended the crawl, and what the block made of that: neither may hide.
            raise BaseExceptionGroup("the crawl and its block", [error, mine]) from None
        if mine is not None:
            raise_bare(mine)


class _Carried:
    """Keep the exception that ends a block."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None or _is_cancellation(error):
            return False
        self.error = error
        return True


def raise_bare(error: BaseException) -> NoReturn:
    """Raise again in the place of a group, or of a cancellation, that must not show."""
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context


def _interrupt(error: BaseException | None) -> BaseException | None:
    """Return the KeyboardInterrupt of a group that holds nothing else: Ctrl-C may hit any task."""
    if isinstance(error, BaseExceptionGroup) and error.split(KeyboardInterrupt)[1] is None:
        return next(_leaves(error))
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _is_all_cancellation(error: BaseException) -> bool:
    """Whether only cancel scopes wait for this exception."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


def _is_cancellation(error: BaseException) -> bool:
    """Whether a cancel scope waits for this exception, or for a part of it."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)
