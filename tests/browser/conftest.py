"""A browser for the tests of pages: Debian's Chromium, or the one that CHROMIUM names, driven without a network."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

MOST_MILLISECONDS = 180_000
"""What a page may take to come to a state that a test waits for: machines are busy; a hung page hangs for good."""


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    assert program is not None, "the browser tests need Chromium: apt-get install chromium, or CHROMIUM=/path/to/it"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("browser"),
            executable_path=program,
            headless=True,
            args=list(ARGUMENTS),
            viewport={"width": 1280, "height": 900},
            offline=True,
        )
        opened.set_default_timeout(MOST_MILLISECONDS)
        yield opened
        opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that fails the test when its scripts complain, or when it asks for anything but itself."""
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    opened.on("request", lambda request: complaints.extend(list_foreign(request.url)))
    yield opened
    opened.close()
    assert complaints == []


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def list_foreign(address: str) -> list[str]:
    return [] if address.startswith(("file:", "data:", "about:")) else [address]
