"""precedent eval: measures how well the known duplicates of an archive are found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.cli.arguments import number, one_of
from bot.cli.options import MAX_COUNT, Arguments, FileArgument, file_option, json_option, option, semantic_option
from bot.cli.output import progress, rank_table
from bot.domain.thread import Thread, ThreadId
from bot.domain.thread_json import parse_key
from bot.errors import UserError
from bot.evaluation.evaluate import EvaluationQuery, EvaluationResult, Trial, cross_validate, evaluate
from bot.evaluation.metrics import RankMetrics, percentile, rank_differences
from bot.evaluation.replay import ReplayHistory
from bot.local_cache.sync import text_model
from bot.ranking.weights import shipped
from bot.sources.archive_file import read_archive


class EvalArguments(Arguments):
    threads: Path = option("the archive (.jsonl, .jsonl.gz)", required=True, action=FileArgument)
    queries: Path = option("one JSON object per line: id, and relevant (ids)", required=True, action=FileArgument)
    window_days: int | None = option(
        "candidates at most N days older than the query", type=number(1, 100_000), metavar="N"
    )
    limit: int | None = option("N queries, spread evenly over all", type=number(1, MAX_COUNT), metavar="N")
    ranking: str = option(
        "own: refit along the way, as a repository with 100 marked duplicates does (default)",
        **one_of("own", "shipped"),
        default="own",
    )
    folds: int | None = option(
        "fit the weights to the other N - 1 folds of the queries, by time", type=number(2, 50), metavar="N"
    )
    semantic: Path | None = semantic_option()
    against: Path | None = file_option("an earlier result (--json) to compare with")
    json: bool = json_option("the figures and all ranks")


def run_eval(args: EvalArguments) -> object:
    started = time.monotonic()
    threads = {thread.id: thread for thread in read_archive(args.threads)}
    queries = _spread(_read_queries(args.queries, threads), args.limit)
    with progress("Reading threads", len(threads)) as tick:
        history = ReplayHistory.read(threads.values(), text_model(args.semantic), tick)
    window = timedelta(days=args.window_days) if args.window_days else None
    with progress("Queries", len(queries) * (2 if args.folds else 1)) as tick:
        if args.folds:
            results = cross_validate(history, queries, args.folds, window, tick)
        else:
            rankings = {query.id: shipped() for query in queries} if args.ranking == "shipped" else None
            results, _ = evaluate(history, queries, Trial(rankings, window), tick)
    figures = _figures(results, args) | {"threads": len(threads), "seconds": round(time.monotonic() - started, 1)}
    if args.against:
        figures["difference"] = _difference(results, args.against)
    return figures if args.json else _table(figures)


def _read_queries(path: Path, threads: dict[ThreadId, Thread]) -> list[EvaluationQuery]:
    queries = []
    for line, row in _read_lines(path):
        try:
            if not isinstance(row["relevant"], list):
                raise TypeError("relevant must be a list of ids")
            key, relevant = parse_key(row["id"]), frozenset(map(parse_key, row["relevant"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}, line {line}: a query needs id and relevant ({error!s:.80})") from error
        if key not in threads:
            raise UserError(f"{path}, line {line}: no thread {key!s:.80} in the archive")
        older = frozenset(k for k in relevant if k in threads and threads[k].created_at < threads[key].created_at)
        queries.append(EvaluationQuery(key, older))
    if not queries:
        raise UserError(f"{path} has no queries")
    return queries


def _read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _parse_json(line, path, number)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} cannot be read: not UTF-8 at byte {error.start}") from error


def _parse_json(line: str, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}, line {number}: not JSON ({error!s:.80})") from error


def _spread(queries: list[EvaluationQuery], limit: int | None) -> list[EvaluationQuery]:
    """At most ``limit`` queries, spread evenly over all of them."""
    if limit is None or limit >= len(queries):
        return queries
    return [queries[index * len(queries) // limit] for index in range(limit)]


def _figures(results: Sequence[EvaluationResult], args: EvalArguments) -> dict[str, object]:
    times = [result.ms for result in results]
    ranks = {str(result.id): result.rank for result in results}
    return {
        **RankMetrics.of(ranks.values()).as_dict(),
        "candidates_recall": round(sum(result.rank is not None for result in results) / len(results), 4),
        "ms_p50": round(percentile(times, 0.5) or 0.0, 2),
        "ms_p95": round(percentile(times, 0.95) or 0.0, 2),
        "ranking": f"{args.folds} folds" if args.folds else args.ranking,
        "window_days": args.window_days,
        "ranks": ranks,
    }


def _difference(results: Sequence[EvaluationResult], path: Path) -> dict[str, object]:
    """Our metrics minus theirs on the shared queries, with 95 % intervals."""
    try:
        theirs = json.loads(path.read_text(encoding="utf-8"))["ranks"]
        shared = [result for result in results if str(result.id) in theirs]
        pairs = [(result.rank, theirs[str(result.id)]) for result in shared]
        differences = rank_differences([ours for ours, _ in pairs], [other for _, other in pairs])
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is not a result of eval --json on these queries ({error!s:.80})") from error
    intervals = {
        name: [round(difference.value, 4), round(difference.low, 4), round(difference.high, 4)]
        for name, difference in differences.items()
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
