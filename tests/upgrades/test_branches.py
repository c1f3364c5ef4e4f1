"""Branches that programs of earlier states wrote: this one goes on with each of them, and loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.thread import Thread, ThreadId, Tombstone
from bot.index.protocol import LAYOUT
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.shards import DIGESTS, read_lines
from bot.reading.digest import digest
from bot.recall.library import similar_query
from tests.acceptance.stage import REPOSITORY, Stage, summary
from tests.cli.console import Run
from tests.simulator.memories import differences
from tests.upgrades import past

pytestmark = pytest.mark.slow
PUSHES = "POST *git-receive-pack"
OF_OLD = """\
Digests that an earlier program wrote stay, though this one makes them otherwise. Raise LAYOUT in
bot/index/protocol.py: then the index is made anew from the records, and the digests with it."""
REMADE = "The index was made by"


@pytest.fixture(params=past.NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def then(name: str, tmp_path: Path) -> Iterator[Stage]:
    with past.restored(name, tmp_path / "then") as stage:
        yield stage


def another_event(stage: Stage, number: int = 74) -> int:
    """Somebody comments on the issue that was answered; the exit code of the Action that hears of it."""
    comment = stage.github.comment(number, "sample-reporter", "It happens with #14 too.")
    return int(stage.act("issue_comment", "created", number, comment))


def later(stage: Stage, event: str = "schedule") -> int:
    stage.github.clock.advance(300)
    return int(stage.act(event))


def test_an_upgrade_loses_nothing_is_told_in_one_line_and_is_made_once(then: Stage) -> None:
    before, stood = past.files(then), past.ours(then)
    known = past.manifest(before)
    assert another_event(then, 75) == 0  # where nothing waits
    told = summary(then)
    learns = not known.learned_from  # and makes the index again for that
    assert (told.count(REMADE), told.count("newest issues, it would")) == (known.layout < LAYOUT and not learns, learns)
    assert later(then) == 0
    assert REMADE not in summary(then)
    once = past.files(then)
    nothing_lost(before, once)
    assert past.manifest(once).pending == ()
    assert {number for number, reply in past.ours(then) if not reply} - {76} == {74}  # 76: if it still has a match
    assert set(past.ours(then).values()) == {1}
    assert stood.keys() <= past.ours(then).keys()
    is_the_fold(then, once)
    assert later(then) == 0
    twice = past.files(then)
    assert [path for path in once.keys() | twice.keys() if once.get(path) != twice.get(path)] in ([], ["manifest.json"])
    its_index_finds_what_a_new_one_finds(then.memory())


def nothing_lost(before: dict[str, bytes], after: dict[str, bytes], *changed: int) -> None:
    """Each thread, answer and wish that was held is held, as it was or as it went on; the ``changed`` ones changed."""
    old, new = past.records(before), past.records(after)
    assert {key for key in old if isinstance(old[key], Tombstone)} == {
        key for key in new if isinstance(new[key], Tombstone)
    }
    assert [key for key in old if new[key] != old[key] and key not in {74, 75, 76, *changed}] == []
    for key, said in past.said(before).items():
        now = past.said(after)[key]
        assert (now.state if said.state != "pending" else "said") == ("said" if said.state == "pending" else said.state)
        assert said.comment_id in (None, now.comment_id)
        assert now.at >= said.at
    for key, wish in past.requests(before).items():
        now = past.requests(after)[key]
        assert replace(now, reply_id=None, trying_since=None) == replace(
            wish, reply_id=None, trying_since=None, state="done"
        )
        assert wish.reply_id in (None, now.reply_id)


def is_the_fold(stage: Stage, held: dict[str, bytes]) -> None:
    """Memory is the fold of the latest states, its digests are those of its records."""
    records, manifest = past.records(held), past.manifest(held)
    issues = [issue for issue in stage.github.repo.issues.values() if issue.pull is None]
    assert [told for issue in issues for told in differences(records.get(issue.number), issue)] == []
    threads = [record for record in records.values() if isinstance(record, Thread)]
    assert (manifest.threads, manifest.tombstones) == (len(threads), len(records) - len(threads))
    lines = [read_lines(data)[0] for path, data in held.items() if path.startswith("digests/")]
    found = {key: line for each in lines for key, line in each.items()}
    wanted = {each.id: json.loads(DIGESTS.line(digest(each, repo=REPOSITORY)) or "null") for each in threads}
    assert [key for key in wanted if found.get(key) != wanted[key]] == [], OF_OLD


def its_index_finds_what_a_new_one_finds(memory: Memory) -> None:
    threads = [record for record in memory.state.every_record() if isinstance(record, Thread)]
    assert len(threads) > 60
    hits = found(memory, threads)
    assert memory.notes == []
    memory.rebuild_index()
    assert found(memory, threads) == hits
    assert sum(map(bool, hits.values())) > 50


def found(memory: Memory, threads: list[Thread]) -> dict[ThreadId, set[ThreadId]]:
    """What is found for each thread, among all."""
    return {each.id: {hit.entry.id for hit in memory.search(similar_query(each), limit=10)} for each in threads}


def test_an_upgrade_is_one_push_or_none(then: Stage) -> None:
    before, files, stood = past.tip(then), past.files(then), past.ours(then)
    then.git.faults.add(PUSHES, "5xx", times=None)
    assert another_event(then) == 1
    assert (past.tip(then), past.ours(then)) == (before, stood)
    then.git.faults.clear()
    then.git.faults.add(PUSHES, "5xx", times=None, after=1)
    another_event(then)
    assert past.git(then, "rev-list", "--count", f"{before}..{past.BRANCH}").strip() == "1"
    assert then.memory().search(similar_query(then.memory().records([74])[74]))
    assert then.memory().notes == []
    then.git.faults.clear()
    assert later(then) == 0
    assert later(then) == 0  # that a reply is there is seen in the run after it
    nothing_lost(files, past.files(then))
    assert set(past.ours(then).values()) == {1}


def test_two_upgrades_of_one_branch_are_the_same_bytes(name: str, tmp_path: Path) -> None:
    made = []
    for folder in ("one", "two"):
        with past.restored(name, tmp_path / folder) as stage:
            assert another_event(stage) == 0
            made.append({path: data for path, data in past.files(stage).items() if path != "model/backtest.json"})
    one, two = made
    for each in made:
        told = json.loads(each["manifest.json"])
        told["model"].pop("model/backtest.json", None)  # it tells how long it took
        each["manifest.json"] = json.dumps(told).encode()
    assert [path for path in one.keys() | two.keys() if one.get(path) != two.get(path)] == []


def test_a_folder_with_such_a_branch_can_be_searched_and_filled(name: str, tmp_path: Path, call: Run) -> None:
    with past.restored(name, tmp_path / "then") as stage:
        store = tmp_path / "store"
        past.git(stage, "worktree", "add", "--quiet", "--detach", str(store), past.BRANCH)
        told = call("search", "sessions restart", "--store", store, "--json")
        assert 14 in [each["id"] for each in told.data]
        assert FolderStore(store).open().paths("records")
        sample = Path(__file__).parents[2] / "sample" / "history.jsonl"
        assert call("import", sample, "--store", store, "--json").data["in_store"] >= 73
