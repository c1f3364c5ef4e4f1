"""The command that lists what maintainers should look at."""

from __future__ import annotations

import json
import math
import re
from contextlib import closing
from pathlib import Path

import pytest

from bot.local_cache.draft import BY_WORDS_ONLY
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.ranking.embedder import open_embedder
from tests.cli.program_result import Run
from tests.local_cache.test_local_memory import clone
from tests.memory.remotes import bare_repository
from tests.questions.digest_samples import REPO, create_memory
from tests.ranking.tiny_model import write_folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of the sample's memory."""
    create_memory(tmp_path / "store").close()
    return tmp_path / "store"


SINCE = ("--since", "2026-10-26")


def test_each_line_has_its_section_facts_and_quote(store: Path, call: Run) -> None:
    result = call("digest", "--store", store, *SINCE, "--header")
    assert result.code == 0
    head, *lines = [line.split("\t") for line in result.out.splitlines()]
    assert head == ["section", "id", "state", "score", "title", "reasons", "decision"]
    assert lines[0] == [
        *("possibly_back", "90", "open", "", "Login loop again, the form comes back after every login"),
        "reported on 2.4.1; #48 was fixed in v2.3.0; #48",
        "octocat (maintainer), 2026-05-09, in #48: “Fixed by #50, released in v2.3.0.”",
    ]
    assert {line[0] for line in lines} >= {"fixed_not_released", "decided_since", "duplicates_of_closed"}
    assert re.search("^From 26 October 2026 to .*: 1 fix may not hold, ", result.err, re.MULTILINE)


def test_the_json_has_every_section(store: Path, call: Run) -> None:
    data = call("digest", "--store", store, *SINCE, "--json").data
    assert (data["schema"], data["repository"], data["since"]) == (1, REPO, "2026-10-26T00:00:00Z")
    assert list(data["sections"]) == [
        *("possibly_back", "many_reports", "fixed_not_released"),
        *("decided_since", "asked_not_documented", "duplicates_of_closed"),
    ]
    (back,) = data["sections"]["possibly_back"]["items"]
    assert back["url"] == f"https://github.com/{REPO}/issues/90"
    assert [entry["cite"] for entry in back["evidence"]] == ["#48"]
    assert data["first"][0] == {"section": "possibly_back", "id": 90}
    later = call("digest", "--store", store, *SINCE, "--json").data
    assert later.pop("until") >= data.pop("until")
    assert later == data


def test_the_digest_compares_threads_that_no_run_has_compared(store: Path, call: Run) -> None:
    data = call("digest", "--store", store, *SINCE, "--json").data
    (reported,) = data["sections"]["many_reports"]["items"]
    assert len(reported["evidence"]) >= 2
    assert data["notes"] == []


def test_the_page_is_written_next_to_the_lists(store: Path, call: Run, tmp_path: Path) -> None:
    file = tmp_path / "digest.html"
    result = call("digest", "--store", store, *SINCE, "--html", file)
    assert result.code == 0
    assert result.out
    assert "<h1>What to look at</h1>" in file.read_text(encoding="utf-8")


def test_an_unwritable_page_exits_with_1(store: Path, call: Run, tmp_path: Path) -> None:
    result = call("digest", "--store", store, "--html", tmp_path / "none" / "digest.html")
    assert result.code == 1
    assert "cannot be written" in result.err


def test_an_empty_digest_is_not_an_error(store: Path, call: Run) -> None:
    result = call("digest", "--store", store, "--since", "2200-01-01")
    assert result.code == 0
    assert "many_reports" not in result.out
    assert "decided_since" not in result.out


@pytest.mark.slow
def test_the_memory_branch_of_a_checkout_gives_the_same_as_a_store(
    store: Path, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = bare_repository(tmp_path / "linkbarn.git")
    with BranchStore(str(remote), "precedent") as branch:
        create_memory(branch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(clone(str(remote), tmp_path / "checkout"))
    result, from_store = call("digest", *SINCE), call("digest", "--store", store, *SINCE)
    assert result.code == 0
    assert result.out == from_store.out
    assert call("digest", *SINCE, "--offline").out == from_store.out
    assert "by words only" not in result.err


@pytest.mark.slow
def test_the_digest_says_if_it_lacks_the_model_of_the_bot(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = bare_repository(tmp_path / "linkbarn.git")
    with BranchStore(str(remote), "precedent") as branch:
        create_memory(branch)
        model = open_embedder(write_folder(tmp_path / "model"))
        with closing(Memory(branch, embedder=model).open()) as memory:
            memory.rebuild_index(until=math.inf)
            memory.commit("Index with a text model")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    checkout = clone(str(remote), tmp_path / "checkout")
    monkeypatch.chdir(checkout)
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text("similar:\n  model: mine\n")
    for is_here in (False, True):
        if is_here:
            write_folder(checkout / "mine")
        result = call("digest", *SINCE)
        assert (result.code, result.err.count(f"{BY_WORDS_ONLY}\n")) == (0, 0 if is_here else 1)
        assert "embeddings" not in result.err
    (checkout / "mine/model.safetensors").unlink()
    assert "without embeddings: " in call("digest", *SINCE).err


def test_a_damaged_shard_does_not_crash_the_digest(store: Path, call: Run) -> None:
    shard = store / "digests" / "0000.jsonl"
    lines = shard.read_bytes().splitlines(keepends=True)
    broken = [b'{"id": 90, "references": [[], {"action": "duplicate", "number": "x"}]}\n', b"\xff\n", b'{"id": []}\n']
    shard.write_bytes(b"".join([*broken, *lines[3:], b'{"id": 62, "references": 7, "x": "duplicate"']))
    result = call("digest", "--store", store, *SINCE, "--json")
    assert result.code == 0
    assert json.loads(result.out)["sections"]["decided_since"]["total"] == 1
