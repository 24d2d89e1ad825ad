"""The store on a real server: its script is equal to the model, and it loses nothing."""

from __future__ import annotations

import os
import random
import shutil
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
import trio
import trustme
from sites import valkey
from sites.store_model import StoreModel

from trio_crawler import (
    Crawler,
    History,
    Job,
    Limits,
    Politeness,
    Reason,
    Response,
    Sitemaps,
    StoreError,
    Traps,
)
from trio_crawler.shared.frontier import SharedFrontier
from trio_crawler.shared.message import (
    Back,
    Child,
    Join,
    Joined,
    Refused,
    Reply,
    Work,
    packed,
)
from trio_crawler.shared.redis_store import RedisStore, opened_store
from trio_crawler.store import Unusable
from trio_crawler.testing import Web, html

LEASE, SOME, DAY = 4_000, 60, 86_400_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with valkey.server(tmp_path_factory.mktemp("v")) as found:
        yield found


def shown(reply: bytes) -> Any:
    """Return a reply; the jobs of a host and the hosts come in any order."""
    if not reply:
        return None
    try:
        found = msgspec.msgpack.decode(reply, type=Reply)
    except msgspec.ValidationError:
        return msgspec.msgpack.decode(reply, type=Joined)
    granted = sorted((each._replace(jobs=sorted(each.jobs)) for each in found.granted), key=str)
    return msgspec.structs.replace(found, granted=granted)


class Twins:
    """The model and the script, which get the same messages at the same times."""

    def __init__(self, store: RedisStore) -> None:
        self.now = 1e12
        self.model = StoreModel(now=lambda: self.now)
        self._store = store

    async def call(self, command: str, message: bytes, gap: float) -> Any:
        """Let both run a command; return the reply, or why it is refused."""
        self.now += gap
        replies = []
        for ask in (self.model.call, self._scripted):
            try:
                replies.append(shown(await ask(command, message)))
            except Refused as error:
                replies.append(error.reason)
        first, second = replies
        assert first == second
        return first

    async def _scripted(self, command: str, message: bytes) -> bytes:
        return await self._store.call(command, message, now=self.now)


def child(rnd: random.Random) -> Child:
    value = rnd.randrange(80)
    return Child(value % 7, value, f"h{value % 5}", rnd.choice([-1, 0, 1, 2, 3]), f"job {value}")


async def converse(twins: Twins, rnd: random.Random) -> None:
    """Let workers join, work, repeat messages, leave, and come too late, at random."""
    names: list[str] = []
    seq: dict[str, int] = {}
    out: dict[str, list[int]] = {}
    last: dict[str, bytes] = {}
    gone: set[str] = set()
    budget, levels = rnd.choice([-1, -1, 5, 30]), rnd.random() < 0.5
    for _ in range(SOME):
        gap = rnd.choice([0, 1, 300, 5_000, DAY, -DAY])
        if len(gone) == len(names) or (len(names) < 6 and rnd.random() < 0.1):
            name = f"w{len(names)}"
            meaning = rnd.choice(["{}", ""]) if names else "{}"
            join = Join(name, LEASE, meaning, "00", budget, levels, rnd.choice([700, 1 << 52]))
            await twins.call("join", packed(join), gap)
            names.append(name)
            seq[name], out[name] = 0, []
            continue
        name = rnd.choice(names)
        if name not in gone and rnd.random() < 0.05:
            await twins.call("leave", msgspec.msgpack.encode(name), gap)
            gone.add(name)
            continue
        if name in last and rnd.random() < 0.1:
            await twins.call("work", last[name], gap)
            continue
        ended = [out[name].pop() for _ in range(min(len(out[name]), rnd.randrange(6)))]
        values = [
            [rnd.randrange(80) for _ in range(rnd.randrange(5))] for _ in range(rnd.randrange(3))
        ]
        found = [
            [Child(v % 7, v, f"h{v % 5}", rnd.choice([-1, 0, 1, 2, 3]), f"job {v}") for v in group]
            for group in values
        ]
        spent = 0 if levels else rnd.randrange(len(ended) + 1)
        back = []
        held = sorted(twins.model._of.get(name, ()))
        if held and not levels and rnd.random() < 0.2:
            host = rnd.choice(held)
            numbers = [number for number, (at, _) in twins.model._out[name].items() if at == host]
            back = [
                Back(host, rnd.choice([0, 400]), [each for each in numbers if each not in ended])
            ]
            out[name] = [each for each in out[name] if each not in numbers]
        seq[name] += 1
        last[name] = packed(
            Work(
                *(name, seq[name], LEASE, ended, found, rnd.randrange(4), 1_000),
                *(held[: rnd.randrange(2)], back, rnd.random() < 0.2, spent, spent),
            )
        )
        reply = await twins.call("work", last[name], gap)
        if isinstance(reply, Reply):
            out[name] += [number for grant in reply.granted for number, _ in grant.jobs]
        else:
            gone.add(name)


