"""Branches that earlier programs wrote: this one continues with each of them and loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.thread import Thread, ThreadId, Tombstone
from bot.index.protocol import LAYOUT_VERSION
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.shards import DIGESTS, read_lines
from bot.reading.digest import digest
from bot.recall.library import similar_query
from tests.acceptance.stage import REPOSITORY, Stage, summary
from tests.cli.program_result import Run
from tests.simulator.memories import differences
from tests.upgrades import old_branch

pytestmark = pytest.mark.slow
PUSHES = "POST *git-receive-pack"
OLD_DIGESTS = """\
Digests that an earlier program wrote stay, though this one makes them otherwise. Raise LAYOUT_VERSION in
bot/index/protocol.py: then the index is made anew from the records, and the digests with it."""
REMADE = "The index was made by"


@pytest.fixture(params=old_branch.NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old_stage(name: str, tmp_path: Path) -> Iterator[Stage]:
    with old_branch.restored(name, tmp_path / "then") as stage:
        yield stage


def add_comment(stage: Stage, number: int = 74) -> int:
    """Comment on the answered issue; returns the exit code of the Action that handles the event."""
    comment = stage.github.comment(number, "sample-reporter", "It happens with #14 too.")
    return int(stage.act("issue_comment", "created", number, comment))


def run_later(stage: Stage, event: str = "schedule") -> int:
    stage.github.clock.advance(300)
    return int(stage.act(event))


def test_an_upgrade_loses_nothing_is_reported_in_one_line_and_happens_once(old_stage: Stage) -> None:
    before, comments_before = old_branch.files(old_stage), old_branch.count_comments(old_stage)
    manifest_before = old_branch.manifest(before)
    assert add_comment(old_stage, 75) == 0  # on an issue without pending work
    run_summary = summary(old_stage)
    learns = not manifest_before.learned_from  # and rebuilds the index for that
    assert (run_summary.count(REMADE), run_summary.count("newest issues, it would")) == (
        manifest_before.layout < LAYOUT_VERSION and not learns,
        learns,
    )
    assert run_later(old_stage) == 0
    assert REMADE not in summary(old_stage)
    once = old_branch.files(old_stage)
    check_nothing_lost(before, once)
    assert old_branch.manifest(once).pending == ()
    assert {number for number, reply in old_branch.count_comments(old_stage) if not reply} - {76} == {
        74
    }  # 76: if it still has a match
    assert set(old_branch.count_comments(old_stage).values()) == {1}
    assert comments_before.keys() <= old_branch.count_comments(old_stage).keys()
    check_memory_matches(old_stage, once)
    assert run_later(old_stage) == 0
    twice = old_branch.files(old_stage)
    assert [path for path in once.keys() | twice.keys() if once.get(path) != twice.get(path)] in ([], ["manifest.json"])
    check_index_equals_a_rebuilt_one(old_stage.memory())


def check_nothing_lost(before: dict[str, bytes], after: dict[str, bytes], *changed: int) -> None:
    """Every thread, answer and request is still there, unchanged or further along; ``changed`` threads may differ."""
    old, new = old_branch.records(before), old_branch.records(after)
    assert {key for key in old if isinstance(old[key], Tombstone)} == {
        key for key in new if isinstance(new[key], Tombstone)
    }
    assert [key for key in old if new[key] != old[key] and key not in {74, 75, 76, *changed}] == []
    for key, was in old_branch.answers(before).items():
        now = old_branch.answers(after)[key]
        assert (now.state if was.state != "pending" else "said") == ("said" if was.state == "pending" else was.state)
        assert was.comment_id in (None, now.comment_id)
        assert now.at >= was.at
    for key, request in old_branch.requests(before).items():
        now = old_branch.requests(after)[key]
        assert replace(now, reply_id=None, trying_since=None) == replace(
            request, reply_id=None, trying_since=None, state="done"
        )
        assert request.reply_id in (None, now.reply_id)


def check_memory_matches(stage: Stage, branch_files: dict[str, bytes]) -> None:
    """The memory holds the latest state of every issue, and its digests match its records."""
    records, manifest = old_branch.records(branch_files), old_branch.manifest(branch_files)
    issues = [issue for issue in stage.github.repo.issues.values() if issue.pull is None]
    assert [difference for issue in issues for difference in differences(records.get(issue.number), issue)] == []
    threads = [record for record in records.values() if isinstance(record, Thread)]
    assert (manifest.threads, manifest.tombstones) == (len(threads), len(records) - len(threads))
    lines = [read_lines(data)[0] for path, data in branch_files.items() if path.startswith("digests/")]
    lines_by_id = {key: line for each in lines for key, line in each.items()}
    expected = {each.id: json.loads(DIGESTS.line(digest(each, repo=REPOSITORY)) or "null") for each in threads}
    assert [key for key in expected if lines_by_id.get(key) != expected[key]] == [], OLD_DIGESTS


def check_index_equals_a_rebuilt_one(memory: Memory) -> None:
    threads = [record for record in memory.state.every_record() if isinstance(record, Thread)]
    assert len(threads) > 60
    hits = search_hits(memory, threads)
    assert memory.notes == []
    memory.rebuild_index()
    assert search_hits(memory, threads) == hits
    assert sum(map(bool, hits.values())) > 50


def search_hits(memory: Memory, threads: list[Thread]) -> dict[ThreadId, set[ThreadId]]:
    """The ids that a search finds for each thread."""
    return {each.id: {hit.entry.id for hit in memory.search(similar_query(each), limit=10)} for each in threads}


def test_an_upgrade_is_one_push_or_none(old_stage: Stage) -> None:
    before, files, comments_before = (
        old_branch.tip(old_stage),
        old_branch.files(old_stage),
        old_branch.count_comments(old_stage),
    )
    old_stage.git.faults.add(PUSHES, "5xx", times=None)
    assert add_comment(old_stage) == 1
    assert (old_branch.tip(old_stage), old_branch.count_comments(old_stage)) == (before, comments_before)
    old_stage.git.faults.clear()
    old_stage.git.faults.add(PUSHES, "5xx", times=None, after=1)
    add_comment(old_stage)
    assert old_branch.git(old_stage, "rev-list", "--count", f"{before}..{old_branch.BRANCH}").strip() == "1"
    assert old_stage.memory().search(similar_query(old_stage.memory().records([74])[74]))
    assert old_stage.memory().notes == []
    old_stage.git.faults.clear()
    assert run_later(old_stage) == 0
    assert run_later(old_stage) == 0  # a reply is noticed only by the next run
    check_nothing_lost(files, old_branch.files(old_stage))
    assert set(old_branch.count_comments(old_stage).values()) == {1}


def test_two_upgrades_of_one_branch_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    branches = []
    for folder in ("one", "two"):
        with old_branch.restored(name, tmp_path / folder) as stage:
            assert add_comment(stage) == 0
            branches.append(
                {path: data for path, data in old_branch.files(stage).items() if path != "model/backtest.json"}
            )
    one, two = branches
    for each in branches:
        manifest = json.loads(each["manifest.json"])
        manifest["model"].pop("model/backtest.json", None)  # it contains durations
        each["manifest.json"] = json.dumps(manifest).encode()
    assert [path for path in one.keys() | two.keys() if one.get(path) != two.get(path)] == []


def test_a_folder_with_an_old_branch_can_be_searched_and_filled(name: str, tmp_path: Path, call: Run) -> None:
    with old_branch.restored(name, tmp_path / "then") as stage:
        store = tmp_path / "store"
        old_branch.git(stage, "worktree", "add", "--quiet", "--detach", str(store), old_branch.BRANCH)
        result = call("search", "sessions restart", "--store", store, "--json")
        assert 14 in [each["id"] for each in result.data]
        assert FolderStore(store).open().paths("records")
        sample = Path(__file__).parents[2] / "sample" / "history.jsonl"
        assert call("import", sample, "--store", store, "--json").data["in_store"] >= 73
