"""Measures how well threads of other repositories are found, and when to be silent: `bot/recall/other_repositories.py`.

python -m bench.bench_elsewhere            the table, for queries that the weights were not fitted to
python -m bench.bench_elsewhere --fit      fit bot/ranking/elsewhere.json again
python -m bench.bench_elsewhere --pairs FILE   pairs that would be shown, for people to grade

Needs the archives next to the checkout. They do not link to each other, so the Rust archive is split into sibling
repositories, by label or by number (`bench/elsewhere.py`); the search should find a known duplicate in another sibling.
The scope excludes the query's own repository and includes the four other archives. Nothing is known from after a
query's moment, and every reference in titles and texts is masked. The order is fitted to the older half of the queries,
the confidence to graded pairs within one repository (`tools/graded_pairs.py`), seen as the organisation sees them.
Unwanted hits: issues of one archive searched in the other archives, none of which is about the same product. The engine
is plain BM25 in memory (`tests/fakes/candidates.py`) over the same terms as LanceDB's.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.archives import DATA, ROOT, need_archives
from bench.elsewhere import (
    ARCHIVES,
    RUST,
    SPLITS,
    CrossQuery,
    Organisation,
    cross_queries,
    links_between,
    organisation,
    without_references,
)
from bot.cli.output import progress
from bot.domain.organisation import FoundThread
from bot.domain.post import OrganisationKey
from bot.domain.thread import Thread
from bot.evaluation.metrics import RankMetrics, auc
from bot.ranking.fit import fit_order, fit_probability, paired_interval
from bot.ranking.weights import RankingModels, RankingWeights, shipped_elsewhere
from bot.reading.digest import digest
from bot.recall.other_repositories import ElsewhereCandidates, RankedElsewhere, judge_elsewhere, rank_elsewhere
from tests.fakes.candidates import InMemoryCandidates
from tools.graded_pairs import Pair, read_pairs

TARGET = ROOT / "bot/ranking/elsewhere.json"
ORDER = ("text", "open", "age", "closed", "length", "title_found", "title_covered", "title_overlap", "length_ratio")
CONFIDENCE = ("titles", "share", "place", "errors")
SIBLINGS = ("labels", "numbers")
CUT, SHOWN_FROM = 0.65, 0.65
LATEST = datetime(2026, 1, 1, tzinfo=UTC)
CUTS = (0.5, 0.55, 0.6, 0.65, 0.7)
MOST = 2
SAMPLE, PAIRS = 250, 50
SEED = 20_150_125


class ElsewhereResult(NamedTuple):
    """A query with our candidates and those of plain BM25."""

    thread: Thread
    ours: ElsewhereCandidates
    plain: Sequence[FoundThread]


class RecordingCandidates(InMemoryCandidates):
    """Keeps the results of its last search."""

    last: Sequence[FoundThread] = ()

    @classmethod
    def to(cls, other: InMemoryCandidates) -> RecordingCandidates:
        result = cls(())
        result.__dict__.update(other.__dict__)
        return result

    def search(self, *args: object, **options: object) -> list[FoundThread]:
        result = super().search(*args, **options)  # type: ignore[arg-type]
        self.last = result
        return result


def ask(
    org: Organisation, key: OrganisationKey, scope: Iterable[int], model: RankingWeights, late: bool
) -> ElsewhereResult:
    """Search for a thread as it was opened; ``late``: as if years later, when all others exist."""
    thread = without_references(org.threads[key])
    thread = replace(thread.as_of(thread.created_at), comments=())
    if late:
        thread = replace(thread, created_at=LATEST)
    engine = RecordingCandidates.to(org.index)
    engine.moment = thread.created_at
    ranking = RankingModels(model, model)
    return ElsewhereResult(thread, rank_elsewhere(thread, engine, set(scope), thread.created_at, ranking), engine.last)


def ranks_of(result: ElsewhereResult, relevant: frozenset[OrganisationKey]) -> tuple[int | None, int | None]:
    """The rank of the first relevant thread by plain BM25, and by our order."""
    plain = (candidate.thread.key for candidate in result.plain)
    threads = result.ours.threads
    ours = (
        {threads[candidate.entry.id].key, threads[candidate.found_as].key}
        for candidate in result.ours.ranked.candidates
    )
    return (
        next((rank for rank, key in enumerate(plain, 1) if key in relevant), None),
        next((rank for rank, keys in enumerate(ours, 1) if keys & relevant), None),
    )


def shown_threads(result: ElsewhereResult, model: RankingWeights) -> list[RankedElsewhere]:
    """The threads that would be shown, surest first."""
    ranked = replace(result.ours.ranked, model=model)
    judged = judge_elsewhere(result.thread, replace(result.ours, ranked=ranked))
    return [thread for thread in judged if thread.why and thread.candidate.similarity >= SHOWN_FROM]


@dataclass(frozen=True)
class GradedElsewhere:
    """A graded pair as the organisation sees it; without evidence if it would never be shown."""

    pair: Pair
    evidence: Mapping[str, float]


def graded(org: Organisation, model: RankingWeights) -> Iterator[GradedElsewhere]:
    """All graded pairs, each issue searched in its own archive only."""
    for pair in read_pairs(DATA / "related.jsonl"):
        name = RUST if pair.archive.startswith(RUST) else pair.archive
        key = org.keys_by_number[name, pair.id]
        result = ask(org, key, {key.repository}, model, late=False)
        earlier = f"{key.repository}#{pair.earlier}"
        hits = (hit for hit in judge_elsewhere(result.thread, result.ours) if hit.why)
        evidence = (
            hit.candidate.evidence for hit in hits if earlier in (hit.candidate.entry.id, *hit.candidate.folded)
        )
        yield GradedElsewhere(pair, next(evidence, {}))


def fit_confidence(rows: Sequence[GradedElsewhere], model: RankingWeights) -> RankingWeights:
    """The model with the confidence fitted to these grades."""
    rows_with_evidence = [row for row in rows if row.evidence]
    labels = [row.pair.is_useful for row in rows_with_evidence]
    weights, intercept = fit_probability([row.evidence for row in rows_with_evidence], labels, CONFIDENCE)
    return replace(model, confidence=weights, intercept=intercept, cut=CUT)


def older_half(org: Organisation) -> list[CrossQuery]:
    queries = list(cross_queries(org))
    return queries[: len(queries) // 2]


def held_out(org: Organisation, others: Iterable[Organisation]) -> list[CrossQuery]:
    """The queries that are in no split's older half: some in the newer half of one are in the older half of another."""
    fitted = {query.key.thread for other in others for query in older_half(other)}
    return [query for query in cross_queries(org) if query.key.thread not in fitted]


