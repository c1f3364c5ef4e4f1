"""Which threads a push changed: records, fixes, and threads that GitHub hides."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.memory.folder_store import FolderStore
from bot.memory.manifest import MANIFEST_PATH, Manifest, encode_manifest
from bot.memory.store import Snapshot
from bot.server.storage.branches import changed_threads


def fix(number: int, release: str) -> str:
    return json.dumps({"id": number, "ref": "abc", "looked_at": "2026-01-01T00:00:00Z", "release": release})


def shard(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    store = FolderStore(tmp_path / "store")
    files = {
        "fixes/0042.jsonl": shard(fix(4201, "v1"), fix(4202, "v1")),
        MANIFEST_PATH: encode_manifest(Manifest(hidden_by_github=(5, 6))),
    }
    return store.write(store.open(), files, "before")


def test_a_record_that_is_written_or_deleted_counts_as_changed(base: Snapshot) -> None:
    edits = {"records/0042/4242.json": b"{}", "records/0000/7.json": None, "digests/0042.jsonl": b"{}"}
    assert changed_threads(base, edits) == {4242, 7}


def test_foreign_threads_and_pages_are_not_counted_as_they_have_no_number(base: Snapshot) -> None:
    paths = ("records/x0/ABC-1.json", "records/xab/12.json", "records/0042/x.json", "records/0042/12.json.bak")
    assert changed_threads(base, dict.fromkeys(paths, b"")) == set()


def test_a_fix_that_is_changed_added_or_removed_counts_as_changed(base: Snapshot) -> None:
    edits = {"fixes/0042.jsonl": shard(fix(4201, "v1"), fix(4202, "v2"), fix(4203, "v2"))}
    assert changed_threads(base, edits) == {4202, 4203}
    assert changed_threads(base, {"fixes/0042.jsonl": None}) == {4201, 4202}


def test_threads_that_github_hides_or_shows_again_count_as_changed(base: Snapshot) -> None:
    assert changed_threads(base, {MANIFEST_PATH: encode_manifest(Manifest(hidden_by_github=(6, 8, "ABC-1")))}) == {5, 8}
    assert changed_threads(base, {MANIFEST_PATH: b"damaged"}) == {5, 6}


def test_unreadable_files_count_as_changed_and_do_not_fail_the_push(base: Snapshot) -> None:
    class UnreadableSnapshot:
        revision = ""

        def read(self, paths: Iterable[str]) -> dict[str, bytes]:
            raise StoreError("a link lies there")

    assert changed_threads(UnreadableSnapshot(), {"fixes/0042.jsonl": shard(fix(4201, "v1"))}) == {4201}  # type: ignore[arg-type]
