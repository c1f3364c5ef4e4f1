"""Makes the pictures of the README, docs/images/comment.png and comment-dark.png, from the demo: `make picture`."""

from __future__ import annotations

import sys
import tempfile
from datetime import datetime
from pathlib import Path

from tools.demo import ROOT, Stage, visible
from tools.preview import Post, page
from tools.screenshot import ScreenshotError, find_chromium, take

IMAGES = ROOT / "docs" / "images"
WIDTH = 900
SCALE = 1.5


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


def main() -> int:
    """Take both pictures; returns 1 where there is no browser to take them with."""
    try:
        find_chromium()
        with tempfile.TemporaryDirectory(prefix="precedent-picture-") as folder:
            html = story(Path(folder))
            for name, dark in (("comment.png", False), ("comment-dark.png", True)):
                take(html, IMAGES / name, WIDTH, dark, SCALE)
                print(f"docs/images/{name}: {(IMAGES / name).stat().st_size:,} bytes")
    except ScreenshotError as error:
        print(f"picture: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
