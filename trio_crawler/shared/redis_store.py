"""The store on a Valkey or Redis server: one script, called by its digest."""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

import hashlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

import anyio
import msgspec
import trio

from trio_crawler.arguments import check_kind, public
from trio_crawler.reason import Reason
from trio_crawler.shared.message import Refused, packed
from trio_crawler.store.errors import StoreError, Unusable

_LEAST = 7
# The Valkey that leaves a half-written script out of its file.
_WHOLE = (9, 1)
_TIMEOUT, _PAUSE = 10.0, 0.2
# What the script refuses with, and the errors of a server that will answer later.
_REFUSALS = re.compile("FENCED|LOST|TWICE|TAKEN|NONE").match
_WAITS = re.compile("LOADING|MISCONF|OOM|BUSY|READONLY|TRYAGAIN|MASTERDOWN").match
# The client raises the last two when it has just lost its connection.
_AWAY = (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError)
_SCHEMES = {
    "redis": "redis",
    "valkey": "redis",
    "rediss": "rediss",
    "valkeys": "rediss",
    "unix": "unix",
}
_WANTED = (
    "give the URL of a server, such as redis://127.0.0.1:6379/0, and write @ : / ? # and % of a "
    "password as %40 %3A %2F %3F %23 and %25"
)
# Of itself the client would believe the certificate of any other host; what a user gives is first.
_VERIFIED = "ssl_check_hostname=true&ssl_cert_reqs=required"
_ENDS = re.compile("[/?#]").search
_INSTALL = "needs coredis: pip install 'trio-crawler[machines]'"


@public("trio_crawler.shared")
class SharedCounts(msgspec.Struct, frozen=True):
    """The counts of a shared crawl: its jobs, `added`, `done`, and `out` with workers.

    `seeded` is whether the seeds are among them.

    `workers` has the names of those whose lease goes on, `hosts` how many hosts each holds. In
    a name are the machine, the number of the process and a word: web1:4711:5a91309d902d4c2b.
    """

    added: int
    done: int
    out: int
    seeded: bool
    workers: tuple[str, ...]
    hosts: tuple[int, ...]


@public("trio_crawler.shared")
class RedisStore:
    """The store of one crawl; see `SharedStore`.

    While the server is away, or cannot write, a call is repeated with the same message.
    `opened_store` makes one. `mends` is whether the server must write its file anew when it has
    started: see `_load`.
    """

    def __init__(self, client: Any, crawl: str, *, mends: bool = True) -> None:
        self._client, self._mends = client, mends
        self._prefix = f"{{{crawl}}}"
        self._source = files("trio_crawler.shared").joinpath("work.lua").read_text("utf-8")
        self._digest = hashlib.sha1(self._source.encode(), usedforsecurity=False).hexdigest()

    async def call(self, command: str, message: bytes, *, now: float | None = None) -> bytes:
        """Run a command; see `SharedStore`. `now` is for tests: the time in milliseconds."""
        from coredis.exceptions import NoScriptError, RedisError, ResponseError

        given = [command, message, *([] if now is None else [now])]
        loaded = True
        while True:
            try:
                with trio.fail_after(_TIMEOUT):
                    if not loaded:
                        await self._load()
                        loaded = True
                    reply: bytes = await self._client.evalsha(self._digest, [self._prefix], given)
                    return reply
            except NoScriptError:
                loaded = False
                continue
            except ResponseError as error:
                text = str(error)
                if refusal := _REFUSALS(text):
                    raise Refused(refusal[0]) from None
                if not _WAITS(text):
                    raise StoreError(f"the store has failed: {text}") from error
            except (RedisError, *_AWAY, trio.TooSlowError):
                # The server is away: it keeps what it has, and its clock stands.
                pass
            except ExceptionGroup as group:
                if group.split((RedisError, *_AWAY))[1] is not None:
                    raise
            await trio.sleep(_PAUSE)

    async def _load(self) -> None:
        """Load the script, which a server forgets when it ends.

        When power fails while Redis writes the changes of a script to its file, it starts without
        them, but may keep a part of them in the file: after the next start they would count. So
        the file is written anew first. Until then no worker has the script, and nothing changes.
        """
        from coredis.exceptions import ResponseError

        written = not self._mends
        while not written:
            # One may be in progress already, or the owner of the server does not permit it.
            with suppress(ResponseError):
                await self._client.bgrewriteaof()
            about = await self._client.info("persistence")
            while about.get("aof_rewrite_in_progress") or about.get("aof_rewrite_scheduled"):
                await trio.sleep(_PAUSE / 10)
                about = await self._client.info("persistence")
            written = about.get("aof_last_bgrewrite_status", "ok") == "ok"
        await self._client.script_load(self._source)

    async def counts(self) -> SharedCounts | None:
        """Return the counts of the crawl; None if there is none of this name."""
        client, prefix = self._client, self._prefix
        found = await client.hgetall(f"{prefix}:n")
        if not found:
            return None
        number = {name.decode(): int(value) for name, value in found.items() if value.isdigit()}
        # Only a call of a worker ends old leases: that of the last worker would never end.
        real = number["clock"] + (await client.time()).timestamp() * 1000 - number["wall"]
        leases = await client.zrange(f"{prefix}:sess", 0, -1, withscores=True)
        workers = [name.decode() for name, end in leases if end > real]
        hosts = [await client.scard(f"{prefix}:of:{name}") for name in workers]
        added, done, out = (number[name] for name in ("added", "done", "out"))
        seeded = "seeded" in number
        return SharedCounts(added, done, out, seeded, tuple(workers), tuple(hosts))

    async def meaning(self) -> dict[str, Any] | None:
        """Return what defines the crawl; None if there is none of this name."""
        found = await self._client.get(f"{self._prefix}:meaning")
        return None if found is None else json.loads(found)

    async def stop(self) -> None:
        """Let all workers end early at their next call; one that comes after them goes on."""
        await self._client.hset(f"{self._prefix}:n", {"stop": Reason.STOPPED.value})

    async def release(self, part: str = "") -> None:
        """End the leases of all workers that have this `part` in their name.

        Others get their hosts and jobs at once. Call it only when their processes have ended.
        """
        for name in await self._client.zrange(f"{self._prefix}:sess", 0, -1):
            if part in name.decode():
                with suppress(Refused):
                    await self.call("leave", packed(name.decode()))

    async def drop(self) -> int:
        """Remove the crawl from the server; return how many keys it had."""
        removed = 0
        # A glob: the name of a crawl may have any character.
        pattern = re.sub(r"([\[\]*?\\^-])", r"\\\1", self._prefix) + ":*"
        async for name in self._client.scan_iter(match=pattern, count=1_000):
            removed += await self._client.unlink([name])
        return removed


