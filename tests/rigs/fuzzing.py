"""Run a comparison of compiled code with Python on the extension as it is, or with sanitizers."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "trio_crawler/page"

_FLAGS = "-shared -fPIC -O1 -g -fno-omit-frame-pointer -Wall -Wextra -Werror -Wno-unused-parameter"
_SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=all"


def build(source: Path, home: Path) -> Path:
    """Compile an extension with sanitizers."""
    library = home / f"{source.stem}.so"
    include = sysconfig.get_paths()["include"]
    flags = [*_FLAGS.split(), *_SANITIZE.split(), f"-I{include}"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library)], check=True)
    return library


def environment() -> dict[str, str]:
    """Return the environment of a process that may load such an extension.

    Python's own allocator would hide what is beyond the end of a page. Python keeps objects until
    it exits, which are no leaks.
    """
    names = ("libasan.so", "libubsan.so")
    paths = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    ]
    return os.environ | {
        "LD_PRELOAD": " ".join(paths),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def has_sanitizers() -> bool:
    """Whether gcc is here, and the libraries of its sanitizers."""
    if shutil.which("gcc") is None or sys.platform != "linux":
        return False
    return all(Path(path).is_absolute() for path in environment()["LD_PRELOAD"].split())


def _loaded(library: Path) -> Any:
    name = f"trio_crawler.page.{library.stem}"
    spec = spec_from_file_location(name, library, loader=ExtensionFileLoader(name, str(library)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(
    script: str,
    source: Path,
    use: Callable[[Any], object],
    is_there: Callable[[], bool],
    compare: Callable[[int, int], str],
) -> int:
    """Compare as the command line says; return 0 if all pages were read alike.

    `use` sets an extension that was built elsewhere; `compare` takes how many pages to compare and
    a seed, and returns what was done.
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--library", type=Path, help="use an extension that was built before")
    options = parser.parse_args()
    if options.sanitize:
        with TemporaryDirectory() as home:
            words = [script, "--pages", str(options.pages), "--seed", str(options.seed)]
            words += ["--library", str(build(source, Path(home)))]
            return subprocess.run(
                [sys.executable, *words], env=environment(), check=False
            ).returncode
    if options.library is not None:
        use(_loaded(options.library))
    if not is_there():
        print(f"there is no compiled {source.stem}", file=sys.stderr)
        return 2
    print(compare(options.pages, options.seed))
    return 0
