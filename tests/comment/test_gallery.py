"""The comments of docs/comments.md: kept as text, shown as pictures, and of our structure only."""

import os
import re
from pathlib import Path

import pytest

from tests.comment.detector import report
from tests.comment.gallery import GALLERY, render_comment

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOTS = Path(__file__).parent / "snapshots" / "gallery"
PAGE = ROOT / "docs" / "comments.md"

LINE = {"p", "p/br", "p/strong", "p/a", "p/sub", "p/sub/code", "p/code", "p/em", "blockquote", "blockquote/p"}
ITEM = {f"ul/li{inner}" for inner in ("", "/a", "/p", "/br", "/strong", "/strong/a", "/em", "/code")}
LOOSE = {f"ul/li/p{inner}" for inner in ("", "/a", "/br", "/strong", "/strong/a", "/em", "/code")}
DETAILS = {
    f"ul/li/details{inner}"
    for inner in (
        "",
        "/summary",
        "/ul",
        "/ul/li",
        "/ul/li/em",
        "/p",
        "/p/code",
        "/p/em",
        "/blockquote",
        "/blockquote/p",
        "/blockquote/p/strong",
    )
}
QUOTED = {f"ul/li/details/blockquote/blockquote{inner}" for inner in ("", "/p", "/p/br")}
STRUCTURE = LINE | ITEM | LOOSE | DETAILS | QUOTED | {"!--", "ul", "ul/li/details/ul/li/a"}


TEXTS = {name: render_comment(comment) for name, comment in GALLERY.items()}


@pytest.mark.parametrize("name", GALLERY)
def test_the_comment_is_the_one_in_the_snapshot(name: str) -> None:
    text = TEXTS[name]
    snapshot = SNAPSHOTS / f"{name}.md"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")


def test_the_page_has_our_structure_and_reaches_nobody() -> None:
    for name, text in TEXTS.items():
        findings = report(text)
        assert set(findings.tags) <= STRUCTURE, name
        assert (findings.mentions, findings.references, findings.images, findings.shortcodes) == ([], [], [], []), name
        for address in findings.links:
            assert address.startswith(("https://redirect.github.com/octo-org/", "https://github.com/octo-org/"))
            assert "/issues/" not in address or "redirect." in address


def test_a_reader_sees_few_lines_before_the_details() -> None:
    for text in TEXTS.values():
        visible = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
        entries = re.split(r"(?m)^- ", visible)[1:]
        assert all(len(entry.split("\n\n")[0].rstrip().splitlines()) <= 3 for entry in entries), visible
        assert "!" not in visible.partition("\n")[2]
        assert not re.search(r"[0-9] ?%|\bsimilarity\b|\bduplicates? (?:issue|report)\b", visible)


def test_the_gallery_page_shows_all_comments_with_their_captions() -> None:
    shown = re.findall(r"(?m)^(.+)\n\n!\[.*?\]\(images/comments/([a-z-]+)\.png\)$", PAGE.read_text(encoding="utf-8"))
    assert shown == [(comment.caption, name) for name, comment in GALLERY.items()]