@public("trio_crawler.shared")
def opened_store(url: str, crawl: str) -> AbstractAsyncContextManager[RedisStore]:
    """Connect to the server at `url`, such as redis://host:6379/0 or unix:///path; close it then.

    `crawl` is the name that all workers of one crawl give.
    By rediss://host:6379/0 the connection is encrypted. The certificate of the server must be one
    of that host, by an authority that the machine trusts, or one of ?ssl_ca_certs=FILE.
    Valkey, and Redis from version 7 on, will do, if it writes each change to its file before it
    answers (appendonly yes, appendfsync always) and drops no keys (maxmemory-policy noeviction).
    Raises Unusable, a StoreError, which says what is wrong and how to mend it, without a password.
    """
    check_kind("url", url, str, "the URL of a server")
    check_kind("crawl", crawl, str, "a name")
    return _opened(url, crawl)


@asynccontextmanager
async def _opened(url: str, crawl: str) -> AsyncIterator[RedisStore]:
    try:
        import coredis
        from coredis.exceptions import RedisError
    except ImportError:
        raise Unusable(f"a shared crawl {_INSTALL}") from None
    given, _, rest = url.partition("://")
    user, _, place = rest.rpartition("@")
    scheme, shown = _SCHEMES.get(given), f"{given}://{place.partition('?')[0]}"
    if scheme is None or _ENDS(user):
        raise Unusable(_WANTED)
    if not crawl:
        raise Unusable("a shared crawl needs a name")
    if scheme == "rediss":
        rest += ("&" if "?" in rest else "?") + _VERIFIED
    opened = False
    failed: Exception | None = None
    try:
        target = f"{scheme}://{rest}"
        async with coredis.Redis.from_url(target, decode_components=True) as client:
            mends = await _check(client, shown)
            opened = True
            yield RedisStore(client, crawl, mends=mends)
    except ValueError:
        if opened:
            raise
        # Its text may have a part of the password.
        raise Unusable(_WANTED) from None
    except (RedisError, *_AWAY) as error:
        failed = error
    except ExceptionGroup as group:
        # The client runs a nursery, which puts the exception of a block into a group.
        failed = group
        while isinstance(failed, ExceptionGroup) and len(failed.exceptions) == 1:
            failed = failed.exceptions[0]
    away = anyio.ClosedResourceError | anyio.BrokenResourceError
    if isinstance(failed, RedisError | away) or (not opened and isinstance(failed, OSError)):
        cause = "" if failed.__cause__ is None else f": {failed.__cause__}"
        said = f"{failed}{cause}".partition("\n")[0] or type(failed).__name__
        raise Unusable(f"{shown}: {said}") from failed
    if failed is not None:
        raise failed


async def _check(client: Any, shown: str) -> bool:
    """Return whether a server must mend its file; raise Unusable if it would lose something."""
    from coredis.exceptions import ResponseError

    about = await client.info("server")
    valkey = about.get("valkey_version")
    version = str(valkey or about["redis_version"])
    major, minor = map(int, version.split(".")[:2])
    if major < _LEAST:
        raise Unusable(f"{shown}: it is Redis {version}: use Valkey, or Redis 7 or later")
    wanted = {b"appendonly": b"yes", b"appendfsync": b"always", b"maxmemory-policy": b"noeviction"}
    try:
        found = await client.config_get([*wanted])
    except ResponseError:
        # A server in a cloud that does not tell: its owner has to know.
        found = wanted
    for name, value in wanted.items():
        if found.get(name, value) != value:
            option = b"--%b %b" % (name, value)
            raise Unusable(f"{shown}: start the server with {option.decode()}, or it loses URLs")
    return valkey is None or (major, minor) < _WHOLE
