"""The messages between a worker and the store, and the jobs in them.

A message is an array in MessagePack; times are whole milliseconds.
"""

# The annotations are objects, not strings: the fields of messages are decoded by them.

import hashlib
from typing import NamedTuple, Protocol
from zlib import crc32

import msgspec

from trio_crawler.arguments import public
from trio_crawler.frontier.lasting import StoredJob
from trio_crawler.model import Job, Purpose
from trio_crawler.page.urls import authority, seen_key
from trio_crawler.store.errors import Unusable

MOST_OF_A_HOST = 200
"""The most jobs of one host that a reply grants."""

_BUCKET = 48
_SITEMAP, _AGAIN, _PAGE = b"s", b"a", b"p"
_json = msgspec.json.Encoder().encode
_JOB = msgspec.json.Decoder(tuple[str, int, int, str | None, Purpose, float | None, bool])


_REFUSALS = {
    "FENCED": "this worker was silent for longer than its lease, and others have its hosts: "
    "start it again",
    "LOST": "the store has other messages of this worker than it has sent: start it again",
    "TWICE": "the store has given a URL of this worker to others: start it again",
    "TAKEN": "another worker has this name: start it again",
    "NONE": "there is no shared crawl of this name yet: give its URLs",
}


@public("trio_crawler.shared")
class Refused(Unusable):
    """The store has refused a message, and changed nothing; the text is one line for people.

    `reason` is FENCED: the session is over, since its lease ran out or it has left; LOST: the
    store has another number of the last message; TWICE: a job has ended that is not out with this
    worker; TAKEN: a worker has this name; or NONE: there is no such crawl yet.

    >>> Refused("TAKEN").reason
    'TAKEN'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(_REFUSALS.get(reason, reason))
        self.reason = reason


@public("trio_crawler.shared")
class SharedStore(Protocol):
    """A store of one crawl that workers share.

    Each call is one atomic step, and at most one of a worker is in flight. A call that got no
    reply may be repeated: the store recognises it by its number. Raises Refused.
    """

    async def call(self, command: str, message: bytes, /) -> bytes:
        """Run a `command` ("join", "work" or "leave") with a `message`; return the reply."""


class Join(msgspec.Struct, array_like=True):
    """A worker joins: its name, which no other has had, and its lease.

    The first one brings the meaning and the salt of the crawl (in hexadecimal), and whether its
    levels are kept. Another one may leave the meaning empty. The page `budget`, -1 for that of the
    crawl, and the `limit` count for all if no other worker is there.
    """

    name: str
    ttl: int
    meaning: str
    salt: str
    budget: int
    levels: bool
    limit: int


class Joined(msgspec.Struct, array_like=True):
    """The meaning and the salt of the crawl, whether its seeds have been read, and what is left.

    `left` is the time, negative if that is over, and `budget` the pages, -1 for any number.
    """

    meaning: str
    salt: str
    seeded: bool
    left: int
    budget: int


class Child(NamedTuple):
    """A job that was found: the key of its URL, its host, its depth, and the job as text.

    The key is a number of 64 bits in two parts. The depth is -1 if the job counts for no level.
    """

    bucket: int
    value: int
    host: str
    depth: int
    job: str


class Back(NamedTuple):
    """A host that a worker gives back: how long it rests, and the jobs that were not started."""

    host: str
    rest: int
    numbers: list[int]


class Work(msgspec.Struct, array_like=True):
    """What a worker did, and what it wants.

    - `seq`: the number of this message, one more than that of the last one;
    - `ttl`: the time for which it holds its hosts from now on;
    - `ended`: the numbers of the jobs that have ended, of them `pages` for levels and `spent` for
      the page budget;
    - `found`: groups of jobs that may be new; the reply says how many of each group are;
    - `want`, `room`: how many more hosts it can use, and how many jobs; `hungry`: hosts of its own
      that need more jobs;
    - `back`: the hosts that it gives back;
    - `seeded`: whether it has read the seeds to their end.
    """

    name: str
    seq: int
    ttl: int
    ended: list[int]
    found: list[list[Child]]
    want: int
    room: int
    hungry: list[str]
    back: list[Back]
    seeded: bool
    pages: int
    spent: int


class Grant(NamedTuple):
    """A host with jobs of its, each with its number; and whether more wait in the store."""

    host: str
    jobs: list[tuple[int, str]]
    more: bool


class Reply(msgspec.Struct, array_like=True):
    """What the store answers to `Work`.

    - `again`: the message had come before: `granted` has all jobs that are out with the worker;
    - `news`: the number of new jobs in each group;
    - `added`, `done`: the jobs of the crawl, and those that have ended: equal when it is over;
    - `over`: why the crawl ends early, "" if it does not;
    - `due`: the time until a host is ready, -1 if none rests;
    - `shed`: how many hosts the worker is to give back, since another one is short of work.
    """

    again: bool
    news: list[int]
    granted: list[Grant]
    added: int
    done: int
    over: str
    due: int
    shed: int


packed = msgspec.msgpack.encode
"""Encode a message."""


def key_of(job: Job, *, again: bool) -> tuple[bytes, str]:
    """Return the kind and the text of the key under which the URL of a job is seen."""
    if job.purpose is Purpose.SITEMAP:
        return _SITEMAP, job.url
    return _AGAIN if again else _PAGE, seen_key(job.url)


def place_of(url: str, strands: int) -> str:
    """Return the host of a URL, or the strand of it that the URL is in: `host#2`."""
    host = authority(url)
    return host if strands == 1 else f"{host}#{crc32(url.encode()) % strands}"


def host_of(place: str) -> str:
    """Return the host of a place."""
    return place.partition("#")[0]


def child(job: Job, kind: bytes, key: str, salt: bytes, place: str) -> Child:
    """Return a job for a message; `salt` hides from a site which of its URLs collide."""
    text = kind + key.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8, key=salt).digest()
    bucket, value = divmod(int.from_bytes(digest, "big"), 1 << _BUCKET)
    depth = job.depth if job.purpose is Purpose.PAGE else -1
    about = (job.url, job.depth, job.redirects, job.referrer, job.purpose, job.priority, job.again)
    return Child(bucket, value, place, depth, _json(about).decode())


def job_of(number: int, text: str) -> StoredJob:
    """Return the job of a `Child` that the store has given a number."""
    url, depth, redirects, referrer, purpose, priority, again = _JOB.decode(text)
    job = Job(url, depth, redirects, referrer, 0, purpose, priority, again=again)
    return StoredJob.of(job, number)
