"""A frontier that many processes share: each leases hosts, and a store has what is true for all.

A worker is a whole crawler. For the hosts that it holds its own `Hosts` decide, as in any other
crawl. The store knows which URLs are seen, which wait and which are out, who holds a host, and the
counts: `message` has what the two exchange. `StoreModel` is the store in memory.
"""
