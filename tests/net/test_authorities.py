"""The authorities that the caller or the environment names, shown by handshakes."""

from __future__ import annotations

import datetime
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
import trio
from sites.over import Wired, over
from sites.raw import Request, raw_server, reply, tunnel

from trio_crawler import ArgumentError, Fetch
from trio_crawler.model import Fault, Job, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.httpx_fetch import HttpxFetch
from trio_crawler.net.tls import Security

trustme = pytest.importorskip("trustme")
# It comes with trustme.
x509 = pytest.importorskip("cryptography.x509")
hashes = pytest.importorskip("cryptography.hazmat.primitives.hashes")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
ec = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")

PAGE = reply(body=b"secret")


class Machine:
    """An authority, with its certificate in a file and in a directory of its own."""

    def __init__(self, at: Path) -> None:
        self.authority = trustme.CA()
        self.file = at / "authority.pem"
        self.directory = at / "certs"
        self.directory.mkdir(parents=True)
        pem = self.authority.cert_pem.bytes()
        self.file.write_bytes(pem)
        (self.directory / f"{_hash_of(self.file)}.0").write_bytes(pem)

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert("127.0.0.1", "h.test").configure_cert(context)
        return context


def _hash_of(certificate: Path) -> str:
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(certificate)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return run.stdout.strip()


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    if shutil.which("openssl") is None:
        pytest.skip("openssl names the files of a directory")
    return Machine(tmp_path_factory.mktemp("company"))


@pytest.fixture(scope="module")
def other(company: Machine, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("other"))


# The ways that a request can go.


@asynccontextmanager
async def by_wire(url: str, **given: Any) -> AsyncIterator[Fetch]:
    async with HttpFetch(seeds=[url], **given) as fetch:
        yield fetch


@asynccontextmanager
async def by_http2(url: str, **given: Any) -> AsyncIterator[Fetch]:
    # The server is asked whether it speaks HTTP/2; after its answer the wire is used.
    async with HttpFetch(seeds=[url], http2=True, **given) as fetch:
        yield fetch


@asynccontextmanager
async def by_given_wire(url: str, **given: Any) -> AsyncIterator[Fetch]:
    async with Wired(seeds=[url], security=Security(**given)) as wire:
        yield over(wire)


@asynccontextmanager
async def by_tunnel(url: str, **given: Any) -> AsyncIterator[Fetch]:
    async with (
        raw_server(_Tunnel(url)) as proxy,
        HttpFetch(seeds=[url], proxy=proxy.url, **given) as fetch,
    ):
        yield fetch


Way: TypeAlias = Callable[..., Any]
WAYS = [by_wire, by_http2, by_given_wire, by_tunnel]


class _Tunnel:
    """A proxy that connects to one server, whatever it is asked for."""

    def __init__(self, url: str) -> None:
        self._port = httpx.URL(url).port or 0

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        await tunnel(stream, self._port)


async def trusts(machine: Machine, way: Way = by_wire, **given: Any) -> bool:
    """Whether a fetch accepts the certificate of a server that the authority vouches for."""
    async with (
        raw_server({"/": PAGE}, tls=machine.tls()) as server,
        way(server.url, **given) as one,
    ):
        answer = await one(Job(server.url))
    if isinstance(answer, Fault):
        assert answer.reason is Reason.TLS, answer
        assert "cannot be trusted" in answer.detail
        assert answer.detail.endswith("; name its authority with --cacert")
        assert server.requests == []
        return False
    assert answer.body == b"secret"
    return True


@pytest.mark.parametrize("way", WAYS)
async def test_without_a_name_for_it_an_authority_is_not_believed(
    company: Machine, way: Way
) -> None:
    assert not await trusts(company, way)


@pytest.mark.parametrize("way", WAYS)
async def test_a_file_of_authorities_is_believed_and_nothing_else(
    company: Machine, other: Machine, way: Way
) -> None:
    for path in (company.file, str(company.file)):
        assert await trusts(company, way, cacert=path)
    assert not await trusts(other, way, cacert=company.file)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["file", "directory"])
