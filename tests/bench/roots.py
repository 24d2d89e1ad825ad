"""The documentation that benchmarks crawl: Debian's packages, by their names."""

from __future__ import annotations

from pathlib import Path

DOC = Path("/usr/share/doc")
ROOTS = {
    "linux-doc-6.1": DOC / "linux-doc-6.1/html",
    "postgresql-doc-15": DOC / "postgresql-doc-15/html",
    "python3-doc": DOC / "python3/html",
    "sqlite3-doc": DOC / "sqlite3",
    "apache2-doc": DOC / "apache2-doc/manual",
    "openjdk-17-doc": DOC / "openjdk-17-doc/api",
    "rust-doc": DOC / "rust-doc/html",
}
