"""Real servers, as Debian packages them, each started with a configuration of the test.

    authority = Authority(tmp_path)
    certificate = authority.issue("localhost")
    with nginx("server { listen 127.0.0.1:@PORT@ ssl; " + TLS + " }", **certificate) as server:
        ...  # fetch server.url("https")
    assert server.connections() == 1

In a configuration `@PORT@`, `@PORT2@` and so on are free ports on every address of loopback,
`@HOME@` is a directory of the server, `@ROOT@` the directory of its content, and `@NAME@` the
keyword argument `name`. A test is skipped where the program is missing. A server is ready when the
block begins, and its access log is whole when the block has ended; both may block the thread for
some milliseconds.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

SQLITE = Path("/usr/share/doc/sqlite3")
"""The documentation of SQLite, from the package sqlite3-doc."""

PATIENCE = 10.0
TLS = "ssl_certificate @CERTIFICATE@; ssl_certificate_key @KEY@;"
"""What a server of nginx with `Authority.issue` needs beside `listen ... ssl`."""

_PORT = re.compile("@PORT[0-9]*@")
_COLUMNS = 5
_MODULES = (
    *("mpm_event", "authz_core", "dir", "mime", "alias", "headers", "filter", "deflate", "env"),
    *("brotli", "setenvif", "socache_shmcb", "ssl", "http2", "rewrite", "reqtimeout"),
)
_NGINX = """
daemon off;
master_process off;
pid @HOME@/pid;
error_log @HOME@/error.log info;
events { worker_connections 1024; }
http {
    include /etc/nginx/mime.types;
    log_format test
        '$connection_requests\t$status\t$request\t$ssl_protocol\t$ssl_session_reused';
    access_log @HOME@/access.log test;
    client_body_temp_path @HOME@/body;
    proxy_temp_path @HOME@/proxy;
    fastcgi_temp_path @HOME@/fastcgi;
    uwsgi_temp_path @HOME@/uwsgi;
    scgi_temp_path @HOME@/scgi;
    root @ROOT@;
    index index.html;
    ssl_protocols TLSv1.2 TLSv1.3;
    @SERVERS@
}
"""
_APACHE = """
ServerRoot @HOME@
ServerName localhost
PidFile @HOME@/pid
DefaultRuntimeDir @HOME@
Mutex file:@HOME@
ErrorLog @HOME@/error.log
LogLevel info
@MODULES@
@USER@
TypesConfig /etc/mime.types
LogFormat "%k\\t%>s\\t%r\\t%{SSL_PROTOCOL}x\\t%{SSL_SESSION_RESUMED}x" test
CustomLog @HOME@/access.log test
SSLSessionCache shmcb:@HOME@/sessions(512000)
DocumentRoot @ROOT@
DirectoryIndex index.html
@SERVERS@
"""
_LIGHTTPD = """
server.document-root = "@ROOT@"
server.errorlog = "@HOME@/error.log"
server.modules += ("mod_accesslog", "mod_openssl")
accesslog.filename = "@HOME@/access.log"
accesslog.format = "%k\t%s\t%r\t-\t-"
index-file.names = ("index.html")
mimetype.assign = (".html" => "text/html", ".css" => "text/css", "" => "text/plain")
@SERVERS@
"""
_HAPROXY = """
global
    log stdout format raw local0
defaults
    mode http
    log global
    log-format "0\t%ST\t%HM %HU %HV\t%sslv\t%[ssl_fc_is_resumed]"
    timeout connect 5s
    timeout client 10s
    timeout server 10s
