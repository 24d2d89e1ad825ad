"""The network: fetch URLs over connections that are reused while that is safe.

Public are `CookieStore`, for the cookies of an `HttpFetch`; `FolderFetch`, for a folder of files;
two kinds of statistics; and `wrapping`, for a fetch that calls another one.
"""

import lazy_loader

# Lazily: a crawl without cookies does not need the cookie store.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
