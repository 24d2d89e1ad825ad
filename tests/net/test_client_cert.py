"""The certificate of the client: where it is shown, and what servers say without it."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from cases import for_each
from sites.over import Wired, begun
from sites.raw import raw_server, reply

from trio_crawler import ArgumentError
from trio_crawler.model import Fault, Job, Phase, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.tls import Security

trustme = pytest.importorskip("trustme")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")

PASSWORD = "secret-word"


@pytest.fixture
def files(authority: Any, tmp_path: Path) -> dict[str, Path]:
    """A certificate and its key, together and apart, with and without a password."""
    leaf, other = authority.issue_cert("client"), authority.issue_cert("other")
    rsa = authority.issue_cert("other", key_type=trustme.KeyType.RSA)
    certificate = leaf.cert_chain_pems[0].bytes()
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    lines = leaf.private_key_pem.bytes().splitlines()
    contents = {
        "certificate": certificate,
        "key": leaf.private_key_pem.bytes(),
        "both": certificate + leaf.private_key_pem.bytes(),
        "locked": locked,
        "both locked": certificate + locked,
        "key of another": other.private_key_pem.bytes(),
        "key of another kind": rsa.private_key_pem.bytes(),
        "damaged certificate": b"\n".join(certificate.splitlines()[:2]),
        "damaged key": b"\n".join([lines[0], *lines[2:]]),
        "text": b"no certificate",
        "empty": b"",
        "authority": authority.cert_pem.bytes(),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / name for name in contents}


def wanting(authority: Any, **version: ssl.TLSVersion) -> ssl.SSLContext:
    """Return the context of a server that wants a certificate of the client."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "h.test", "other.test").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    for name, value in version.items():
        setattr(context, name, value)
    return context


@pytest.mark.parametrize(
    "given",
    [
        ("both",),
        ("certificate", "key"),
        ("both", "both"),
        ("certificate", "locked", PASSWORD),
        ("both locked", "both locked", PASSWORD),
    ],
)
@pytest.mark.parametrize("insecure", [False, True])
async def test_a_certificate_is_shown_to_a_server_that_wants_one(
    given: tuple[str, ...], insecure: bool, authority: Any, files: dict[str, Path]
) -> None:
    names = [str(files[name]) if name != PASSWORD else name for name in given]
    certificate = names[0] if len(names) == 1 else tuple(names)
    how: Any = {"insecure_hosts": ["127.0.0.1"]} if insecure else {"cacert": files["authority"]}
    async with (
        raw_server({"/": reply(body=b"secret")}, tls=wanting(authority)) as server,
        HttpFetch(seeds=[server.url], client_cert=certificate, **how) as fetch,
    ):
        answer = await fetch(Job(server.url))
    assert isinstance(answer, Response), answer
    assert answer.body == b"secret"


async def test_it_is_shown_only_at_the_origins_of_the_seeds(
    authority: Any, files: dict[str, Path]
) -> None:
    shown: dict[str, bool] = {}
    tls = wanting(authority)
    tls.verify_mode = ssl.CERT_OPTIONAL

    async def answer(request: Any, stream: Any) -> None:
        shown[request.headers["host"].partition(":")[0]] = bool(stream.inner.getpeercert())
        await stream.send_all(reply())

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with raw_server(answer, tls=tls) as server:
        security = Security(
            cacert=files["authority"],
            client_cert=files["both"],
            # A seed without TLS may lead to one with it.
            seeds=[
                f"http://h.test:{server.port}/",
                f"https://127.0.0.1:{server.port}/",
                "https://other.test/",
            ],
        )
        wire = Wired(allow_private=["127.0.0.1"], security=security, resolve=resolve)

        async with wire:
            for host in ("h.test", "other.test", "127.0.0.1"):
                await (await begun(wire, f"https://{host}:{server.port}/")).read()
    # At another port may be another owner.
    assert shown == {"h.test": True, "other.test": False, "127.0.0.1": True}


def test_hosts_share_no_more_contexts_than_needed(files: dict[str, Path]) -> None:
    security = Security(
        None, ["b.test", "d.test"], files["authority"], files["both"],
        ["https://a.test/", "https://b.test/"],
    )  # fmt: skip
    contexts = [security.context(host) for host in ("a.test", "b.test", "c.test", "d.test")]
    assert len(set(contexts)) == 4
    verified = [context.verify_mode is ssl.CERT_REQUIRED for context in contexts]
    assert verified == [True, False, True, False]
    assert [security.context(host) for host in ("a.test", "b.test", "e.test")] == contexts[:3]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("none",), "cannot read '{}/none': No such file or directory"),
        (("certificate", "none"), "cannot read '{}/none': No such file or directory"),
        (("",), "cannot read '{}/': Is a directory"),
        (("certificate", ""), "cannot read '{}/': Is a directory"),
        (("certificate",), "'{}/certificate' with the key in '{}/certificate': one of them is"),
        (("key",), "cannot use '{}/key' with the key in '{}/key': one of them is not in PEM"),
        (("text",), "one of them is not in PEM, or damaged"),
        (("empty",), "one of them is not in PEM, or damaged"),
        (("damaged certificate", "key"), "one of them is not in PEM, or damaged"),
        (("certificate", "damaged key"), "one of them is not in PEM, or damaged"),
        (("certificate", "text"), "one of them is not in PEM, or damaged"),
        (("certificate", "key of another"), "key of another': key values mismatch"),
        (("certificate", "key of another kind"), "key of another kind': "),
        (("certificate", "locked"), "'{}/locked' is encrypted, and its password is missing"),
        (("both locked",), "is encrypted, and its password is missing"),
        (("certificate", "locked", "x"), "'{}/locked': one of them is"),
        (("certificate", "locked", ""), "or the password is wrong"),
        (("certificate", "locked", "x" * 2000), "password cannot be longer than 1024 bytes"),
    ],
)
def test_files_that_cannot_be_used_are_named_and_a_password_is_not(
    given: tuple[str, ...], told: str, files: dict[str, Path], tmp_path: Path
) -> None:
    parts = tuple(f"{tmp_path}/{name}" for name in given[:2]) + given[2:]
    with pytest.raises(ArgumentError) as caught:
        Security(client_cert=parts if len(parts) > 1 else parts[0], seeds=["https://h.test/"])
    sentence = str(caught.value)
    assert sentence.startswith("client_cert: ")
    assert told.replace("{}", str(tmp_path)) in sentence
    assert sentence.isprintable()
    assert caught.value.argument == "client_cert"


