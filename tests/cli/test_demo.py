"""The demo: it finds what its own site hides, and says so if it does not."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from cli.command import crawl, ended, start

from trio_crawler.cli import demo

HIDDEN = [line.split() for line in (demo.SITE / "_faults").read_text().splitlines()]


def test_the_demo_finds_all_that_its_site_hides_and_says_what_to_type_next(tmp_path):
    # No file of the current folder is about the site of the demo.
    (tmp_path / "trio-crawler.toml").write_text("depth = 0\n")
    result = crawl("demo", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    for path, code in HIDDEN:
        assert re.search(rf"{code}.*: {re.escape(path)}", result.stdout)
    assert f"{len(HIDDEN)} faults were hidden, and {len(HIDDEN)} are found" in result.stdout
    assert "as in a site without an end" in result.stdout
    assert "python -m trio_crawler check URL" in result.stdout


@pytest.mark.parametrize("lost", [True, False])
def test_a_demo_that_finds_other_faults_than_its_site_hides_fails_and_names_them(lost, capsys):
    hidden = HIDDEN[1:] if lost else [*HIDDEN, ["/more.html", "404"]]

    def check(words: list[str]) -> int:
        found = [
            {"verdict": "fault", "code": code, "url": f"{words[0]}{path[1:]}"}
            for path, code in hidden
        ]
        Path(words[-1]).write_text(json.dumps({"findings": found}))
        return 1

    assert demo.run(serve=False, port=None, check=check) == 1
    told = f"not found: {' '.join(HIDDEN[0])}" if lost else "not hidden: /more.html 404"
    assert capsys.readouterr().err == f"trio-crawler: {told}\n"


def test_a_demo_that_cannot_print_is_one_line():
    with open("/dev/full", "w") as full:
        result = crawl("demo", stdout=full)
    assert result.returncode == 1
    assert result.stderr == "trio-crawler: cannot write the text: No space left on device\n"


def test_a_demo_that_is_interrupted_judges_nothing():
    with start("demo") as process:
        assert process.stdout is not None
        assert any(b"check http" in line for line in process.stdout)
        # The slow page keeps the check busy for more than a second.
        process.send_signal(signal.SIGINT)
        out, err = ended(process)
    assert process.returncode == 130
    assert "faults were hidden" not in out
    assert "not found" not in err


def test_demo_serve_serves_the_site_until_a_signal_comes():
    with start("demo", "--serve", "--port", "0") as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        url = line.removeprefix("The site of the demo is at ").removesuffix(" until Ctrl-C\n")
        with urlopen(f"{url}sitemap.xml") as answer:
            assert f"{url}keepers/last.html" in answer.read().decode()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{url}rooms/")
        port = url.strip("/").rpartition(":")[2]
        taken = crawl("demo", "--port", port)
        process.send_signal(signal.SIGTERM)
        ended(process)
    assert process.returncode == 143
    assert taken.returncode == 2
    assert taken.stderr == (
        f"trio-crawler: cannot serve at --port {port}: Address already in use\n"
    )
