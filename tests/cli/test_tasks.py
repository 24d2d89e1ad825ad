"""More tasks than the hosts let work: that is told, with the option that changes it."""

from __future__ import annotations

import pytest
from cli.command import crawl
from sites.raw import html, threaded_raw_server

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--max-tasks", "50"], 50),
        (["--max-tasks", "5"], 5),
        (["--max-tasks", "10"], 10),
        (["--max-tasks", "3", "--per-host", "2"], 3),
        (["--max-tasks", "4"], 0),
        (["--max-tasks", "50", "--per-host", "50"], 0),
        (["--max-tasks", "50", "--adaptive"], 0),
        ([], 0),
    ],
)
def test_tasks_that_one_host_does_not_let_work_are_told_at_the_start(words, told):
    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        result = crawl(*words, server.url)
    limit = "2" if "--per-host" in words else "4"
    start = f"--max-tasks {told} is too much for 1 host: each gets at most {limit} "
    start += "requests at once (--per-host)\n"
    assert result.stderr == (start if told else "")


def test_where_other_hosts_may_come_no_number_of_tasks_is_too_much():
    with threaded_raw_server({"/": html()}) as server:
        result = crawl("--lenient", "--max-tasks", "9", server.url)
        quiet = crawl("-q", "--max-tasks", "9", server.url)
    assert (result.stderr, quiet.stderr) == ("", "")
