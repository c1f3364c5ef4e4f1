"""Additions of a later version of the same format: this version keeps them wherever it has nothing to write."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.acceptance.stage import REPOSITORY, Stage
from tests.upgrades import old_branch
from tests.upgrades.old_branch import BRANCH

ADDED = {
    "later/0000.jsonl": '{"id":1,"more":"of it"}\n',
    "answers/0000.jsonl": '{"at":"2026-01-02T00:00:00Z","id":1,"state":"later"}\n',
    "wishes/0000.jsonl": '{"id":1,"wishes":[{"at":"2026-01-02T00:00:00Z","comment_id":70,"later":1,"name":"later",'
    '"state":"later"}]}\n',
    "comments/0000.jsonl": '{"id":2,"later":[1],"shown_in":[[1,0]]}\n',
    "fixes/0000.jsonl": '{"id":1,"later":"a","looked_at":"2026-01-02T00:00:00Z","ref":"#2"}\n',
    "clusters/0000.jsonl": '{"at":"2026-01-02T00:00:00Z","id":1,"links":[{"sign":"later","to":2}]}\n',
}
"""A line of a thread in each shard, with fields unknown to this version; and an unknown shard."""


POLL = {"author": "hubot", "created_at": "2026-01-02T00:00:00Z", "id": 90, "kind": "poll", "title": "Where?"}


@pytest.mark.slow
def test_additions_of_a_later_version_stay_where_nothing_changes(stage: Stage) -> None:
    assert stage.act("schedule") == 0
    branch_files = old_branch.files(stage)
    record = json.loads(branch_files["records/0000/2.json"]) | {"later": {"more": ["of it"]}}
    manifest = json.loads(branch_files["manifest.json"]) | {"later": 1}
    planted = {**ADDED, "records/0000/2.json": json.dumps(record), "records/0000/90.json": json.dumps(POLL)}
    for path, text in {**planted, "manifest.json": json.dumps(manifest)}.items():
        stage.git.commit(REPOSITORY, path, text, f"refs/heads/{BRANCH}")

    stage.github.clock.advance(300)
    number = stage.github.open_issue("monalisa", "Nobody stays logged in", "As in #1.")
    assert stage.act("issues", "opened", number) == 0
    assert len(stage.comments(number)) == 1
    assert changed_files(planted, stage) == []
    assert b"later" not in old_branch.files(stage)["manifest.json"]

    assert stage.act("workflow_dispatch", inputs={"run": "rebuild"}) == 0
    assert changed_files(planted, stage) == ["comments/0000.jsonl"], (
        "which is made again of the comments that GitHub has"
    )


def changed_files(planted: Mapping[str, str], stage: Stage) -> list[str]:
    """The files that no longer contain their planted text."""
    branch_files = old_branch.files(stage)
    return [path for path, text in planted.items() if text not in branch_files[path].decode()]
