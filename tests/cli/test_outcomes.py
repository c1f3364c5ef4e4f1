"""The command that lists how threads ended."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program_result import Run

Fields = dict[str, Any]
OUTCOME_KEYS = {"kind", "comment", "quote", "evidence", "fix_ref", "release", "duplicate_of", "confidence", "closed_at"}


def closed(key: int | str, *texts: str, **rest: Any) -> Fields:
    comments = [
        {"author": "hubot", "association": "MEMBER", "created_at": f"2024-01-02T08:59:0{n}Z", "body": text}
        for n, text in enumerate(texts)
    ]
    return {
        "id": key,
        "title": f"Login loops, case {key}",
        "created_at": "2024-01-01T09:00:00Z",
        "author": "monalisa",
        "state": "closed",
        "closed_at": "2024-01-02T09:00:00Z",
        "closed_by": "hubot",
        "comments": comments,
        **rest,
    }


COMMIT = {"event": "closed", "at": "2024-01-02T09:00:00Z", "actor": "hubot", "commit": "0d0e0ed056a45781"}
HISTORY = [
    closed(1, "I see it too.", "Fixed by #8, released in 2.3."),
    closed(2, "Duplicate of #1."),
    {**closed(3), "state": "open", "closed_at": None},
    closed(4, "The cookie path changed. Clear the cookie."),
    closed(5, "We decided not to support this."),
    closed(6, events=[COMMIT]),
    closed(7),
    closed("ABC-1", "wontfix"),
]


@pytest.fixture
def store(tmp_path: Path, call: Run) -> Path:
    """A store with threads that ended in different ways, and one that is open."""
    archive = tmp_path / "history.jsonl"
    archive.write_text("".join(json.dumps(thread) + "\n" for thread in HISTORY), encoding="utf-8")
    folder = tmp_path / "store"
    assert call("import", archive, "--store", folder).code == 0
    return folder


def test_each_closed_thread_has_its_outcome(store: Path, call: Run) -> None:
    result = call("outcomes", "--store", store, "--json")
    assert (result.code, result.err) == (0, "")
    outcomes = {thread["id"]: thread["outcome"] for thread in result.data}
    assert outcomes.keys() == {1, 2, 4, 5, 6, 7, "ABC-1"}
    assert all(outcome.keys() == OUTCOME_KEYS for outcome in outcomes.values())
    assert {key: (outcome["kind"], outcome["comment"]) for key, outcome in outcomes.items()} == {
        1: ("fixed", 1),
        2: ("duplicate", 0),
        4: ("unknown", 0),
        5: ("not planned", 0),
        6: ("fixed", None),
        7: ("unknown", None),
        "ABC-1": ("not planned", 0),
    }
    assert (outcomes[1]["fix_ref"], outcomes[1]["release"]) == ("#8", "2.3")
    assert outcomes[1]["quote"] == "Fixed by #8, released in 2.3."
    assert (outcomes[2]["duplicate_of"], outcomes[6]["fix_ref"]) == (1, "0d0e0ed056a45781")
    assert outcomes[6]["evidence"] == ["closing commit"]
    assert outcomes[4]["quote"] == "The cookie path changed. Clear the cookie."
    assert (outcomes[7]["quote"], outcomes[7]["evidence"], outcomes[7]["confidence"]) == ("", [], 0.0)


def test_the_text_output_has_one_line_for_each_thread(store: Path, call: Run) -> None:
    result = call("outcomes", "--store", store, "--ids", "1,2,4,7")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "1\tfixed\t0.95\t#8\tcomment 1\tFixed by #8, released in 2.3.",
        "2\tduplicate\t0.95\t#1\tcomment 0\tDuplicate of #1.",
        "4\t-\t0.90\t-\tcomment 0\tThe cookie path changed. Clear the cookie.",
        "7\t-\t0.00\t-\t-\t-",
    ]


def test_threads_come_in_the_order_of_the_given_ids(store: Path, call: Run) -> None:
    result = call("outcomes", "--store", store, "--ids", "ABC-1, 5,1,5", "--json")
    assert (result.code, [thread["id"] for thread in result.data]) == (0, ["ABC-1", 5, 1])


def test_unknown_or_open_threads_are_reported_and_the_others_printed(store: Path, call: Run) -> None:
    result = call("outcomes", "--store", store, "--ids", "99,1,3", "--json")
    assert (result.code, [thread["id"] for thread in result.data]) == (2, [1])
    assert result.err.splitlines() == [
        "precedent outcomes: no thread 99 in this store",
        "precedent outcomes: 3 is open: it has no ending",
    ]
    assert call("outcomes", "--store", store, "--ids", "99", "--json").data == []


def test_an_empty_list_of_ids_exits_with_2(store: Path, call: Run) -> None:
    for ids in ["", ",", " , "]:
        result = call("outcomes", "--store", store, "--ids", ids)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), ids
        assert "--ids names no thread" in result.err, ids


def test_malformed_ids_are_reported_in_one_line(store: Path, call: Run) -> None:
    cases = ["0", "01", "-1", "1" * 400, "\u0661", "1.5", "\udcff", "a\x00b"]
    for ids in cases:
        result = call("outcomes", "--store", store, f"--ids={ids}")
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), ids


def test_a_sample_is_the_same_for_the_same_seed(store: Path, call: Run) -> None:
    def sample(size: int, seed: int) -> list[int | str]:
        result = call("outcomes", "--store", store, "--sample", str(size), "--seed", str(seed), "--json")
        return [thread["id"] for thread in result.data]

    assert sample(3, 4) == sample(3, 4)
    assert len(sample(3, 4)) == 3
    assert len({tuple(sample(3, seed)) for seed in range(6)}) > 1
    assert sample(1000, 1) == [thread["id"] for thread in call("outcomes", "--store", store, "--json").data]


def test_the_repo_option_distinguishes_own_links_from_links_elsewhere(tmp_path: Path, call: Run) -> None:
    archive = tmp_path / "links.jsonl"
    link = "Duplicate of https://github.com/octo/other/issues/5"
    archive.write_text(json.dumps(closed(9, link)) + "\n", encoding="utf-8")
    call("import", archive, "--store", tmp_path / "links")
    for repo, duplicate in (("octo/other", 5), ("octocat/hello", None)):
        (thread,) = call("outcomes", "--store", tmp_path / "links", "--repo", repo, "--json").data
        assert (thread["outcome"]["kind"], thread["outcome"]["duplicate_of"]) == ("duplicate", duplicate)
