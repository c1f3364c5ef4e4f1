"""precedent eval: how well the known duplicates of an archive are found."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.cli.output import progress, rank_table
from bot.domain.thread import Thread, ThreadId
from bot.domain.thread_json import parse_key
from bot.errors import UserError
from bot.evaluation.evaluate import EvaluationQuery, EvaluationResult, Trial, by_folds, evaluate
from bot.evaluation.metrics import RankMetrics, percentile, rank_differences
from bot.evaluation.replay import ReplayHistory
from bot.local_cache.sync import text_model
from bot.ranking.weights import shipped
from bot.sources.archive_file import read_archive


def run_eval(given: argparse.Namespace) -> object:
    started = time.monotonic()
    threads = {thread.id: thread for thread in read_archive(given.threads)}
    asked = _limited(_queries(given.queries, threads), given.limit)
    with progress("Reading threads", len(threads)) as tick:
        history = ReplayHistory.read(threads.values(), text_model(given.semantic), tick)
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
    return figures if given.json else _table(figures)


def _queries(path: Path, threads: dict[ThreadId, Thread]) -> list[EvaluationQuery]:
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
        found.append(EvaluationQuery(key, older))
    if not found:
        raise UserError(f"{path} holds no query")
    return found


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
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


def _limited(queries: list[EvaluationQuery], limit: int | None) -> list[EvaluationQuery]:
    """At most ``limit`` of the queries, evenly spread over all."""
    if limit is None or limit >= len(queries):
        return queries
    return [queries[place * len(queries) // limit] for place in range(limit)]


def _figures(found: Sequence[EvaluationResult], given: argparse.Namespace) -> dict[str, object]:
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


def _difference(found: Sequence[EvaluationResult], path: Path) -> dict[str, object]:
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
    lines += rank_table(figures)
    lines += [f"{name:18}{figures[name]}" for name in ("candidates_recall", "ms_p50", "ms_p95", "seconds")]
    difference = dict(figures.get("difference", {}))
    if difference:
        lines.append(f"difference on the {difference.pop('n')} queries that both have")
        lines += [
            f"{name:16}{value:+8.3f}  [{low:+.3f}, {high:+.3f}]" for name, (value, low, high) in difference.items()
        ]
    return "\n".join(lines) + "\n"
