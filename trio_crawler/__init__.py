"""A web crawler in structured concurrency, on Trio.

from trio_crawler import Crawler, Failure, Page

crawler = Crawler(["https://example.org/"])
async with crawler.outcomes() as outcomes:
    async for outcome in outcomes:
        match outcome:
            case Page(url=url, status=status):
                print(status, url)
            case Failure(url=url, reason=reason):
                print(reason, url)
print(crawler.statistics())
"""

import lazy_loader

# The names and their homes are in `__init__.pyi`. They are imported when they are first asked for:
# `--help` needs neither Trio nor httpx nor the parsers.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
