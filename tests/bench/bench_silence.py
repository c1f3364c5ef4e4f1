"""How well confidence tells hits that people linked from those that nobody did, on all issues of 2014.

python -m tests.bench.bench_silence [--issues N]

The order comes from queries of before 2014, the confidence as shipped; then follows what the shipped ranking shows in
each archive. Links are a poor teacher of what is worth showing: `bench_worth` has pairs that people graded.
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
from tests.bench.bench_ranking import one_ranking
from tools.fit_ranking import SEED, SKIPPED, Archive, archives, queries

YEAR = 2014
SHARES = (0.05, 0.1, 0.125, 0.2)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--issues", type=int, default=100_000, help="how many issues of each archive, a random sample")
    chosen = options.parse_args()
    large, *small = archives()
    year = {thread.id: thread.created_at.year for thread in large.history.threads}
    early = [query for query in queries() if year[query.id] < YEAR]
    _, examples = evaluate(large.history, early, one_ranking(early, shipped()))
    of_year = [thread for thread in newest_issues(large.history, len(year)) if thread.created_at.year == YEAR]
    earlier = fit_ranking(examples, shipped(), 1.0)
    figures("2014, order of before", replayed(large, some(of_year, chosen.issues), earlier))
    figures("2014, as shipped", replayed(large, some(of_year, chosen.issues), shipped()))
    for archive in small:
        issues = newest_issues(archive.history, 100_000)[SKIPPED:]
        figures(f"{archive.name}, as shipped", replayed(archive, some(issues, chosen.issues), shipped()))


def some(issues: Sequence[Thread], count: int) -> list[Thread]:
    return random.Random(SEED).sample(issues, min(count, len(issues)))


def replayed(archive: Archive, issues: Sequence[Thread], ranking: RankingModels) -> list[ReplayedHits]:
    found = list(replay(archive.history, archive.links, issues, ReplayOptions(ranking, Settings())))
    return sorted(found, key=lambda one: one.replayed.created_at)


def figures(name: str, seen: Sequence[ReplayedHits]) -> None:
    hits = [hit for one in seen for hit in one.replayed.hits]
    labels, confidences = [hit.related for hit in hits], [hit.confidence for hit in hits]
    best = [max((hit.confidence for hit in one.replayed.hits), default=0.0) for one in seen]
    right = [any(hit.related for hit in one.replayed.hits) for one in seen]
    order = sorted(range(len(seen)), key=lambda place: -best[place])
    tops = [order[: max(1, round(share * len(seen)))] for share in SHARES]
    precisions = "  ".join(f"{sum(right[place] for place in top) / len(top):.2f}" for top in tops)
    shown = [one for one in seen if one.replayed.shown]
    good = sum(any(hit.related for hit in one.replayed.shown) for one in shown)
    print(f"{name}: {len(seen):,} issues, {len(hits):,} hits, {sum(labels) / max(1, len(hits)):.3f} of them linked")
    print(
        f"  AUC of a hit {auc(labels, confidences) or 0:.3f}, of an issue {auc(right, best) or 0:.3f}, average "
        f"precision {average_precision(right, best) or 0:.3f}, calibration error "
        f"{expected_calibration_error(calibration_bins(confidences, labels)) or 0:.4f}"
    )
    print(f"  linked among the surest 5, 10, 12.5, 20 % of the issues: {precisions}")
    print(f"  shown on {len(shown) / max(1, len(seen)):.3f} of the issues, with a linked one on {good}", flush=True)


if __name__ == "__main__":
    main()
