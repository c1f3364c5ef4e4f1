"""The command that lists what maintainers should look at."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.memory.branch_store import BranchStore
from tests.cli.console import Run
from tests.local_cache.test_local_memory import clone
from tests.memory.remotes import bare_repository
from tests.questions.digest_samples import REPO, remembering


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of the sample's memory."""
    remembering(tmp_path / "store").close()
    return tmp_path / "store"


SINCE = ("--since", "2026-10-26")


def test_each_line_has_its_section_its_facts_and_its_words(store: Path, call: Run) -> None:
    told = call("digest", "--store", store, *SINCE, "--header")
    assert told.code == 0
    head, *lines = [line.split("\t") for line in told.out.splitlines()]
    assert head == ["section", "id", "state", "score", "title", "reasons", "decision"]
    assert lines[0] == [
        *("possibly_back", "90", "open", "", "Login loop again, the form comes back after every login"),
        "reported on 2.4.1; #48 was fixed in v2.3.0; #48",
        "octocat (maintainer), 2026-05-09, in #48: “Fixed by #50, released in v2.3.0.”",
    ]
    assert {line[0] for line in lines} >= {"fixed_not_released", "decided_since", "duplicates_of_closed"}
    assert re.search("^From 26 October 2026 to .*: 1 fix may not hold, ", told.err, re.MULTILINE)


def test_the_json_has_every_section(store: Path, call: Run) -> None:
    data = call("digest", "--store", store, *SINCE, "--json").data
    assert (data["schema"], data["repository"], data["since"]) == (1, REPO, "2026-10-26T00:00:00Z")
    assert list(data["sections"]) == [
        *("possibly_back", "many_reports", "fixed_not_released"),
        *("decided_since", "asked_not_documented", "duplicates_of_closed"),
    ]
    (back,) = data["sections"]["possibly_back"]["items"]
    assert back["url"] == f"https://github.com/{REPO}/issues/90"
    assert [one["cite"] for one in back["evidence"]] == ["#48"]
    assert data["first"][0] == {"section": "possibly_back", "id": 90}


def test_threads_that_no_run_compared_are_compared_for_it(store: Path, call: Run) -> None:
    data = call("digest", "--store", store, *SINCE, "--json").data
    (reported,) = data["sections"]["many_reports"]["items"]
    assert len(reported["evidence"]) >= 2
    assert data["notes"] == []


def test_the_page_is_written_next_to_the_lists(store: Path, call: Run, tmp_path: Path) -> None:
    file = tmp_path / "digest.html"
    told = call("digest", "--store", store, *SINCE, "--html", file)
    assert told.code == 0
    assert told.out
    assert "<h1>What to look at</h1>" in file.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_a_fault_outside(store: Path, call: Run, tmp_path: Path) -> None:
    told = call("digest", "--store", store, "--html", tmp_path / "none" / "digest.html")
    assert told.code == 1
    assert "cannot be written" in told.err


def test_nothing_to_look_at_is_no_fault(store: Path, call: Run) -> None:
    told = call("digest", "--store", store, "--since", "2200-01-01")
    assert told.code == 0
    assert "many_reports" not in told.out
    assert "decided_since" not in told.out


def test_the_memory_branch_of_a_checkout_gives_the_same_as_a_store(
    store: Path, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = bare_repository(tmp_path / "linkbarn.git")
    with BranchStore(str(remote), "precedent") as branch:
        remembering(branch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(clone(str(remote), tmp_path / "checkout"))
    told, same = call("digest", *SINCE), call("digest", "--store", store, *SINCE)
    assert told.code == 0
    assert told.out == same.out
    assert call("digest", *SINCE, "--offline").out == same.out


@pytest.mark.parametrize("options", [("--since", "yesterday"), ("--limit", "0"), ("--limit", "101"), ("--since", "")])
def test_wrong_options_are_mistakes(store: Path, call: Run, options: tuple[str, ...]) -> None:
    assert call("digest", "--store", store, *options).code == 2


def test_without_a_store_the_command_says_how_to_make_one(call: Run, tmp_path: Path) -> None:
    told = call("digest", "--store", tmp_path / "nowhere")
    assert told.code == 2
    assert "no store at" in told.err


def test_a_damaged_shard_is_no_crash(store: Path, call: Run) -> None:
    shard = store / "digests" / "0000.jsonl"
    lines = shard.read_bytes().splitlines(keepends=True)
    broken = [b'{"id": 90, "references": [[], {"action": "duplicate", "number": "x"}]}\n', b"\xff\n", b'{"id": []}\n']
    shard.write_bytes(b"".join([*broken, *lines[3:], b'{"id": 62, "references": 7, "x": "duplicate"']))
    told = call("digest", "--store", store, *SINCE, "--json")
    assert told.code == 0
    assert json.loads(told.out)["sections"]["decided_since"]["total"] == 1
