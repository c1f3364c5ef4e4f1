"""Pages in Chromium: how tests open and examine them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tools.screenshot import chromium

WINDOWS = {"light": (1200, 900), "dark": (1200, 900), "phone": (390, 844)}
WATCH = """
window.problems = [];
for (const name of ["error", "unhandledrejection", "securitypolicyviolation"])
  addEventListener(name, event => problems.push(`${name}: ${event.message || event.reason || event.blockedURI}`), true);
for (const name of ["error", "warn"]) console[name] = (...parts) => problems.push(parts.join(" "));
"""
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def open_watched(browser: Browser, folder: Path, html: str, window: str) -> Page:
    """The page in a window of WINDOWS, with WATCH at work."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    width, height = WINDOWS[window]
    scheme = "dark" if window == "dark" else "light"
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.add_init_script(WATCH)
    page.goto(file.as_uri())
    return page


def resize(page: Page, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})


def show_all(page: Page) -> None:
    """Make the window as tall as its content, whose height changes as parts are drawn for the first time."""
    for _ in range(3):
        size = page.evaluate("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        resize(page, *size)
        page.evaluate(DRAWN)


def axe_violations(page: Page) -> list[str]:
    """What axe finds, each with its rule first."""
    return [
        f"{found['id']}: {len(found['nodes'])} × {found['nodes'][0]['html']} {found['nodes'][0]['failureSummary']}"
        for found in Axe().run(page, options=RULES)["violations"]
    ]
