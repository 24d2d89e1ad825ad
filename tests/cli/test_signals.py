"""Signals: no moment of the command is left to the default handlers, which the library keeps."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import trio
from cli.asked import pages
from cli.command import PATIENCE, crawl, ended, environment, start, wait_until
from cli.gate import Gate
from sites.raw import html, silence, threaded_raw_server

from trio_crawler.cli.crawl import Ending
from trio_crawler.cli.signals import SIGNALS

KINDS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


def run(code: str, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Run a program in which a command or a library is struck."""
    line = [sys.executable, "-c", code, *words]
    return subprocess.run(
        line, env=environment(), capture_output=True, text=True, timeout=PATIENCE, **more
    )


# Before the work begins.

# The package is executed as `python -m` and the script do, and struck when a module is looked for.
STRUCK = """
import signal, sys
number, program, module, *rest = sys.argv[1:]
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            signal.raise_signal(int(number))
sys.meta_path.insert(0, Finder())
sys.argv, sys.orig_argv = [program, *rest], ["python", "-m", "trio_crawler"]
import trio_crawler
sys.argv[0] = "trio-crawler"
from trio_crawler.cli import main
main()
"""


@pytest.mark.parametrize("number", KINDS)
@pytest.mark.parametrize("program", ["-m", "/usr/bin/trio-crawler"])
@pytest.mark.parametrize("module", ["trio_crawler.cli", "lazy_loader", "click", "trio"])
def test_a_signal_during_the_imports_is_one_line_and_its_status(number, program, module):
    result = run(STRUCK, str(int(number)), program, module, "http://127.0.0.1:9/")
    said = f"trio-crawler: stopped by {NAMES[number]} before it could begin\n"
    assert (result.returncode, result.stdout, result.stderr) == (128 + number, "", said)


@pytest.mark.parametrize("number", KINDS)
def test_a_signal_during_help_is_one_line_and_its_status(number):
    result = run(STRUCK, str(int(number)), "-m", "trio_crawler.cli.main", "--help")
    assert (result.returncode, result.stderr.count("\n")) == (128 + number, 1)


LIBRARY = """
import signal, sys
before = [signal.getsignal(number) for number in (1, 2, 15)]
sys.argv[0] = sys.argv[1]
import trio_crawler.cli.crawl, trio_crawler.cli.main
trio_crawler.Crawler
print(before == [signal.getsignal(number) for number in (1, 2, 15)])
"""


@pytest.mark.parametrize("program", ["-c", "", "program.py", "/usr/bin/trio-crawler.py"])
def test_a_program_that_imports_the_library_keeps_its_handlers(program):
    assert run(LIBRARY, program).stdout == "True\n"


@pytest.mark.parametrize("number", KINDS)
def test_a_signal_that_is_inherited_as_ignored_stays_ignored(number):
    gate = Gate()

    def ignore() -> None:
        signal.signal(number, signal.SIG_IGN)

    with (
        threaded_raw_server({"/": gate}) as server,
        start(server.url, preexec_fn=ignore) as process,
    ):
        assert gate.came.wait(20)
        process.send_signal(number)
        process.send_signal(number)
        gate.open()
        out, err = ended(process)
    assert (process.returncode, err) == (0, "")
    assert "Ended early" not in out


# While it works.


def test_a_thousand_signals_are_one_line_and_the_report():
    site = {"/": html("/slow"), "/slow": silence}
    with threaded_raw_server(site) as server, start(server.url) as process:
        wait_until(lambda: pages(server) == ["/", "/slow"])
        process.send_signal(signal.SIGINT)
        said = process.stderr.readline()
        for _ in range(1000):
            process.send_signal(signal.SIGINT)
        out, err = ended(process, patience=3)
    assert said == b"Ctrl-C: finishing what is in flight; once more to stop at once\n"
    assert (process.returncode, err) == (130, "")
    assert "\nEnded early: stopped at once by Ctrl-C\n" in out


