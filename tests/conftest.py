"""The tiers of the tests: the quick ones run by default, all of them with `--all`."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

# The authorities of the machine that the tests run on are not those that the tests are about.
for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
    os.environ.pop(name, None)

# Compiling the tests takes twice as long as the rest of their collection.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Hundreds of tests write to a disk and wait until that has it: in memory they need not.
MEMORY = "/dev/shm"
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 1 << 30:
    tempfile.tempdir = os.environ.setdefault("TMPDIR", MEMORY)

TIERS = {
    "slow": "takes seconds: it measures, fuzzes, or tries very many cases",
    "process": "starts programs, and often kills them",
    "docs": "runs the programs of docs/ and builds its pages",
    "real": "needs documentation, servers or a browser that Debian packages installed",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help=f"also run the tests of {', '.join(TIERS)}"
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    # Processes inherit what `nohup` and a shell's `&` ignore, and tests send these signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slower tiers out, unless the command line names them, or tests."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    if named or config.getoption("--all") or config.getoption("markexpr"):
        return
    quick = [item for item in items if not any(map(item.get_closest_marker, TIERS))]
    if len(quick) < len(items):
        kept = set(quick)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = quick


@pytest.fixture
def autojump_clock() -> MockClock:
    """Jump to the next deadline when all tasks wait, and none of them for a thread."""
    clock = MockClock(autojump_threshold=0)
    jump = clock._autojump

    def jump_or_let_the_threads_run() -> None:
        # Trio's clock knows nothing of threads, and its class is final.
        if threading.active_count() > 1 and any(map(_waits_for_a_thread, _tasks())):
            time.sleep(0.0002)
        else:
            jump()

    clock._autojump = jump_or_let_the_threads_run  # type: ignore[method-assign]
    return clock


def _tasks() -> Iterator[trio.lowlevel.Task]:
    """Yield all tasks of the run."""
    root = trio.lowlevel.current_root_task()
    waiting = [] if root is None else [root]
    while waiting:
        task = waiting.pop()
        yield task
        waiting.extend(child for nursery in task.child_nurseries for child in nursery.child_tasks)


def _waits_for_a_thread(task: trio.lowlevel.Task) -> bool:
    return any(
        frame.f_code.co_name == "to_thread_run_sync" for frame, _ in task.iter_await_frames()
    )
