"""Secrets come from elsewhere than the command line, and are shown nowhere."""

from __future__ import annotations

import base64
import io
import os
import pty
import re
import select
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click
import pytest
import trio
from cases import for_each
from cli.asked import pages
from cli.command import crawl, ended, environment, start
from sites.raw import Request, html, redirect, reply, threaded_raw_server

from trio_crawler.cli.main import command, main

SECRET = "s3cret-w0rd"
NO_URL = "http://127.0.0.1:9/"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def said(*words: str) -> dict[str, Any]:
    """Parse a command line without running it."""
    return dict(command.make_context("trio-crawler", [*words, NO_URL]).params)


def refused(*words: str) -> str:
    """Return the message of a command line that is refused when it is parsed."""
    with pytest.raises(click.UsageError) as caught:
        said(*words)
    message = caught.value.format_message()
    assert "\n" not in message
    return message


# From a file, the environment, standard input.

FORMS = {
    "--auth": ("auth", "me:a:b", ("me", "a:b")),
    "--proxy": ("proxy", "http://u:w@p:1", "http://u:w@p:1"),
    "--header": ("headers", "X-A: b: c", (("X-A", "b: c"),)),
    "--cookie": ("own_cookies", "a=1; b=2", ("a=1", "b=2")),
}


@for_each("end", ["", "\n", "\r\n", "\n\n"])
@for_each("option", FORMS)
def test_a_secret_is_read_from_a_file_without_its_line_end(option, end, tmp_path):
    name, text, value = FORMS[option]
    (tmp_path / "it").write_bytes((text + end).encode())
    assert said(option, f"@{tmp_path}/it")[name] == value


@pytest.mark.parametrize("option", FORMS)
def test_a_secret_is_read_from_a_variable_that_is_named(option, monkeypatch):
    name, text, value = FORMS[option]
    monkeypatch.setenv("SITE_SECRET", text)
    assert said(option, "@env:SITE_SECRET")[name] == value


@pytest.mark.parametrize("option", FORMS)
def test_a_secret_is_read_from_standard_input(option, monkeypatch):
    name, text, value = FORMS[option]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode() + b"\n")))
    assert said(option, "@-")[name] == value


def test_a_file_of_headers_has_one_in_each_line_and_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "headers"
    path.write_bytes("\ufeffX-A: 1\r\n\r\nX-B: é ü\r\n  \nX-A:2\n".encode())
    found = said("--header", "X-Z: 0", "--header", f"@{path}")["headers"]
    assert found == (("X-Z", "0"), ("X-A", "1"), ("X-B", "é ü"), ("X-A", "2"))


def test_a_file_of_cookies_has_one_or_more_in_each_line(tmp_path):
    (tmp_path / "jar").write_text("a=1\nb=2; c=3\n")
    assert said("--cookie", f"@{tmp_path}/jar")["own_cookies"] == ("a=1", "b=2", "c=3")


def test_a_tilde_after_the_at_sign_is_the_home_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text("me:word")
    assert said("--auth", "@~/key")["auth"] == ("me", "word")


