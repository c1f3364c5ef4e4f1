"""Compares what our comments show of other issues with what the forge has: the two must agree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.comment.marker import read_seal
from bot.domain.post import replied_to
from bot.pipeline.draft import WITHDRAWN_FINGERPRINT
from tests.fakes.state import Comment
from tests.invariants import key_of_comment
from tests.simulator.scene import Scene

NOTE = re.compile(r"\bnote \d{4}\b")
"""Unique words, each written by one person."""

ITEM = re.compile(r"- \[(.+?)\]\(\S+?/issues/(\d+)\) · (.*)")
LINKED = re.compile(r"/issues/\d+#issuecomment-(\d+)")
OPEN = ("still open", "open again", "no comments", "1 comment")


def stale_displays(scene: Scene, reported_gone: set[int]) -> Iterator[str]:
    """(9) One catch-up run after a change, no comment of ours shows text or a state that the forge no longer has.

    A comment that a person edited is exempt, and so is a deletion that no event reported.
    """
    repo = scene.fake.repo
    texts = [text for issue in repo.issues.values() for text in (issue.title, issue.body)]
    texts += [comment.body for comment in repo.comments.values() if key_of_comment(comment) is None]
    existing = {note for text in texts for note in NOTE.findall(text or "")}
    unreported = {
        note for number in _unreported_gone(scene, reported_gone) for note in NOTE.findall(_text(scene, number))
    }
    for comment in scene.fake.comments_by("github-actions[bot]"):
        seal, label = read_seal(comment.body), f"the comment {comment.id} on #{comment.issue.number}"
        if comment.id not in repo.comments or (seal and seal.untouched and seal.content == WITHDRAWN_FINGERPRINT):
            continue
        yield from (f"(9) {label} shows {note!r}" for note in set(NOTE.findall(comment.body)) - existing - unreported)
        is_withdrawn = seal is not None and seal.content == WITHDRAWN_FINGERPRINT  # a person may have edited it since
        yield from (f"(9) {label} answers what is gone" for _ in [1] if not is_withdrawn and _is_orphan(scene, comment))
        if seal and seal.untouched:
            yield from (f"(9) {label} {fault}" for fault in _items(scene, comment.body, reported_gone))


def is_shown(scene: Scene, number: int) -> bool:
    """Whether a comment of ours shows this issue: by a link, or by its title if the settings turn links off."""
    ours = [comment.body for comment in scene.fake.comments_by("github-actions[bot]")]
    issue = scene.fake.repo.issues.get(number)
    signs = (f"/issues/{number})", f"/issues/{number}#", *([f"- {issue.title} \u00b7 "] if issue else []))
    return any(sign in body for sign in signs for body in ours)


def _items(scene: Scene, body: str, reported_gone: set[int]) -> Iterator[str]:
    section = ""
    for line in body.splitlines():
        section = line if line.startswith("**") else section
        item = ITEM.match(line)
        issue = scene.fake.repo.issues.get(int(item[2])) if item else None
        if item and issue is None and int(item[2]) in reported_gone:
            yield f"shows #{item[2]}, which is gone"
        if item and issue and not issue.pull:
            is_open = item[3].startswith(OPEN) or section == "**Open now**"
            if is_open is not (issue.state == "open"):
                yield f"shows #{item[2]} as {item[3][:40]!r}, and it is {issue.state}"
            if item[1] != issue.title:
                yield f"shows #{item[2]} as {item[1]!r}, and it is {issue.title!r}"
    for linked in LINKED.findall(body):
        removed = scene.fake.repo.removed.get(int(linked))
        if removed and removed.issue.number in scene.fake.repo.issues:
            yield f"links to comment {linked}, which is deleted"


def _is_orphan(scene: Scene, comment: Comment) -> bool:
    """Whether it replies to a comment that was deleted or edited; a reply to the issue's own text is no orphan."""
    key = key_of_comment(comment)
    request = replied_to(key.slot) if key else None
    if request in (None, comment.issue.number):
        return False
    target = scene.fake.repo.comments.get(request)
    return target is None or target.updated_at != target.created_at


def _unreported_gone(scene: Scene, reported_gone: set[int]) -> set[int]:
    return {*scene.fake.repo.deleted, *scene.fake.repo.moved} - reported_gone


def _text(scene: Scene, number: int) -> str:
    gone = scene.fake.repo.deleted.get(number)
    if gone is None:
        to, moved = scene.fake.repo.moved[number]
        gone = scene.elsewhere.repo.issues.get(moved) if to == scene.elsewhere.repo.id else None
    return "\n".join(comment.body for comment in gone.comments) if gone else ""
