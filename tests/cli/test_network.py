"""What the command sends to whom, whom it trusts, and by which way it goes."""

from __future__ import annotations

import base64
import resource
import ssl
import subprocess
import sys

import pytest
import trustme
from cli.asked import pages
from cli.command import crawl, environment
from sites.raw import Server, hang_up, html, reply, threaded_raw_server

pytestmark = pytest.mark.process

SECRET = "s3cret-w0rd"


def sent(server: Server, name: str) -> list[str | None]:
    """List what each request had under a header's name."""
    return [request.headers.get(name) for request in server.requests]


# What is sent, and to whom.


def test_cookies_of_the_command_line_are_one_header_for_the_origin_that_was_given():
    words = ["--cookie", f"a={SECRET}", "--cookie", "b=2; c=3", "--allow-private", "127.0.0.1"]
    with (
        threaded_raw_server({"/": html()}) as other,
        threaded_raw_server({"/": html(other.url)}) as server,
    ):
        result = crawl("-v", *words, server.url)
    assert sent(server, "cookie") == [f"a={SECRET}; b=2; c=3"] * 2
    assert server.requests[1].head.lower().count(b"\r\ncookie:") == 1
    assert sent(other, "cookie") == [None, None]
    assert SECRET not in result.stdout + result.stderr


GREETING = reply(
    200,
    [
        ("Content-Type", "text/html"),
        ("Set-Cookie", f"id={SECRET}"),
        ("Set-Cookie", "x=1; Path=/b"),
    ],
    b'<a href="/a">a</a> <a href="/b">b</a>',
)


def test_cookies_of_a_robots_txt_are_not_kept_and_the_archive_has_what_was_sent(tmp_path):
    cookie = {"Set-Cookie": f"id={SECRET}; Path=/"}
    moved = reply(302, cookie | {"Location": "/rules.txt"})
    site = {"/robots.txt": moved, "/": html()}
    site["/rules.txt"] = reply(headers=cookie, body=b"User-agent: *")
    directory, archive = tmp_path / "crawl", tmp_path / "site.warc"
    with threaded_raw_server(site) as server:
        crawl("--cookies", "-o", str(directory), "--warc", str(archive), server.url)
    assert server.targets == ["/robots.txt", "/rules.txt", "/"]
    assert sent(server, "cookie") == [None, None, None]
    assert archive.read_bytes().count(SECRET.encode()) == 2
    for path in directory.iterdir():
        assert SECRET.encode() not in path.read_bytes(), path


def test_without_the_option_no_cookie_is_kept():
    with threaded_raw_server({"/": GREETING, "/a": html(), "/b": html()}) as server:
        crawl(server.url)
    assert sent(server, "cookie") == [None, None, None, None]


REFUSES = reply(401, {"WWW-Authenticate": 'Basic realm="x"'}, b"who are you?")


def test_a_seed_that_wants_a_login_is_told_with_the_option_that_gives_one():
    with threaded_raw_server({"/": REFUSES}) as server:
        result = crawl(server.url)
        wrong = crawl("--auth", f"me:{SECRET}", server.url)
        header = crawl("--header", f"Authorization: Basic {SECRET}", server.url)
        in_url = crawl(server.url.replace("://", f"://me:{SECRET}@"))
    wants = "the server wants a user and a password: give --auth USER"
    assert f"  401 {server.url}\n      {wants}\n      (seed)\n" in result.stdout
    for refused in (wrong, header, in_url):
        assert wants not in refused.stdout
        said = "the server refused the user and the password that it was given"
        assert f"  401 {server.url}\n      {said}\n      (seed)\n" in refused.stdout
        assert SECRET not in refused.stdout + refused.stderr


# Whom it trusts.