@pytest.mark.parametrize("option", FORMS)
def test_a_place_that_is_missing_or_empty_is_named_in_one_line(option, tmp_path, monkeypatch):
    monkeypatch.setenv("EMPTY", "\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    (tmp_path / "empty").write_text("\r\n \n")
    (tmp_path / "long").write_bytes(b"a" * 65_537)
    (tmp_path / "octets").write_bytes(b"a:\xff")
    assert f"cannot read {tmp_path}/none: No such" in refused(option, f"@{tmp_path}/none")
    assert f"cannot read {tmp_path}: Is a directory" in refused(option, f"@{tmp_path}")
    assert f"{tmp_path}/empty is empty" in refused(option, f"@{tmp_path}/empty")
    assert f"{tmp_path}/long has more than 64 KiB" in refused(option, f"@{tmp_path}/long")
    assert f"{tmp_path}/octets is not UTF-8 text" in refused(option, f"@{tmp_path}/octets")
    assert "variable NO_SUCH_NAME is not set" in refused(option, "@env:NO_SUCH_NAME")
    assert "variable EMPTY is empty" in refused(option, "@env:EMPTY")
    assert "standard input is empty" in refused(option, "@-")
    assert "after @ comes the name of a file" in refused(option, "@")
    monkeypatch.setattr("sys.stdin", None)
    assert "standard input is closed" in refused(option, "@-")


@pytest.mark.parametrize("option", ["--auth", "--proxy"])
def test_what_is_one_value_cannot_be_two_lines(option, tmp_path):
    (tmp_path / "two").write_text(f"a:{SECRET}\nb:{SECRET}\n")
    message = refused(option, f"@{tmp_path}/two")
    assert "it must be one line" in message
    assert SECRET not in message


# From ~/.netrc, if that is asked for.

NETRC = f"machine 127.0.0.1 login me password {SECRET}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".netrc").write_text(NETRC)
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.process
def test_a_netrc_file_is_read_only_when_asked_for_and_is_for_the_given_urls(home):
    with (
        threaded_raw_server({"/": html()}) as other,
        threaded_raw_server({"/": html("/a", other.url), "/a": redirect(other.url)}) as server,
    ):
        for words in ([], ["--netrc"], [f"--netrc-file={home}/.netrc"]):
            result = crawl("-v", "--allow-private=127.0.0.1", *words, server.url)
            assert (result.returncode, SECRET in result.stdout + result.stderr) == (0, False)
    sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == [None] * 3 + [basic("me", SECRET)] * 6
    assert {request.headers.get("authorization") for request in other.requests} == {None}


@pytest.mark.process
def test_a_netrc_file_that_others_can_read_is_told_and_read(home):
    (home / ".netrc").chmod(0o644)
    with threaded_raw_server({"/": html()}) as server:
        result = crawl("--netrc", server.url)
    assert result.stderr == "trio-crawler: other users can read ~/.netrc: chmod 600 ~/.netrc\n"
    assert pages(server) == ["/"]


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (None, ["--netrc"], "--netrc: cannot read ~/.netrc: No such file or directory"),
        (None, ["--netrc-file", ""], "--netrc-file needs the name of a file, not ''"),
        (NETRC.replace("127", "128"), ["--netrc"], "~/.netrc has no entry for 127.0.0.1"),
        (f"machine h login {SECRET} passwort x", ["--netrc"], "is no netrc file: line 1"),
        (
            NETRC.replace("me", "m:e"),
            ["--netrc-file", "~"],
            "--netrc-file must have a user without",
        ),
        (NETRC, ["--netrc", "--auth", "a:b"], "use --auth or --netrc, not both"),
        (NETRC, ["--netrc", "--header", "Authorization: x"], "use --netrc or a --header Auth"),
        (NETRC, ["--netrc", "http://a:b@127.0.0.1:9/"], "--netrc would have no effect"),
    ],
)
def test_a_netrc_file_without_effect_is_one_line(text, words, told, home, monkeypatch, capsys):
    (home / ".netrc").unlink()
    if text is not None:
        (home / ".netrc").write_text(text)
        (home / ".netrc").chmod(0o600)
    words = [str(home / ".netrc") if word == "~" else word for word in words]
    monkeypatch.setattr("sys.argv", ["trio-crawler", *words, NO_URL])
    with pytest.raises(SystemExit) as left:
        main()
    err = capsys.readouterr().err
    assert left.value.code == 2
    assert re.fullmatch(r"trio-crawler: .+\n", err)
    assert told in err
    assert SECRET not in err


# In a URL.


@pytest.mark.process
def test_a_password_in_a_url_is_sent_to_its_origin_and_shown_and_kept_nowhere(tmp_path):
    crawled, archive, lines = tmp_path / "crawl", tmp_path / "a.warc", tmp_path / "a.jsonl"
    password = f"{SECRET}:@/%é"
    with (
        threaded_raw_server({"/": html()}) as other,
        threaded_raw_server({"/": html("/a", other.url), "/a": redirect(other.url)}) as server,
    ):
        seed = server.url.replace("//", f"//me:{SECRET}%3A%40%2F%25é@")
        words = ["-v", "--why", "-o", str(crawled), "--warc", str(archive), "--jsonl", str(lines)]
        words += ["--allow-private", "127.0.0.1"]  # the other one, too
        first = crawl(*words, seed)
        # Resumed, and walked again, with another password.
        second = crawl(*words, "--refresh", seed.replace("%25", "x"))
    again = crawl("report", "-v", "--why", str(crawled))
    assert (first.returncode, second.returncode, again.returncode) == (0, 0, 0)
    assert server.targets == ["/robots.txt", "/", "/a"] * 2
    sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == [basic("me", password)] * 3 + [basic("me", password.replace("%", "x"))] * 3
    assert not any("authorization" in request.headers for request in other.requests)
    assert not any("referer" in request.headers for request in server.requests)
    told = "".join(run.stdout + run.stderr for run in (first, second, again))
    assert f"Crawl of {server.url}: " in told
    kept = b"".join(path.read_bytes() for path in (*crawled.iterdir(), archive, lines))
    for shown in (told.encode(), kept):
        assert SECRET.encode() not in shown
        assert sent[0].removeprefix("Basic ").encode() not in shown