async def test_signals_that_came_before_the_crawl_are_obeyed_when_it_listens(autojump_clock):
    said: list[str] = []
    ending = Ending(said.append)
    SIGNALS.received.append(signal.SIGHUP)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(ending.listen)
            assert ending.scope.cancel_called
            assert (ending.at_once, ending.phrase) == (True, "stopped at once by SIGHUP")
            nursery.cancel_scope.cancel()
    finally:
        SIGNALS.received.clear()
    assert said == []


class Crawl:
    """Count how often a crawl is stopped."""

    def __init__(self) -> None:
        self.stopped = 0

    def stop(self) -> None:
        self.stopped += 1


async def test_a_reader_of_standard_error_that_has_left_does_not_keep_the_crawl_from_ending():
    def say(line: str) -> None:
        raise BrokenPipeError

    ending = Ending(say)
    ending.begin(Crawl(), None)
    SIGNALS.received.append(signal.SIGINT)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(ending.listen)
            nursery.cancel_scope.cancel()
    finally:
        SIGNALS.received.clear()
    assert ending.phrase == "stopped by Ctrl-C"


# A program in which the command is struck where its words say.
WORK = """
import atexit, os, signal, sys, threading
where, number, *rest = sys.argv[1:]
def strike(*_):
    for _ in range(3):
        signal.raise_signal(int(number))
sys.argv[1:] = rest
from trio_crawler.cli import main
if where == "atexit":
    def late():
        strike()
        # The interpreter, which ends now, restores the handlers of other signals.
        if signal.getsignal(int(number)) != signal.SIG_IGN:
            os._exit(99)
    atexit.register(late)
if where == "printing":
    class Output:
        def __getattr__(self, name):
            return getattr(sys.__stdout__, name)
        def write(self, text):
            strike()
            return sys.__stdout__.write(text)
    sys.stdout = Output()
if where == "reading":
    import trio_crawler.cli.signals
    from trio_crawler import History
    outcomes = History.outcomes
    def struck(history, *more, **named):
        for outcome in outcomes(history, *more, **named):
            yield outcome
            if trio_crawler.cli.signals.SIGNALS.received:
                os._exit(98)
            strike()
    History.outcomes = struck
if where == "asking":
    import socket
    def getaddrinfo(*words, **more):
        from trio_crawler.cli.signals import SIGNALS
        signal.raise_signal(int(number))
        while not SIGNALS.received:
            pass
        signal.raise_signal(int(number))
        threading.Event().wait()
    socket.getaddrinfo = getaddrinfo
if where == "usage":
    import trio_crawler.cli.main
    trio_crawler.cli.main.complain = lambda text: (sys.stderr.write(text + "\\n"), strike())
main()
"""


@pytest.mark.parametrize("number", KINDS)
def test_a_signal_while_the_report_is_printed_does_not_cut_it(number):
    with threaded_raw_server({"/": html()}) as server:
        result = run(WORK, "printing", str(int(number)), server.url)
    assert (result.returncode, result.stderr) == (128 + number, "")
    assert result.stdout.endswith("admitted 1 = 1 page + 0 redirects + 0 failures + 0 skipped\n")


@pytest.mark.parametrize("number", KINDS)
def test_a_signal_at_the_end_of_the_interpreter_changes_nothing(number):
    with threaded_raw_server({"/": html()}) as server:
        result = run(WORK, "atexit", str(int(number)), server.url)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("admitted 1 = 1 page + 0 redirects + 0 failures + 0 skipped\n")


