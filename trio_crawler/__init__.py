"""A web crawler on Trio, with structured concurrency.

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

# `__init__.pyi` has each name and its module. A module is imported at the first use of its names,
# so `--help` imports neither Trio nor httpx nor the parsers.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
