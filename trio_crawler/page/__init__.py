"""Parse the bytes of a response into facts.

All functions are pure and synchronous, and take time linear in the size of the body. No content
of a page makes them raise.

Public are `links_of`, which reads everything that a page points to, its `Link` and `LinkKind`, and
`has_accelerator`.
"""

import lazy_loader

# Lazily: a crawl that only follows links does not need the readers of all kinds.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