@for_each(
    "given",
    [(), ("a",), ("a", "b", "c", "d"), ("a", 1), 3, ("a", "b", b"secret-word"), ["a", "b"]],
)
def test_other_things_are_no_certificate(given: Any) -> None:
    with pytest.raises(TypeError, match="client_cert"):
        Security(client_cert=given, seeds=["https://h.test/"])


def test_a_password_in_a_wrong_place_is_not_shown() -> None:
    for given in ((PASSWORD, "b", "c", "d"), ("a", 1, PASSWORD)):
        with pytest.raises(TypeError, match="client_cert") as caught:
            Security(client_cert=given, seeds=["https://h.test/"])  # type: ignore[arg-type]
        assert PASSWORD not in str(caught.value)


# What servers say.


@contextmanager
def blocking_server(tls: ssl.SSLContext) -> Iterator[str]:
    """Do one handshake, and close: unlike Trio's, Python's own streams send alerts."""

    def serve() -> None:
        plain, _ = listener.accept()
        with plain, suppress(OSError):
            tls.wrap_socket(plain, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(10)


TLS12 = {"maximum_version": ssl.TLSVersion.TLSv1_2}
TLS13 = {"minimum_version": ssl.TLSVersion.TLSv1_3}


@pytest.mark.parametrize("version", [TLS12, TLS13], ids=["1.2", "1.3"])
@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
async def test_a_server_that_wants_a_certificate_is_said_to_want_one(
    version: dict[str, ssl.TLSVersion], protocol: str, authority: Any, client_tls: ssl.SSLContext
) -> None:
    context = wanting(authority, **version)
    context.set_alpn_protocols([protocol])
    with blocking_server(context) as url:
        async with HttpFetch(seeds=[url], tls=client_tls, http2=protocol == "h2") as fetch:
            answer = await fetch(Job(url))
    assert isinstance(answer, Fault)
    assert (answer.reason, answer.phase) == (Reason.TLS, Phase.TLS)
    wanted = "wants a certificate of the client; name one with --client-cert"
    if version == TLS12:
        wanted = "refuses the handshake of TLS; it may want other ciphers, "
        wanted += "or a certificate of the client (--client-cert)"
    assert answer.detail == f"{url[8:-1]} {wanted}"


@pytest.mark.parametrize("version", [TLS12, TLS13], ids=["1.2", "1.3"])
async def test_a_certificate_of_an_unknown_authority_is_said_to_be_one(
    version: dict[str, ssl.TLSVersion], authority: Any, files: dict[str, Path], tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign.pem"
    trustme.CA().issue_cert("client").private_key_and_cert_chain_pem.write_to_path(foreign)
    trust = {"cacert": files["authority"], "client_cert": foreign}
    with blocking_server(wanting(authority, **version)) as url:
        async with HttpFetch(seeds=[url], **trust) as fetch:
            answer = await fetch(Job(url))
    assert isinstance(answer, Fault)
    assert answer.reason is Reason.TLS
    assert "does not know the authority of the client's certificate" in answer.detail


async def test_a_handshake_that_fails_before_a_certificate_is_wanted_says_that_it_may_be() -> None:
    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"\x15\x03\x03\x00\x02\x02\x28")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, refuse, listeners)
        port = listeners[0].socket.getsockname()[1]
        url = f"https://127.0.0.1:{port}/"
        async with HttpFetch(seeds=[url]) as fetch:
            answer = await fetch(Job(url))
        nursery.cancel_scope.cancel()
    assert isinstance(answer, Fault)
    assert answer.detail == (
        f"127.0.0.1:{port} refuses the handshake of TLS; it may want other ciphers, "
        "or a certificate of the client (--client-cert)"
    )


def test_openssl_never_asks_the_terminal_itself(files: dict[str, Path]) -> None:
    script = (
        "import sys; from trio_crawler.net.tls import Security\n"
        "try: Security(client_cert=sys.argv[1], seeds=['https://h.test/'])\n"
        "except ValueError as error: print(error)\n"
    )

    run = subprocess.run(
        [sys.executable, "-c", script, str(files["both locked"])],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert "is encrypted, and its password is missing" in run.stdout
    assert run.stderr == ""
