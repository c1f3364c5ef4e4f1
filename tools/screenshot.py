"""The Chromium of this machine, without a network: for pictures and tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
REMEDY = (
    "install one (Debian: apt-get install chromium fonts-liberation fonts-noto-color-emoji fonts-wqy-microhei), or name"
    " it in the variable CHROMIUM"
)
NO_NETWORK = "MAP * ~NOTFOUND"


class ScreenshotError(Exception):
    """No picture could be taken; the message is one line and says what to do."""


def find_chromium() -> str:
    """The path of a Chromium: that in the variable CHROMIUM, or else the first known name on the PATH."""
    named = os.environ.get("CHROMIUM")
    program = next(filter(None, map(shutil.which, [named] if named else NAMES)), None)
    if program is None:
        raise ScreenshotError(f"no Chromium found{f' at {named}' if named else ''}: {REMEDY}")
    return program


@contextmanager
def chromium(hosts: str = NO_NETWORK) -> Iterator[Browser]:
    """A Chromium with a fresh profile until the block ends; ``hosts`` are its rules for names, which may allow some."""
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=find_chromium(), args=[f"--host-resolver-rules={hosts}"])
