"""The traps of the hosts of one crawl."""

from __future__ import annotations

from trio_crawler.page.urls import host
from trio_crawler.policy.traps.novelty import Novelty
from trio_crawler.policy.traps.watch import HostTraps, Traps


class TrapsByHost:
    """The traps of each host, which all of its ports share.

    With `by_digest` the traps compare SHA-1s of bodies: no more is stored of the pages of earlier
    runs. `len` is the number of names of hosts, with each of their ports, that were asked for.
    """

    def __init__(self, traps: Traps) -> None:
        self._traps = traps
        self._novelty = Novelty()
        self.by_digest = False
        # By the name of a host, and by its name with each port.
        self._by_name: dict[str, HostTraps] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, authority: str) -> bool:
        return authority in self._by_name

    def of(self, url: str) -> HostTraps:
        """Return the traps of the host of a normalised http(s) URL."""
        authority = url[url.index("/") + 2 : url.index("/", 8)]
        traps = self._by_name.get(authority)
        if traps is None:
            name = host(url)
            traps = self._by_name.get(name)
            if traps is None:
                traps = HostTraps(self._traps, by_digest=self.by_digest, novelty=self._novelty)
            self._by_name[name] = self._by_name[authority] = traps
        return traps