@pytest.fixture(scope="module")
def unknown_tls() -> ssl.SSLContext:
    """A server's side of TLS that nobody has a reason to trust."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("other.test").configure_cert(context)
    return context


def test_a_certificate_is_verified_unless_its_host_is_named_and_the_report_says_so(unknown_tls):
    with threaded_raw_server({"/": html("/a"), "/a": html()}, tls=unknown_tls) as server:
        strict = crawl(server.url)
        trusting = crawl("--insecure-host", "127.0.0.1", server.url)
        other = crawl("--insecure-host", "localhost", server.url)
    assert (strict.returncode, other.returncode) == (3, 3)
    assert f"  tls {server.url}\n      the certificate of" in strict.stdout
    assert "not verified" not in strict.stdout
    assert trusting.returncode == 0
    assert pages(server) == ["/", "/a"]
    heading = f"Crawl of {server.url}: nothing is broken\nCertificates not verified: "
    assert trusting.stdout.startswith(f"{heading}127.0.0.1\n")
    assert other.stdout.splitlines()[1] == "Certificates not verified: localhost"


@pytest.mark.parametrize("way", ["--cacert", "SSL_CERT_FILE"])
def test_a_site_with_an_authority_of_its_company_is_crawled_when_the_authority_is_named(
    way, tmp_path
):
    authority, own = trustme.CA(), tmp_path / "own.pem"
    authority.cert_pem.write_to_path(own)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    words, variables = ([way, str(own)], {}) if way == "--cacert" else ([], {way: str(own)})
    with threaded_raw_server({"/": html("/a"), "/a": html()}, tls=context) as server:
        strict = crawl(server.url)
        assert server.targets == []
        result = crawl(*words, server.url, env=environment(**variables))
    assert (strict.returncode, result.returncode) == (3, 0)
    assert "; name its authority with --cacert\n" in strict.stdout
    assert server.targets == ["/robots.txt", "/", "/a"]
    assert "not verified" not in result.stdout


@pytest.mark.parametrize(
    ("words", "variables", "line"),
    [
        (["--cacert", "/none"], {}, "--cacert must be a file of certificates in PEM, not '/none'"),
        ([], {"SSL_CERT_FILE": "/none"}, "SSL_CERT_FILE must be a file of certificates in PEM"),
        ([], {"SSL_CERT_DIR": "/none"}, "SSL_CERT_DIR must be a directory of certificates"),
    ],
)
def test_authorities_that_cannot_be_read_are_told_in_one_line(words, variables, line, dead_url):
    run = crawl(*words, dead_url, env=environment(**variables))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("trio-crawler: ")
    assert line in run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--client-cert", "/none"], "--client-cert: cannot read '/none': No such file"),
        (["--client-cert", "{own}"], "--client-cert: cannot use '{own}' with the key in '{own}'"),
        (
            ["--client-cert", "{own}", "--client-key", "/none"],
            "--client-key: cannot read '/none': No such file",
        ),
        (["--client-key", "{key}"], "--client-key would have no effect without --client-cert"),
    ],
)
def test_a_certificate_of_the_client_that_cannot_be_used_is_told_in_one_line(
    words, line, dead_url, tmp_path
):
    authority = trustme.CA()
    places = {"own": tmp_path / "own.pem", "key": tmp_path / "key.pem"}
    authority.issue_cert("me").cert_chain_pems[0].write_to_path(places["own"])
    authority.issue_cert("me").private_key_pem.write_to_path(places["key"])
    run = crawl(*(word.format(**places) for word in words), dead_url)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("trio-crawler: ")
    assert line.format(__file__, **places) in run.stderr
    assert len(run.stderr.splitlines()) == 1


# The names of the test are looked up here, where no question goes to the network.
NAMES = """
import socket
asked = socket.getaddrinfo
names = {b"site.test": "127.0.0.1", b"www.site.test": "127.0.0.2"}
def getaddrinfo(host, *args, **more):
    return asked(names[host], *args, **more)
socket.getaddrinfo = getaddrinfo
from trio_crawler.cli import main
main()
"""


def named(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command where `site.test` is 127.0.0.1 and `www.site.test` 127.0.0.2."""
    command = [sys.executable, "-c", NAMES, *words]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize("allowed", ["127.0.0.2", "127.0.0.0/8"])
