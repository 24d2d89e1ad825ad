"""The network: fetch one URL at a time, over connections that are reused while they are safe.

Public are `CookieStore`, for the cookies of an `HttpFetch`; `Wire`, the HTTP/1.1 client that an
`HttpFetch` uses, with `Security`, its certificates; and the statistics of all three.
"""

import lazy_loader

# A crawl without cookies needs no store for them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