@pytest.mark.parametrize("seed", range(8))
async def test_the_script_answers_each_message_as_the_model_does(url: str, seed: int) -> None:
    async with opened_store(url, uuid4().hex) as store:
        for each in range(5):
            store = RedisStore(store._client, uuid4().hex)
            await converse(Twins(store), random.Random(5 * seed + each))


async def dumped(store: RedisStore) -> dict[bytes, bytes]:
    names = [name async for name in store._client.scan_iter(match=f"*{store._prefix}*")]
    return {name: await store._client.dump(name) for name in names}


async def test_a_message_that_is_refused_changes_no_key(url: str) -> None:
    async with opened_store(url, uuid4().hex) as store:
        await store.call("join", packed(Join("a", LEASE, "{}", "00", -1, False, 1 << 52)))
        job = Child(0, 1, "h", 0, "job")
        work = Work("a", 1, LEASE, [], [[job]], 1, 9, [], [], False, 0, 0)
        await store.call("work", packed(work))
        before = await dumped(store)
        change = msgspec.structs.replace
        refused = {
            "FENCED": change(work, name="b", seq=2),
            "LOST": change(work, seq=3),
            "TWICE": change(work, seq=2, ended=[2, 7]),
        }
        for reason, message in refused.items():
            with pytest.raises(Refused) as caught:
                await store.call("work", packed(message))
            assert caught.value.reason == reason
        with pytest.raises(Refused, match="another worker has this name"):
            await store.call("join", packed(Join("a", LEASE, "", "00", -1, False, 1 << 52)))
        assert await dumped(store) == before


async def test_workers_share_a_crawl_by_a_server(url: str) -> None:
    site = {f"/{page}": html(*(f"/{2 * page + each}" for each in (1, 2))) for page in range(120)}
    web = Web({"/": html("/0"), **site})
    found: list[str] = []

    async def work(store: RedisStore) -> None:
        crawler = Crawler(
            [web.url],
            fetch=web,
            frontier=SharedFrontier(store, meaning={}),
            politeness=Politeness(robots=False),
            sitemaps=Sitemaps(follow=False),
        )
        async with crawler.outcomes() as outcomes:
            found.extend([outcome.url async for outcome in outcomes if outcome.ok])

    async with opened_store(url, "shared [crawl]*") as store, trio.open_nursery() as nursery:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(work, store)
        counts = await store.counts()
        assert counts is not None
        assert counts.added == counts.done
        assert (counts.out, counts.workers, counts.seeded) == (0, (), True)
        assert await store.drop() > 3
        assert await store.counts() is None
    assert (len(found), len(set(found))) == (121, 121)