def test_a_private_address_that_no_seed_names_is_refused_unless_it_is_allowed(allowed):
    with threaded_raw_server({"/": html()}, host="127.0.0.2") as other:
        beyond = f"http://www.site.test:{other.port}/"
        with threaded_raw_server({"/": html(beyond)}) as server:
            seed = f"http://site.test:{server.port}/"
            refused = named("--max-tries", "1", seed)
            assert other.connections == 0
            permitted = named("--allow-private", "10.0.0.0/8", "--allow-private", allowed, seed)
    assert refused.returncode == 1
    assert f"  blocked_address {beyond}\n" in refused.stdout
    assert "--allow-private" in refused.stdout
    assert permitted.returncode == 0
    assert pages(other) == ["/"]


def test_with_public_only_a_name_that_leads_inside_is_refused_though_it_was_given():
    with threaded_raw_server({"/": html()}) as server:
        for seed in (server.url, f"http://site.test:{server.port}/"):
            result = named("--public-only", seed)
            assert result.returncode == 3
            assert "with --public-only no seed opens it" in result.stdout
    assert server.connections == 0


# By which way.


@pytest.fixture
def dead_url() -> str:
    """A URL that nobody answers."""
    with threaded_raw_server({}) as server:
        return server.url


def test_a_proxy_is_asked_for_everything_and_its_password_is_told_to_nobody_else(dead_url):
    with threaded_raw_server({dead_url: html("/a"), f"{dead_url}a": html()}) as proxy:
        way = proxy.url.replace("//", f"//me:{SECRET}@")
        result = crawl("-v", "--proxy", way, dead_url)
    assert result.returncode == 0
    assert proxy.targets == [f"{dead_url}robots.txt", dead_url, f"{dead_url}a"]
    basic = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert sent(proxy, "proxy-authorization") == [basic, basic, basic]
    assert SECRET not in result.stdout + result.stderr


def test_a_proxy_of_the_environment_is_used_when_that_is_to_be_trusted(dead_url):
    with threaded_raw_server({dead_url: html()}) as proxy:
        env = environment(HTTP_PROXY=proxy.url, http_proxy=proxy.url, NO_PROXY="", no_proxy="")
        own = crawl("--max-tries", "1", dead_url, env=env)
        assert (own.returncode, proxy.connections) == (3, 0)
        result = crawl("--trust-env", dead_url, env=env)
    assert (result.returncode, pages(proxy)) == (0, [dead_url])


@pytest.mark.parametrize(("words", "method"), [([], "GET"), (["--http2"], "PRI")])
def test_http2_is_spoken_when_asked_for_with_a_server_that_knows_it(words, method):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    # RFC 9113, 3.4: a connection begins with a request that no older server understands.
    with threaded_raw_server(hang_up, tls=context) as server:
        crawl("--max-tries", "1", "--insecure-host", "127.0.0.1", *words, server.url)
    assert server.requests[0].method == method


# Many at once.


@pytest.mark.parametrize(("soft", "hard"), [(40, 60), (40, 3000), (2000, 3000)])
def test_the_limit_of_open_files_is_raised_for_the_connections_that_are_kept(soft, hard):
    program = f"""if True:
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
        from trio_crawler.cli.build import _raise_file_limit
        from trio_crawler.net.http1.wire import Wire
        _raise_file_limit(10)
        print(*resource.getrlimit(resource.RLIMIT_NOFILE), Wire()._pool._max_idle)
    """
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(hard), str(hard), str(hard // 2)]


def test_a_hard_limit_of_open_files_is_kept_and_the_crawl_lives_with_it():
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 60))

    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        result = crawl("-q", "--max-tasks", "1000", server.url, preexec_fn=few_files)
    assert (result.returncode, result.stderr) == (0, "")
    assert "2 pages" in result.stdout
