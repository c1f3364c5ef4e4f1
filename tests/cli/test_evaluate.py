"""`eval`, `backtest` and `calibrate`: their figures, what they write, and what they say about invalid files."""

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
from bot.memory.model_store import RANKING_PATH
from bot.ranking.weights import parse, shipped
from tests.cli.program_result import Run
from tests.evaluation.timelines import generated
from tests.ranking.tiny_model import write_folder

EVAL_KEYS = {
    *("n", "rr@1", "rr@5", "rr@10", "rr@20", "mrr", "interval", "candidates_recall", "ms_p50", "ms_p95"),
    *("ranking", "window_days", "ranks", "threads", "seconds"),
}
SIZE, FEW = 110, 70
THREADS = [life.thread() for life in generated(SIZE, Random(3))]
"""One thread a day; every fifth is a query for the one before it."""


def archive(path: Path, threads: Iterable[Thread] = THREADS) -> Path:
    path.write_text("".join(json.dumps(archive_fields(thread)) + "\n" for thread in threads), encoding="utf-8")
    return path


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[str | Path, ...]:
    """The options that name a small archive and 13 queries on it."""
    rows = [{"id": key, "relevant": [key - 1]} for key in range(6, FEW + 1, 5)]
    queries = lines(tmp_path / "queries.jsonl", *rows)
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


def open_memory(store: Path) -> Memory:
    return Memory(FolderStore(store)).open()


# Eval


@pytest.mark.slow
def test_eval_prints_the_figures_for_known_duplicates_as_json(files: tuple[str | Path, ...], call: Run) -> None:
    result = call("eval", *files, "--json")
    assert (result.code, result.err, set(result.data)) == (0, "", EVAL_KEYS)
    data = result.data
    assert (data["n"], data["threads"], data["ranking"], data["window_days"]) == (13, FEW, "own", None)
    shares = [data[name] for name in ("rr@1", "rr@5", "rr@10", "rr@20", "candidates_recall")]
    assert shares == sorted(shares)
    assert 0 < data["rr@20"] <= 1
    ranks = [rank for rank in data["ranks"].values() if rank]
    assert data["rr@5"] == pytest.approx(sum(rank <= 5 for rank in ranks) / 13, abs=1e-4)
    assert data["mrr"] == pytest.approx(sum(1 / rank for rank in ranks) / 13, abs=1e-4)
    assert all(data["interval"][name][0] <= data[name] <= data["interval"][name][1] for name in data["interval"])
    assert 0 < data["ms_p50"] <= data["ms_p95"]


def test_eval_prints_the_figures_as_text(files: tuple[str | Path, ...], call: Run) -> None:
    output = call("eval", *files, "--limit", "5").out.splitlines()
    assert output[0] == f"5 queries, {FEW} threads, ranking own"
    assert [line.split()[0] for line in output[1:6]] == ["rr@1", "rr@5", "rr@10", "rr@20", "mrr"]


def test_ids_can_be_names(tmp_path: Path, call: Run) -> None:
    named = [{**archive_fields(thread), "id": f"KEY-{thread.id}", "comments": []} for thread in THREADS[:60]]
    options = (
        "--threads",
        lines(tmp_path / "t.jsonl", *named),
        "--queries",
        lines(tmp_path / "q.jsonl", {"id": "KEY-60", "relevant": ["KEY-59", "KEY-58"]}),
    )
    assert list(call("eval", *options, "--json").data["ranks"]) == ["KEY-60"]


def test_a_limit_takes_queries_from_the_whole_file(files: tuple[str | Path, ...], call: Run) -> None:
    assert list(call("eval", *files, "--limit", "5", "--json").data["ranks"]) == ["6", "16", "31", "41", "56"]


@pytest.mark.slow
def test_only_candidates_within_the_window_are_found(files: tuple[str | Path, ...], tmp_path: Path, call: Run) -> None:
    near = lines(tmp_path / "near.jsonl", {"id": 69, "relevant": [67]}, {"id": 70, "relevant": [40]})
    result = call("eval", *files[:2], "--queries", near, "--window-days", "10", "--json")
    ranks = result.data["ranks"]
    assert result.data["window_days"] == 10
    assert ranks["70"] is None
    assert 1 <= ranks["69"] <= 10