@pytest.mark.parametrize("number", KINDS)
def test_a_signal_ends_the_report_of_a_directory_and_leaves_no_draft(tmp_path, number):
    kept, path = str(tmp_path / "kept"), str(tmp_path / "out.csv")
    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        assert crawl("-o", kept, server.url).returncode == 0
    result = run(WORK, "reading", str(int(number)), "report", kept, "--csv", path)
    said = f"trio-crawler: stopped by {NAMES[number]}\n"
    assert (result.returncode, result.stdout, result.stderr) == (128 + number, "", said)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_a_signal_ends_a_crawl_whose_name_server_does_not_answer():
    result = run(WORK, "asking", str(int(signal.SIGTERM)), "http://site.test/")
    assert result.returncode == 143
    assert result.stderr.startswith("SIGTERM: finishing what is in flight")
    # Nothing is in flight, so the second signal may come after the end.
    assert re.search("\nEnded early: stopped (at once )?by SIGTERM\n", result.stdout)


def test_wrong_usage_and_a_signal_are_one_line():
    result = run(WORK, "usage", str(int(signal.SIGINT)), "--depth", "x", "http://site.test/")
    assert (result.returncode, result.stderr.count("\n")) == (130, 1)


# Its readers.


def waits_in_a_write(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the main thread waits in a write to a pipe."""
    return Path(f"/proc/{process.pid}/wchan").read_text().endswith("pipe_write")


BROKEN = [f"/{'x' * 1000}{number}" for number in range(100)]


@pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="no /proc")
@pytest.mark.parametrize(("words", "output"), [([], "stdout"), (["-v"], "stderr")])
def test_two_signals_end_a_command_whose_reader_takes_nothing(words, output):
    with (
        threaded_raw_server({"/": html(*BROKEN)}) as server,
        start(*words, "--per-host", "10", server.url) as process,
    ):
        wait_until(lambda: waits_in_a_write(process))
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(signal.SIGINT)
        process.wait(3)
        ended(process)
    assert process.returncode == 130


def test_a_signal_and_a_reader_that_has_left_is_the_status_of_the_signal():
    gate = Gate()
    with threaded_raw_server({"/": gate}) as server, start(server.url) as process:
        assert gate.came.wait(20)
        process.stdout.close()
        process.stderr.close()
        process.send_signal(signal.SIGINT)
        gate.open()
        process.wait(PATIENCE)
    assert process.returncode == 130


def test_a_terminal_that_is_closed_ends_the_crawl_as_sighup_does(tmp_path):
    mine, theirs = pty.openpty()
    path, gate = tmp_path / "out.csv", Gate()
    code = "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    code += "sys.argv[0] = 'trio-crawler'; from trio_crawler.cli import main; main()"
    with threaded_raw_server({"/": gate}) as server:
        line = [sys.executable, "-c", code, "--csv", str(path), server.url]
        process = subprocess.Popen(
            line,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(TERM="xterm"),
            start_new_session=True,
        )
        os.close(theirs)
        assert gate.came.wait(20)
        os.close(mine)
        gate.open()
        assert process.wait(PATIENCE) == 129
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]


# Each kind of signal comes while the terminal echoes nothing.
ASKING = """
import fcntl, getpass, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
import trio_crawler.cli.main
from trio_crawler.cli.signals import SIGNALS
def run(words):
    with SIGNALS.asking():
        getpass.getpass()
trio_crawler.cli.main._run = run
SIGNALS.take()
trio_crawler.cli.main.main()
"""


@pytest.mark.parametrize("number", KINDS)
def test_a_signal_at_a_prompt_leaves_a_terminal_that_echoes(number):
    mine, theirs = pty.openpty()

    def echoes() -> int:
        return termios.tcgetattr(mine)[3] & termios.ECHO

    def reads() -> bool:
        # Python loses a signal that comes in the instant before a read begins to wait.
        stat = Path(f"/proc/{process.pid}/stat")
        return not echoes() and (
            not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "S"
        )

    process = subprocess.Popen(
        [sys.executable, "-c", ASKING],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    )
    wait_until(reads)
    process.send_signal(number)
    process.send_signal(number)
    _, err = ended(process)
    assert echoes()
    assert (process.returncode, err) == (
        128 + number,
        f"trio-crawler: stopped by {NAMES[number]}\n",
    )
    os.close(theirs)
    os.close(mine)