async def test_a_worker_that_joins_later_ends_at_the_time_limit_of_the_first(
    url: str, tmp_path: Path
) -> None:
    begun = trio.Event()

    async def fetch(job: Job) -> Response:
        begun.set()
        await trio.lowlevel.checkpoint()
        page = job.url.rsplit("/", 1)[1]
        return html(f"/{int(page or 0) + 1}")

    async def work(name: str, limits: Limits) -> None:
        async with (
            opened_store(url, "limited") as store,
            SharedFrontier(store, meaning={}, directory=tmp_path / name) as frontier,
        ):
            seeds = [f"http://{host}.test/" for host in "abcd"]
            how = {
                "politeness": Politeness(robots=False),
                "sitemaps": Sitemaps(follow=False),
                "traps": Traps.off(),
            }
            await Crawler(seeds, fetch=fetch, frontier=frontier, limits=limits, **how).crawl()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, "first", Limits(max_seconds=0.5))
            await begun.wait()
            nursery.start_soon(work, "second", Limits())
    for name in ("first", "second"):
        with History(tmp_path / name) as history:
            assert history.runs[0].reason is Reason.TIME_BUDGET


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("http://127.0.0.1/", "give the URL of a server, such as redis://"),
        ("redis://user:s3cret@127.0.0.1:1/0", "redis://127.0.0.1:1/0: Unable to establish"),
        *(
            (f"redis://user:12{mark}s3cret@127.0.0.1:1/0", "write @ : / . # and %")
            for mark in "/?#"
        ),
        ("unix:///no/such/socket", "Unable to establish a connection"),
    ],
)
async def test_a_server_that_cannot_be_used_is_refused_in_one_line(given: str, says: str) -> None:
    with pytest.raises(StoreError, match=says) as caught:
        async with opened_store(given, "c"):
            pass
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@asynccontextmanager
async def encrypted(url: str, certificate: trustme.LeafCert) -> AsyncIterator[str]:
    """Relay TLS connections to the socket of a server; yield host and port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)

    async def relay(client: trio.SSLStream[trio.SocketStream]) -> None:
        async def pass_on(source: Any, target: Any) -> None:
            async for some in source:
                await target.send_all(some)
            nursery.cancel_scope.cancel("one side has closed")

        # A client that does not like the certificate leaves without a word.
        with suppress(trio.BrokenResourceError):
            await client.do_handshake()
            server = await trio.open_unix_socket(url.removeprefix("unix://"))
            async with server, trio.open_nursery() as nursery:
                nursery.start_soon(pass_on, client, server)
                nursery.start_soon(pass_on, server, client)

    async with trio.open_nursery() as nursery:
        how: dict[str, Any] = {"host": "127.0.0.1", "https_compatible": True}
        serve = partial(trio.serve_ssl_over_tcp, relay, 0, context, **how)
        (listener,) = await nursery.start(serve)
        yield f"127.0.0.1:{listener.transport_listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel("the test is over")


async def test_an_encrypted_server_must_have_a_certificate_of_its_host_and_gets_the_password(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    more = f"?ssl_ca_certs={tmp_path / 'ca.pem'}"
    options = (*valkey.SAFE, *"--requirepass x --user worker on >s3/cret ~* &* +@all".split())
    with valkey.server(tmp_path_factory.mktemp("v"), *options) as url:
        async with encrypted(url, authority.issue_cert("127.0.0.1")) as place:
            async with opened_store(f"rediss://worker:s3%2Fcret@{place}/0{more}", "c") as store:
                assert await store.counts() is None
            for user, query, says in [
                ("worker:s3cret", more, "invalid username-password pair"),
                ("worker:s3%2Fcret", "", "certificate verify failed: unable to get local issuer"),
            ]:
                with pytest.raises(Unusable, match=f"^rediss://{place}/0: .*{says}") as caught:
                    async with opened_store(f"rediss://{user}@{place}/0{query}", "c"):
                        pass
                assert "cret" not in str(caught.value)
        async with encrypted(url, authority.issue_cert("store.test")) as place:
            with pytest.raises(Unusable, match=r"certificate is not valid for .127"):
                async with opened_store(f"rediss://worker:s3%2Fcret@{place}/0{more}", "c"):
                    pass


@pytest.mark.parametrize(
    ("name", "value"),
    [("appendonly", "no"), ("appendfsync", "everysec"), ("maxmemory-policy", "allkeys-lru")],
)
async def test_a_server_that_would_lose_urls_is_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: str
) -> None:
    options = [
        value if before == f"--{name}" else each
        for before, each in zip(("", *valkey.SAFE), valkey.SAFE, strict=False)
    ]
    home: Path = tmp_path_factory.mktemp("v")
    with valkey.server(home, *options) as url, pytest.raises(StoreError, match=f"with --{name}"):
        async with opened_store(url, "c"):
            pass


async def test_while_the_memory_of_the_server_is_full_a_worker_waits_and_nothing_changes(
    tmp_path: Path,
) -> None:
    with valkey.server(tmp_path) as url:
        async with opened_store(url, "full") as store, trio.open_nursery() as nursery:
            client = store._client
            join = packed(Join("one", LEASE, "{}", "00", -1, False, 1 << 52))
            await store.call("join", join)
            before = await client.hgetall("{full}:n")
            await client.config_set({"maxmemory": 1})
            replies: list[bytes] = []

            async def call() -> None:
                child = Child(1, 2, "h", 0, "job")
                work = Work("one", 1, LEASE, [], [[child]], 1, 9, [], [], True, 0, 0)
                replies.append(await store.call("work", packed(work)))

            nursery.start_soon(call)
            while "errorstat_OOM" not in await client.info("errorstats"):  # noqa: ASYNC110
                await trio.sleep(0.01)
            assert await client.hgetall("{full}:n") == before
            assert not replies
            await client.config_set({"maxmemory": 0})
        (reply,) = map(shown, replies)
        assert (reply.added, reply.done, len(reply.granted)) == (2, 1, 1)


async def test_what_a_worker_had_that_has_ended_is_given_to_others_before_its_lease_is_over(
    url: str,
) -> None:
    async with opened_store(url, uuid4().hex) as store:
        for name in ("m:1:a", "m:2:b"):
            await store.call("join", packed(Join(name, LEASE, "{}", "00", -1, False, 1 << 52)))
        works = [
            Work("m:1:a", 1, LEASE, [], [[Child(0, 1, "h", 0, "job")]], 1, 9, [], [], True, 0, 0),
            Work("m:2:b", 1, LEASE, [], [], 1, 9, [], [], False, 0, 0),
        ]
        granted = []
        for work in works:
            reply = await store.call("work", packed(work))
            granted.append(msgspec.msgpack.decode(reply, type=Reply).granted)
            if not granted[1:]:
                await store.release(":1:")
        counts = await store.counts()
    assert granted[0] == granted[1] == [("h", [(2, "job")], False)]
    assert counts is not None
    assert counts.workers == ("m:2:b",)


async def content(store: RedisStore) -> dict[str, Any]:
    """Return what the keys of a crawl have, in any order, and not the time of the last call."""
    client, found = store._client, dict[str, Any]()
    async for key in client.scan_iter(match=f"*{store._prefix}*"):
        match await client.type(key):
            case b"hash":
                found[key] = await client.hgetall(key)
            case b"set":
                found[key] = sorted(await client.smembers(key))
            case b"list":
                found[key] = await client.lrange(key, 0, -1)
            case b"zset":
                found[key] = [name for name, _ in await client.zrange(key, 0, -1, withscores=True)]
            case _:
                found[key] = await client.get(key)
    for name in (b"wall", b"clock", b"ends"):
        found[f"{store._prefix}:n".encode()].pop(name)
    return found


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("first", range(16))
async def test_a_message_that_is_half_in_the_file_when_power_fails_counts_as_a_whole_when_repeated(
    tmp_path: Path, first: int, request: pytest.FixtureRequest
) -> None:
    crawl = uuid4().hex
    jobs = [Child(0, value, f"h{value}", 0, f"job {value}") for value in (1, 2, 3)]
    begun = Work("a", 1, LEASE, [], [jobs[:1]], 1, 9, [], [], False, 0, 0)
    repeated = Work("a", 2, LEASE, [2], [jobs[1:]], 0, 9, [], [], True, 0, 0)
    whole = tmp_path / "whole"
    whole.mkdir()
    sizes = []
    with valkey.server(whole) as url:
        async with opened_store(url, crawl) as store:
            await store.call("join", packed(Join("a", LEASE, "{}", "00", -1, False, 1 << 52)))
            for work in (begun, repeated):
                await store.call("work", packed(work))
                (file,) = whole.glob("appendonlydir/*.incr.aof")
                sizes.append(file.stat().st_size)
            expected = await content(store)
    # The file is cut at each byte of the last message with `--all`, else at a few.
    step = 16 if request.config.getoption("--all") else 1_000
    for size in range(sizes[0] + first * (1 if step == 16 else 101), sizes[1], step):
        home = tmp_path / f"cut{size}"
        shutil.copytree(whole / "appendonlydir", home / "appendonlydir")
        os.truncate(home / "appendonlydir" / file.name, size)
        for start in range(2):
            with valkey.server(home) as url:
                async with opened_store(url, crawl) as store:
                    if not start:
                        # Its answer was lost with the power.
                        await store.call("work", packed(repeated))
                    assert await content(store) == expected, (size, start)
        shutil.rmtree(home)
