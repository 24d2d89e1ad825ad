"""The tiers of the tests: the quick ones run by default, all of them with `--all`."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
import trio
from _pytest.runner import runtestprotocol
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

TESTS = Path(__file__).parent
TIERS = {
    "slow": "takes seconds: it measures, fuzzes, or tries very many cases",
    "process": "starts programs, and often kills them",
    "docs": "runs the programs of docs/ and builds its pages",
    "real": "needs documentation, servers or a browser that Debian packages installed",
}
# Nothing in these folders is quick. To leave them out is quicker than to collect and to deselect.
SLOWER = {"docs", "durable"}

MERGE = (
    "cli/test_check_directory.py cli/test_crawl.py cli/test_directory.py cli/test_exports.py "
    "cli/test_planted.py cli/test_processes.py cli/test_secrets.py durable/test_faults.py "
    "durable/test_kill.py durable/test_refresh.py net/test_head_fuzz.py page/test_scanner.py "
    "report/test_links.py report/test_text.py report/test_warc_resumed.py "
    "store/test_injected.py store/test_opening.py "
    "test_applications.py test_guest.py"
).split()
"""The files whose slower tests run before each merge, with those of docs/ that start no program.

They are the most telling ones of each room. The bounds of one function, and the other fuzzers, run
with `--all`, and with the tests of their room: `pytest tests/page`.
"""

TOLD, MOST = 0.5, 1.0
"""CPU seconds of a quick test, children included: it is told of above the first.

With `--all` it fails above the second, if it takes so long twice.
"""
WAITED = 2.0
"""Seconds that a quick test may wait in real time before it is told of."""
_BEGUN = pytest.StashKey[tuple[float, float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="record again what is compared")
    parser.addoption(
        "--all", action="store_true", help=f"also run the tests of {', '.join(TIERS)}"
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    config.addinivalue_line("markers", "merge: runs before each merge, although it is not quick")
    # A merge must not fail for what nothing in it has changed: with `--all` each run tries others.
    # Nor for a machine that is busy: there is no deadline.
    same = not config.getoption("--all")
    number = 25 if same else 100
    hypothesis.settings.register_profile(
        "same", derandomize=same, deadline=None, max_examples=number
    )
    hypothesis.settings.load_profile("same")
    # Processes inherit what `nohup` and a shell's `&` ignore, and tests send these signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _only_quick(config: pytest.Config) -> bool:
    """Whether the command line names neither tiers nor tests."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return not (named or config.getoption("--all") or config.getoption("markexpr"))


def _is_quick(item: pytest.Item) -> bool:
    return not any(map(item.get_closest_marker, TIERS))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    name = collection_path.name
    slower = collection_path.parent == TESTS and name in SLOWER
    # Those import selenium, which the quick tests need not.
    slower = slower or name.endswith("_in_a_browser.py")
    return True if slower and _only_quick(config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slower tiers out, unless the command line names them, or tests."""
    for item in items:
        name = item.path.relative_to(TESTS).as_posix()
        told = name in MERGE or (name.startswith("docs/") and name != "docs/test_runs.py")
        if told and not _is_quick(item):
            item.add_marker("merge")
    if not _only_quick(config):
        return
    quick = list(filter(_is_quick, items))
    if len(quick) < len(items):
        kept = set(quick)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = quick


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Fail a quick test that is too dear twice: the second time its caches are warm."""
    begun = _cpu()
    item.stash[_BEGUN] = begun, time.monotonic()
    done = yield
    if item.config.getoption("--all") and _is_quick(item) and _cpu() - begun > MOST:
        begun = _cpu()
        runtestprotocol(item, nextitem=nextitem, log=False)
        if (seconds := _cpu() - begun) > MOST:
            told = f"it took {seconds:.1f} CPU seconds again: mark it slow, or make it cheaper"
            failure = pytest.TestReport(item.nodeid, item.location, {}, "failed", told, "call")
            item.ihook.pytest_runtest_logreport(report=failure)
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "teardown" and _is_quick(item):
        cpu, begun = item.stash[_BEGUN]
        seconds = _cpu() - cpu
        waited = time.monotonic() - begun - seconds
        if seconds > TOLD or waited > WAITED:
            # An attribute of its own comes along when a worker of pytest-xdist sends the report.
            report.dear = seconds, waited
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for some in terminalreporter.stats.values() for each in some]
    dear = {each.nodeid: each.dear for each in reports if hasattr(each, "dear")}
    if dear:
        title = f"quick tests that took {TOLD} CPU seconds or waited {WAITED:.0f} s, both shown"
        terminalreporter.section(title)
        for (seconds, waited), name in sorted(((both, name) for name, both in dear.items())):
            terminalreporter.write_line(f"{seconds:5.1f} {waited:5.1f} {name}")


def _cpu() -> float:
    """Return the CPU seconds of this process, and of its children that have ended."""
    return sum(os.times()[:4])


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


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with the file that has it, or write that file with --update."""
    update = request.config.getoption("--update")

    def compare(path: Path, text: str) -> None:
        if update and (not path.exists() or path.read_text() != text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.is_file(), f"{path} is not there: pytest --update"
        assert text == path.read_text()

    return compare
