"""A frontier that many processes share: each leases hosts, and a store has what is true for all.

A worker is a whole crawler with a `SharedFrontier`. For the hosts that it holds its own `Hosts`
decide, as in any other crawl. The store knows which URLs are seen, which wait and which are out,
who holds a host, and the counts. `opened_store` connects to a `RedisStore`, on a Valkey or Redis
server. The module `message` has what worker and store exchange.
"""

import lazy_loader

# Lazily: only workers that share a crawl need any of it.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
