"""The commands that prove: their figures, what they write, and what they say of files that are none of theirs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bot.cli.main import main
from bot.domain.thread import Thread
from bot.domain.thread_json import archive_fields
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.model_store import RANKING, WORDS, ModelUpdate
from bot.ranking.weights import parse, shipped
from bot.ranking.word_vectors import encode_words, train_embeddings
from bot.reading.analyzer import body_terms, terms
from tests.cli.console import Run
from tests.evaluation.timelines import generated

EVAL_KEYS = {
    *("n", "rr@1", "rr@5", "rr@10", "rr@20", "mrr", "interval", "candidates_recall", "ms_p50", "ms_p95"),
    *("ranking", "window_days", "ranks", "threads", "seconds"),
}
SIZE, FEW = 110, 70
THREADS = [life.thread() for life in generated(SIZE, Random(3))]
"""A thread a day; every fifth is asked for the one before it."""


def archive(path: Path, threads: Iterable[Thread] = THREADS) -> Path:
    path.write_text("".join(json.dumps(archive_fields(thread)) + "\n" for thread in threads), encoding="utf-8")
    return path


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[str | Path, ...]:
    """The options that name a small archive and 13 queries on it."""
    asked = [{"id": key, "relevant": [key - 1]} for key in range(6, FEW + 1, 5)]
    queries = lines(tmp_path / "queries.jsonl", *asked)
    return ("--threads", archive(tmp_path / "threads.jsonl", THREADS[:FEW]), "--queries", queries)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    assert main(["import", str(archive(folder / "history.jsonl")), "--store", str(folder / "store"), "--no-learn"]) == 0
    return folder / "store"


@pytest.fixture
def store(imported: Path, tmp_path: Path) -> Path:
    """A store as `import` makes it."""
    return Path(shutil.copytree(imported, tmp_path / "store"))


def opened(store: Path) -> Memory:
    return Memory(FolderStore(store)).open()


# Eval


def test_figures_of_known_duplicates_as_data(files: tuple[str | Path, ...], call: Run) -> None:
    ended = call("eval", *files, "--json")
    assert (ended.code, ended.err, set(ended.data)) == (0, "", EVAL_KEYS)
    data = ended.data
    assert (data["n"], data["threads"], data["ranking"], data["window_days"]) == (13, FEW, "own", None)
    shares = [data[name] for name in ("rr@1", "rr@5", "rr@10", "rr@20", "candidates_recall")]
    assert shares == sorted(shares)
    assert 0 < data["rr@20"] <= 1
    found = [rank for rank in data["ranks"].values() if rank]
    assert data["rr@5"] == pytest.approx(sum(rank <= 5 for rank in found) / 13, abs=1e-4)
    assert data["mrr"] == pytest.approx(sum(1 / rank for rank in found) / 13, abs=1e-4)
    assert all(data["interval"][name][0] <= data[name] <= data["interval"][name][1] for name in data["interval"])
    assert 0 < data["ms_p50"] <= data["ms_p95"]


def test_figures_in_words(files: tuple[str | Path, ...], call: Run) -> None:
    told = call("eval", *files, "--limit", "5").out.splitlines()
    assert told[0] == f"5 queries, {FEW} threads, ranking own"
    assert [line.split()[0] for line in told[1:6]] == ["rr@1", "rr@5", "rr@10", "rr@20", "mrr"]


def test_ids_may_be_names(tmp_path: Path, call: Run) -> None:
    named = [{**archive_fields(thread), "id": f"KEY-{thread.id}", "comments": []} for thread in THREADS[:60]]
    options = (
        "--threads",
        lines(tmp_path / "t.jsonl", *named),
        "--queries",
        lines(tmp_path / "q.jsonl", {"id": "KEY-60", "relevant": ["KEY-59", "KEY-58"]}),
    )
    assert list(call("eval", *options, "--json").data["ranks"]) == ["KEY-60"]


def test_a_limit_takes_queries_from_all_of_the_file(files: tuple[str | Path, ...], call: Run) -> None:
    assert list(call("eval", *files, "--limit", "5", "--json").data["ranks"]) == ["6", "16", "31", "41", "56"]


def test_only_candidates_of_the_window_are_found(files: tuple[str | Path, ...], tmp_path: Path, call: Run) -> None:
    near = lines(tmp_path / "near.jsonl", {"id": 69, "relevant": [67]}, {"id": 70, "relevant": [40]})
    ended = call("eval", *files[:2], "--queries", near, "--window-days", "10", "--json")
    ranks = ended.data["ranks"]
    assert ended.data["window_days"] == 10
    assert ranks["70"] is None
    assert 1 <= ranks["69"] <= 10


def test_what_is_not_older_than_the_query_is_no_answer(tmp_path: Path, call: Run) -> None:
    queries = lines(tmp_path / "q.jsonl", {"id": 60, "relevant": [61, 999]})
    data = call("eval", "--threads", archive(tmp_path / "t.jsonl"), "--queries", queries, "--json").data
    assert (data["ranks"], data["mrr"], data["candidates_recall"]) == ({"60": None}, 0, 0)


def test_folds_fit_weights_to_the_other_queries(files: tuple[str | Path, ...], call: Run) -> None:
    data = call("eval", *files, "--limit", "12", "--folds", "3", "--json").data
    assert (data["n"], data["ranking"]) == (12, "3 folds")


@pytest.mark.slow
def test_the_difference_to_an_earlier_result(files: tuple[str | Path, ...], tmp_path: Path, call: Run) -> None:
    before = tmp_path / "before.json"
    data = call("eval", *files, "--limit", "10", "--json").data
    data["ranks"] = dict.fromkeys(list(data["ranks"])[:8])
    before.write_text(json.dumps(data), encoding="utf-8")
    after = call("eval", *files, "--limit", "10", "--against", before, "--json").data["difference"]
    assert after["n"] == 8
    assert after["mrr"][1] <= after["mrr"][0] <= after["mrr"][2]
    assert after["rr@20"][0] > 0
    told = call("eval", *files, "--limit", "10", "--against", before).out
    assert "difference on the 8 queries that both have\nrr@1 " in told


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("{nonsense", "line 3: not JSON"),
        ("[" * 100_000, "line 3: not JSON"),
        ('{"relevant": [1]}', "line 3: a query needs id and relevant"),
        ('{"id": 6}', "line 3: a query needs id and relevant"),
        ('{"id": 6, "relevant": "5"}', "line 3: a query needs id and relevant (relevant must be a list of ids)"),
        ('{"id": 6, "relevant": [0]}', "line 3: a query needs id and relevant"),
        ("[6, 5]", "line 3: a query needs id and relevant"),
        ('{"id": 999, "relevant": [1]}', "line 3: no thread 999 in the archive"),
    ],
)
def test_a_line_that_is_no_query_is_named(tmp_path: Path, call: Run, row: str, fault: str) -> None:
    queries = tmp_path / "q.jsonl"
    queries.write_text(f'{{"id": 6, "relevant": [5]}}\n\n{row}\n', encoding="utf-8")
    ended = call("eval", "--threads", archive(tmp_path / "t.jsonl", THREADS[:10]), "--queries", queries)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"precedent eval: {queries}, {fault}")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe", None])
def test_a_file_of_queries_that_is_none_is_named(tmp_path: Path, call: Run, content: bytes | None) -> None:
    queries = tmp_path / "q.jsonl"
    if content is not None:
        queries.write_bytes(content)
    ended = call("eval", "--threads", archive(tmp_path / "t.jsonl", THREADS[:10]), "--queries", queries)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"precedent eval: {queries} ")


def test_an_archive_that_is_none_is_named(files: tuple[str | Path, ...], tmp_path: Path, call: Run) -> None:
    missing = call("eval", "--threads", tmp_path / "none.jsonl", *files[2:])
    assert (missing.code, missing.out) == (2, "")
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps(archive_fields(THREADS[0])) + "\n{\n", encoding="utf-8")
    ended = call("eval", "--threads", broken, *files[2:])
    assert (ended.code, ended.out) == (2, "")
    assert f"{broken}, line 2: not a thread" in ended.err


@pytest.mark.parametrize(
    "content", [None, "{", "[1]", "{}", '{"ranks": []}', '{"ranks": {}}', '{"ranks": {"6": "first"}}', "[" * 100_000]
)
def test_an_earlier_result_that_is_none_is_named(
    files: tuple[str | Path, ...], tmp_path: Path, call: Run, content: str | None
) -> None:
    before = tmp_path / "before.json"
    if content is not None:
        before.write_text(content, encoding="utf-8")
    ended = call("eval", *files, "--limit", "1", "--against", before)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"precedent eval: {before} ")


# Backtest


@pytest.mark.slow
def test_a_replay_as_data_and_in_words(store: Path, call: Run) -> None:
    ended = call("backtest", "--store", store, "--last", "30", "--repo", "octo-org/hello-world", "--json")
    assert (ended.code, ended.err) == (0, "")
    data = ended.data
    assert (data["n"], data["wanted"], data["threads"], data["repo"]) == (30, 30, SIZE, "octo-org/hello-world")
    assert sum(data["grades"].values()) == 30
    assert {"rr@1", "rr@5", "rr@10", "rr@20", "mrr", "precision", "commented_share", "ms_p50", "ms_p95"} <= set(data)
    told = call("backtest", "--store", store, "--last", "30").out
    assert told.startswith(f"Of the 30 newest issues, it would have shown similar ones on {data['commented']} (")
    assert f"mrr               {data['mrr']:.3f}" in told


@pytest.mark.slow
def test_a_replay_changes_nothing_but_the_report(store: Path, tmp_path: Path, call: Run) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    report = tmp_path / "report.html"
    assert call("backtest", "--store", store, "--last", "10", "--html", report).code == 0
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before
    page = report.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert THREADS[-1].title in page


def test_a_report_that_cannot_be_written_is_told(store: Path, tmp_path: Path, call: Run) -> None:
    ended = call("backtest", "--store", store, "--last", "1", "--html", tmp_path / "none" / "report.html")
    assert (ended.code, ended.out) == (1, "")
    assert "report.html cannot be written" in ended.err


# Calibrate


def cut_of(store: Path) -> Any:
    return parse(json.loads((store / RANKING).read_text(encoding="utf-8")))


@pytest.mark.slow
def test_a_share_sets_the_cut_that_the_next_replay_uses(store: Path, call: Run) -> None:
    ended = call("calibrate", "--store", store, "--share", "0.3", "--json")
    assert (ended.code, ended.data["is_own"]) == (0, True)
    ranking = cut_of(store)
    assert ranking.by_words.cut == pytest.approx(ended.data["confidence_at_0.65"], abs=1e-4)
    assert ranking.with_vectors == shipped().with_vectors
    assert opened(store).ranking == ranking
    data = call("backtest", "--store", store, "--json").data
    assert data["commented_share"] == pytest.approx(0.3, abs=0.04)
    assert data["evidence"]["cut"] == ended.data["reason"]


@pytest.mark.slow
def test_the_next_answer_goes_by_the_cut(store: Path, call: Run) -> None:
    def speaking() -> int:
        asked = range(SIZE - 9, SIZE + 1)
        return sum(
            call("answer", str(key), "--store", store, "--as-of", "created", "--json").data["spoke"] for key in asked
        )

    assert call("calibrate", "--store", store, "--share", "0.01").code == 0
    quiet = speaking()
    assert call("calibrate", "--store", store, "--share", "0.6").code == 0
    assert quiet <= 1
    assert speaking() >= 3


@pytest.mark.slow
def test_a_store_that_learned_words_is_calibrated_with_its_vectors(store: Path, call: Run) -> None:
    memory = opened(store)
    words = train_embeddings([(terms(thread.title), body_terms(thread.body)) for thread in THREADS])
    assert words is not None
    memory.install_model(ModelUpdate(encode_words(words), shipped(), SIZE))
    memory.rebuild_index()
    assert memory.commit("Learned")
    kept = (store / WORDS).read_bytes()
    assert call("calibrate", "--store", store, "--share", "0.3", "--json").data["is_own"]
    assert cut_of(store).by_words == shipped().by_words
    assert cut_of(store).with_vectors.cut != shipped().with_vectors.cut
    memory = opened(store)
    assert (memory.state.manifest.learned_from, (store / WORDS).read_bytes(), memory.notes) == (SIZE, kept, [])
    assert memory.vectors(THREADS[-1])


def test_few_issues_keep_the_shipped_cut(store: Path, call: Run) -> None:
    ended = call("calibrate", "--store", store, "--last", "20")
    assert ended.code == 0
    assert ended.out.startswith(
        "the cut is kept as it is: only 20 issues could be replayed, 100 are needed; so this history does not tell"
    )
    assert not (store / RANKING).exists()


def test_few_links_keep_the_shipped_cut(store: Path, call: Run) -> None:
    ended = call("calibrate", "--store", store, "--precision", "1", "--json")
    assert (ended.code, ended.data["is_own"]) == (0, False)
    assert "no 20 comments reach a precision of 100%" in ended.data["reason"]
    assert not (store / RANKING).exists()


@pytest.mark.parametrize("command", ["backtest", "calibrate"])
def test_a_store_that_is_none_is_named(tmp_path: Path, call: Run, command: str) -> None:
    ended = call(command, "--store", tmp_path / "none")
    assert (ended.code, ended.out) == (2, "")
    assert "precedent import" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("eval", "--threads", "t.jsonl"),
        ("eval", "--threads", "t.jsonl", "--queries", "q.jsonl", "--ranking", "best"),
        ("eval", "--threads", "t.jsonl", "--queries", "q.jsonl", "--folds", "1"),
        ("eval", "--threads", "t.jsonl", "--queries", "q.jsonl", "--limit", "0"),
        ("eval", "--threads", "t.jsonl", "--queries", "q.jsonl", "--window-days", "-3"),
        ("backtest",),
        ("backtest", "--store", "s", "--last", "all"),
        ("backtest", "--store", "s", "--seconds", "1e9"),
        ("calibrate", "--store", "s", "--share", "0"),
        ("calibrate", "--store", "s", "--share", "1.5"),
        ("calibrate", "--store", "s", "--precision", "nan"),
        ("calibrate", "--store", "s", "--share", "0.1", "--precision", "0.5"),
    ],
)
def test_options_that_make_no_sense_end_with_2(call: Run, arguments: tuple[str, ...]) -> None:
    ended = call(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "; see `precedent " in ended.err
    assert ended.err.count("\n") == 1
