"""Renders a replay as one self-contained HTML file: every comment it would have written, the figures and the plots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bot.comment.catalogue import count, day
from bot.comment.clean_text import truncate
from bot.comment.links import CommentLinks
from bot.comment.render import render_page
from bot.comment.shown import LINK_RELATION, shown_html
from bot.domain.thread import ThreadId
from bot.evaluation import plots
from bot.evaluation.calibrate import MIN_COMMENTS
from bot.evaluation.metrics import calibration_bins, hits_of, precision_coverage, share_interval, summary
from bot.evaluation.plots import Plot, milliseconds, number, percent
from bot.evaluation.results import Backtest, Grade, PassedOver, Replayed, ShownThread
from bot.questions.addresses import citation
from bot.ranking.weights import shipped

GRADES = {
    Grade.SUCCESS: ("Duplicate shown", "people later marked the issue as a duplicate of a thread that was shown"),
    Grade.ASSIST: ("Related shown", "people later linked a thread that was shown in another way"),
    Grade.NOISE: (
        "Shown, not linked by anyone",
        "nobody linked what was shown, which is not to say that it is unrelated",
    ),
    Grade.MISSED: ("Missed", "no similar thread was shown, and people linked an older one later"),
    Grade.QUIET: ("Quiet", "no similar thread was shown, and nobody linked anything"),
}
"""The name of each grade on the page, and its meaning."""

MENTIONS_ONLY = "Mentioned issues only"
"""Replaces the name of a grade where the comment is only about what the text mentions."""

PRECISION_NOTE = (
    "A thread counts as related only if people of this repository linked it later, and usually nobody does. So “not "
    "linked by anyone” does not mean wrong: read some of the threads to see which are really related."
)

LOWER_BOUND = "People link few of the related issues, so this is a lower bound."

NOISE_SHARE = 0.5
"""Hits below this part of the threshold are left out, unless people linked them."""

_MAX_LINE_CHARS, _MAX_LINKED = 300, 10


class Tile(NamedTuple):
    """One figure at a glance: its name, its value as shown, and what it counts."""

    name: str
    value: str
    about: str


def render_report(backtest: Backtest) -> str:
    """The report as HTML in valid Unicode that loads nothing; the same replay gives the same bytes.

    The texts of threads are escaped, except comments, which are shown as on GitHub; control characters become U+FFFD.
    """
    links = CommentLinks(backtest.server, backtest.repo, redirect=False)
    figures, counts = summary(backtest), Counter(one.grade for one in backtest.replayed)
    return render_page(
        "report.html.j2",
        {
            "repo": backtest.repo,
            "relation": LINK_RELATION,
            "subtitle": _subtitle(backtest),
            "sentences": _sentences(backtest, figures),
            "note": PRECISION_NOTE,
            "tiles": _tiles(figures),
            "statistics": _statistics(figures),
            "grade_bar": plots.grade_bar(counts),
            "grades": [
                {"key": grade.value, "name": name, "about": about, "count": counts[grade]}
                for grade, (name, about) in GRADES.items()
            ],
            "plots": _plots(backtest),
            "figures": list(_rows(figures | {"evidence": _own_evidence(backtest)})),
            "entries": [_entry(one, links, backtest.threshold) for one in reversed(backtest.replayed)],
            "commented": figures["commented"],
        },
    )


def summary_text(backtest: Backtest) -> str:
    return " ".join(_sentences(backtest, summary(backtest)))


def _subtitle(backtest: Backtest) -> str:
    threshold = number(backtest.threshold)
    memory = f"a memory of {count(backtest.threads, 'thread')}, with a similarity threshold of {threshold}"
    if not backtest.replayed:
        return f"Nothing was replayed against {memory}."
    first, last = (day(backtest.replayed[index].created_at) for index in (0, -1))
    days = first if first == last else f"{first} to {last}"
    issues = count(len(backtest.replayed), "issue")
    compared = "by words and by meaning" if backtest.by_meaning else "by words only, without a text model"
    sentence = f"{issues} from {days}, each against what was known when it was opened: {memory}."
    return f"{sentence} Issues were compared {compared}."


def _sentences(backtest: Backtest, figures: Mapping[str, Any]) -> list[str]:
    total, commented, similar = (figures[name] for name in ("n", "commented", "similar"))
    if not total and backtest.wanted:
        return [f"Time ran out before the first of {count(backtest.wanted, 'issue')} was replayed."]
    if not total:
        return ["There is no issue to replay yet. Once issues are in the memory, run the backtest again."]
    sentences = [_comment_sentence(total, commented, similar)]
    if similar:
        sentences.append(_linked_sentence(similar, _linked_count(figures)))
    if linked := figures["with_relations"]:
        first, first_ten = (_share_text(figures[name], linked) for name in ("rr@1", "rr@10"))
        sentences.append(
            f"Of the {count(linked, 'issue')} that people linked to an older one, the search put the right thread "
            f"first for {first}, and among the first ten for {first_ten}."
        )
    if similar < MIN_COMMENTS or linked < MIN_COMMENTS:
        sentences.append("That is too little to tell how good it is in this repository.")
    if total < backtest.wanted:
        sentences.append(f"Time ran out after {total:,} of {backtest.wanted:,} issues.")
    return sentences


def _comment_sentence(total: int, commented: int, similar: int) -> str:
    if total == 1:
        how = f"with {'similar issues' if similar else 'the issues that its text mentions'}" if commented else "no"
        return f"On the newest issue, it would have {f'commented {how}' if commented else 'said nothing'}."
    sentence = f"It would have commented on {commented:,} of the {total:,} newest issues ({percent(commented / total)})"
    if mentioning := commented - similar:
        return f"{sentence}: on {similar:,} with similar issues, on {mentioning:,} only about issues that they mention."
    return f"{sentence}."


def _linked_sentence(similar: int, linked: int) -> str:
    if similar == 1:
        return f"{'People' if linked else 'Nobody'} linked a thread that it showed to the issue later. {LOWER_BOUND}"
    share = f" ({percent(linked / similar)})" if similar >= MIN_COMMENTS else ""
    subject = f"{linked:,} of the {similar:,} with similar issues{share}" if linked else "None of them"
    if linked == similar:
        subject = f"All {similar:,} with similar issues"
    verb = "show" if linked > 1 else "shows"
    return f"{subject} {verb} a thread that people later linked to the issue themselves. {LOWER_BOUND}"


def _share_text(share: float | None, total: int) -> str:
    """A share as a percentage, or as a count if there are few cases."""
    return percent(share) if total >= MIN_COMMENTS else f"{round((share or 0.0) * total):,}"


def _tiles(figures: Mapping[str, Any]) -> list[Tile]:
    """How often it speaks, for the top of the page."""
    total = count(figures["n"], "issue")
    tiles = [
        _share_tile("Comments", figures["commented_share"], f"{figures['commented']:,} of {total}"),
        _share_tile("Similar issues shown", figures["similar_share"], f"on {figures['similar']:,} of {total}"),
    ]
    return [tile for tile in tiles if tile]


def _statistics(figures: Mapping[str, Any]) -> list[Tile]:
    """The figures that this many labels support; a figure of fewer than MIN_COMMENTS cases has no tile."""
    similar, with_link, linked = figures["similar"], _linked_count(figures), figures["with_relations"]
    tiles: list[Tile | None] = []
    if similar >= MIN_COMMENTS:
        interval = _interval(*share_interval(with_link, similar))
        about = f"{with_link:,} of {count(similar, 'comment')} with similar issues; {interval}"
        tiles.append(_share_tile("Precision", figures["precision"], about))
    if linked >= MIN_COMMENTS:
        about = f"of {count(linked, 'linked issue')}"
        tiles += [
            _share_tile("Right thread first", figures["rr@1"], _with_interval(figures, "rr@1", about)),
            _share_tile("Among the first ten", figures["rr@10"], _with_interval(figures, "rr@10", about)),
            _decimal_tile("MRR", figures["mrr"], "mean of 1/rank; 1 is best"),
            _decimal_tile("AUC of confidence", figures["auc"], "0.5 is chance, 1 is best"),
            _share_tile("Calibration error", figures["ece"], "0 is best"),
        ]
    if (typical := figures["ms_p50"]) is not None:
        slow = milliseconds(figures["ms_p95"])
        tiles.append(Tile("Time per issue", milliseconds(typical), f"95\u00a0%: {slow}"))
    return [tile for tile in tiles if tile]


def _share_tile(name: str, value: float | None, about: str) -> Tile | None:
    return None if value is None else Tile(name, percent(value), about)


def _decimal_tile(name: str, value: float | None, about: str) -> Tile | None:
    return None if value is None else Tile(name, f"{value:.3f}", about)


def _plots(backtest: Backtest) -> list[Plot]:
    hits = hits_of(backtest.replayed)
    confidences = [hit.confidence for hit in hits]
    bins = calibration_bins(confidences, [hit.related for hit in hits])
    return [
        plots.plot_precision(precision_coverage(backtest.replayed), backtest.threshold),
        plots.plot_calibration(bins, confidences),
        plots.plot_ranks([one.rank for one in backtest.replayed if one.relations.all]),
        plots.plot_times([one.ms for one in backtest.replayed]),
    ]


def _rows(figures: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Every figure by its name in the JSON, nested ones as ``outer.inner``."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{prefix}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"{prefix}{name}", text if value is not None else "–"


def _own_evidence(backtest: Backtest) -> Mapping[str, object]:
    """What was learned from this repository; the data of other archives say nothing about it."""
    others = shipped().provenance
    return {name: value for name, value in backtest.evidence.items() if others.get(name) != value}


def _entry(replayed: Replayed, links: CommentLinks, threshold: float) -> dict[str, object]:
    name, _ = GRADES[replayed.grade]
    is_about_mentions = replayed.has_comment and not replayed.shown
    held = [hit for hit in replayed.hits if not hit.is_shown]
    near = [hit for hit in held if hit.related or hit.similarity >= NOISE_SHARE * threshold]
    passed_over = [_passed_over(replayed.passed_over, links)] if replayed.passed_over else []
    return {
        **_reference(replayed.id, links),
        "title": truncate(replayed.title, _MAX_LINE_CHARS) or "(no title)",
        "day": day(replayed.created_at),
        "iso": replayed.created_at.date().isoformat(),
        "grade": replayed.grade.value,
        "grade_name": MENTIONS_ONLY if is_about_mentions else name,
        "has_comment": replayed.has_comment,
        "linked": _linked(replayed, links),
        "found_at": f"rank {replayed.rank:,} of the search" if replayed.rank else "not found by the search",
        "mentions": f"Its text mentions {count(replayed.mentions, 'thread')}." if replayed.mentions else "",
        "shown": [_hit(hit, links) for hit in replayed.shown],
        "held": [*passed_over, *(_hit(hit, links) for hit in near)],
        "comment": shown_html(replayed.markdown),
    }


def _hit(hit: ShownThread, links: CommentLinks) -> dict[str, object]:
    return {
        **_found(hit, hit.similarity, links),
        "related": hit.related,
        "why": [truncate(reason, _MAX_LINE_CHARS) for reason in hit.why],
    }


def _passed_over(thread: PassedOver, links: CommentLinks) -> dict[str, object]:
    return {**_found(thread, thread.similarity, links), "related": True, "why": [thread.reason]}


def _found(thread: ShownThread | PassedOver, similarity: float | None, links: CommentLinks) -> dict[str, object]:
    return {
        **_reference(thread.id, links),
        "title": truncate(thread.title, _MAX_LINE_CHARS) or "(no title)",
        "state": "open then" if thread.is_open else "closed then",
        "similarity": "–" if similarity is None else f"{similarity:.2f}",
        "bar": "" if similarity is None else plots.similarity_bar(similarity),
    }


def _linked(replayed: Replayed, links: CommentLinks) -> list[dict[str, str]]:
    """The threads that people linked, duplicates first."""
    duplicates, others = (sorted(keys, key=str) for keys in (replayed.relations.duplicates, replayed.relations.others))
    threads = [_reference(key, links) | {"note": " (duplicate)"} for key in duplicates]
    threads += [_reference(key, links) | {"note": ""} for key in others]
    return threads[:_MAX_LINKED] + [{"id": "…", "url": "", "note": ""}] * (len(threads) > _MAX_LINKED)


def _reference(key: ThreadId, links: CommentLinks) -> dict[str, str]:
    """How the page cites a thread, and its address, "" if unknown."""
    return {"id": _display_name(key), "url": links.thread(key)}


def _display_name(key: ThreadId) -> str:
    return truncate(citation(key), _MAX_LINE_CHARS)


def _linked_count(figures: Mapping[str, Any]) -> int:
    grades: Mapping[str, int] = figures["grades"]
    return grades[Grade.SUCCESS.value] + grades[Grade.ASSIST.value]


def _with_interval(figures: Mapping[str, Any], name: str, about: str) -> str:
    ends = figures["interval"]
    return f"{about}; {_interval(*ends[name])}" if name in ends else about


def _interval(low: float, high: float) -> str:
    return f"95\u00a0%\u00a0interval {100 * low:.0f}–{100 * high:.0f}\u00a0%"
