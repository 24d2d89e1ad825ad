"""The whole command where the platform has fewer modules and constants than Linux."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

TESTS = Path(__file__).parents[1]
LESS = """
import _signal, os, signal, sys, types
# What others import, and the server of this test, before it is hidden.
import certifi, click, httptools, httpx, sites.raw, trio
from store import systems

assert not any(name.startswith(("trio_crawler.cli", "trio_crawler.store")) for name in sys.modules)
(directory,) = sys.argv[1:]
os.chdir(directory)
site = {"/": sites.raw.html("/a", "/gone"), "/a": sites.raw.html("/")}
with sites.raw.threaded_raw_server(site) as server:
    systems.windows()
    for name in ("resource", "pwd", "grp", "termios", "tty", "pty"):
        sys.modules[name] = None
    for name in ("SIGHUP", "SIGPIPE", "SIGTERM", "SIGUSR1", "SIGALRM"):
        delattr(signal, name)
        delattr(_signal, name)
    del _signal.setitimer
    from trio_crawler.cli import exports
    from trio_crawler.cli.signals import SIGNALS
    SIGNALS.take()
    from trio_crawler.cli.main import command, report_command

    def replace(source, target):
        # Windows renames no open file.
        files = [os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")]
        assert os.path.realpath(source) not in files
        os.replace(source, target)

    exports.os = types.SimpleNamespace(**{**vars(os), "name": "nt", "replace": replace})

    def run(*words):
        of = report_command if words[0] == "report" else command
        return of.main(list(words[words[0] == "report":]), standalone_mode=False)

    files = "--jsonl x.jsonl --csv x.csv --links l.csv --sitemap-xml s.xml --warc w.warc.gz"
    print(run("-o", "d", *files.split(), server.url))
    print(run("-o", "d", *files.split(), server.url))
    print(run("--csv", "other.csv", "--warc", "other.warc", server.url))
    print(run("report", "d", "--csv", "again.csv", "--sitemap-xml", "again.xml", "--changes"))
"""
FILES = ["again.csv", "again.xml", "d", "l.csv", "other.csv", "other.warc"]
FILES += ["s.xml", "w.warc.gz", "x.csv", "x.jsonl"]


def test_the_command_needs_no_module_or_constant_that_only_some_platforms_have(tmp_path):
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    run = subprocess.run(
        [sys.executable, "-c", LESS, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    accounts = [line for line in run.stdout.splitlines() if line.startswith("admitted ")]
    assert accounts == ["admitted 3 = 3 pages + 0 redirects + 0 failures + 0 skipped"] * 4
    assert [line for line in run.stdout.splitlines() if line == "1"] == ["1"] * 4
    assert sorted(each.name for each in tmp_path.iterdir()) == FILES
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 4
    assert sorted((tmp_path / "again.csv").read_text().splitlines()) == sorted(
        (tmp_path / "x.csv").read_text().splitlines()
    )
