"""Places that are odd to write to: shared, closed, full, or of a name that is no Unicode."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cli.command import crawl, ended, environment, start
from sites.raw import html, threaded_raw_server

pytestmark = pytest.mark.process

SITE = {"/": html("/a", title="Home"), "/a": html(title="A")}


def shell(line: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", line, "sh", sys.executable, "-m", "trio_crawler", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=20)


def test_closed_standard_error_does_not_end_a_crawl():
    with threaded_raw_server(SITE) as server:
        result = shell('exec "$@" 2>&-', server.url)
    assert result.returncode == 0
    assert "admitted 2 = 2 pages" in result.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_under_standard_error_does_not_end_a_crawl():
    with threaded_raw_server(SITE) as server:
        result = shell('exec "$@" 2>/dev/full', "-v", server.url)
    assert result.returncode == 0
    assert "admitted 2 = 2 pages" in result.stdout


def test_a_directory_may_have_a_name_that_is_no_unicode(tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    with threaded_raw_server(SITE) as server:
        result = crawl("-o", name, server.url)
    assert (result.returncode, result.stderr) == (0, "")
    assert "admitted 2 = 2 pages" in crawl("report", name).stdout


def test_a_new_directory_may_hold_the_exports_too(tmp_path):
    with threaded_raw_server(SITE) as server:
        result = crawl("-o", str(tmp_path / "d"), "--csv", str(tmp_path / "d/x.csv"), server.url)
    assert (result.returncode, result.stderr) == (0, "")
    assert len((tmp_path / "d/x.csv").read_text().splitlines()) == 3


def test_the_file_that_the_report_goes_to_is_refused_for_another(tmp_path):
    with (tmp_path / "out").open("w") as out:
        command = [sys.executable, "-m", "trio_crawler", "http://a.test/", "--jsonl"]
        for path in ("/dev/stdout", str(tmp_path / "out")):
            said = subprocess.run(
                [*command, path], stdout=out, stderr=subprocess.PIPE, text=True, env=environment()
            )
            assert said.returncode == 2
            assert f"the report goes to {path}" in said.stderr


@pytest.mark.parametrize("closed", [">&-", ">&- <&-", ">&- 2>&-", ">&- 2>&- <&-"])
def test_closed_standard_output_is_told_as_a_full_disk_is(closed, tmp_path):
    with threaded_raw_server(SITE) as server:
        result = shell(f'exec "$@" {closed}', "-o", str(tmp_path / "d"), server.url)
        piped = shell(f'exec "$@" {closed}', "--jsonl", "-", server.url)
    assert (result.returncode, piped.returncode) == (1, 1)
    if "2>" not in closed:
        assert result.stderr == "trio-crawler: cannot write the report: Bad file descriptor\n"
        assert piped.stderr.startswith("trio-crawler: cannot write -: Bad file descriptor\n")
    # No file of the crawl got the report.
    assert "admitted 2 = 2 pages" in crawl("report", str(tmp_path / "d")).stdout


HELP = [["--help"], ["--version"], ["report", "--help"], ["demo", "--help"]]


@pytest.mark.parametrize("words", HELP, ids=" ".join)
def test_help_into_a_closed_pipe_ends_silently(words):
    read, write = os.pipe()
    os.close(read)
    with start(*words, stdout=write) as process:
        os.close(write)
        _, err = ended(process)
    assert (process.returncode, err) == (141, "")


@pytest.mark.parametrize("words", HELP, ids=" ".join)
@pytest.mark.parametrize(
    ("output", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_help_that_cannot_be_written_is_one_line(words, output, why):
    result = shell(f'exec "$@" {output}', *words)
    assert result.returncode == 1
    assert result.stderr == f"trio-crawler: cannot write the text: {why}\n"


def test_a_url_that_the_locale_cannot_encode_is_still_the_same_url():
    site = {"/": html("/%C3%BCn%C3%AF/%C3%9F", title="ü"), "/%C3%BCn%C3%AF/%C3%9F": html()}
    with threaded_raw_server(site) as server:
        plain = crawl("-v", server.url)
        ascii_only = crawl("-v", server.url, env=environment(PYTHONIOENCODING="ascii"))
    assert f"{server.url}ünï/ß" in plain.stdout
    assert f"{server.url}ünï/ß" in plain.stderr
    for text in (ascii_only.stdout, ascii_only.stderr):
        assert f"{server.url}%C3%BCn%C3%AF/%C3%9F\n" in text
    assert '"\\xfc"' in ascii_only.stderr