@pytest.mark.process
def test_a_url_and_an_option_have_a_user_each_for_their_origins():
    with (
        threaded_raw_server({"/": html()}) as one,
        threaded_raw_server({"/": html()}) as two,
    ):
        result = crawl("--auth=a:b", one.url, two.url.replace("//", "//c:d@"))
    assert result.returncode == 0
    assert {request.headers["authorization"] for request in one.requests} == {basic("a", "b")}
    assert {request.headers["authorization"] for request in two.requests} == {basic("c", "d")}


@pytest.mark.process
def test_an_error_of_the_network_or_of_a_proxy_does_not_tell_the_password():
    with threaded_raw_server({}) as server:
        dead = server.url
    proxy = dead.replace("//", f"//me:{SECRET}@")
    for words in (["--proxy", proxy, NO_URL], [proxy], ["--http2", proxy, "--max-time", "1"]):
        result = crawl("-v", "--why", "--max-tries", "1", *words)
        assert result.returncode == 3
        assert SECRET not in result.stdout + result.stderr


# From the terminal.


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, *words: str) -> None:
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            line = [sys.executable, "-m", "trio_crawler", *words]
            os.execve(sys.executable, line, environment(TERM="dumb"))
        self.shown = b""

    def wait_for(self, text: str) -> None:
        """Read until the text is on the screen."""
        end = time.monotonic() + 20
        while text.encode() not in self.shown:
            readable, _, _ = select.select([self._terminal], [], [], end - time.monotonic())
            assert readable, self.shown
            self.shown += os.read(self._terminal, 4096)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def end(self) -> int:
        """Read to the end and return the exit status."""
        try:
            while octets := os.read(self._terminal, 4096):
                self.shown += octets
        except OSError:
            # Linux says so when the other side is closed.
            pass
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.process
def test_the_terminal_is_asked_for_what_is_missing_and_shows_none_of_it():
    with threaded_raw_server({"/": html()}) as one, threaded_raw_server({"/": html()}) as two:
        seeds = [one.url, two.url.replace("//", "//you@"), two.url.replace("//", "//you@") + "b"]
        terminal = Terminal("--auth", "me", *seeds)
        terminal.wait_for("Password of me: ")
        terminal.type(f"{SECRET}1\n")
        terminal.wait_for(f"Password of you at 127.0.0.1:{two.port}: ")
        terminal.type(f"{SECRET}2\n")
        terminal.end()
    assert one.requests[0].headers["authorization"] == basic("me", f"{SECRET}1")
    sent = {request.headers["authorization"] for request in two.requests}
    assert sent == {basic("you", f"{SECRET}2")}
    assert SECRET.encode() not in terminal.shown


@pytest.mark.process
def test_the_terminal_is_asked_for_the_password_of_a_proxy():
    with threaded_raw_server({"http://h.test/": html()}) as proxy:
        way = proxy.url.replace("//", "//me@")
        terminal = Terminal("--ignore-robots", "--proxy", way, "http://h.test/")
        terminal.wait_for("Password of the user of the proxy: ")
        terminal.type("a:@/%\n")
        assert terminal.end() == 0
    assert proxy.requests[0].headers["proxy-authorization"] == basic("me", "a:@/%")


@pytest.fixture
def locked(tmp_path):
    """Return options for a certificate whose key has a password, and the TLS of a server."""
    authority = pytest.importorskip("trustme").CA()
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    leaf, tls = authority.issue_cert("me"), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(SECRET.encode()),
    )
    names = [tmp_path / name for name in ("cert.pem", "key.pem", "ca.pem")]
    for path, octets in zip(
        names, (leaf.cert_chain_pems[0].bytes(), key, authority.cert_pem.bytes()), strict=True
    ):
        path.write_bytes(octets)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    flags = ("--client-cert", "--client-key", "--cacert")
    return [word for pair in zip(flags, map(str, names), strict=True) for word in pair], tls


