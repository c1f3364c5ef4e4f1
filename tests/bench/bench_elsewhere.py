"""How well threads of other repositories are found, and when to be silent: `bot/recall/elsewhere.py`, the whole table.

python -m tests.bench.bench_elsewhere            the table, on what the weights were not fitted to
python -m tests.bench.bench_elsewhere --fit      fit bot/ranking/elsewhere.json anew
python -m tests.bench.bench_elsewhere --pairs FILE   pairs that would be shown, for people to grade

The archives at hand hold no link to each other, so links between repositories are made: the Rust archive is split into
siblings, by label or by number (`tests/bench/elsewhere.py`), and a known duplicate in another sibling is what is to be
found. The query's own repository is left out of the scope, the four other archives are in it. Nothing from after a
query's moment is known, and every reference in titles and texts is masked. The order is fitted to the older half of the
queries, the confidence to graded pairs of one repository each (`tools/graded.py`), seen as the organisation sees them.
False speech: issues of one archive asked over the other archives, none of which is about the same product. The engine
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

from bot.cli.output import progress
from bot.domain.answer import OrganisationKey
from bot.domain.organisation import FoundThread
from bot.domain.thread import Thread
from bot.evaluation.metrics import RankMetrics, auc
from bot.ranking.fit import fit_order, fit_probability, paired_interval
from bot.ranking.weights import RankingWeights, shipped_elsewhere
from bot.reading.digest import digest
from bot.recall.elsewhere import ElsewhereCandidates, RankedElsewhere, judge_elsewhere, rank_elsewhere
from tests.bench.elsewhere import (
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
from tests.fakes.candidates import RememberedCandidates
from tools.graded import Pair, read_pairs

DATA = Path(__file__).resolve().parents[3] / "shared/data"
TARGET = Path(__file__).resolve().parents[2] / "bot/ranking/elsewhere.json"
ORDER = ("text", "open", "age", "closed", "length", "title_found", "title_covered", "title_overlap", "length_ratio")
CONFIDENCE = ("titles", "share", "place", "errors")
SIBLINGS = ("labels", "numbers")
CUT, SHOWN_FROM = 0.65, 0.65
LATEST = datetime(2026, 1, 1, tzinfo=UTC)
CUTS = (0.5, 0.55, 0.6, 0.65, 0.7)
MOST = 2
SAMPLE, PAIRS = 250, 50
SEED = 20_150_125


class Asked(NamedTuple):
    """A question, what our order made of it, and what plain BM25 over all did."""

    thread: Thread
    ours: ElsewhereCandidates
    plain: Sequence[FoundThread]


class Listening(RememberedCandidates):
    """Keeps what it last found."""

    last: Sequence[FoundThread] = ()

    @classmethod
    def to(cls, other: RememberedCandidates) -> Listening:
        found = cls(())
        found.__dict__.update(other.__dict__)
        return found

    def search(self, *args: object, **options: object) -> list[FoundThread]:
        found = super().search(*args, **options)  # type: ignore[arg-type]
        self.last = found
        return found


def ask(org: Organisation, key: OrganisationKey, scope: Iterable[int], model: RankingWeights, late: bool) -> Asked:
    """Ask a thread as it was opened; ``late``: years later, when all others are there."""
    thread = without_references(org.threads[key])
    thread = replace(thread.as_of(thread.created_at), comments=())
    if late:
        thread = replace(thread, created_at=LATEST)
    engine = Listening.to(org.index)
    engine.moment = thread.created_at
    return Asked(thread, rank_elsewhere(thread, engine, set(scope), thread.created_at, model), engine.last)


def places(asked: Asked, relevant: frozenset[OrganisationKey]) -> tuple[int | None, int | None]:
    """The place of the first relevant thread by plain BM25, and by our order."""
    plain = (one.thread.key for one in asked.plain)
    threads = asked.ours.threads
    ours = ({threads[one.entry.id].key, threads[one.found_as].key} for one in asked.ours.ranked.candidates)
    return (
        next((place for place, key in enumerate(plain, 1) if key in relevant), None),
        next((place for place, keys in enumerate(ours, 1) if keys & relevant), None),
    )


def spoken(asked: Asked, model: RankingWeights) -> list[RankedElsewhere]:
    """What would be shown, the surest first."""
    ranked = replace(asked.ours.ranked, model=model)
    judged = judge_elsewhere(asked.thread, replace(asked.ours, ranked=ranked))
    return [one for one in judged if one.why and one.candidate.similarity >= SHOWN_FROM]


@dataclass(frozen=True)
class GradedElsewhere:
    """A graded pair as the organisation sees it; no evidence where nothing would be shown of it."""

    pair: Pair
    evidence: Mapping[str, float]


def graded(org: Organisation, model: RankingWeights) -> Iterator[GradedElsewhere]:
    """All graded pairs, each issue asked over its own archive alone."""
    for pair in read_pairs(DATA / "related.jsonl"):
        name = RUST if pair.archive.startswith(RUST) else pair.archive
        key = org.places[name, pair.id]
        asked = ask(org, key, {key.repository}, model, late=False)
        wanted = f"{key.repository}#{pair.earlier}"
        found = (one for one in judge_elsewhere(asked.thread, asked.ours) if one.why)
        evidence = (
            one.candidate.evidence for one in found if wanted in (one.candidate.entry.id, *one.candidate.folded)
        )
        yield GradedElsewhere(pair, next(evidence, {}))


def fit_confidence(rows: Sequence[GradedElsewhere], model: RankingWeights) -> RankingWeights:
    """The model with the confidence that these grades teach."""
    seen = [one for one in rows if one.evidence]
    labels = [one.pair.is_useful for one in seen]
    weights, intercept = fit_probability([one.evidence for one in seen], labels, CONFIDENCE)
    return replace(model, confidence=weights, intercept=intercept, cut=CUT)


def older_half(org: Organisation) -> list[CrossQuery]:
    queries = list(cross_queries(org))
    return queries[: len(queries) // 2]


def held_out(org: Organisation, others: Iterable[Organisation]) -> list[CrossQuery]:
    """The queries that are in the older half of no split: some of the newer half of one are older ones of another."""
    fitted = {query.key.thread for other in others for query in older_half(other)}
    return [query for query in cross_queries(org) if query.key.thread not in fitted]


def fit(orgs: Mapping[str, Organisation]) -> RankingWeights:
    """The order from the older half of the queries of both splits, the confidence from the graded pairs."""
    model, choices = shipped_elsewhere(), []
    for org in map(orgs.__getitem__, SIBLINGS):
        for query in older_half(org):
            found = ask(org, query.key, org.others(query.key), model, late=False).ours
            right = [found.threads[one.found_as].key in query.relevant for one in found.ranked.candidates]
            choices.append(([one.features for one in found.ranked.candidates], right))
    model = replace(model, order=fit_order(choices, ORDER))
    return fit_confidence(list(graded(orgs["archives"], model)), model)


def report_order(name: str, org: Organisation, queries: Sequence[CrossQuery], model: RankingWeights) -> None:
    """The order of these queries, which the weights have not seen."""
    rows, loud, right = [], 0, 0
    for query in queries:
        asked = ask(org, query.key, org.others(query.key), model, late=False)
        rows.append(places(asked, query.relevant))
        said = spoken(asked, model)[:MOST]
        loud += bool(said)
        right += any(one.thread.key in query.relevant for one in said)
    since = org.threads[queries[0].key].created_at
    print(f"\n{name}: {len(org.repositories)} repositories, {len(queries)} queries from {since:%Y-%m-%d} on")
    for way, ranks in (("plain BM25", [row[0] for row in rows]), ("ours", [row[1] for row in rows])):
        figures = RankMetrics.of(ranks).figures.items()
        print(f"  {way}: " + ", ".join(f"{k} {v.value:.3f} ({v.low:.3f}-{v.high:.3f})" for k, v in figures))
    for what, credit in (("rr@10", lambda r: float(bool(r) and r <= 10)), ("mrr", lambda r: 1 / r if r else 0.0)):
        gain = paired_interval([credit(row[1]) for row in rows], [credit(row[0]) for row in rows], SEED)
        print(f"  gain in {what}: {gain[0]:+.3f} ({gain[1]:+.3f} to {gain[2]:+.3f})")
    found = sum(row[1] is not None for row in rows)
    print(f"  among the candidates: {found}; spoken on {loud}, with the linked one on {right}", flush=True)


def report_grades(rows: Sequence[GradedElsewhere], model: RankingWeights) -> None:
    """How many of the graded pairs are shown from a cut on, by a confidence fitted to the other archives' pairs."""
    names = sorted({one.pair.archive for one in rows})
    models = {name: fit_confidence([one for one in rows if one.pair.archive != name], model) for name in names}
    ways = {
        "each archive left out": [
            models[one.pair.archive].probability(one.evidence) * bool(one.evidence) for one in rows
        ],
        "as shipped (in-sample)": [model.probability(one.evidence) * bool(one.evidence) for one in rows],
    }
    useful = [one.pair.is_useful for one in rows]
    print(f"\n{len(rows)} graded pairs, {sum(useful)} useful, {sum(not one.evidence for one in rows)} never shown")
    for way, confidences in ways.items():
        print(f"  {way}: AUC {auc(useful, confidences):.3f}")
        for cut in CUTS:
            shown = [label for label, confidence in zip(useful, confidences, strict=True) if confidence >= cut]
            print(f"    from {cut:.2f} on: {len(shown)} shown, {sum(shown) / max(1, len(shown)):.2f} of these useful")