@SERVERS@
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One request in the access log of a server.

    `number` counts the requests of its connection, from 1 on (of HTTP/1.1: other versions are
    counted in other ways). `tls` is the version of TLS, where the server tells it, and `resumed`
    whether an earlier session is resumed.
    """

    number: int
    status: int
    protocol: str
    method: str
    target: str
    tls: str
    resumed: bool


class Running:
    """A server that runs until its block ends, with the directory of its files."""

    def __init__(self, home: Path, ports: Sequence[int], log: str, first: int) -> None:
        self.home = home
        self.ports = ports
        self._path = home / log
        self._first = first
        self._log = ""

    @property
    def port(self) -> int:
        """The first port of the configuration."""
        return self.ports[0]

    def url(self, scheme: str = "http", host: str = "127.0.0.1", port: int = 0) -> str:
        """Return the URL of the content; the port is the first one by default."""
        return f"{scheme}://{host}:{port or self.port}/"

    def log(self) -> list[Entry]:
        """Return the requests that the server has logged until now."""
        if self._path.exists():
            self._log = self._path.read_text("utf-8", "replace")
        # A server that logs to its standard output says other things there too.
        rows = (line.split("\t") for line in self._log.splitlines())
        return [_entry(*row, first=self._first) for row in rows if len(row) == _COLUMNS]

    def statuses(self) -> Counter[tuple[str, int]]:
        """Return how often each target was answered with each status."""
        return Counter((entry.target, entry.status) for entry in self.log())

    def connections(self) -> int:
        """Return the number of connections with a request."""
        return sum(entry.number == 1 for entry in self.log())

    def error_log(self) -> str:
        """Return what the server has said about itself; only while it runs."""
        paths = (self.home / name for name in ("error.log", "output"))
        return "".join(path.read_text("utf-8", "replace") for path in paths if path.exists())


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a certificate: with those of the authorities below the root, its key, both."""

    certificate: Path
    key: Path
    both: Path

    def keys(self) -> tuple[str, ...]:
        """Return the names of the files, for `**certificate`."""
        return "certificate", "key", "both"

    def __getitem__(self, name: str) -> Path:
        return Path(getattr(self, name))


class Authority:
    """An authority with certificates in files, below `at`. `file` has its own certificate."""

    def __init__(self, at: Path, below: Authority | None = None) -> None:
        trustme = pytest.importorskip("trustme")
        self._at = at
        self._ca = below._ca.create_child_ca() if below else trustme.CA()
        self._issued = 0
        self.file = at / f"authority-{id(self)}.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def issue(self, *names: str, chain: bool = True, **how: Any) -> Certificate:
        """Issue a certificate; `how` is as in `trustme.CA.issue_cert`.

        With `chain` the certificates of the authorities between it and the root are in the file.
        """
        self._issued += 1
        leaf = self._ca.issue_cert(*names, **how)
        stem = self.file.with_suffix(f".{self._issued}")
        certificate, key, both = (Path(f"{stem}.{kind}.pem") for kind in ("cert", "key", "both"))
        chained = leaf.cert_chain_pems if chain else leaf.cert_chain_pems[:1]
        certificate.write_bytes(b"".join(pem.bytes() for pem in chained))
        leaf.private_key_pem.write_to_path(key)
        both.write_bytes(certificate.read_bytes() + key.read_bytes())
        return Certificate(certificate, key, both)

    def issue_self(self) -> Certificate:
        """Return the certificate of the authority itself, which its own key has signed."""
        key, both = (self.file.with_suffix(f".{kind}.pem") for kind in ("key", "both"))
        self._ca.private_key_pem.write_to_path(key)
        both.write_bytes(self.file.read_bytes() + key.read_bytes())
        return Certificate(self.file, key, both)


@contextmanager
def nginx(servers: str, *, root: Path = SQLITE, **values: object) -> Iterator[Running]:
    """Start nginx with what is inside the block `http`; each server has the content of `root`."""
    text = _NGINX.replace("@SERVERS@", servers)
    command = "nginx -p @HOME@ -e @HOME@/error.log -c @CONFIGURATION@"
    with _started("nginx", command, text, root=root, **values) as server:
        yield server


@contextmanager
def apache(servers: str, *, root: Path = SQLITE, **values: object) -> Iterator[Running]:
    """Start Apache; with `Listen @PORT@` there is a server for `root` already.

    Started by root, it reads the content as www-data, but the keys as root.
    """
    modules = "\n".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in _MODULES
    )
    user = "User www-data\nGroup www-data" if os.getuid() == 0 else ""
    text = _APACHE.replace("@MODULES@", modules).replace("@USER@", user)
    command = "apache2 -d @HOME@ -f @CONFIGURATION@ -D FOREGROUND"
    text = text.replace("@SERVERS@", servers)
    with _started("apache2", command, text, root=root, first=0, **values) as server:
        yield server


@contextmanager
def lighttpd(servers: str, *, root: Path = SQLITE, **values: object) -> Iterator[Running]:
    """Start lighttpd; with `server.port = @PORT@` there is a server for `root` already."""
    text = _LIGHTTPD.replace("@SERVERS@", servers)
    command = "lighttpd -D -f @CONFIGURATION@"
    with _started("lighttpd", command, text, root=root, first=0, **values) as server:
        yield server


