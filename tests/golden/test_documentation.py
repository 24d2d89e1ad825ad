"""What a crawl and a check of real documentation find is what they found before."""

from __future__ import annotations

import pytest
from bench.roots import ROOTS
from golden.documentation import golden, read, version
from golden.test_webs import differing

pytestmark = pytest.mark.real


@pytest.mark.parametrize("package", read())
def test_a_crawl_and_a_check_of_documentation_find_what_they_found_before(package: str) -> None:
    known = read()[package]
    if known.pop("version") != version(package):
        pytest.skip(f"{package} is not installed, or has another version")
    assert not differing(golden(ROOTS[package]), known)
