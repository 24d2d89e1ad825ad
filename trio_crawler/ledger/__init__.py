"""Keep the ends of the URLs of a crawl and the links of its pages, in few bytes, and join them.

Public is `Ledger`, which a `Report` and a `LinkCheck` may share.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
