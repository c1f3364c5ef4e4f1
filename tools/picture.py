"""Makes the pictures of the documentation in docs/images, of the comment and of the report: `make picture`."""

from __future__ import annotations

import sys
import tempfile
from datetime import datetime
from pathlib import Path

from bot.evaluation.report import render_report
from tests.evaluation.samples import generated
from tools.demo import ROOT, Stage, visible
from tools.preview import Post, page
from tools.screenshot import ScreenshotError, Tab, find_chromium, running, take

IMAGES = ROOT / "docs" / "images"
WIDTH = 900
SCALE = 1.5

REPORTS = (
    ("report.png", False, (1200, 2460, 1.0)),
    ("report-dark.png", True, (1200, 2460, 1.0)),
    ("report-phone.png", False, (390, 844, 2.0)),
)
"""Name, whether it is dark, and how much of the page is seen: width, height, pixels for each CSS pixel."""


def story(folder: Path) -> Path:
    """Let the Action answer the sample's new issue; returns the page that shows both."""
    stage = Stage(folder)
    try:
        issue = stage.story["issue"]
        number = stage.github.open_issue(issue["author"], issue["title"], issue["body"], at=issue["created_at"])
        stage.act("issues", "opened", number)
        opened = datetime.fromisoformat(issue["created_at"])
        posts = [
            Post(issue["author"], issue["body"], opened),
            Post("github-actions", visible(stage.comment(number)), opened, is_bot=True),
        ]
        file = folder / "comment.html"
        file.write_text(page(posts, issue["title"], number, stage.repository), encoding="utf-8")
        return file
    finally:
        stage.close()


def report(folder: Path) -> Path:
    """The report on a replay that is made up, but looks like one of a repository."""
    file = folder / "report.html"
    file.write_text(render_report(generated(300)), encoding="utf-8")
    return file


def take_report(html: Path) -> None:
    """Take the pictures of the top of the report."""
    for name, dark, (width, height, scale) in REPORTS:
        with running(find_chromium()) as browser:
            tab = Tab(browser, dark)
            tab.resize(width, height, scale)
            tab.open(html)
            (IMAGES / name).write_bytes(tab.picture(height))


def main() -> int:
    """Take all pictures; returns 1 where there is no browser to take them with."""
    try:
        find_chromium()
        with tempfile.TemporaryDirectory(prefix="precedent-picture-") as folder:
            html = story(Path(folder))
            for name, dark in (("comment.png", False), ("comment-dark.png", True)):
                take(html, IMAGES / name, WIDTH, dark, SCALE)
            take_report(report(Path(folder)))
        for name in ("comment.png", "comment-dark.png", *(name for name, _, _ in REPORTS)):
            print(f"docs/images/{name}: {(IMAGES / name).stat().st_size:,} bytes")
    except ScreenshotError as error:
        print(f"picture: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