@pytest.mark.slow
def test_a_thread_that_is_not_older_than_the_query_does_not_count(tmp_path: Path, call: Run) -> None:
    queries = lines(tmp_path / "q.jsonl", {"id": 60, "relevant": [61, 999]})
    data = call("eval", "--threads", archive(tmp_path / "t.jsonl"), "--queries", queries, "--json").data
    assert (data["ranks"], data["mrr"], data["candidates_recall"]) == ({"60": None}, 0, 0)


@pytest.mark.night
@pytest.mark.slow
def test_folds_fit_weights_to_the_other_queries(files: tuple[str | Path, ...], call: Run) -> None:
    data = call("eval", *files, "--limit", "12", "--folds", "3", "--json").data
    assert (data["n"], data["ranking"]) == (12, "3 folds")


@pytest.mark.night
@pytest.mark.slow
def test_eval_shows_the_difference_from_an_earlier_result(
    files: tuple[str | Path, ...], tmp_path: Path, call: Run
) -> None:
    before = tmp_path / "before.json"
    data = call("eval", *files, "--limit", "10", "--json").data
    data["ranks"] = dict.fromkeys(list(data["ranks"])[:8])
    before.write_text(json.dumps(data), encoding="utf-8")
    after = call("eval", *files, "--limit", "10", "--against", before, "--json").data["difference"]
    assert after["n"] == 8
    assert after["mrr"][1] <= after["mrr"][0] <= after["mrr"][2]
    assert after["rr@20"][0] > 0
    output = call("eval", *files, "--limit", "10", "--against", before).out
    assert "difference on the 8 queries that both have\nrr@1 " in output


def test_an_invalid_query_is_reported_with_its_line(tmp_path: Path, call: Run) -> None:
    cases = [
        ("{nonsense", "line 3: not JSON"),
        ("[" * 100_000, "line 3: not JSON"),
        ('{"relevant": [1]}', "line 3: a query needs id and relevant"),
        ('{"id": 6}', "line 3: a query needs id and relevant"),
        ('{"id": 6, "relevant": "5"}', "line 3: a query needs id and relevant (relevant must be a list of ids)"),
        ('{"id": 6, "relevant": [0]}', "line 3: a query needs id and relevant"),
        ("[6, 5]", "line 3: a query needs id and relevant"),
        ('{"id": 999, "relevant": [1]}', "line 3: no thread 999 in the archive"),
    ]
    for row, fault in cases:
        queries = tmp_path / "q.jsonl"
        queries.write_text(f'{{"id": 6, "relevant": [5]}}\n\n{row}\n', encoding="utf-8")
        result = call("eval", "--threads", archive(tmp_path / "t.jsonl", THREADS[:10]), "--queries", queries)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), row
        assert result.err.startswith(f"precedent eval: {queries}, {fault}"), row


def test_an_invalid_file_of_queries_is_reported(tmp_path: Path, call: Run) -> None:
    for content in [None, b"", b"\n \n", b"\xff\xfe"]:
        queries = tmp_path / "q.jsonl"
        if content is not None:
            queries.write_bytes(content)
        result = call("eval", "--threads", archive(tmp_path / "t.jsonl", THREADS[:10]), "--queries", queries)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), content
        assert result.err.startswith(f"precedent eval: {queries} "), content


def test_an_invalid_archive_is_reported(files: tuple[str | Path, ...], tmp_path: Path, call: Run) -> None:
    missing = call("eval", "--threads", tmp_path / "none.jsonl", *files[2:])
    assert (missing.code, missing.out) == (2, "")
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps(archive_fields(THREADS[0])) + "\n{\n", encoding="utf-8")
    result = call("eval", "--threads", broken, *files[2:])
    assert (result.code, result.out) == (2, "")
    assert f"{broken}, line 2: not a thread" in result.err


@pytest.mark.slow
def test_an_invalid_earlier_result_is_reported(files: tuple[str | Path, ...], tmp_path: Path, call: Run) -> None:
    contents = [None, "{", "[1]", "{}", '{"ranks": []}', '{"ranks": {}}', '{"ranks": {"6": "first"}}', "[" * 100_000]
    for content in contents:
        before = tmp_path / "before.json"
        if content is not None:
            before.write_text(content, encoding="utf-8")
        result = call("eval", *files, "--limit", "1", "--against", before)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), content
        assert result.err.startswith(f"precedent eval: {before} "), content


# Backtest


