"""What the page of failures says in sections 17 to 19 beyond the runs that it shows."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path

import anyio
import pytest
import run
import trio
import trio.testing

sys.path.append(str(Path(run.__file__).parent / "failures"))

import first_step_modern
import orphan_careful
import orphan_modern
import orphan_trio
from virtual import VirtualLoop, run_asyncio, run_trio

# 17. A cancellation loses a result


def blocking(happen: Callable[[], object]) -> None:
    """Let it happen, and time pass in which no other task runs."""
    happen()
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, trio.testing.MockClock)
        clock.jump(0.4)
    else:
        assert isinstance(loop, VirtualLoop)
        loop.be_busy(0.4)


async def lost(wait: Callable[[], Awaitable[object]], happen: Callable[[], object]) -> bool:
    """Let it happen while the loop is busy until the deadline; say if the waiter gets nothing."""
    asyncio.get_running_loop().call_later(0.02, blocking, happen)
    with suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await wait()
            return False
    return True


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_asyncio_loses_the_bytes_and_the_connection_that_come_through_a_future() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        server, caller = socket.create_server(("127.0.0.1", 0)), socket.socket()
        with ours, theirs, server, caller:
            ours.setblocking(False)
            server.setblocking(False)
            assert await lost(lambda: loop.sock_recv(ours, 9), lambda: theirs.send(b"bytes"))
            with pytest.raises(BlockingIOError):
                ours.recv(9)
            address = server.getsockname()
            assert await lost(lambda: loop.sock_accept(server), lambda: caller.connect(address))
            with pytest.raises(BlockingIOError):
                server.accept()

    run_asyncio(main)
    gc.collect()  # closes the connection that was lost


def test_asyncio_loses_the_result_of_a_thread_and_trio_does_if_it_abandons_the_thread() -> None:
    async def on_asyncio() -> None:
        let = threading.Event()
        waiting = asyncio.create_task(asyncio.to_thread(let.wait))
        await asyncio.wait([waiting], timeout=0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        let.set()

    async def on_trio(abandon: bool) -> str:
        with trio.CancelScope() as scope:

            def opened() -> str:
                trio.from_thread.run_sync(scope.cancel)
                return "opened"

            return await trio.to_thread.run_sync(opened, abandon_on_cancel=abandon)
        return "nothing"

    asyncio.run(on_asyncio())
    assert trio.run(on_trio, False) == "opened"
    assert trio.run(on_trio, True) == "nothing"


def test_a_queue_of_asyncio_keeps_the_job_whose_taker_is_cancelled() -> None:
    async def main() -> int:
        q: asyncio.Queue[str] = asyncio.Queue()
        waiting = asyncio.create_task(q.get())
        await asyncio.sleep(0)
        q.put_nowait("job")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return q.qsize()

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize("ended", [True, False])
def test_a_task_of_asyncio_that_has_ended_keeps_its_result_when_its_waiter_is_cancelled(
    ended: bool,
) -> None:
    async def main() -> bool:
        working = asyncio.create_task(asyncio.sleep(0, "result") if ended else asyncio.sleep(9))

        async def wait() -> None:
            await working

        waiting = asyncio.create_task(wait())
        for _ in range(2):
            await asyncio.sleep(0)
        waiting.cancel()
        assert not waiting.done()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return not working.cancelled() and working.result() == "result"

    assert asyncio.run(main()) is ended


def test_a_wait_for_a_task_that_is_kept_gets_the_answer_and_wait_for_loses_it_since_3_12() -> None:
    async def main(kept: bool) -> bytes | None:
        loop, (ours, theirs) = asyncio.get_running_loop(), socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            loop.call_later(0.02, blocking, lambda: theirs.send(b"answer"))
            if not kept:
                with suppress(TimeoutError):
                    return await asyncio.wait_for(loop.sock_recv(ours, 9), 0.3)
                return None
            receiving = asyncio.create_task(loop.sock_recv(ours, 9))
            while not receiving.done():
                await asyncio.wait([receiving], timeout=0.3)
            return receiving.result()

    assert run_asyncio(main, True) == b"answer"
    assert run_asyncio(main, False) == (b"answer" if sys.version_info < (3, 12) else None)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_anyio_on_asyncio_loses_an_item_under_a_timeout_of_asyncio_and_a_connection() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        loop, (send, receive) = (
            asyncio.get_running_loop(),
            anyio.create_memory_object_stream[bytes](1),
        )
        with ours, theirs, send, receive:
            loop.add_reader(ours, lambda: send.send_nowait(ours.recv(9)))
            assert await lost(receive.receive, lambda: theirs.send(b"item"))
            assert receive.statistics().current_buffer_used == 0
            loop.remove_reader(ours)

    async def accepted() -> None:
        server = socket.create_server(("127.0.0.1", 0))
        address, loop = server.getsockname(), asyncio.get_running_loop()
        # Not `create_tcp_listener`: it asks a thread for the address, and time does not wait.
        listener = await anyio.abc.SocketListener.from_socket(server)
        accept = listener.accept
        with socket.socket() as one, socket.socket() as other:
            async with listener:
                loop.call_later(0.02, blocking, lambda: one.connect(address))
                with anyio.move_on_after(0.3) as scope:
                    await accept()
                assert scope.cancelled_caught
                assert await lost(accept, lambda: other.connect(address))
                with anyio.move_on_after(0.1) as scope:
                    await accept()
                assert scope.cancelled_caught  # neither connection waits

    run_asyncio(main)
    run_asyncio(accepted)
    gc.collect()  # closes the connections that were lost


def test_a_receive_of_trio_that_has_happened_is_not_cancelled() -> None:
    async def main() -> list[str]:
        got: list[str] = []
        send, receive = trio.open_memory_channel[str](0)

        async def wait() -> None:
            got.append(await receive.receive())
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled:
                got.append("cancelled")
                raise

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            send.send_nowait("job")
            nursery.cancel_scope.cancel()
        return got

    assert trio.run(main) == ["job", "cancelled"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_socket_and_a_stream_of_anyio_keep_the_result_on_both(backend: str) -> None:
    got: list[object] = []

    async def main() -> None:
        server = socket.create_server(("127.0.0.1", 0))
        send, receive = anyio.create_memory_object_stream[str](0)

        async def busy() -> None:
            await anyio.sleep(0.02)
            blocking(lambda: theirs.send(b"bytes"))

        async def wait() -> None:
            got.append(await receive.receive())

        ours = await anyio.connect_tcp(*server.getsockname())
        theirs, _ = server.accept()
        with server, theirs, send, receive:
            async with ours, anyio.create_task_group() as group:
                group.start_soon(busy)
                for _ in range(2):
                    with anyio.move_on_after(0.3):
                        got.append(await ours.receive())
                        break
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                send.send_nowait("job")
                group.cancel_scope.cancel()

    (run_asyncio if backend == "asyncio" else run_trio)(main)
    assert got == [b"bytes", "job"]


def test_a_send_all_that_trio_has_cancelled_may_have_sent_a_part() -> None:
    async def main() -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            async with trio.SocketStream(trio.socket.from_stdlib_socket(ours)) as stream:
                with trio.move_on_after(0.05) as scope:
                    await stream.send_all(bytes(10_000_000))
                assert scope.cancelled_caught
            return len(theirs.recv(1000))

    assert trio.run(main) == 1000


# 18. A task is cancelled before its first step


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_task_of_anyio_begins_although_it_is_cancelled(backend: str) -> None:
    said: list[str] = []

    class Connection:
        def close(self) -> None:
            said.append("closed")

    async def work(connection: Connection) -> None:
        with closing(connection):
            await anyio.sleep(60)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(work, Connection())
            group.cancel_scope.cancel()

    anyio.run(main, backend=backend)
    assert said == ["closed"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="has no eager_task_factory")
def test_an_eager_task_begins_before_it_is_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(vars(asyncio)["eager_task_factory"])
        await first_step_modern.main()

    asyncio.run(main())
    assert capsys.readouterr().out.split("\n")[1:3] == ["the worker begins", "closed"]


def test_a_worker_of_trio_that_awaits_before_its_with_leaves_the_connection_open() -> None:
    said: list[str] = []

    async def work() -> None:
        said.append("begins")
        await trio.lowlevel.checkpoint()
        said.append("goes on")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert said == ["begins"]


# 19. The task behind a shield


def test_a_cancellation_of_the_whole_block_cancels_the_save_that_its_group_owns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def main() -> None:
        task = asyncio.create_task(orphan_careful.main())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_asyncio(main)
    assert "the save ends at 0.1 s: CancelledError" in capsys.readouterr().out


def test_a_loop_over_wait_holds_a_save_against_any_number_of_cancellations() -> None:
    async def shielded() -> None:
        saving = asyncio.create_task(orphan_modern.save())
        while not saving.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([saving])
        await saving

    async def main() -> float:
        task = asyncio.create_task(shielded())
        for _ in range(3):
            await asyncio.sleep(0.1)
            task.cancel()
        with pytest.raises(OSError, match="no room"):
            await task
        return asyncio.get_running_loop().time()

    assert run_asyncio(main) == 1


def test_a_visit_of_trio_ends_on_time_if_a_nursery_around_its_deadline_has_the_save() -> None:
    ends: list[float] = []

    async def visit() -> None:
        async with trio.open_nursery() as saves:
            with trio.move_on_after(0.5):
                saves.start_soon(orphan_trio.save)
                await trio.sleep_forever()
            ends.append(trio.current_time())

    async def main() -> None:
        with pytest.raises(ExceptionGroup):
            await visit()
        ends.append(trio.current_time())

    run_trio(main)
    assert ends == [0.5, 1]


def test_a_shield_of_anyio_holds_against_its_own_scope_and_not_against_a_timeout_of_asyncio() -> (
    None
):
    async def shielded() -> None:
        with anyio.CancelScope(shield=True):
            await asyncio.sleep(1)

    async def main() -> list[float]:
        now, ends = asyncio.get_running_loop().time, []
        with anyio.move_on_after(0.5):
            await shielded()
        ends.append(now())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await shielded()
        return [*ends, now()]

    assert run_asyncio(main) == [1, 1.5]


def test_a_shield_with_a_limit_ends_the_save_and_the_visit_without_an_error() -> None:
    async def main() -> float:
        with trio.fail_after(0.5), trio.move_on_after(0.8, shield=True):
            await orphan_trio.save()
        return trio.current_time()

    assert run_trio(main) == 0.8
