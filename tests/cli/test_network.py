"""What the command sends to whom, whom it trusts, and by which way it goes."""

from __future__ import annotations

import base64
import json
import os
import resource
import shutil
import ssl
import subprocess
import sys
import threading
import time

import pytest
import trio
import trustme
from cli.asked import pages, requests
from cli.command import crawl, ended, environment, start
from sites.raw import Request, Server, hang_up, html, redirect, reply, threaded_raw_server

from trio_crawler.net.http1.wire import MAX_IDLE

pytestmark = pytest.mark.process

SECRET = "s3cret-w0rd"


def sent(server: Server, name: str) -> list[str | None]:
    """List what each request had under a header's name."""
    return [request.headers.get(name) for request in server.requests]


# What is sent, and to whom.


def test_auth_goes_to_the_origin_that_was_given_and_appears_nowhere(tmp_path):
    told = tmp_path / "told.jsonl"
    with (
        threaded_raw_server({"/": html()}) as other,
        threaded_raw_server({"/": html("/a", other.url), "/a": redirect(other.url)}) as server,
    ):
        words = ["-v", "--why", "--jsonl", str(told), "--allow-private", "127.0.0.1"]
        result = crawl(*words, f"--auth=me:{SECRET}:é", server.url)
    assert result.returncode == 0
    basic = "Basic " + base64.b64encode(f"me:{SECRET}:é".encode()).decode()
    assert server.targets == ["/robots.txt", "/", "/a"]
    assert sent(server, "authorization") == [basic, basic, basic]
    assert sent(other, "authorization") == [None, None]
    for text in (result.stdout, result.stderr, told.read_text()):
        assert text
        assert SECRET not in text
        assert basic not in text


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


def test_cookies_of_a_host_are_kept_and_sent_back_when_asked_for():
    site = {"/": GREETING, "/a": html(), "/b": html()}
    with threaded_raw_server(site) as server:
        result = crawl("-v", "--cookies", "--cookie", "own=0", server.url)
    cookies = dict(zip(server.targets, sent(server, "cookie"), strict=True))
    assert cookies.pop("/robots.txt") == "own=0"
    assert cookies == {"/": "own=0", "/a": f"own=0; id={SECRET}", "/b": f"own=0; x=1; id={SECRET}"}
    assert SECRET not in result.stdout + result.stderr


def test_a_cookie_that_is_not_ascii_comes_back_byte_for_byte():
    head = redirect("/a").removesuffix(b"\r\n")
    raw = head + b"Set-Cookie: a=\xe9\xc3\xa9\r\n\r\n"
    with threaded_raw_server({"/": raw, "/a": html()}) as server:
        crawl("--cookies", server.url)
    assert pages(server) == ["/", "/a"]
    assert b"\r\nCookie: a=\xe9\xc3\xa9\r\n" in requests(server)[1].head


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


@pytest.mark.parametrize("host", ["::1", "[::1]", "[0:0:0:0:0:0:0:1]"])
def test_an_address_of_ipv6_may_be_named_in_each_of_its_spellings(unknown_tls, host):
    with threaded_raw_server({"/": html()}, host="::1", tls=unknown_tls) as server:
        result = crawl("--insecure-host", host, server.url)
    assert (result.returncode, pages(server)) == (0, ["/"])
    assert "Certificates not verified: ::1\n" in result.stdout


def test_an_international_name_is_told_as_it_goes_over_the_wire():
    with threaded_raw_server({"/": html()}) as server:
        result = crawl("--insecure-host", "Bücher.test", "--insecure-host", "b.test", server.url)
    assert "Certificates not verified: xn--bcher-kva.test, b.test\n" in result.stdout


COMPANY = {
    "/": html("/a"),
    "/a": html(),
    "/b": html(),
    "/robots.txt": reply(200, {"Content-Type": "text/plain"}, b"Sitemap: /sitemap.xml"),
    "/sitemap.xml": reply(
        200, {"Content-Type": "application/xml"}, b"<urlset><url><loc>/b</loc></url></urlset>"
    ),
}


