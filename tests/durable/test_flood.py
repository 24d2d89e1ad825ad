"""Pages of thousands of long links: the process stays small, and ends when it is told to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from bench.flood import KINDS, MIB, measured

MOST = 256 * MIB


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_flood_of_long_links_stays_below_256_mib(kind, lasting):
    cost = measured(kind, 25 if kind != "newports" else 1, lasting=lasting)
    assert cost.peak < MOST, f"{cost.peak / MIB:.0f} MiB"
    # Of one name, ten ports are followed.
    assert cost.admitted == 10 if kind == "newports" else cost.admitted > 1_000


@pytest.mark.parametrize("option", ["--order=depth", "--order=sitemap", "--links=/dev/null"])
def test_so_it_does_with(option):
    assert measured("relative", 25, option).peak < MOST


def test_links_that_were_not_followed_because_too_much_waits_are_told_with_the_option():
    cost = measured("relative", 20, "--max-waiting", "8")
    assert "waiting_budget" in cost.report
    assert "--max-waiting lets more wait" in cost.report
    assert cost.admitted < 10_000


def spent(pid: int) -> float:
    """Return the CPU seconds that a process has taken."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_a_signal_takes_less_than_a_second_with_100_000_workers():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        command = [sys.executable, "-m", "trio_crawler", url, "--max-tasks", "100000"]
        command += ["--per-host", "100000"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0
        ) as crawl:
            # It waits for the answer to robots.txt.
            connection, _ = listener.accept()
            assert crawl.stderr is not None
            before = spent(crawl.pid)
            crawl.send_signal(signal.SIGTERM)
            assert b"SIGTERM" in crawl.stderr.read(500)
            assert spent(crawl.pid) - before < 1
            crawl.send_signal(signal.SIGTERM)
            _, status, usage = os.wait4(crawl.pid, 0)
            crawl.returncode = os.waitstatus_to_exitcode(status)
            assert crawl.returncode == 143
            assert usage.ru_utime + usage.ru_stime - before < 2
            connection.close()


def test_more_than_100_000_workers_are_refused_in_one_line():
    command = [sys.executable, "-m", "trio_crawler", "http://site.test/", "--max-tasks", "100001"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "--max-tasks" in run.stderr