@contextmanager
def haproxy(servers: str, **values: object) -> Iterator[Running]:
    """Start haproxy with frontends and backends; its log has no numbers of requests."""
    text = _HAPROXY.replace("@SERVERS@", servers)
    command = "haproxy -db -f @CONFIGURATION@"
    with _started("haproxy", command, text, log="output", **values) as server:
        yield server


@contextmanager
def php(begin: Path, *, root: Path) -> Iterator[Running]:
    """Start PHP's own server, which runs the program `begin` first; it answers one by one."""
    command = f"php -d auto_prepend_file={begin} -S 127.0.0.1:@PORT@ -t @ROOT@"
    with _started("php", command, "@PORT@", root=root, log="output") as server:
        yield server


@contextmanager
def fossil(repository: Path) -> Iterator[Running]:
    """Start the server of Fossil for one repository; it has no access log."""
    command = f"fossil server {repository} --localhost --port @PORT@"
    with _started("fossil", command, "@PORT@", root=repository.parent, log="output") as server:
        yield server


@contextmanager
def nghttpd(
    *options: str, root: Path = SQLITE, certificate: Path, key: Path, **values: object
) -> Iterator[Running]:
    """Start nghttpd, which speaks HTTP/2 only; it has no access log."""
    words = ["nghttpd", *options, "-a", "127.0.0.1", "-d", str(root)]
    command = " ".join([*words, "@PORT@", str(key), str(certificate)])
    with _started("nghttpd", command, "@PORT@", root=root, **values) as server:
        yield server


@contextmanager
def _started(
    program: str,
    command: str,
    text: str,
    *,
    root: Path = SQLITE,
    first: int = 1,
    log: str = "access.log",
    **values: object,
) -> Iterator[Running]:
    """Start a program; `first` is the number of the first request of a connection in its log."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    if not root.is_dir():
        pytest.skip(f"{root} is missing: the package sqlite3-doc has it")
    with TemporaryDirectory() as directory:
        home = Path(directory)
        # Apache has to read below it as another user.
        home.chmod(0o755)
        places = {"home": home, "root": root, "configuration": home / "configuration", **values}
        names = dict.fromkeys(_PORT.findall(text))
        for _ in range(3):
            ports = [free_port() for _ in names]
            fixed = dict(zip(names, ports, strict=True))
            fixed |= {f"@{name.upper()}@": place for name, place in places.items()}
            (home / "configuration").write_text(_filled(text, fixed))
            words = [_filled(word, fixed) for word in command.split(" ")]
            with (home / "output").open("wb") as output, running(words, output) as process:
                if is_ready(process, ports):
                    server = Running(home, ports, log, first)
                    yield server
                    break
            # Another program may have taken a port meanwhile.
            said = Running(home, ports, log, first).error_log()
        else:
            raise AssertionError(f"{program} did not start: {said}")
        server.log()


@contextmanager
def running(
    words: Sequence[str], output: Any = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends."""
    if shutil.which("setpriv"):
        # The server does not outlive tests that are killed.
        words = ["setpriv", "--pdeathsig", "TERM", *words]
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=nothing, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_ready(process: subprocess.Popen[bytes], ports: Sequence[int]) -> bool:
    """Wait until connections to all ports are accepted, or the process has ended."""
    end = time.monotonic() + PATIENCE
    waiting = list(ports)
    while waiting and process.poll() is None and time.monotonic() < end:
        if _accepts(waiting[0]):
            del waiting[0]
        else:
            time.sleep(0.01)
    return not waiting and process.poll() is None


def _accepts(port: int) -> bool:
    for host in ("127.0.0.1", "::1"):
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            continue
        return True
    return False


def free_port() -> int:
    """Return a port that is free on 127.0.0.1 and on ::1."""
    while True:
        with closing(socket.create_server(("127.0.0.1", 0))) as one:
            port = int(one.getsockname()[1])
            if not socket.has_ipv6:
                return port
            try:
                socket.create_server(("::1", port), family=socket.AF_INET6).close()
            except OSError:
                continue
            return port


def _filled(text: str, places: dict[str, object]) -> str:
    for name, value in places.items():
        text = text.replace(name, str(value))
    return text


def _entry(number: str, status: str, request: str, tls: str, resumed: str, *, first: int) -> Entry:
    method, target, protocol = (request.split(" ") + [""] * 2)[:3]
    return Entry(
        number=int(number) + 1 - first,
        status=int(status),
        protocol=protocol,
        method=method,
        target=target,
        tls=tls.strip("-"),
        resumed=resumed in ("r", "Resumed", "1"),
    )
