"""The commands that prove: eval on known duplicates, backtest and calibrate on a store's own history."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.archive import parse_key
from bot.comment.links import Links
from bot.comment.render import Renderer
from bot.doors.archives import read_archive
from bot.doors.progress import progress
from bot.doors.stores import open_store, text_model
from bot.errors import UserError, WorldError
from bot.evaluation.backtest import Seen
from bot.evaluation.calibrate import Calibration, arms_of, by_precision, by_share
from bot.evaluation.evaluate import Found, Query, Trial, by_folds, evaluate
from bot.evaluation.learn import Learner
from bot.evaluation.metrics import RankMetrics, percentile, rank_differences, summary
from bot.evaluation.replay import History
from bot.evaluation.report import in_words, render_report
from bot.learning import learner
from bot.memory.learned import Lesson
from bot.memory.memory import Memory
from bot.model import Thread, ThreadId
from bot.ranking import Ranking, shipped
from bot.recall.mentioned import Place
from bot.settings import Settings


def run_eval(given: argparse.Namespace) -> object:
    """How well known duplicates are found."""
    started = time.monotonic()
    threads = {thread.id: thread for thread in read_archive(given.threads)}
    asked = _limited(_queries(given.queries, threads), given.limit)
    with progress("Reading threads", len(threads)) as tick:
        history = History.read(threads.values(), text_model(given.semantic), tick)
    window = timedelta(days=given.window_days) if given.window_days else None
    with progress("Queries", len(asked) * (2 if given.folds else 1)) as tick:
        if given.folds:
            found = by_folds(history, asked, given.folds, window, tick)
        else:
            rankings = {query.id: shipped() for query in asked} if given.ranking == "shipped" else None
            found, _ = evaluate(history, asked, Trial(rankings, window), tick)
    figures = _figures(found, given) | {"threads": len(threads), "seconds": round(time.monotonic() - started, 1)}
    if given.against:
        figures["difference"] = _difference(found, given.against)
    if not given.json:
        return _table(figures)
    return figures


def run_backtest(given: argparse.Namespace) -> object:
    """What would have been said on the newest threads."""
    memory, learner = _learner(given)
    with progress("Replaying", given.last) as tick:
        backtest = learner.backtest(memory.ranking, given.last, given.seconds, tick)
    memory.close()
    if given.html:
        _write(given.html, render_report(backtest))
    figures = summary(backtest)
    return figures if given.json else _replay_table(in_words(backtest), figures)


def run_calibrate(given: argparse.Namespace) -> object:
    """Set the cut of a store from its own history."""
    memory, learner = _learner(given)

    def calibrated(seen: Sequence[Seen], ranking: Ranking) -> Calibration:
        model = ranking.model(arms_of(seen))
        replayed = [one.replayed for one in seen]
        if given.precision is not None:
            return by_precision(replayed, model, given.precision)
        return by_share(replayed, model, given.share)

    ranking, found = learner.own_cut(memory.ranking, calibrated, given.last, given.seconds)
    if found.is_own:
        memory.teach(Lesson(None, ranking, memory.learned_from))
        memory.commit("Calibrate")
    memory.close()
    result = {"is_own": found.is_own, "reason": found.reason, "confidence_at_0.65": None}
    if not found.is_own:
        told = "so this history does not tell what a similarity of 0.65 means here"
        return result if given.json else f"{found.reason}; {told}\n"
    result["confidence_at_0.65"] = round(found.model.cut, 4)
    return result if given.json else f"{found.reason}; similarity 0.65 is a confidence of {found.model.cut:.3f}\n"


def _learner(given: argparse.Namespace) -> tuple[Memory, Learner]:
    """The memory of a store and its history, which is replayed as the store answers: with vectors where it has them."""
    memory = open_store(given.store, semantic=given.semantic)
    repo = given.repo or memory.repo
    renderer = Renderer(links=Links(repo=repo or ""), commands=False)
    return memory, learner(memory, Settings(), renderer, Place(repo), trains=memory.has_words)


def _queries(path: Path, threads: dict[ThreadId, Thread]) -> list[Query]:
    """The queries of a file; UserError with file and line for the first that is none."""
    found = []
    for number, row in _lines(path):
        try:
            if not isinstance(row["relevant"], list):
                raise TypeError("relevant is a list of ids")
            key, relevant = parse_key(row["id"]), frozenset(map(parse_key, row["relevant"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}, line {number}: a query needs id and relevant ({error!s:.80})") from error
        if key not in threads:
            raise UserError(f"{path}, line {number}: no thread {key!s:.80} in the archive")
        older = frozenset(k for k in relevant if k in threads and threads[k].created_at < threads[key].created_at)
        found.append(Query(key, older))
    if not found:
        raise UserError(f"{path} holds no query")
    return found


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Each line's number and what it holds; empty ones are left out."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _json(line, path, number)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} cannot be read: not UTF-8 at byte {error.start}") from error


def _json(line: str, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}, line {number}: not JSON ({error!s:.80})") from error


def _limited(queries: list[Query], limit: int | None) -> list[Query]:
    """At most ``limit`` of the queries, evenly spread over all."""
    if limit is None or limit >= len(queries):
        return queries
    return [queries[place * len(queries) // limit] for place in range(limit)]


def _figures(found: Sequence[Found], given: argparse.Namespace) -> dict[str, object]:
    times = [one.ms for one in found]
    ranks = {str(one.id): one.rank for one in found}
    return {
        **RankMetrics.of(ranks.values()).as_dict(),
        "candidates_recall": round(sum(one.rank is not None for one in found) / len(found), 4),
        "ms_p50": round(percentile(times, 0.5) or 0.0, 2),
        "ms_p95": round(percentile(times, 0.95) or 0.0, 2),
        "ranking": f"{given.folds} folds" if given.folds else given.ranking,
        "window_days": given.window_days,
        "ranks": ranks,
    }


def _difference(found: Sequence[Found], path: Path) -> dict[str, object]:
    """Ours minus theirs on the queries that both have, with the ends of a 95 % interval."""
    try:
        theirs = json.loads(path.read_text(encoding="utf-8"))["ranks"]
        shared = [one for one in found if str(one.id) in theirs]
        pairs = [(one.rank, theirs[str(one.id)]) for one in shared]
        differences = rank_differences([ours for ours, _ in pairs], [other for _, other in pairs])
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is no result of eval --json on these queries ({error!s:.80})") from error
    intervals = {
        name: [round(one.value, 4), round(one.low, 4), round(one.high, 4)] for name, one in differences.items()
    }
    return {"n": len(pairs), **intervals}


def _table(figures: Mapping[str, Any]) -> str:
    lines = [f"{figures['n']} queries, {figures['threads']:,} threads, ranking {figures['ranking']}"]
    lines += _ranks(figures)
    lines += [f"{name:18}{figures[name]}" for name in ("candidates_recall", "ms_p50", "ms_p95", "seconds")]
    difference = dict(figures.get("difference", {}))
    if difference:
        lines.append(f"difference on the {difference.pop('n')} queries that both have")
        lines += [
            f"{name:16}{value:+8.3f}  [{low:+.3f}, {high:+.3f}]" for name, (value, low, high) in difference.items()
        ]
    return "\n".join(lines) + "\n"


def _replay_table(words: str, figures: Mapping[str, Any]) -> str:
    """What came out in words, and the figures that can be told."""
    names = ("precision", "hit_precision", "auc", "ece", "ms_p50", "ms_p95", "seconds")
    lines = [words.replace("\u00a0", " "), *_ranks(figures)]
    lines += [f"{name:18}{figures[name]:.3f}" for name in names if figures[name] is not None]
    return "\n".join(lines) + "\n"


def _ranks(figures: Mapping[str, Any]) -> list[str]:
    """How high the right thread ranked, with the ends of the 95 % intervals."""
    return [
        f"{name:18}{figures[name]:.3f}   [{low:.3f}, {high:.3f}]" for name, (low, high) in figures["interval"].items()
    ]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise WorldError(f"{path} cannot be written: {error.strerror}") from error
