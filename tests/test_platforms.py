"""Every module can be imported where the platform has fewer modules than Linux."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import trio_crawler

PACKAGE = Path(trio_crawler.__file__).parent
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "__main__.py"
]
LESS = """
import importlib, sys
# What others import, before it is hidden.
import certifi, click, httptools, httpx, msgspec, selectolax.lexbor, trio, anyio
from store import systems

assert not any(name.startswith("trio_crawler") for name in sys.modules)
systems.windows()
for name in ("resource", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog"):
    sys.modules[name] = None
for name in sys.argv[1:]:
    importlib.import_module(name)
    print(name)
"""


def test_each_module_of_the_package_needs_nothing_that_only_some_platforms_have():
    path = os.pathsep.join([str(Path(__file__).parent), str(PACKAGE.parent)])
    command = [sys.executable, "-W", "error", "-c", LESS, *MODULES]
    run = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert run.stderr == ""
    assert run.stdout.split() == MODULES
    assert len(MODULES) > 100
