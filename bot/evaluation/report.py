"""Renders a replay as one self-contained HTML file: the figures, the plots, and every comment it would have written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping

from bot.comment.catalogue import count, day
from bot.comment.render import render_page
from bot.domain.thread import ThreadId
from bot.evaluation import plots
from bot.evaluation.calibrate import LEAST_SPOKEN
from bot.evaluation.metrics import calibration_bins, hits_of, precision_coverage, share_interval, summary
from bot.evaluation.plots import Plot, milliseconds, number, percent
from bot.evaluation.results import Backtest, Grade, Replayed, ShownThread

GRADES = {
    Grade.SUCCESS: ("Duplicate shown", "people later marked the issue as a duplicate of a thread that was shown"),
    Grade.ASSIST: ("Related shown", "people later linked a thread that was shown in another way"),
    Grade.NOISE: (
        "Shown, not linked by anyone",
        "nobody linked what was shown, which is not to say that it is unrelated",
    ),
    Grade.MISSED: ("Missed", "nothing was shown, and people linked an older thread later"),
    Grade.QUIET: ("Quiet", "nothing was shown, and nobody linked anything"),
}
"""The name of each grade on the page, and its meaning."""

NOTE = (
    "Read every precision here as a lower bound. A thread counts as related only where people of this repository "
    "linked it later, and mostly nobody does. So “not linked by anyone” does not mean wrong: what is really related is "
    "told by reading some of it, and by nothing else."
)

LABELLED = ("precision", "rr@1", "rr@10", "mrr", "auc", "ece")
"""Figures that are shares of what people linked."""

TOO_FEW = "too few to tell"
"""Replaces a share of fewer than LEAST_SPOKEN cases, which would depend more on chance than on the repository."""

_LONGEST = 300
_UNSEEN = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), "\ufffd")


def render_report(backtest: Backtest) -> str:
    """The report as HTML in valid Unicode that loads nothing; the same replay gives the same bytes.

    The texts of threads are escaped; control characters become U+FFFD.
    """
    figures, counts = summary(backtest), Counter(one.grade for one in backtest.replayed)
    page = render_page(
        "report.html.j2",
        {
            "repo": backtest.repo,
            "subtitle": _subtitle(backtest),
            "sentences": _sentences(backtest, figures),
            "note": NOTE,
            "tiles": _tiles(figures),
            "grade_bar": plots.grade_bar(counts),
            "grades": [
                {"key": grade.value, "name": name, "about": about, "count": counts[grade]}
                for grade, (name, about) in GRADES.items()
            ],
            "plots": _plots(backtest),
            "figures": list(_rows(figures)),
            "entries": [_entry(one) for one in reversed(backtest.replayed)],
            "commented": figures["commented"],
        },
    )
    return valid_text(page)


def valid_text(page: str) -> str:
    """The page without control characters and half characters."""
    return page.translate(_UNSEEN).encode("utf-8", "replace").decode()


def in_words(backtest: Backtest) -> str:
    return " ".join(_sentences(backtest, summary(backtest)))


def _subtitle(backtest: Backtest) -> str:
    known = f"a memory of {count(backtest.threads, 'thread')}, shown from a similarity of {number(backtest.threshold)}"
    if not backtest.replayed:
        return f"Nothing was replayed against {known}."
    first, last = (day(backtest.replayed[place].created_at) for place in (0, -1))
    days = first if first == last else f"{first} to {last}"
    return (
        f"{count(len(backtest.replayed), 'issue')} of {days}, each against what was known when it was opened: {known}."
    )


def _sentences(backtest: Backtest, figures: Mapping[str, object]) -> list[str]:
    asked, spoke = len(backtest.replayed), _whole(figures["commented"])
    if not asked:
        return ["There is no issue to replay yet. Once issues are in the memory, run the backtest again."]
    share = percent(_share(figures["commented_share"]))
    said = [f"Of the {asked:,} newest issues, it would have shown similar ones on {spoke:,} ({share})."]
    if asked == 1:
        said = [f"On the newest issue, it would have shown {'similar ones' if spoke else 'nothing similar'}."]
    if spoke:
        said.append(_what_was_linked(spoke, _right(figures)))
    if pointed := sum(1 for one in backtest.replayed if one.mentions and one.markdown and not one.shown):
        others = f"On {count(pointed, 'other issue')}, it" if asked > 1 else "It"
        said.append(f"{others} would have shown only what the text itself mentions.")
    if linked := _whole(figures["with_relations"]):
        first, ten = (_part(_share(figures[name]), linked) for name in ("rr@1", "rr@10"))
        said.append(
            f"Of the {count(linked, 'issue')} that people linked to an older one, the search put the right thread "
            f"first for {first}, and among the first ten for {ten}."
        )
    if spoke < LEAST_SPOKEN or linked < LEAST_SPOKEN:
        said.append("That is too little to tell how good it is in this repository.")
    if asked < backtest.wanted:
        said.append(f"Time ran out after {asked:,} of {backtest.wanted:,} issues.")
    return said


def _what_was_linked(spoke: int, right: int) -> str:
    if spoke == 1:
        return f"{'People' if right else 'Nobody'} linked a thread that it showed to the issue later."
    share = f" ({percent(right / spoke)})" if spoke >= LEAST_SPOKEN else ""
    whole = f"{right:,} of these comments{share} there is" if right else "none of these comments is"
    return f"In {whole} a thread that people linked to the issue themselves, later."


def _part(share: float | None, whole: int) -> str:
    """A share as a percentage, or as a number where there are few."""
    return percent(share) if whole >= LEAST_SPOKEN else f"{round((share or 0.0) * whole):,}"


def _tiles(figures: Mapping[str, object]) -> list[dict[str, str]]:
    asked, spoke, right = _whole(figures["n"]), _whole(figures["commented"]), _right(figures)
    linked = f"of {count(_whole(figures['with_relations']), 'linked issue')}"
    right_of = f"{right:,} of {count(spoke, 'comment')}; {_between(*share_interval(right, spoke))}" if spoke else ""
    has_enough = {"precision": spoke >= LEAST_SPOKEN}
    tells = {name for name in LABELLED if has_enough.get(name, _whole(figures["with_relations"]) >= LEAST_SPOKEN)}
    said_few = f"{right:,} of {count(spoke, 'comment')}; {TOO_FEW}" if spoke else "no comment"
    figures = {**figures, **{name: None for name in LABELLED if name not in tells}}
    tiles = [
        ("Similar ones shown", percent(_share(figures["commented_share"])), f"{spoke:,} of {count(asked, 'issue')}"),
        ("Precision", percent(_share(figures["precision"])), right_of if "precision" in tells else said_few),
        ("Right thread first", percent(_share(figures["rr@1"])), _ends(figures, "rr@1", linked, tells)),
        ("Among the first ten", percent(_share(figures["rr@10"])), _ends(figures, "rr@10", linked, tells)),
        ("MRR", _decimal(figures["mrr"], 3), "mean of 1/rank; 1 is best" if "mrr" in tells else TOO_FEW),
        ("AUC of confidence", _decimal(figures["auc"], 3), "0.5 is chance, 1 is best" if "auc" in tells else TOO_FEW),
        ("Calibration error", percent(_share(figures["ece"])), "0 is best" if "ece" in tells else TOO_FEW),
        (
            "Time per issue",
            milliseconds(_share(figures["ms_p50"])),
            f"95\u00a0%: {milliseconds(_share(figures['ms_p95']))}",
        ),
    ]
    return [{"name": name, "value": value, "about": about} for name, value, about in tiles]


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


def _rows(figures: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Every figure by its name in the JSON, nested ones as ``outer.inner``."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{prefix}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"{prefix}{name}", text if value is not None else "–"


def _entry(one: Replayed) -> dict[str, object]:
    name, _ = GRADES[one.grade]
    return {
        "id": _name(one.id),
        "title": _cut(one.title) or "(no title)",
        "day": day(one.created_at),
        "iso": one.created_at.date().isoformat(),
        "grade": one.grade.value,
        "grade_name": name,
        "linked": _linked(one),
        "mentions": f"Its text mentions {count(one.mentions, 'thread')}." if one.mentions else "",
        "shown": [_hit(hit) for hit in one.shown],
        "held": [_hit(hit) for hit in one.hits if not hit.is_shown],
        "markdown": one.markdown,
    }


def _hit(hit: ShownThread) -> dict[str, object]:
    return {
        "id": _name(hit.id),
        "title": _cut(hit.title) or "(no title)",
        "state": "open then" if hit.is_open else "closed then",
        "similarity": f"{hit.similarity:.2f}",
        "bar": plots.similarity_bar(hit.similarity),
        "confidence": percent(hit.confidence),
        "related": hit.related,
        "why": [_cut(reason) for reason in hit.why],
    }


def _linked(one: Replayed) -> str:
    """The threads that people linked, and the rank that the search gave them; "" where there are none."""
    marked = [f"{_name(key)} (duplicate)" for key in sorted(one.relations.duplicates, key=str)]
    names = [*marked, *(_name(key) for key in sorted(one.relations.others, key=str))]
    if not names:
        return ""
    place = f"rank {one.rank:,}" if one.rank else "not found by the search"
    return f"{', '.join(names[:10])}{' …' if len(names) > 10 else ''} · {place}"


def _name(key: ThreadId) -> str:
    return f"#{key}" if isinstance(key, int) else _cut(key)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _right(figures: Mapping[str, object]) -> int:
    grades = figures["grades"]
    assert isinstance(grades, dict)
    return _whole(grades[Grade.SUCCESS.value]) + _whole(grades[Grade.ASSIST.value])


def _ends(figures: Mapping[str, object], name: str, about: str, tells: Container[str]) -> str:
    if name not in tells:
        return f"{about}; {TOO_FEW}"
    ends = figures["interval"]
    assert isinstance(ends, dict)
    return f"{about}; {_between(*ends[name])}" if name in ends else about


def _between(low: float, high: float) -> str:
    return f"95\u00a0%\u00a0interval {100 * low:.0f}–{100 * high:.0f}\u00a0%"


def _decimal(value: object, digits: int) -> str:
    return f"{value:.{digits}f}" if isinstance(value, float) else "–"


def _share(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value
