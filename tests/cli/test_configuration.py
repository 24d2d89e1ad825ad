"""Options from a file in the current folder, what --show-config prints, and completion."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from cases import for_each
from cli.command import crawl, environment
from sites.raw import html, reply, threaded_raw_server

URL = "http://127.0.0.1:9/"


def shown(folder: Path, *words: str) -> dict[str, object]:
    """Return the options that count and are not defaults."""
    ended = crawl(*words, "--show-config", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return tomllib.loads(ended.stdout)


def test_a_file_in_the_current_folder_gives_options_and_the_command_line_comes_first(tmp_path):
    (tmp_path / "trio-crawler.toml").write_text(
        "max-tasks = 20\nmax_time = '2m'\ndelay = 0.25\nexclude = ['/old/', 'x$']\n"
        "lenient = true\nverbose = true\nadaptive = false\n"
    )
    (tmp_path / "pyproject.toml").write_text("[tool.trio-crawler]\ndepth = 1\n")
    assert shown(tmp_path, URL, "--max-tasks", "3", "-q") == {
        "max-tasks": 3,
        "max-time": 120.0,
        "delay": 0.25,
        "exclude": ["/old/", "x$"],
        "lenient": True,
        "quiet": True,
        "adaptive": False,
    }


def test_a_table_of_pyproject_counts_without_a_file_and_another_file_in_place_of_both(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.trio-crawler]\ndepth = 1\n")
    (tmp_path / "other.toml").write_text("depth = 2\n")
    (tmp_path / "empty.toml").touch()
    assert shown(tmp_path, URL) == {"depth": 1}
    assert shown(tmp_path, URL, "--config", "other.toml") == {"depth": 2}
    assert shown(tmp_path, URL, "--config", "empty.toml") == {}


def test_a_pyproject_of_other_tools_is_no_file_of_ours(tmp_path):
    (tmp_path / "pyproject.toml").write_text("this is [ no TOML")
    assert shown(tmp_path, URL) == {}
    (tmp_path / "pyproject.toml").write_text("[tool.trio-crawler]\ndepth = ")
    assert "pyproject.toml is no TOML" in crawl(URL, cwd=tmp_path).stderr


def test_a_crawl_obeys_a_file(tmp_path):
    (tmp_path / "trio-crawler.toml").write_text("exclude = '/b'\ncsv = 'all.csv'\n")
    answers = {"/": html("/a", "/b"), "/a": html(), "/b": html()}
    with threaded_raw_server(answers) as server:
        assert crawl(server.url, cwd=tmp_path).returncode == 0
    assert [server.url + end in (tmp_path / "all.csv").read_text() for end in "ab"] == [
        True,
        False,
    ]


def test_a_key_counts_for_the_commands_and_the_targets_that_obey_it(tmp_path):
    (tmp_path / "trio-crawler.toml").write_text(
        "accept = '200..299,403'\nclean-urls = true\nchanges = true\ndepth = 2\n"
    )
    (tmp_path / "site").mkdir()
    statuses = {"accept": "200..299,403"}
    assert shown(tmp_path, URL) == {"depth": 2}
    assert shown(tmp_path, "--check", "all", URL) == {
        "depth": 2,
        "check": "external,assets,fragments",
        **statuses,
    }
    assert shown(tmp_path, "check", URL) == {"depth": 2, **statuses}
    assert shown(tmp_path, "check", "site") == {"depth": 2, "clean-urls": True, **statuses}
    assert shown(tmp_path, "report", "site") == {"changes": True, **statuses}


def test_a_host_has_a_delay_of_its_own(tmp_path):
    (tmp_path / "trio-crawler.toml").write_text(
        "delay = 1\n[hosts.'127.0.0.1']\ndelay = '10ms'\nper_host = 1\n"
    )
    own = {"127.0.0.1": {"delay": 0.01, "per-host": 1}}
    assert shown(tmp_path, URL) == {"delay": 1.0, "hosts": own}
    with threaded_raw_server({"/": html("/a", "/b"), "/a": html(), "/b": html()}) as server:
        ended = crawl("-v", "-v", server.url, cwd=tmp_path)
    assert "delay 0.01" in ended.stdout, ended.stdout


def test_a_host_gets_a_header_of_its_own_and_no_other_host_does(tmp_path):
    (tmp_path / "trio-crawler.toml").write_text(
        "allow-private = '127.0.0.1'\n[hosts.'127.0.0.1']\nheader = ['X-Key: s3cret', 'X-A: 1']\n"
    )
    with threaded_raw_server({"/": html()}) as one:
        other = one.url.replace("127.0.0.1", "localhost")
        assert crawl(one.url, cwd=tmp_path).returncode == 0
        assert crawl(other, cwd=tmp_path).returncode == 0
    sent = [(each.headers["host"][:4], each.headers.get("x-key")) for each in one.requests]
    assert set(sent) == {("127.", "s3cret"), ("loca", None)}
    shown = crawl(one.url, "--show-config", cwd=tmp_path).stdout
    assert "s3cret" not in shown
    assert '[hosts."127.0.0.1"]' in shown


def test_the_statuses_of_a_host_are_fine_there_alone(tmp_path):
    (tmp_path / "trio-crawler.toml").write_text("[hosts.'127.0.0.1']\naccept = '200,410'\n")
    gone = {"/": html("/a"), "/a": reply(410)}
    with threaded_raw_server(gone) as server:
        assert crawl("check", server.url, cwd=tmp_path).returncode == 0
        other = server.url.replace("127.0.0.1", "localhost")
        assert crawl("check", other, "-o", "kept", cwd=tmp_path).returncode == 1
        assert crawl("report", "kept", cwd=tmp_path).returncode == 1
    (tmp_path / "trio-crawler.toml").write_text("[hosts.localhost]\naccept = '200,410'\n")
    assert crawl("report", "kept", cwd=tmp_path).returncode == 0


def test_secrets_of_a_file_are_sent_and_not_shown(tmp_path):
    (tmp_path / "trio-crawler.toml").write_text("header = ['X-Key: s3cret']\nauth = 'me:s3cret'\n")
    assert shown(tmp_path, URL) == {"header": "***", "auth": "***"}
    with threaded_raw_server({"/": html()}) as server:
        assert crawl(server.url, cwd=tmp_path).returncode == 0
    sent = [
        (each.headers.get("x-key"), "authorization" in each.headers) for each in server.requests
    ]
    assert sent[-1] == ("s3cret", True)


@for_each(
    "text, told",
    [
        ("max-task = 3", "there is no option max-task: did you mean max-tasks?"),
        ("max-tasks = '3'", 'max-tasks must be a whole number, not "3"'),
        ("max-tasks = true", "max-tasks must be a whole number, not true"),
        ("max-tasks = 0", "Invalid value for '--max-tasks': 0 is not in the range"),
        ("mine = 1", "mine must be true or false, not 1"),
        ("exclude = [3]", "exclude must be a text or a list of texts, not [3]"),
        ("timeout = false", "timeout must be a time, such as 30 or '2m', not false"),
        ("timeout = 'soon'", "Invalid value for '--timeout': 'soon' is not a time"),
        ("warc = ['a']", 'warc must be a text, not ["a"]'),
        ("depth = 1979-05-27", 'depth must be a whole number, not "1979-05-27"'),
        ("x = [", "is no TOML: "),
        ("hosts = 1", 'hosts must be tables, such as [hosts."example.org"]'),
        (
            "[hosts.x]\nmine = true",
            '[hosts."x"]: a host has accept, delay, header, per-host, and not mine',
        ),
        ("[hosts.x]\nheader = 's3cret'", "[hosts.\"x\"]: header: write it as 'Name: value'"),
        ("[hosts.x]\ndelay = 'x'", "[hosts.\"x\"]: delay: 'x' is not a time"),
    ],
)
def test_a_wrong_file_is_named_in_one_line(tmp_path, text, told):
    (tmp_path / "wrong.toml").write_text(text)
    ended = crawl("--config", "wrong.toml", URL, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("trio-crawler: wrong.toml")
    assert told in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["none.toml", ".", "pyproject.toml"])
def test_a_file_that_was_named_must_be_there(tmp_path, name):
    (tmp_path / "pyproject.toml").touch()
    ended = crawl("--config", name, URL, cwd=tmp_path)
    assert ended.returncode == 2
    assert name in ended.stderr


@for_each(
    "line, expected",
    [
        ("trio-crawler ch", "plain,check"),
        ("trio-crawler --max-ti", "plain,--max-time"),
        ("trio-crawler check --fail-on n", "plain,note plain,new"),
        ("trio-crawler report --jsonl ", "file,"),
        ("trio-crawler completion z", "plain,zsh"),
    ],
)
def test_a_shell_completes_commands_options_words_and_files(tmp_path, line, expected):
    (tmp_path / "trio-crawler.toml").write_text("a file that is wrong says nothing here")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    env = environment(_TRIO_CRAWLER_COMPLETE="bash_complete", **asked)
    assert crawl(env=env, cwd=tmp_path).stdout.split() == expected.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_the_command(shell):
    script = crawl("completion", shell).stdout
    assert f"_TRIO_CRAWLER_COMPLETE={shell}_complete" in script


def test_a_completion_without_a_shell_names_those_there_are():
    ended = crawl("completion")
    assert ended.returncode == 2
    assert ended.stderr == "trio-crawler: name a shell: bash, zsh, fish\n"