async def test_the_environment_names_authorities(
    company: Machine, other: Machine, way: Way, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = {"file": "SSL_CERT_FILE", "directory": "SSL_CERT_DIR"}[kind]
    monkeypatch.setenv(variable, str(getattr(company, kind)))
    assert await trusts(company, way)
    assert not await trusts(other, way)


@pytest.mark.parametrize("way", WAYS)
async def test_a_file_and_a_directory_of_the_environment_are_both_believed(
    company: Machine, other: Machine, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(company.file))
    monkeypatch.setenv("SSL_CERT_DIR", str(other.directory))
    assert await trusts(company, way)
    assert await trusts(other, way)


async def test_several_directories_are_believed_and_one_may_be_missing(
    company: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = f"/no/such/place:{company.directory}:{other.directory}"
    monkeypatch.setenv("SSL_CERT_DIR", several)
    assert await trusts(company)
    assert await trusts(other)


async def test_the_argument_comes_before_the_environment(
    company: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(other.file))
    monkeypatch.setenv("SSL_CERT_DIR", str(other.directory))
    assert await trusts(company, cacert=company.file)
    assert not await trusts(other, cacert=company.file)
    context = ssl.create_default_context(cafile=company.file)
    assert await trusts(company, tls=context)
    assert not await trusts(other, tls=context)


async def test_an_environment_that_is_not_used_is_not_read(
    company: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, "/no/such/place")
    assert await trusts(company, cacert=company.file)
    assert await trusts(company, tls=ssl.create_default_context(cafile=company.file))


async def test_an_empty_variable_counts_as_unset(
    company: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "")
    monkeypatch.setenv("SSL_CERT_DIR", "")
    assert not await trusts(company)
    monkeypatch.setenv("SSL_CERT_DIR", str(company.directory))
    assert await trusts(company)


async def test_an_authority_below_a_root_may_be_named_alone(tmp_path: Path) -> None:
    below = trustme.CA().create_child_ca()
    path = tmp_path / "below.pem"
    below.cert_pem.write_to_path(path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    below.issue_cert("127.0.0.1").configure_cert(context)
    async with (
        raw_server({"/": PAGE}, tls=context) as server,
        HttpFetch(seeds=[server.url], cacert=path) as fetch,
    ):
        assert isinstance(await fetch(Job(server.url)), Response)


def test_an_authority_need_not_follow_rfc_5280_to_the_letter(company: Machine) -> None:
    # Python 3.13 and later would refuse many that companies make themselves.
    context = Security(cacert=company.file).context("h.test")
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


async def test_a_host_may_still_be_insecure(company: Machine, other: Machine) -> None:
    assert await trusts(other, cacert=company.file, insecure_hosts=["127.0.0.1"])


@pytest.mark.parametrize("target", ["http://h.test/", "https://h.test/"])
async def test_a_proxy_with_tls_is_verified_by_the_same_authorities(
    company: Machine, other: Machine, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answered(machine: Machine, **given: Any) -> Response | Fault:
        async with raw_server({"/": PAGE}, tls=company.tls()) as server:

            async def asked(request: Request, stream: trio.abc.Stream) -> None:
                if request.method == "CONNECT":
                    await _Tunnel(server.url)(request, stream)
                else:
                    await stream.send_all(PAGE)

            async with raw_server(asked, tls=machine.tls()) as proxy:
                url = f"https://127.0.0.1:{proxy.port}"
                async with HttpFetch(proxy=url, **given) as fetch:
                    return await fetch(Job(target))

    assert isinstance(await answered(company, cacert=company.file), Response)
    wrong = await answered(other, cacert=company.file)
    assert isinstance(wrong, Fault)
    assert "the certificate of the proxy 127.0.0.1:" in wrong.detail
    insecure = await answered(other, cacert=company.file, insecure_hosts=["127.0.0.1"])
    assert isinstance(insecure, Response)
    monkeypatch.setenv("SSL_CERT_FILE", str(company.file))
    assert isinstance(await answered(company), Response)
    assert isinstance(await answered(other), Fault)


async def test_a_client_of_httpx_has_its_own_authorities(company: Machine) -> None:
    tls = ssl.create_default_context(cafile=company.file)

    @asynccontextmanager
    async def by_client(url: str) -> AsyncIterator[Fetch]:
        async with httpx.AsyncClient(verify=tls) as client, HttpxFetch(client) as fetch:
            yield fetch

    assert await trusts(company, by_client)


# What cannot be used.


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        (b"", "it has none, or one that is damaged"),
        (b"no certificate", "it has none, or one that is damaged"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "damaged"),
        (b"\x30\x82\x01\x00", "it has none, or one that is damaged"),
    ],
)
def test_a_file_without_certificates_is_named(
    content: bytes | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_bytes(content)
    sentence = (
        rf"^(cacert|SSL_CERT_FILE) must be a file of certificates in PEM, not '{path}': .*{why}"
    )
    with pytest.raises(ArgumentError, match=sentence) as caught:
        HttpFetch(cacert=path)
    assert caught.value.argument == "cacert"
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(ArgumentError, match=sentence) as caught:
        HttpFetch()
    assert caught.value.argument == "SSL_CERT_FILE"


def test_a_file_with_one_damaged_certificate_is_named(company: Machine, tmp_path: Path) -> None:
    path = tmp_path / "authority.pem"
    pem = company.file.read_text().splitlines()
    path.write_text("\n".join([*pem, pem[0], *pem[5:], ""]))
    with pytest.raises(ArgumentError, match="damaged"):
        HttpFetch(cacert=path)


def test_a_file_of_keys_or_of_revoked_certificates_only_is_named(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    trustme.CA().private_key_pem.write_to_path(path)
    with pytest.raises(ArgumentError, match="it has none"):
        HttpFetch(cacert=path)
    path.write_bytes(_revoked())
    assert ssl.create_default_context(cafile=path).cert_store_stats()["crl"] == 1
    with pytest.raises(ArgumentError, match="it has none"):
        HttpFetch(cacert=path)


def _revoked() -> bytes:
    """Return a list of revoked certificates, which is none of a certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    today = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    listed = x509.CertificateRevocationListBuilder().issuer_name(name)
    listed = listed.last_update(today).next_update(today + datetime.timedelta(days=1))
    return listed.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_directory_without_certificates_is_named(
    kind: str, company: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = {"missing": tmp_path / "none", "file": company.file}[kind]
    monkeypatch.setenv("SSL_CERT_DIR", str(path))
    with pytest.raises(ArgumentError, match=r"^SSL_CERT_DIR") as caught:
        HttpFetch()
    assert str(path) in str(caught.value)
    monkeypatch.setenv("SSL_CERT_FILE", str(company.file))
    with pytest.raises(ArgumentError, match=r"^SSL_CERT_DIR"):
        HttpFetch()
