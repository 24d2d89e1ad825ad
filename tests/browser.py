"""Chromium without a screen, for the tests of the tier `real`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
# As root, on a machine without a screen, and without a look for updates.
SWITCHES = ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run")
SWITCHES += ("disable-background-networking", "disable-component-update", "disable-sync")
CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")

AXE = Path("/opt/axe-core/node_modules/axe-core/axe.min.js")
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed")


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Start Chromium; its logs are those of the console, and of what it asks for."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for each in SWITCHES:
        options.add_argument(f"--{each}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()
