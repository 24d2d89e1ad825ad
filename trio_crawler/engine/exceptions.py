"""Exceptions of a crawl: a bug gets the URL as a note; the caller's exception is not grouped."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import NoReturn

import msgspec
import trio

from trio_crawler.model import Job, Outcome


class url_noted(msgspec.Struct):
    """Add the URL as a note to an exception that leaves the block, without catching it."""

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
    """Catch an exception of one class that leaves the block, and keep it in `error`.

    Without `cancellation` Trio's own goes on.
    """

    def __init__(self, kind: type[BaseException], *, cancellation: bool = True) -> None:
        self.error: BaseException | None = None
        self._kind = kind
        self._cancellation = cancellation

    def __enter__(self) -> Caught:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, self._kind) and (self._cancellation or not _is_cancellation(error)):
            self.error = error
        return self.error is not None


class BareExceptions:
    """Carry the caller's own exception past a nursery, which would put it into a group.

    The inner `with bare.carried:` catches the exception, unless it is Trio's cancellation. The
    outer `with bare:` raises it again, after the nursery between the two has ended.
    """

    def __init__(self) -> None:
        self.carried = Caught(BaseException, cancellation=False)

    def __enter__(self) -> BareExceptions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mine = self.carried.error
        if (interrupt := _interrupt(mine, error)) is not None:
            mine = interrupt
        elif mine is not None and error is not None and not _is_all_cancellation(error):
            # Neither may hide the other: the bug that ended the crawl, the exception of the block.
            raise BaseExceptionGroup("the crawl and its block", [error, mine]) from None
        if mine is not None:
            raise_bare(mine)


def raise_bare(error: BaseException) -> NoReturn:
    """Raise `error` with its own context, not with the group or cancellation that it replaces."""
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context


def _interrupt(*errors: BaseException | None) -> BaseException | None:
    """Return one KeyboardInterrupt if nothing else was raised, not counting Trio's cancellation.

    Ctrl-C may hit any task, and each Ctrl-C another one.
    """
    leaves = [leaf for error in errors if error is not None for leaf in _leaves(error)]
    raised = [leaf for leaf in leaves if not isinstance(leaf, trio.Cancelled)]
    if raised and all(isinstance(leaf, KeyboardInterrupt) for leaf in raised):
        return raised[0]
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _is_all_cancellation(error: BaseException) -> bool:
    """Whether an exception is nothing but Trio's cancellation."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


def _is_cancellation(error: BaseException) -> bool:
    """Whether an exception is, or contains, Trio's cancellation."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)