@pytest.mark.night
@pytest.mark.slow
def test_backtest_prints_its_figures_as_json_and_as_text(store: Path, call: Run) -> None:
    result = call("backtest", "--store", store, "--last", "30", "--repo", "octo-org/hello-world", "--json")
    assert (result.code, result.err) == (0, "")
    data = result.data
    assert (data["n"], data["wanted"], data["threads"], data["repo"]) == (30, 30, SIZE, "octo-org/hello-world")
    assert sum(data["grades"].values()) == 30
    assert {"rr@1", "rr@5", "rr@10", "rr@20", "mrr", "precision", "commented_share", "ms_p50", "ms_p95"} <= set(data)
    output = call("backtest", "--store", store, "--last", "30").out
    assert output.startswith(f"It would have commented on {data['commented']} of the 30 newest issues (")
    assert f"mrr               {data['mrr']:.3f}" in output


@pytest.mark.slow
def test_backtest_writes_nothing_but_the_report(store: Path, tmp_path: Path, call: Run) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    report = tmp_path / "report.html"
    assert call("backtest", "--store", store, "--last", "10", "--html", report).code == 0
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before
    page = report.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert THREADS[-1].title in page


@pytest.mark.slow
def test_an_unwritable_report_exits_with_1(store: Path, tmp_path: Path, call: Run) -> None:
    result = call("backtest", "--store", store, "--last", "1", "--html", tmp_path / "none" / "report.html")
    assert (result.code, result.out) == (1, "")
    assert "report.html cannot be written" in result.err


# Calibrate


def read_weights(store: Path) -> Any:
    return parse(json.loads((store / RANKING_PATH).read_text(encoding="utf-8")))


@pytest.mark.night
@pytest.mark.slow
def test_a_share_sets_the_cut_that_the_next_backtest_uses(store: Path, call: Run) -> None:
    result = call("calibrate", "--store", store, "--share", "0.3", "--json")
    assert (result.code, result.data["is_own"]) == (0, True)
    ranking = read_weights(store)
    assert ranking.by_words.cut == pytest.approx(result.data["confidence_at_0.65"], abs=1e-4)
    assert ranking.with_text_model == shipped().with_text_model
    assert open_memory(store).ranking == ranking
    data = call("backtest", "--store", store, "--json").data
    assert data["commented_share"] == pytest.approx(0.3, abs=0.04)
    assert data["evidence"]["cut"] == result.data["reason"]


@pytest.mark.night
@pytest.mark.slow
def test_the_next_answer_uses_the_cut(store: Path, call: Run) -> None:
    def count_comments() -> int:
        ids = range(SIZE - 9, SIZE + 1)
        return sum(
            call("answer", str(key), "--store", store, "--as-of", "created", "--json").data["spoke"] for key in ids
        )

    assert call("calibrate", "--store", store, "--share", "0.01").code == 0
    few_comments = count_comments()
    assert call("calibrate", "--store", store, "--share", "0.6").code == 0
    assert few_comments <= 1
    assert count_comments() >= 3


@pytest.mark.night
@pytest.mark.slow
def test_a_store_with_the_vectors_of_a_text_model_is_calibrated_with_them(
    store: Path, tmp_path: Path, call: Run
) -> None:
    model = write_folder(tmp_path / "model")
    assert call("learn", "--store", store, "--semantic", model).code == 0
    assert call("calibrate", "--store", store, "--semantic", model, "--share", "0.3", "--json").data["is_own"]
    assert read_weights(store).by_words == shipped().by_words
    assert read_weights(store).with_text_model.cut != shipped().with_text_model.cut
    memory = open_memory(store)
    assert (memory.state.manifest.learned_from, memory.notes) == (SIZE, [])


@pytest.mark.slow
def test_with_too_few_issues_the_shipped_cut_stays(store: Path, call: Run) -> None:
    result = call("calibrate", "--store", store, "--last", "20")
    assert result.code == 0
    assert result.out.startswith(
        "the cut is kept as it is: only 20 issues could be replayed, 100 are needed; so this history does not tell"
    )
    assert not (store / RANKING_PATH).exists()


@pytest.mark.night
@pytest.mark.slow
def test_with_too_few_links_the_shipped_cut_stays(store: Path, call: Run) -> None:
    result = call("calibrate", "--store", store, "--precision", "1", "--json")
    assert (result.code, result.data["is_own"]) == (0, False)
    assert "no 20 comments reach a precision of 100%" in result.data["reason"]
    assert not (store / RANKING_PATH).exists()