@pytest.mark.parametrize("way", ["--cacert", "SSL_CERT_FILE", "SSL_CERT_DIR", "all"])
def test_a_site_with_an_authority_of_its_company_is_crawled_when_the_authority_is_named(
    way, tmp_path
):
    authority, other = trustme.CA(), trustme.CA()
    own, foreign, directory = tmp_path / "own.pem", tmp_path / "other.pem", tmp_path / "certs"
    authority.cert_pem.write_to_path(own)
    other.cert_pem.write_to_path(foreign)
    directory.mkdir()
    if way == "SSL_CERT_DIR":
        if shutil.which("openssl") is None:
            pytest.skip("openssl names the files of a directory")
        shutil.copy(own, directory)
        subprocess.run(["openssl", "rehash", str(directory)], check=True, timeout=30)
    ways = {
        "--cacert": (["--cacert", str(own)], {}),
        "SSL_CERT_FILE": ([], {"SSL_CERT_FILE": str(own)}),
        "SSL_CERT_DIR": ([], {"SSL_CERT_DIR": str(directory)}),
        "all": (
            ["--cacert", str(own)],
            {"SSL_CERT_FILE": str(foreign), "SSL_CERT_DIR": "/no/such/place"},
        ),
    }
    words, variables = ways[way]
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    site = dict(COMPANY)
    with threaded_raw_server(site, tls=context) as server:
        for path in ("/robots.txt", "/sitemap.xml"):
            whole = site[path].partition(b"\r\n\r\n")[2].replace(b" /", b" " + server.url.encode())
            whole = whole.replace(b"<loc>/", b"<loc>" + server.url.encode())
            kind = "text/plain" if path == "/robots.txt" else "application/xml"
            site[path] = reply(200, {"Content-Type": kind}, whole)
        strict = crawl(server.url)
        assert server.targets == []
        result = crawl(*words, server.url, env=environment(**variables))
    assert (strict.returncode, result.returncode) == (3, 0)
    assert "; name its authority with --cacert\n" in strict.stdout
    assert set(server.targets) == set(site)
    assert "not verified" not in result.stdout


