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

import os
import sys

# The library touches no signals. But if the command runs, none may leave a traceback from here on.
# Python says "-m" as long as it looks for the program that it was asked to run.
_program = os.path.basename(sys.argv[0]) if sys.argv else ""
if _program == "trio-crawler" or (
    _program == "-m" and any(word.endswith("trio_crawler") for word in sys.orig_argv)
):
    import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds

    _mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    from trio_crawler.cli.signals import SIGNALS as _SIGNALS

    _SIGNALS.take()
    _signal.pthread_sigmask(_signal.SIG_SETMASK, _mask)

import lazy_loader  # noqa: E402

# `__init__.pyi` has each name and its module. A module is imported at the first use of its names,
# so `--help` imports neither Trio nor httpx nor the parsers.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