@pytest.mark.process
def test_the_terminal_is_asked_for_the_password_of_a_key(locked, tmp_path):
    words, tls = locked
    with threaded_raw_server({"/": html()}, tls=tls) as server:
        terminal = Terminal(*words, "-o", str(tmp_path / "out"), server.url)
        terminal.wait_for(f"Password of the key in {tmp_path}/key.pem: ")
        terminal.type(f"{SECRET}\n")
        assert terminal.end() == 0
    assert "/" in server.targets
    assert SECRET.encode() not in terminal.shown
    kept = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert kept
    assert not any(SECRET.encode() in octets for octets in kept)


def test_a_key_with_a_password_needs_a_terminal(locked):
    words, _ = locked
    result = crawl(*words, NO_URL)
    assert (result.returncode, result.stdout) == (2, "")
    asks = "the key of --client-key asks for a password, and standard input is no terminal"
    assert result.stderr == f"trio-crawler: {asks}: decrypt the key with `openssl pkey`\n"


@pytest.mark.process
def test_standard_input_that_is_a_terminal_is_asked_for_one_line_that_is_not_shown():
    with threaded_raw_server({"/": html()}) as server:
        terminal = Terminal("--header", "@-", server.url)
        terminal.wait_for("Value of --header: ")
        terminal.type(f"X-A: {SECRET}\n")
        assert terminal.end() == 0
    assert server.requests[0].headers["x-a"] == SECRET
    assert SECRET.encode() not in terminal.shown


@pytest.mark.process
@pytest.mark.parametrize(
    ("typed", "status", "told"), [("\x03", 130, ""), ("\x04", 2, "no password was typed: use")]
)
def test_a_question_that_is_not_answered_ends_the_command_in_one_line(typed, status, told):
    terminal = Terminal("--auth", "me", NO_URL)
    terminal.wait_for("Password of me: ")
    terminal.type(typed)
    assert terminal.end() == status
    shown = terminal.shown.decode()
    assert told in shown
    assert "Traceback" not in shown
    assert len(shown.split("\n")) <= 3


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--auth", "me", NO_URL], "--auth USER asks for a password"),
        (["http://me@127.0.0.1:9/"], "a user in a URL asks for a password"),
        (["--proxy", "http://me@127.0.0.1:9", NO_URL], "a user in --proxy asks for a password"),
    ],
)
def test_without_a_terminal_a_missing_password_is_one_line_that_names_the_ways(words, told):
    result = crawl(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"trio-crawler: {told}, and standard input is no terminal")
    assert "@FILE, @- (standard input) or @env:NAME\n" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.process
def test_what_else_is_wrong_is_told_before_a_password_is_asked_for():
    result = crawl("--auth", "me", "--depth", "x", NO_URL)
    assert "--depth" in result.stderr
    assert "--auth" not in result.stderr


# In `ps`.


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")
def test_a_secret_on_the_command_line_is_gone_from_ps_before_the_first_request(tmp_path):
    shown: list[str] = []
    running: list[subprocess.Popen[bytes]] = []
    ready = threading.Event()

    async def look(request: Request, stream: trio.abc.Stream) -> None:
        await trio.to_thread.run_sync(ready.wait)
        read = Path(f"/proc/{running[0].pid}/cmdline").read_text
        shown.append(await trio.to_thread.run_sync(read))
        await stream.send_all(html())

    (tmp_path / "key").write_text(f"X-B: {SECRET}")
    with threaded_raw_server({"/": look, "/robots.txt": reply(404)}) as server:
        seed = server.url.replace("//", f"//me:{SECRET}@")
        words = ["--header", f"X-A: {SECRET}", f"--cookie=a={SECRET}"]
        words += ["--header", f"@{tmp_path}/key", "--depth", "3", seed]
        with start(*words) as process:
            running.append(process)
            ready.set()
            ended(process)
    assert process.returncode == 0
    assert server.requests[1].headers["x-a"] == SECRET
    assert SECRET not in shown[0]
    words = shown[0].split("\0")
    assert words[-2].startswith("http://***")
    assert words[-2].endswith(f"@127.0.0.1:{server.port}/")
    assert [*words[-5:-2]] == [f"@{tmp_path}/key", "--depth", "3"]
    assert words[2] == "trio_crawler"