@pytest.mark.parametrize(
    ("words", "variables", "line"),
    [
        (["--cacert", "/none"], {}, "--cacert must be a file of certificates in PEM, not '/none'"),
        (["--cacert", ""], {}, "--cacert must be a file of certificates in PEM, not ''"),
        (["--cacert", __file__], {}, "--cacert must be a file of certificates in PEM"),
        ([], {"SSL_CERT_FILE": "/none"}, "SSL_CERT_FILE must be a file of certificates in PEM"),
        ([], {"SSL_CERT_FILE": __file__}, "SSL_CERT_FILE must be a file of certificates in PEM"),
        ([], {"SSL_CERT_DIR": "/none"}, "SSL_CERT_DIR must be a directory of certificates"),
        ([], {"SSL_CERT_DIR": os.path.dirname(__file__)}, "run openssl rehash on it"),
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
        (["--client-cert", ""], "--client-cert: cannot read '': No such file"),
        (["--client-cert", "/"], "--client-cert: cannot read '/': Is a directory"),
        (["--client-cert", __file__], "--client-cert: '{}' has no certificate in PEM"),
        (["--client-cert", "{own}"], "--client-cert: '{own}' has no private key in PEM"),
        (
            ["--client-cert", "{own}", "--client-key", "/none"],
            "--client-key: cannot read '/none': No such file",
        ),
        (
            ["--client-cert", "{own}", "--client-key", "{key}"],
            "--client-cert: the key in '{key}' is not that of the certificate in '{own}'",
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


def test_another_port_of_the_same_machine_is_refused_unless_it_is_named():
    with threaded_raw_server({"/": html()}) as other:
        beyond = f"http://site.test:{other.port}/"
        with threaded_raw_server({"/": html(beyond)}) as server:
            seed = f"http://site.test:{server.port}/"
            refused = named(seed)
            assert other.connections == 0
            permitted = named(seed, beyond)
    assert refused.returncode == 1
    assert f"  blocked_address {beyond}\n" in refused.stdout
    assert f"only port {server.port}; name this URL as a seed" in refused.stdout
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


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    "way", ["ftp://x", "http://127.0.0.1:99999", "127.0.0.1:0", f"http://me:{SECRET}@127.0.0.1:x"]
)
def test_a_proxy_of_the_environment_that_cannot_be_used_is_told_by_the_variables_name(name, way):
    names = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    env = environment(**dict.fromkeys([*names, *map(str.upper, names)], ""))
    for each in (*names, *map(str.upper, names)):
        del env[each]
    result = crawl("--trust-env", "http://h.test/", env={**env, name: way})
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"trio-crawler: {name} must be a URL such as http://")
    assert result.stderr.count("\n") == 1
    assert SECRET not in result.stderr


@pytest.mark.parametrize("port", ["99999", "0"])
def test_a_proxy_at_a_port_that_there_is_not_is_told_by_the_option(port):
    result = crawl("--proxy", f"http://127.0.0.1:{port}", "http://h.test/")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("trio-crawler: --proxy must be a URL such as http://")
    assert result.stderr.count("\n") == 1


def test_a_proxy_that_wants_a_password_is_told_and_asked_once(dead_url):
    with threaded_raw_server({f"{dead_url}robots.txt": reply(407), dead_url: html()}) as proxy:
        result = crawl("--proxy", proxy.url, dead_url)
    assert result.returncode == 3
    told = f"the proxy 127.0.0.1:{proxy.port} wants a user and a password: give them in --proxy"
    assert told in result.stdout
    assert proxy.targets == [f"{dead_url}robots.txt"]


@pytest.mark.parametrize(("words", "method"), [([], "GET"), (["--http2"], "PRI")])
def test_http2_is_spoken_when_asked_for_with_a_server_that_knows_it(words, method):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    # RFC 9113, 3.4: a connection begins with a request that no older server understands.
    with threaded_raw_server(hang_up, tls=context) as server:
        crawl("--max-tries", "1", "--insecure-host", "127.0.0.1", *words, server.url)
    assert server.requests[0].method == method


# Retries.


def test_retry_after_is_respected_and_a_retry_is_told():
    at: list[float] = []

    async def busy_once(request: Request, stream: trio.abc.Stream) -> None:
        at.append(time.monotonic())
        await stream.send_all(reply(503, {"Retry-After": "1"}) if len(at) == 1 else html())

    with threaded_raw_server({"/": busy_once}) as server:
        result = crawl(server.url)
    assert result.returncode == 0
    assert at[1] - at[0] >= 1
    assert "\nTried again: 1 time\n" in result.stdout


def test_the_last_try_of_a_busy_server_is_a_broken_link():
    with threaded_raw_server({"/": html("/b"), "/b": reply(429, {"Retry-After": "0"})}) as server:
        result = crawl("--max-tries", "2", server.url)
    assert result.returncode == 1
    assert pages(server) == ["/", "/b", "/b"]
    assert f"  429 {server.url}b\n" in result.stdout


@pytest.mark.parametrize(("words", "tries"), [([], 0), (["--ignore-robots"], 1)])
def test_a_failure_is_told_with_the_phase_in_which_it_happened(words, tries, dead_url):
    # A host of which not even robots.txt could be had is asked for nothing else.
    result = crawl(*words, "--max-tries", "1", "--jsonl", "-", dead_url)
    record = json.loads(result.stdout)
    assert (record["reason"], record["phase"], record["tries"]) == (
        "connection_refused",
        "connect",
        tries,
    )


# Many at once.


def test_the_limit_of_open_files_is_raised_to_what_the_tasks_need():
    tasks = 60
    arrived = threading.Barrier(tasks)

    async def together(request: Request, stream: trio.abc.Stream) -> None:
        # Nobody is answered before all are here: with fewer connections none would be.
        await trio.to_thread.run_sync(
            arrived.wait, 15, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
        )
        await stream.send_all(html())

    def few_files() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))

    leaves = [f"/{number}" for number in range(tasks)]
    site = {"/": html(*leaves), **dict.fromkeys(leaves, together)}
    words = ["--max-tasks", str(tasks), "--per-host", str(tasks), "--max-tries", "1"]
    with (
        threaded_raw_server(site) as server,
        start(*words, server.url, preexec_fn=few_files) as process,
    ):
        out, err = ended(process, patience=30)
    assert (process.returncode, err) == (0, "")
    assert f"admitted {tasks + 1} = {tasks + 1} pages" in out


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


def test_no_more_open_files_are_asked_for_than_the_connections_need():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = """if True:
        import resource
        from trio_crawler.cli.build import _raise_file_limit
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
        _raise_file_limit(10)
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    """
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    needed = 4 * 10 + 100 + 2 * MAX_IDLE
    assert int(run.stdout) == (needed if hard == resource.RLIM_INFINITY else min(needed, hard))


def test_a_hard_limit_of_open_files_is_kept_and_the_crawl_lives_with_it():
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 60))

    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        result = crawl("-q", "--max-tasks", "1000", server.url, preexec_fn=few_files)
    assert (result.returncode, result.stderr) == (0, "")
    assert "2 pages" in result.stdout
