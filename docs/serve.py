"""Serve a site until Ctrl-C, then say what it was asked: `python docs/serve.py plain`."""

from __future__ import annotations

import signal
import sys

from sites.serving import named, serving


def main(name: str) -> None:
    with serving(named(name)) as site:
        print(site.url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    for path, count in sorted(site.hits.items()):
        print(f"{count:6} {path}")


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main(sys.argv[1])
