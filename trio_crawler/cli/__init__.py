"""The command: options in, a crawl on the screen, a report, an exit status.

It uses only public names of the library. `main` has the two commands, whose options are declared
in `options`; `crawl` and `report` run them. `build` makes the parts of a crawl, `directory` opens
the crawl directory, `exports` writes `files`, and `signals` end the command early.
"""

# Nothing else: the package imports this before it has heard of signals.
from trio_crawler.cli.signals import SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Run the command and exit with its status."""
    SIGNALS.take()
    import gc
    import sys

    # ▶ While modules are imported it finds nothing, in 26 ms of 250; `guarded` enables it again.
    gc.disable()

    # httpx imports its own command line too, with Rich and Pygments: 35 ms. With this entry
    # it runs as if they were not installed.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    from trio_crawler.cli.main import main as run

    run()
