"""The store of a shared crawl as a model in Python: `work.lua` once more, in memory."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from math import ceil

import msgspec
import trio

from trio_crawler.shared.message import (
    MOST_OF_A_HOST,
    Back,
    Child,
    Grant,
    Join,
    Joined,
    Refused,
    Reply,
    Work,
    packed,
)

_MOST_GAP, _PATIENCE = 1_000, 500


class StoreModel:
    """One shared crawl in memory, for workers in one process.

    A call takes `delay` seconds of Trio's clock. `now` returns the time in milliseconds.
    """

    def __init__(self, *, delay: float = 0.0, now: Callable[[], float] | None = None) -> None:
        self._delay = delay
        self._time = now or (lambda: trio.current_time() * 1000)
        self.meaning: str | None = None
        self.added = self.done = self.calls = 0
        self._salt = ""
        self._budget, self._levels, self._seeded = -1, False, False
        # The pages that have spent the budget; the open level, and its pages that are not done.
        self._spent = self._level = self._open = 0
        self._seen: set[tuple[int, int]] = set()
        self._queues: defaultdict[str, deque[tuple[int, str]]] = defaultdict(deque)
        self._deep: dict[int, defaultdict[str, list[tuple[int, str]]]] = {}
        # By worker what is out with it: host and job by their numbers.
        self._out: defaultdict[str, dict[int, tuple[str, str]]] = defaultdict(dict)
        # By host who holds it, or when it is ready; and when its rest is over.
        self._holder: dict[str, str] = {}
        self._ready: dict[str, float] = {}
        self._rest: dict[str, float] = {}
        # By worker the last number of its messages, when its lease ends, its hosts, and those of
        # them in which something is new.
        self._seq: dict[str, int] = {}
        self._expiry: dict[str, float] = {}
        self._of: defaultdict[str, set[str]] = defaultdict(set)
        self._news: defaultdict[str, set[str]] = defaultdict(set)
        # Those that can ask more: how many hosts they have, and since when they are short.
        self._short: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._clock = self._wall = self._real = self._ends = 0.0

    async def call(self, command: str, message: bytes) -> bytes:
        """Run a command; see `SharedStore`."""
        await trio.sleep(self._delay)
        self.calls += 1
        if command == "join":
            return packed(self._join(msgspec.msgpack.decode(message, type=Join)))
        if command == "work":
            return packed(self._work(msgspec.msgpack.decode(message, type=Work)))
        name: str = msgspec.msgpack.decode(message, type=str)
        if name not in self._seq:
            raise Refused("FENCED")
        self._give_back(name, self._now())
        return b""

    def _now(self) -> float:
        """Return the crawl's clock: a gap between two calls counts for a second at most.

        So a store that was away, or a clock that jumps, takes no lease from anybody.
        """
        wall = self._time()
        gap = max(0.0, wall - self._wall) if self._wall else 0.0
        # By the whole gap the leases are over of those that do not call any more.
        self._real = self._clock + gap
        self._clock, self._wall = self._clock + min(_MOST_GAP, gap), wall
        return self._clock

    def _join(self, join: Join) -> Joined:
        if join.name in self._seq:
            raise Refused("TAKEN")
        if self.meaning is None:
            if not join.meaning:
                raise Refused("NONE")
            self.meaning, self._salt = join.meaning, join.salt
            self._levels = join.levels
            # One unit for the seeds: it ends with them.
            self.added = 1
        now = self._now()
        if max(self._expiry.values(), default=0.0) <= self._real:
            self._ends = now + join.limit
            self._budget = join.budget if join.budget >= 0 else self._budget
        self._seq[join.name], self._expiry[join.name] = 0, now + join.ttl
        left = int(self._ends - now)
        return Joined(self.meaning, self._salt, self._seeded, left, self._budget)

    def _give_back(self, name: str, now: float) -> None:
        """End a session: what it had goes to the front of the queues, and its hosts are free."""
        del self._seq[name], self._expiry[name]
        self._news.pop(name, None)
        self._short.pop(name, None)
        self._since.pop(name, None)
        for number, (host, job) in sorted(self._out.pop(name, {}).items(), reverse=True):
            self._queues[host].appendleft((number, job))
        for host in self._of.pop(name, ()):
            self._free(host, now)

    def _free(self, host: str, due: float) -> None:
        del self._holder[host]
        if self._queues[host]:
            self._ready[host] = due

    def _work(self, work: Work) -> Reply:
        name, last = work.name, self._seq.get(work.name)
        if last is None:
            raise Refused("FENCED")
        if work.seq not in (last, last + 1):
            raise Refused("LOST")
        again = work.seq == last
        out = self._out[name]
        if not again and not out.keys() >= set(work.ended):
            raise Refused("TWICE")
        now = self._now()
        self._seq[name], self._expiry[name] = work.seq, now + work.ttl
        news, woken = ([], set[str]()) if again else self._record(work, out, now)
        late = min(self._expiry, key=self._expiry.__getitem__)
        if self._expiry[late] <= now:
            self._give_back(late, now)
        if again:
            shed = 0
            granted = [
                Grant(host, [(k, job) for k, (at, job) in out.items() if at == host], True)
                for host in self._of[name]
            ]
        else:
            granted, shed = self._grant(work, out, woken, now)
        spent = 0 <= self._budget <= self._spent
        due = min(self._ready.values(), default=None)
        return Reply(
            again,
            news,
            granted,
            self.added,
            self.done,
            "page_budget" if spent else "",
            -1 if due is None else max(0, ceil(due - now)),
            shed,
        )

    def _record(
        self, work: Work, out: dict[int, tuple[str, str]], now: float
    ) -> tuple[list[int], set[str]]:
        """Record what has ended and what was found; return the news, and own hosts that have any.

        ▶ What is found always goes through the queue, also of the worker's own hosts: so there is
        one path for every job.
        """
        woken = set[str]()
        for number in work.ended:
            del out[number]
        self.done += len(work.ended)
        self._open -= work.pages
        self._spent += work.spent
        new = partial(self._add, name=work.name, now=now, woken=woken)
        news = [sum(map(new, group)) for group in work.found]
        if work.seeded and not self._seeded:
            self._seeded = True
            self.done += 1
        if self._levels and self._seeded and not self._open and self._deep:
            self._level = min(self._deep)
            for host, jobs in self._deep.pop(self._level).items():
                self._open += len(jobs)
                self._queues[host].extend(jobs)
                self._offer(host, work.name, now, woken)
        for back in work.back:
            self._take_back(work.name, back, out, now)
        return news, woken

    def _add(self, found: Child, *, name: str, now: float, woken: set[str]) -> bool:
        """Admit a job if it is new; return whether it is."""
        key = found.bucket, found.value
        if key in self._seen:
            return False
        self._seen.add(key)
        self.added += 1
        entry = self.added, found.job
        if self._levels and found.depth > self._level:
            hosts = self._deep.setdefault(found.depth, defaultdict(list))
            hosts[found.host].append(entry)
        else:
            self._open += found.depth >= 0
            self._queues[found.host].append(entry)
            self._offer(found.host, name, now, woken)
        return True

    def _offer(self, host: str, name: str, now: float, woken: set[str]) -> None:
        """Tell of a new job: its host is ready, unless a worker holds it, who gets the news."""
        holder = self._holder.get(host)
        if holder == name:
            woken.add(host)
        elif holder is not None:
            self._news[holder].add(host)
        else:
            self._ready.setdefault(host, max(now, self._rest.get(host, 0.0)))

    def _take_back(
        self, name: str, back: Back, out: dict[int, tuple[str, str]], now: float
    ) -> None:
        if self._holder.get(back.host) != name:
            return
        for number in reversed(back.numbers):
            if number in out:
                self._queues[back.host].appendleft((number, out.pop(number)[1]))
        self._of[name].discard(back.host)
        if back.rest:
            self._rest[back.host] = now + back.rest
        self._free(back.host, now + back.rest)

    def _grant(
        self, work: Work, out: dict[int, tuple[str, str]], woken: set[str], now: float
    ) -> tuple[list[Grant], int]:
        """Return the hosts with jobs that a worker gets, and how many it has beyond its share.

        Without a fair share the first worker would take everything.
        """
        name, mine, want, shed = work.name, self._of[work.name], work.want, 0
        share = max(1, ceil((len(self._holder) + len(self._ready)) / len(self._seq)))
        self._short.pop(name, None)
        due = sorted((at, host) for host, at in self._ready.items() if at <= now)
        if any(hosts < share for hosts in self._short.values()):
            want, shed = min(want, max(0, share - len(mine))), max(0, len(mine) - share)
        if work.want:
            self._short[name] = len(mine)
            self._since.setdefault(name, now)
        else:
            self._since.pop(name, None)
            others = sum(since <= now - _PATIENCE for since in self._since.values())
            if len(mine) > 1 and len(due) < others:
                shed = max(shed, ceil(len(mine) / 4))
        granted, room = [], work.room
        taken = [host for _, host in due[:want]] if room > 0 else []
        for host in taken:
            self._holder[host] = name
            mine.add(host)
            del self._ready[host]
            self._rest.pop(host, None)
        woken.update(work.hungry, self._news.pop(name, ()))
        own = (host for host in sorted(woken) if self._holder.get(host) == name)
        for host in (*taken, *own):
            grant = self._fill(host, out, room)
            room -= len(grant.jobs)
            granted.append(grant)
        return granted, shed

    def _fill(self, host: str, out: dict[int, tuple[str, str]], room: int) -> Grant:
        """Grant jobs of a host, at most `room` and what the page budget has left."""
        most, queue = min(MOST_OF_A_HOST, room), self._queues[host]
        if self._budget >= 0:
            most = min(most, self._budget - self._spent - sum(map(len, self._out.values())))
        jobs = [queue.popleft() for _ in range(min(max(most, 0), len(queue)))]
        out.update((number, (host, job)) for number, job in jobs)
        return Grant(host, jobs, bool(queue))
