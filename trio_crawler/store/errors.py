"""What can be wrong with a crawl directory."""

from __future__ import annotations


class StoreError(Exception):
    """A crawl directory cannot be used.

    Its text is one line for people: which file, what is wrong with it, and what to do.
    """


class DifferentCrawl(StoreError):
    """A crawl directory holds a crawl that means something else.

    Its text names each option that differs, with both values.
    """


class InUse(StoreError):
    """Another crawl is using the directory, or the file of a stream."""
