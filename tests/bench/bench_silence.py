"""Measures how well confidence separates hits that people linked from other hits, on all issues of 2014.

python -m tests.bench.bench_silence [--issues N]

The order is fitted to queries from before 2014, the confidence is the shipped one; then come the results of the shipped
ranking in each archive. Links say little about what is worth showing: `bench_worth` has pairs that people graded.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

from bot.domain.thread import Thread
from bot.evaluation.backtest import ReplayedHits, ReplayOptions, newest_issues, replay
from bot.evaluation.evaluate import evaluate, fit_ranking
from bot.evaluation.metrics import auc, average_precision, calibration_bins, expected_calibration_error
from bot.ranking.weights import RankingModels, shipped
from bot.settings.schema import Settings
from tests.bench.bench_ranking import same_ranking
from tools.fit_ranking import SEED, SKIPPED, Archive, archives, queries

YEAR = 2014
SHARES = (0.05, 0.1, 0.125, 0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--issues", type=int, default=100_000, help="how many issues of each archive, a random sample")
    options = parser.parse_args()
    large, *small = archives()
    year = {thread.id: thread.created_at.year for thread in large.history.threads}
    early = [query for query in queries() if year[query.id] < YEAR]
    _, examples = evaluate(large.history, early, same_ranking(early, shipped()))
    of_year = [thread for thread in newest_issues(large.history, len(year)) if thread.created_at.year == YEAR]
    earlier = fit_ranking(examples, shipped(), 1.0)
    print_figures("2014, order of before", replayed(large, sampled(of_year, options.issues), earlier))
    print_figures("2014, as shipped", replayed(large, sampled(of_year, options.issues), shipped()))
    for archive in small:
        issues = newest_issues(archive.history, 100_000)[SKIPPED:]
        print_figures(f"{archive.name}, as shipped", replayed(archive, sampled(issues, options.issues), shipped()))


def sampled(issues: Sequence[Thread], count: int) -> list[Thread]:
    return random.Random(SEED).sample(issues, min(count, len(issues)))


def replayed(archive: Archive, issues: Sequence[Thread], ranking: RankingModels) -> list[ReplayedHits]:
    replays = list(replay(archive.history, archive.links, issues, ReplayOptions(ranking, Settings())))
    return sorted(replays, key=lambda hits: hits.replayed.created_at)


def print_figures(name: str, replays: Sequence[ReplayedHits]) -> None:
    hits = [hit for replayed_hits in replays for hit in replayed_hits.replayed.hits]
    labels, confidences = [hit.related for hit in hits], [hit.confidence for hit in hits]
    best = [max((hit.confidence for hit in replayed_hits.replayed.hits), default=0.0) for replayed_hits in replays]
    right = [any(hit.related for hit in replayed_hits.replayed.hits) for replayed_hits in replays]
    order = sorted(range(len(replays)), key=lambda index: -best[index])
    tops = [order[: max(1, round(share * len(replays)))] for share in SHARES]
    precisions = "  ".join(f"{sum(right[index] for index in top) / len(top):.2f}" for top in tops)
    shown = [replayed_hits for replayed_hits in replays if replayed_hits.replayed.shown]
    good = sum(any(hit.related for hit in replayed_hits.replayed.shown) for replayed_hits in shown)
    print(f"{name}: {len(replays):,} issues, {len(hits):,} hits, {sum(labels) / max(1, len(hits)):.3f} of them linked")
    print(
        f"  AUC of a hit {auc(labels, confidences) or 0:.3f}, of an issue {auc(right, best) or 0:.3f}, average "
        f"precision {average_precision(right, best) or 0:.3f}, calibration error "
        f"{expected_calibration_error(calibration_bins(confidences, labels)) or 0:.4f}"
    )
    print(f"  linked among the surest 5, 10, 12.5, 20 % of the issues: {precisions}")
    print(f"  shown on {len(shown) / max(1, len(replays)):.3f} of the issues, with a linked one on {good}", flush=True)


if __name__ == "__main__":
    main()
