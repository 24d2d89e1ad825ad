"""The rules of robots.txt files, in the records of the hosts."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from trio_crawler.policy.robots.store import KnownRules, LongFiles
from trio_crawler.schedule.origin import Origin


class StoredRules:
    """Store the rules of `origins`, by name; of the long files only the last ones are kept.

    With `obey` their delays are kept at their hosts.
    """

    def __init__(self, origins: Mapping[str, Origin], *, obey: bool) -> None:
        self._origins = origins
        self._obey = obey
        self._long_files = LongFiles()

    def store(self, origin: Origin, known: KnownRules) -> None:
        """Store the rules of an origin's robots.txt."""
        rules = self._long_files.accepted(origin.name, known.rules)
        origin.robots = known if rules is known.rules else replace(known, rules=rules)
        if self._obey:
            load = origin.host.load
            if load.ask(rules.delay) and load.in_flight:
                # The other scheme has requests in flight that may have started just now.
                load.last = max(load.last, known.since)
        for name in self._long_files.add(origin.name, rules):
            self._origins[name].robots = None

    def restore(self, origin: Origin, known: KnownRules, now: float) -> None:
        """Store the rules that an earlier run read; a delay of the host begins now.

        That run may have asked the host just before it ended.
        """
        origin.state.answered = True
        self.store(origin, known)
        if origin.host.load.delay:
            origin.host.load.last = now
