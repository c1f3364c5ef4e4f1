"""Makes the pictures of the documentation in docs/images: comments, report, digest, status page, terminal.

`make picture` makes all of them; names select some: ``comment``, ``report``, ``digest``, ``gallery``, ``status``,
``terminal``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from bot.domain.changes import Changes
from bot.evaluation.report import render_report
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.questions.digest_views import report_page
from bot.server.pages.health import readiness_checks
from bot.server.pages.status_page import status_page
from bot.sources.archive_file import read_archive
from tests.cli.checkouts import show_on_terminal
from tests.comment.gallery import GALLERY, NOW, REPOSITORY, render_comment
from tests.evaluation.samples import generated
from tests.memory.remotes import bare_repository, commit, git
from tests.questions import digest_samples
from tests.server.sample_inbox import NOW as STATUS_NOW
from tests.server.sample_inbox import OPTIONS, sample_inbox
from tools.demo import ROOT, SAMPLE, comment_after, issue_page, open_issue, sample_stage, visible
from tools.preview import PageComment, comment
from tools.screenshot import REMEDY, ScreenshotError, chromium

IMAGES = ROOT / "docs" / "images"
COLUMNS = 94
BRANCH = "fix/42-session-timeout"
CHANGED = ("linkbarn/store/session.py", "linkbarn/auth/cookie.py")
FOREIGN = "#23"
"""The last thread in the terminal is left out: the fonts of the picture lack its script."""

TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 22px 26px; background: #1b1d23; color: #d9d9d9; }}
pre {{ font: 14px/1.45 "DejaVu Sans Mono", monospace; margin: 0; }}
a {{ color: inherit; text-decoration: none; }}
{stylesheet}</style><pre>{code}</pre>"""


class Picture(NamedTuple):
    """The visible part of a page: its size in CSS pixels (without a height the whole page), and pixels for each."""

    width: int
    height: int | None
    scale: float
    dark: bool = False


def views(name: str, desktop: Picture, phone_height: int) -> dict[str, Picture]:
    """A page on a desktop, light and dark, and on a phone; the heights are where no line is cut."""
    return {
        f"{name}.png": desktop,
        f"{name}-dark.png": desktop._replace(dark=True),
        f"{name}-phone.png": Picture(390, phone_height, 2.0),
    }


def story(folder: Path) -> dict[str, str]:
    """The sample's new issue and the comment with which the Action answers it."""
    with sample_stage(folder) as stage:
        number = open_issue(stage)
        return {"comment": issue_page(stage, number, comment_after(stage, "issues", "opened", number))}


def report(_: Path) -> dict[str, str]:
    """The report on an invented replay that looks real."""
    return {"report": render_report(generated(300))}


def digest(folder: Path) -> dict[str, str]:
    """The digest of an invented memory."""
    maintainer_report = digest_samples.report(digest_samples.create_memory(folder))
    return {"digest": report_page(maintainer_report, digest_samples.HOME)}


def status(_: Path) -> dict[str, str]:
    """The status page after an invented day."""
    inbox = sample_inbox()
    return {"status": status_page(inbox, readiness_checks(inbox, OPTIONS, STATUS_NOW), STATUS_NOW)}


def gallery(_: Path) -> dict[str, str]:
    """Each comment in the gallery."""
    texts = {name: visible(render_comment(shown)) for name, shown in GALLERY.items()}
    return {
        name: comment(PageComment("github-actions", text, NOW, is_bot=True), REPOSITORY) for name, text in texts.items()
    }


def terminal(folder: Path) -> dict[str, str]:
    """The output of `precedent what` in a clone of the sample's repository."""
    output = show_on_terminal(checkout(folder), "what", columns=COLUMNS, XDG_CACHE_HOME=str(folder))
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="256", force_terminal=True)
    console.print(Text(f"~/linkbarn ({BRANCH}) $ precedent what\n", style="bold"))
    console.print(Text.from_ansi(output.partition(FOREIGN)[0].rpartition("\n")[0]))
    return {"what": console.export_html(theme=DIMMED_MONOKAI, code_format=TERMINAL)}


def checkout(folder: Path) -> Path:
    """A clone of a repository with the sample's memory, on a branch with two changed files."""
    remote = bare_repository(folder / "octo-org/linkbarn.git")
    commit(remote, dict.fromkeys(("README.md", *CHANGED), ("100644", b"")), "refs/heads/main")
    with BranchStore(str(remote), "precedent") as store:
        memory = Memory(store, repo="octo-org/linkbarn").open()
        memory.stage(Changes(records=tuple(read_archive(SAMPLE / "history.jsonl"))))
        memory.commit("sample")
    top = folder / "linkbarn"
    subprocess.run(["git", "clone", "--quiet", "--single-branch", str(remote), str(top)], check=True)
    git(top, "switch", "--quiet", "--create", BRANCH)
    for name in CHANGED:
        (top / name).write_text("changed\n")
    return top


STORY = Picture(900, None, 1.5)
PICTURES: Mapping[str, tuple[Callable[[Path], dict[str, str]], dict[str, Picture]]] = {
    "comment": (story, {"comment.png": STORY, "comment-dark.png": STORY._replace(dark=True)}),
    "report": (report, views("report", Picture(1200, 1262, 1.0), 811)),
    "digest": (digest, views("digest", Picture(1200, 1623, 1.0), 894)),
    "status": (status, views("status", Picture(1040, 1529, 1.25), 806)),
    "gallery": (gallery, {f"comments/{name}.png": Picture(900, None, 1.25) for name in GALLERY}),
    "terminal": (terminal, {"what.png": Picture(860, None, 1.25)}),
}
"""What makes the pages, by the first words of the pictures of each, and the pictures."""


def take(browser: Browser, html: str, file: Path, picture: Picture) -> None:
    window = {"width": picture.width, "height": picture.height or 10}
    scheme = "dark" if picture.dark else "light"
    page = browser.new_page(viewport=window, color_scheme=scheme, device_scale_factor=picture.scale)
    page.set_content(html)
    page.screenshot(path=file, full_page=picture.height is None)
    page.close()
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")


def check_fonts() -> None:
    """Raises ScreenshotError if this machine can list its fonts and has none for Chinese or for emoji."""
    if shutil.which("fc-list"):
        for what, pattern in (("Chinese", ":lang=zh"), ("emoji", ":charset=1f44e")):
            found = subprocess.run(["fc-list", pattern, "family"], capture_output=True, text=True, check=False).stdout
            if not found.strip():
                raise ScreenshotError(f"no font for {what}, which would be empty boxes: {REMEDY}")


def main(names: list[str]) -> int:
    """Take the named pictures, or all; returns 1 if there is no browser or font, 2 for an unknown name."""
    if unknown := [name for name in names if name not in PICTURES]:
        print(f"picture: {unknown[0]!r} is no picture: the names are {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    try:
        check_fonts()
        with chromium() as browser:
            for name in names or PICTURES:
                make, pictures = PICTURES[name]
                with tempfile.TemporaryDirectory(prefix="precedent-picture-") as folder:
                    pages = make(Path(folder))
                for file, picture in pictures.items():
                    stem = Path(file).stem
                    html = pages.get(stem) or pages[stem.rpartition("-")[0]]
                    take(browser, html, IMAGES / file, picture)
    except ScreenshotError as error:
        print(f"picture: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