def sampled(org: Organisation, names: Iterable[str], count: int = SAMPLE) -> Iterator[OrganisationKey]:
    """Issues of these archives, so many of each, drawn at random."""
    chance = random.Random(SEED)
    for name in names:
        keys = sorted(key for (place, _), key in org.places.items() if place == name)
        yield from chance.sample(keys, min(count, len(keys)))


def report_silence(org: Organisation, model: RankingWeights) -> None:
    """How often issues of one archive would get a thread of another one."""
    print("\nissues of one archive over the others, all of which are there:")
    for name in (RUST, *ARCHIVES):
        keys = list(sampled(org, [name]))
        found = [spoken(ask(org, key, org.others(key), model, late=True), model) for key in keys]
        said = [f"{one.thread.name}#{one.thread.id}" for (one, *_) in filter(None, found)]
        print(f"  {name}: spoken on {len(said)} of {len(keys)} {' '.join(said)}", flush=True)


def report_rate(name: str, org: Organisation, model: RankingWeights) -> None:
    """How often issues of Rust's siblings got something of another sibling when they were opened."""
    keys = list(sampled(org, [RUST]))
    said = sum(bool(spoken(ask(org, key, org.others(key), model, late=False), model)) for key in keys)
    print(f"\n{name}: spoken on {said} of {len(keys)} random issues", flush=True)


