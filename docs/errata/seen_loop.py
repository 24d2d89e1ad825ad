"""Programs on which a slip of the loop is seen: each function runs one and says what it saw."""

from __future__ import annotations

import gc
import socket
import warnings
from collections.abc import Callable

from errata.ported_crawl import Queue, StillSpinning, crawl, fetch, read_all, send
from errata.ported_loop import Coroutine, Future, Loop, Printed, Stuck, Task
from sites import plain
from sites.serving import serving

MEGABYTE = 1_000_000


def ended(loop: Loop, coro: Coroutine) -> str:
    """Run a coroutine on this loop to its end, and say which that was."""
    try:
        return f"ends with {loop.run_until_complete(coro)!r}"
    except Stuck:
        return "waits for ever"
    except Exception as error:
        return f"raises {type(error).__name__}"


def soon(loop: Loop, fn: Callable[[], object]) -> Task:
    """Call a function after the first turn of the loop."""

    def wait() -> Coroutine:
        near, far = socket.socketpair()
        far.close()
        with near:
            yield from read_all(loop, near)
        fn()

    return Task(loop, wait())


def thrown_past_step(printed: bool) -> str:
    loop = Loop(Printed(thrown_past_step=printed))
    finished = Future(loop)
    workers = [Task(loop, waiting_for_jobs(loop)) for _ in range(4)]

    def main() -> Coroutine:
        soon(loop, lambda: finished.set_result(None))
        yield from finished
        for w in workers:
            w.cancel()
        for w in workers:
            yield from w
        return "its report"

    said = ended(loop, main())
    unwound = sum(each.coro.gi_frame is None for each in workers)
    return f"{said}; {unwound} of 4 workers unwound"


def waiting_for_jobs(loop: Loop) -> Coroutine:
    yield from Queue(loop).get()


def one_join(printed: bool) -> str:
    loop = Loop(Printed(one_join=printed))
    q = Queue(loop)

    def main() -> Coroutine:
        left = []
        for _ in range(2):
            q.put_nowait("a job")
            soon(loop, q.task_done)
            yield from q.join()
            left.append(q.unfinished)
        return left

    said = f"two joins, and the jobs left after each: {ended(loop, main())}"
    return (
        f"{said}; with row 6 as printed too, a task is {stale()}"
        if printed
        else said
    )


def stale() -> str:
    """Join twice with rows 5 and 6 as printed: who is resumed by the second count to zero?"""
    loop = Loop(Printed(one_join=True, late_callback_lost=True))
    q, never, woken = Queue(loop), Future(loop), []

    def main() -> Coroutine:
        for name in ("first", "second"):
            q.put_nowait("a job")
            soon(loop, q.task_done)
            yield from q.join()
            woken.append(f"by its {name} join")
        yield from never
        woken.append("and by a future that nothing resolved")

    ended(loop, main())
    return f"woken {', '.join(woken)}"


def late_callback_lost(printed: bool) -> str:
    def main() -> Coroutine:
        return 42
        yield

    def failing() -> Coroutine:
        raise ValueError
        yield

    switches = Printed(late_callback_lost=printed)
    said = ended(Loop(switches), main())
    failed = ended(Loop(switches), failing())
    return f"a coroutine that never waits: {said}; one that fails: {failed}"


def only_stop_iteration(printed: bool) -> str:
    loop = Loop(Printed(only_stop_iteration=printed))
    finished = []

    def fail() -> None:
        raise ValueError

    def main() -> Coroutine:
        failing, healthy = soon(loop, fail), soon(loop, lambda: finished.append(1))
        yield from healthy
        return failing.done

    return f"{ended(loop, main())}; the healthy task finished: {bool(finished)}"


def no_arguments(printed: bool) -> str:
    with serving(plain.answer) as site:
        loop = Loop(Printed(no_arguments=printed))
        return ended(loop, length(crawl(loop, site.url)))


def length(coro: Coroutine) -> Coroutine:
    found = yield from coro
    return f"{len(found)} pages"


def left_open(printed: bool) -> str:
    with (
        serving(plain.answer) as site,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        gc.collect()
        caught.clear()  # what others have left
        loop = Loop(Printed(left_open=printed))
        said = ended(loop, length(crawl(loop, site.url)))
        gc.collect()
    unclosed = sum("unclosed <socket" in str(each.message) for each in caught)
    return f"{said}; {unclosed} sockets never closed"


def refusal_swallowed(printed: bool) -> str:
    loop = Loop(Printed(refusal_swallowed=printed))
    with socket.socket() as closed:  # bound, and without a server
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        said = ended(loop, fetch(loop, url))
    if said == f"raises {StillSpinning.__name__}":
        return "still trying after 10,000 times, nothing said"
    return said


def half_sent(printed: bool) -> str:
    loop = Loop(Printed(half_sent=printed))
    near, far = socket.socketpair()
    near.setblocking(False)

    def sending() -> Coroutine:
        yield from send(loop, near, b"x" * MEGABYTE)
        near.close()

    def main() -> Coroutine:
        Task(loop, sending())
        got = yield from read_all(loop, far)
        return len(got)

    with near, far:
        got = loop.run_until_complete(main())
    return f"of 1,000,000 bytes arrive: {'all' if got == MEGABYTE else 'not all'}"


def resumed_inside(printed: bool) -> str:
    with serving(plain.answer) as site:
        loop = Loop(Printed(resumed_inside=printed))
        return ended(loop, length(crawl(loop, site.url)))