def fit(orgs: Mapping[str, Organisation]) -> RankingWeights:
    """The order from the older half of the queries of both splits, the confidence from the graded pairs."""
    model, choices = shipped_elsewhere().by_words, []
    for org in map(orgs.__getitem__, SIBLINGS):
        for query in older_half(org):
            result = ask(org, query.key, org.others(query.key), model, late=False).ours
            right = [result.threads[candidate.found_as].key in query.relevant for candidate in result.ranked.candidates]
            choices.append(([candidate.features for candidate in result.ranked.candidates], right))
    model = replace(model, order=fit_order(choices, ORDER))
    return fit_confidence(list(graded(orgs["archives"], model)), model)


def report_order(name: str, org: Organisation, queries: Sequence[CrossQuery], model: RankingWeights) -> None:
    """Print the quality of the order for these queries, which the weights were not fitted to."""
    rows, loud, right = [], 0, 0
    for query in queries:
        result = ask(org, query.key, org.others(query.key), model, late=False)
        rows.append(ranks_of(result, query.relevant))
        shown = shown_threads(result, model)[:MOST]
        loud += bool(shown)
        right += any(hit.thread.key in query.relevant for hit in shown)
    since = org.threads[queries[0].key].created_at
    print(f"\n{name}: {len(org.repositories)} repositories, {len(queries)} queries from {since:%Y-%m-%d} on")
    for method, ranks in (("plain BM25", [row[0] for row in rows]), ("ours", [row[1] for row in rows])):
        figures = RankMetrics.of(ranks).figures.items()
        print(f"  {method}: " + ", ".join(f"{k} {v.value:.3f} ({v.low:.3f}-{v.high:.3f})" for k, v in figures))
    for measure, credit in (("rr@10", lambda r: float(bool(r) and r <= 10)), ("mrr", lambda r: 1 / r if r else 0.0)):
        gain = paired_interval([credit(row[1]) for row in rows], [credit(row[0]) for row in rows], SEED)
        print(f"  gain in {measure}: {gain[0]:+.3f} ({gain[1]:+.3f} to {gain[2]:+.3f})")
    ranked_count = sum(row[1] is not None for row in rows)
    print(f"  among the candidates: {ranked_count}; spoken on {loud}, with the linked one on {right}", flush=True)


def report_grades(rows: Sequence[GradedElsewhere], model: RankingWeights) -> None:
    """Print how many graded pairs are shown from a cut on, by a confidence fitted to the other archives' pairs."""
    names = sorted({row.pair.archive for row in rows})
    models = {name: fit_confidence([row for row in rows if row.pair.archive != name], model) for name in names}
    methods = {
        "each archive left out": [
            models[row.pair.archive].probability(row.evidence) * bool(row.evidence) for row in rows
        ],
        "as shipped (in-sample)": [model.probability(row.evidence) * bool(row.evidence) for row in rows],
    }
    useful = [row.pair.is_useful for row in rows]
    print(f"\n{len(rows)} graded pairs, {sum(useful)} useful, {sum(not row.evidence for row in rows)} never shown")
    for method, confidences in methods.items():
        print(f"  {method}: AUC {auc(useful, confidences):.3f}")
        for cut in CUTS:
            shown = [label for label, confidence in zip(useful, confidences, strict=True) if confidence >= cut]
            print(f"    from {cut:.2f} on: {len(shown)} shown, {sum(shown) / max(1, len(shown)):.2f} of these useful")


