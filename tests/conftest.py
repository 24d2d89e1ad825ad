"""The tiers of the tests: the quick ones run by default, all of them with `--all`."""

from __future__ import annotations

import os
import signal

import pytest

# The authorities of the machine that the tests run on are not those that the tests are about.
for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
    os.environ.pop(name, None)

TIERS = {
    "slow": "takes seconds: it measures, fuzzes, or tries very many cases",
    "process": "starts programs, and often kills them",
    "docs": "runs the programs of docs/ and builds its pages",
    "real": "needs documentation, servers or a browser that Debian packages installed",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help=f"also run the tests of {', '.join(TIERS)}"
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    # Processes inherit what `nohup` and a shell's `&` ignore, and tests send these signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slower tiers out, unless the command line names them, or tests."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    if named or config.getoption("--all") or config.getoption("markexpr"):
        return
    quick = [item for item in items if not any(map(item.get_closest_marker, TIERS))]
    if len(quick) < len(items):
        kept = set(quick)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = quick
