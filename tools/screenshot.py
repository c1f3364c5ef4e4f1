"""Takes a picture of a local HTML file with a headless Chromium, as tall as its content, for the README and people.

Talks to the browser over a pair of pipes in its DevTools protocol (https://chromedevtools.github.io/devtools-protocol/),
so it needs only Python and a Chromium. The browser is started without a network.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import json
import math
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
REMEDY = (
    "install one (Debian: apt-get install chromium fonts-liberation fonts-noto-color-emoji fonts-wqy-microhei), or name"
    " it in the variable CHROMIUM"
)
SECONDS = 30.0
FIRST_FREE = 10
"""Pipe ends are moved above the descriptors 3 and 4, which the browser reads from and writes to."""

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
)
_DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND"


class ScreenshotError(Exception):
    """No picture could be taken; the message is one line and says what to do."""


class Browser:
    """A running Chromium, controlled in JSON over its pipes; one command at a time."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._count = 0

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The result of one command. Raises ScreenshotError if it is refused or not answered within 30 s."""
        self._count += 1
        command = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (answer := self._read()).get("id") != self._count:
            pass
        if "error" in answer:
            raise ScreenshotError(f"the browser refused {method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait_for(self, event: str) -> None:
        """Returns once this event has been sent, skipping others."""
        while self._read().get("method") != event:
            pass

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._answers, 1 << 16) if ready else b""
            if not piece:
                raise ScreenshotError(f"the browser stopped answering; is it a working Chromium? Else {REMEDY}")
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


def find_chromium() -> str:
    """The path of a Chromium: that in the variable CHROMIUM, or else the first known name on the PATH."""
    named = os.environ.get("CHROMIUM")
    program = next(filter(None, map(shutil.which, [named] if named else NAMES)), None)
    if program is None:
        raise ScreenshotError(f"no Chromium found{f' at {named}' if named else ''}: {REMEDY}")
    return program


def take(html: Path, png: Path, width: int = 900, dark: bool = False, scale: float = 1.0) -> None:
    """Write a picture of the whole page, ``width`` CSS pixels wide and as tall as its content, times ``scale``."""
    if not html.is_file():
        raise ScreenshotError(f"there is no file {html}: give the path of an HTML file")
    with running(find_chromium()) as browser:
        tab = Tab(browser, dark)
        tab.resize(width, 10, scale)
        tab.open(html)
        picture = tab.picture()
    png.parent.mkdir(parents=True, exist_ok=True)
    png.write_bytes(picture)


class Tab:
    """One page of a running Chromium, as a reader who prefers light or dark sees it."""

    def __init__(self, browser: Browser, dark: bool = False) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._size = (0, 1.0)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Page.enable")
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one command to this page."""
        return self._browser.call(method, self._session, **params)

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        """Resize the window, in CSS pixels, with ``scale`` pixels for each."""
        self._size = (width, scale)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def open(self, html: Path) -> None:
        """Returns once the file and everything in it is loaded."""
        self.call("Page.navigate", url=html.resolve().as_uri())
        self._browser.wait_for("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The settled value of a JavaScript expression, as JSON. Raises ScreenshotError if it fails."""
        reply = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in reply:
            raise ScreenshotError(f"the page's script failed: {reply['exceptionDetails']['text']}")
        return reply["result"].get("value")

    def picture(self, height: int | None = None) -> bytes:
        """A PNG of the page from its top, or of all of it without a ``height``; the window grows to fit."""
        shot = b""
        for _ in range(3):  # parts that are drawn only when visible change the height, a frame later
            full_height = height or math.ceil(self.call("Page.getLayoutMetrics")["cssContentSize"]["height"])
            self.resize(self._size[0], full_height, self._size[1])
            self.run(_DRAWN)
            shot = self._shot(full_height)
        return shot

    def _shot(self, height: int) -> bytes:
        area = {"x": 0, "y": 0, "width": self._size[0], "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", clip=area, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])


@contextmanager
def running(program: str, *flags: str) -> Iterator[Browser]:
    """A Chromium without a network and with a fresh profile, until the block ends; ``flags`` can give it a network."""
    (browser_in, commands), (answers, browser_out) = _pipe(), _pipe()

    def connect() -> None:
        os.dup2(browser_in, 3)
        os.dup2(browser_out, 4)

    with tempfile.TemporaryDirectory(prefix="screenshot-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *FLAGS, *(flags or (NO_NETWORK,)), f"--user-data-dir={profile}"],
            preexec_fn=connect,  # noqa: PLW1509 - this program has one thread
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(browser_in)
        os.close(browser_out)
        try:
            yield Browser(commands, answers)
        finally:
            os.close(commands)  # the browser ends when its command pipe is closed
            os.close(answers)
            _end(process)


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Take a picture of a local HTML file.")
    parser.add_argument("html", type=Path)
    parser.add_argument("png", type=Path)
    parser.add_argument("--width", type=int, default=900, help="CSS pixels (default: 900)")
    parser.add_argument("--dark", action="store_true", help="as a reader who prefers dark sees it")
    parser.add_argument("--scale", type=float, default=1.0, help="pixels per CSS pixel (default: 1)")
    options = parser.parse_args(arguments)
    try:
        take(options.html, options.png, options.width, options.dark, options.scale)
    except (ScreenshotError, OSError) as error:
        print(f"screenshot: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