def sampled(org: Organisation, names: Iterable[str], count: int = SAMPLE) -> Iterator[OrganisationKey]:
    """Randomly drawn issues, ``count`` of each archive."""
    rng = random.Random(SEED)
    for name in names:
        keys = sorted(key for (archive, _), key in org.keys_by_number.items() if archive == name)
        yield from rng.sample(keys, min(count, len(keys)))


def report_silence(org: Organisation, model: RankingWeights) -> None:
    """Print how often issues of one archive would get a thread of another one."""
    print("\nissues of one archive over the others, all of which are there:")
    for name in (RUST, *ARCHIVES):
        keys = list(sampled(org, [name]))
        shown = [shown_threads(ask(org, key, org.others(key), model, late=True), model) for key in keys]
        labels = [f"{hit.thread.name}#{hit.thread.id}" for (hit, *_) in filter(None, shown)]
        print(f"  {name}: spoken on {len(labels)} of {len(keys)} {' '.join(labels)}", flush=True)


def report_rate(name: str, org: Organisation, model: RankingWeights) -> None:
    """Print how often issues of Rust's siblings got a thread of another sibling when they were opened."""
    keys = list(sampled(org, [RUST]))
    count = sum(bool(shown_threads(ask(org, key, org.others(key), model, late=False), model)) for key in keys)
    print(f"\n{name}: spoken on {count} of {len(keys)} random issues", flush=True)


def write_pairs(orgs: Mapping[str, Organisation], model: RankingWeights, path: Path) -> None:
    """Write pairs that would be shown, the surest of each issue, in random order and without reasons, for readers."""
    rows: dict[str, dict[str, object]] = {}
    for split in ("labels", "numbers", "archives"):
        org, names = orgs[split], ARCHIVES if split == "archives" else (RUST,)
        for key in sampled(org, names, 3 * SAMPLE):
            for hit in shown_threads(ask(org, key, org.others(key), model, late=False), model)[:1]:
                row = row_of_pair(org, key, hit)
                rows[str(row["id"])] = row
    ordered = sorted(rows.values(), key=lambda row: str(row["id"]))
    chosen = random.Random(SEED).sample(ordered, min(PAIRS, len(ordered)))
    path.write_text("".join(json.dumps(row) + "\n" for row in chosen), encoding="utf-8")
    print(f"{len(chosen)} of {len(ordered)} pairs written to {path}")


def row_of_pair(org: Organisation, key: OrganisationKey, shown: RankedElsewhere) -> dict[str, object]:
    new, old = map(without_references, (org.threads[key], org.threads[shown.thread.key]))
    ending = digest(old).outcome
    return {
        "id": f"{name_of(org, key)}#{new.id} {name_of(org, shown.thread.key)}#{old.id}",
        "new": f"{new.title}\n\n{new.body}"[:600],
        "shown": f"{old.title}\n\n{old.body}"[:600],
        "ending": f"{old.state} {ending.kind.value} {ending.quote}"[:600],
        "grade": "",
    }


def name_of(org: Organisation, key: OrganisationKey) -> str:
    return next(name for name, number in org.repositories.items() if number == key.repository)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit the weights and write them")
    parser.add_argument("--pairs", type=Path, metavar="FILE", help="write pairs to be graded")
    options = parser.parse_args()
    need_archives()
    archives = (RUST, *ARCHIVES)
    print(f"links between {len(archives)} archives: {links_between(archives)}", flush=True)
    with progress("Organisations", len(SPLITS)) as tick:
        orgs = {}
        for name, split in SPLITS.items():
            orgs[name] = organisation(archives, split)
            tick(1)
    if options.fit:
        write_weights(fit(orgs))
        return
    model = shipped_elsewhere().by_words
    if options.pairs:
        write_pairs(orgs, model, options.pairs)
        return
    for name in SIBLINGS:
        report_order(name, orgs[name], held_out(orgs[name], map(orgs.__getitem__, SIBLINGS)), model)
        report_rate(name, orgs[name], model)
    report_grades(list(graded(orgs["archives"], model)), model)
    report_silence(orgs["archives"], model)


def write_weights(model: RankingWeights) -> None:
    provenance = {
        "order": "older half of the Rust queries whose duplicate is in a sibling repository, two ways of splitting",
        "confidence": "351 pairs that two people graded, each of one repository, seen as in an organisation of five",
    }
    weights = {
        name: {key: round(value, 4) for key, value in getattr(model, name).items()} for name in ("order", "confidence")
    }
    rest = {"intercept": round(model.intercept, 4), "cut": model.cut}
    TARGET.write_text(json.dumps({"provenance": provenance, **weights, **rest}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
