"""Makes the pictures of the documentation in docs/images: comments, report, digest, status page, terminal.

`make picture` makes all of them; names select some: ``comment``, ``report``, ``digest``, ``gallery``, ``status``,
``terminal``.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import datetime
from pathlib import Path

from bot.evaluation.digest_page import render_digest
from bot.evaluation.report import render_report
from bot.server.pages.health import readiness_checks
from bot.server.pages.status_page import status_page
from tests.evaluation.samples import generated
from tests.questions import digest_samples
from tests.server.sample_inbox import NOW as STATUS_NOW
from tests.server.sample_inbox import OPTIONS, sample_inbox
from tools.demo import ROOT, Stage, visible
from tools.gallery import GALLERY, NOW, REPOSITORY, render_comment
from tools.preview import PageComment, comment, page
from tools.screenshot import ScreenshotError, Tab, find_chromium, running, take
from tools.terminal import screen

IMAGES = ROOT / "docs" / "images"
COMMENTS = IMAGES / "comments"
WIDTH = 900
SCALE = 1.5
COMMENT_SCALE = 1.25

Pictures = tuple[tuple[str, bool, tuple[int, int, float]], ...]

REPORTS: Pictures = (
    ("report.png", False, (1200, 2460, 1.0)),
    ("report-dark.png", True, (1200, 2460, 1.0)),
    ("report-phone.png", False, (390, 844, 2.0)),
)
"""Name, whether it is dark, and the visible part of the page: width, height, pixels for each CSS pixel."""

DIGEST: Pictures = (
    ("digest.png", False, (1200, 1500, 1.0)),
    ("digest-dark.png", True, (1200, 1500, 1.0)),
    ("digest-phone.png", False, (390, 844, 2.0)),
)

STATUS: Pictures = (
    ("status.png", False, (1040, 1500, 1.25)),
    ("status-dark.png", True, (1040, 1500, 1.25)),
    ("status-phone.png", False, (390, 844, 2.0)),
)


def story(folder: Path) -> Path:
    """Let the Action answer the sample's new issue; returns the page with the issue and the comment."""
    stage = Stage(folder)
    try:
        issue = stage.story["issue"]
        number = stage.github.open_issue(issue["author"], issue["title"], issue["body"], at=issue["created_at"])
        stage.act("issues", "opened", number)
        opened = datetime.fromisoformat(issue["created_at"])
        posts = [
            PageComment(issue["author"], issue["body"], opened),
            PageComment("github-actions", visible(stage.comment(number)), opened, is_bot=True),
        ]
        file = folder / "comment.html"
        file.write_text(page(posts, issue["title"], number, stage.repository), encoding="utf-8")
        return file
    finally:
        stage.close()


def report(folder: Path) -> Path:
    """The report on an invented replay that looks real."""
    file = folder / "report.html"
    file.write_text(render_report(generated(300)), encoding="utf-8")
    return file


def digest(folder: Path) -> Path:
    """The digest of an invented memory."""
    file = folder / "digest.html"
    maintainer_report = digest_samples.report(digest_samples.create_memory(folder / "digest"))
    file.write_text(render_digest(maintainer_report, digest_samples.HOME), encoding="utf-8")
    return file


def status(folder: Path) -> Path:
    """The status page after an invented day."""
    file, inbox = folder / "status.html", sample_inbox()
    file.write_text(status_page(inbox, readiness_checks(inbox, OPTIONS, STATUS_NOW), STATUS_NOW), encoding="utf-8")
    return file


def take_top(html: Path, pictures: Pictures) -> None:
    """Take pictures of the top of a page."""
    for name, dark, (width, height, scale) in pictures:
        with running(find_chromium()) as browser:
            tab = Tab(browser, dark)
            tab.resize(width, height, scale)
            tab.open(html)
            (IMAGES / name).write_bytes(tab.picture(height))


def take_story(html: Path) -> None:
    """Take the pictures of the comment below the issue that it answers, light and dark."""
    for name, dark in (("comment.png", False), ("comment-dark.png", True)):
        take(html, IMAGES / name, WIDTH, dark, SCALE)


def take_gallery(folder: Path) -> None:
    """Take a picture of each comment in the gallery."""
    for name, shown in GALLERY.items():
        html = folder / f"{name}.html"
        post = PageComment("github-actions", visible(render_comment(shown)), NOW, is_bot=True)
        html.write_text(comment(post, REPOSITORY), encoding="utf-8")
        take(html, COMMENTS / f"{name}.png", WIDTH, scale=COMMENT_SCALE)


PICTURES = {
    "comment": lambda folder: take_story(story(folder)),
    "report": lambda folder: take_top(report(folder), REPORTS),
    "digest": lambda folder: take_top(digest(folder), DIGEST),
    "status": lambda folder: take_top(status(folder), STATUS),
    "gallery": take_gallery,
    "terminal": lambda folder: take(screen(folder), IMAGES / "what.png", 860, scale=COMMENT_SCALE),
}


def main(names: list[str]) -> int:
    """Take the named pictures, or all; returns 1 if there is no browser, 2 for an unknown name."""
    if unknown := [name for name in names if name not in PICTURES]:
        print(f"picture: {unknown[0]!r} is no picture: the names are {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    try:
        find_chromium()
        with tempfile.TemporaryDirectory(prefix="precedent-picture-") as folder:
            for name in names or PICTURES:
                PICTURES[name](Path(folder))
        for image in sorted(IMAGES.rglob("*.png")):
            print(f"{image.relative_to(ROOT)}: {image.stat().st_size:,} bytes")
    except ScreenshotError as error:
        print(f"picture: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