def write_pairs(orgs: Mapping[str, Organisation], model: RankingWeights, path: Path) -> None:
    """Pairs that would be shown, in random order, for readers who do not know why. The surest of each issue."""
    rows: dict[str, dict[str, object]] = {}
    for split in ("labels", "numbers", "archives"):
        org, names = orgs[split], ARCHIVES if split == "archives" else (RUST,)
        for key in sampled(org, names, 3 * SAMPLE):
            for one in spoken(ask(org, key, org.others(key), model, late=False), model)[:1]:
                row = row_of_pair(org, key, one)
                rows[str(row["id"])] = row
    found = sorted(rows.values(), key=lambda row: str(row["id"]))
    chosen = random.Random(SEED).sample(found, min(PAIRS, len(found)))
    path.write_text("".join(json.dumps(row) + "\n" for row in chosen), encoding="utf-8")
    print(f"{len(chosen)} of {len(found)} pairs written to {path}")


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
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--fit", action="store_true", help="fit the weights and write them")
    options.add_argument("--pairs", type=Path, metavar="FILE", help="write pairs to be graded")
    chosen = options.parse_args()
    archives = (RUST, *ARCHIVES)
    print(f"links between {len(archives)} archives: {links_between(archives)}", flush=True)
    with progress("Organisations", len(SPLITS)) as tick:
        orgs = {}
        for name, split in SPLITS.items():
            orgs[name] = organisation(archives, split)
            tick(1)
    if chosen.fit:
        write_weights(fit(orgs))
        return
    model = shipped_elsewhere()
    if chosen.pairs:
        write_pairs(orgs, model, chosen.pairs)
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
