"""Figures → plots: each a drawing in SVG, the same in words, and the same in numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.comment.wording import count
from bot.evaluation.drawing import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Frame,
    axis,
    bar,
    count_axis,
    curve,
    dot,
    drawing,
    line,
    number,
    text,
    thinned,
)
from bot.evaluation.metrics import Bin, Cut, expected_calibration_error, percentile, share_interval
from bot.evaluation.results import Grade

RANKS: tuple[tuple[str, int, int], ...] = (
    *(("1", 1, 1), ("2–3", 2, 3), ("4–5", 4, 5), ("6–10", 6, 10), ("11–20", 11, 20)),
    ("> 20", 21, 10**9),
)
"""The bars of the ranks: name, first and last rank."""

_BARS = 14
"""About as many bars of times as can be told apart on a phone."""

_HEADROOM = 1.1
"""How much higher than its highest bar a plot is, so that there is room for what is written above."""

_STRIP = 46
"""Height of the strip of counts below the calibration."""


@dataclass(frozen=True, slots=True)
class Plot:
    """``svg`` is "" where there is nothing to draw. ``words``: what can be seen in it; ``rows``: its numbers."""

    title: str
    about: str
    words: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def plot_precision(cuts: Sequence[Cut], threshold: float) -> Plot:
    """Precision against coverage for each threshold, with the present one marked."""
    present = _at(cuts, threshold)
    words = "No threshold would have led to a comment."
    if cuts:
        widest = cuts[-1]
        words = (
            f"At the lowest threshold {percent(widest.coverage)} of the issues get a comment and "
            f"{percent(widest.precision)} of the comments have a linked thread."
        )
    if present:
        words += (
            f" At {number(threshold)}, the present threshold, it is {percent(present.coverage)} and "
            f"{percent(present.precision)}."
        )
    return Plot(
        "Precision against coverage",
        "How often a comment shows a thread that people linked, if it spoke more or less often. A lower bound.",
        words,
        _precision_drawing(cuts, present, threshold, words) if cuts else "",
        ("Threshold", "Issues with a comment", "Comments with a linked thread"),
        tuple(_cut_rows(cuts, threshold)),
    )


def plot_calibration(bins: Sequence[Bin], confidences: Sequence[float]) -> Plot:
    """What was linked against what confidence promised, and how many hits have which confidence."""
    error = expected_calibration_error(bins)
    words = "There were no hits."
    if error is not None:
        words = (
            f"{count(len(confidences), 'hit')} in {count(len(bins), 'group')} of about the same size. Confidence is "
            f"off by {percent(error)} on average; it is right where a point lies on the diagonal."
        )
    return Plot(
        "Calibration",
        "Of the hits with 30 % confidence, 30 % should have been linked. Bars: 95 % intervals; below: number of hits.",
        words,
        _calibration_drawing(bins, confidences, words) if bins else "",
        ("Mean confidence", "Linked later", "Hits"),
        tuple((percent(one.confidence), percent(one.share), f"{one.count:,}") for one in bins),
    )


def plot_ranks(ranks: Sequence[int | None]) -> Plot:
    """How many issues have their first related thread at which ranks."""
    counts = {name: sum(1 for rank in ranks if rank and low <= rank <= high) for name, low, high in RANKS}
    counts["not found"] = sum(1 for rank in ranks if not rank)
    words = "No issue was linked to an older one."
    if ranks:
        top = sum(1 for rank in ranks if rank and rank <= 10)
        words = (
            f"{count(len(ranks), 'issue')} with a linked thread: it is at rank 1 for {counts['1']:,}, among the first "
            f"ten for {top:,}, and not among the candidates for {counts['not found']:,}."
        )
    return Plot(
        "Rank of the first linked thread",
        "Issues that people linked to an older one later, by the place at which the search had put it.",
        words,
        _ranks_drawing(counts, words) if ranks else "",
        ("Rank", "Issues", "Share"),
        tuple((name, f"{found:,}", percent(found / len(ranks))) for name, found in counts.items() if ranks),
    )


def plot_times(times: Sequence[float]) -> Plot:
    """How many issues were answered in which time."""
    half, most = percentile(times, 0.5), percentile(times, 0.95)
    if half is None or most is None:
        return Plot("Time per issue", _TIMES, "No issue was answered.", "", ("Milliseconds", "Issues"), ())
    step = axis("", max(min(max(times), 2 * most), 1e-3) * 5 / _BARS).ticks[1][0]
    counts = [0] * max(1, math.ceil(min(max(times), 2 * most) / step - 1e-9))
    for time in times:
        counts[min(int(time / step), len(counts) - 1)] += 1
    beyond = max(times) > step * len(counts)
    words = f"Half of the issues took at most {milliseconds(half)}, 95 % at most {milliseconds(most)}."
    names = [f"{number(place * step)} to {number((place + 1) * step)}" for place in range(len(counts))]
    names[-1] = f"{number((len(counts) - 1) * step)} and more" if beyond else names[-1]
    return Plot(
        "Time per issue",
        _TIMES + (" The last bar holds all longer times." if beyond else ""),
        words,
        _times_drawing(counts, step, (half, most), words),
        ("Milliseconds", "Issues"),
        tuple((name, f"{found:,}") for name, found in zip(names, counts, strict=True)),
    )


def grade_bar(counts: Mapping[Grade, int]) -> str:
    """One bar that the grades share, in their order; "" where there is nothing to share. The legend is beside it."""
    whole, start, parts = sum(counts.values()), 0.0, []
    for grade in Grade:
        width = 1000 * counts.get(grade, 0) / max(whole, 1)
        parts.append(bar(start, 0, (width, 14), f"fill-{grade.value}") if width else "")
        start += width
    opening = '<svg class="shares" viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">'
    return f"{opening}{''.join(parts)}</svg>" if whole else ""


def similarity_bar(similarity: float) -> str:
    """A short bar beside the number that says the same."""
    full = bar(0, 0, (40, 4), "bar-whole") + bar(0, 0, (40 * min(max(similarity, 0.0), 1.0), 4), "bar-part")
    return f'<svg class="similarity" viewBox="0 0 40 4" preserveAspectRatio="none" aria-hidden="true">{full}</svg>'


def percent(share: float | None) -> str:
    """``12.7 %``, with a space that does not break; ``–`` for None."""
    return "–" if share is None else f"{100 * share:.1f}\u00a0%"


def milliseconds(value: float | None) -> str:
    """``13 ms``; ``0.8 ms`` below ten."""
    return "–" if value is None else f"{value:,.0f}\u00a0ms" if value >= 10 else f"{value:.1f}\u00a0ms"


_TIMES = "From the text of an issue to the comment on it, without the network."


def _precision_drawing(cuts: Sequence[Cut], present: Cut | None, threshold: float, words: str) -> str:
    highest = _full_fifth(max(cut.precision for cut in cuts))
    frame = Frame(_shares("Issues with a comment", 1.0), _shares("Comments with a linked thread", highest))
    points = [(frame.at_x(cut.coverage), frame.at_y(cut.precision)) for cut in cuts]
    parts = [frame.axes(), curve(thinned(points), "curve") if len(points) > 1 else dot(*points[0], 3, "dot")]
    if present:
        x, y = frame.at_x(present.coverage), frame.at_y(present.precision)
        parts += [line((x, TOP), (x, HEIGHT - BOTTOM), "guide"), line((LEFT, y), (x, y), "guide"), dot(x, y, 5, "mark")]
        side, gap = ("start", 6) if x < WIDTH * 0.6 else ("end", -6)
        parts.append(text(x + gap, TOP + 12, f"threshold {number(threshold)}", f"note {side}"))
    return drawing(words, parts)


def _at(cuts: Sequence[Cut], threshold: float) -> Cut | None:
    """What this threshold would have done; None where it would have led to no comment."""
    return next((cut for cut in reversed(cuts) if cut.threshold >= threshold), None)


def _cut_rows(cuts: Sequence[Cut], threshold: float) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for wanted in sorted({*(place / 20 for place in range(4, 20)), threshold}, reverse=True):
        if reached := _at(cuts, wanted):
            name = number(wanted) + (" (present)" if wanted == threshold else "")
            rows.append((name, percent(reached.coverage), percent(reached.precision)))
    return rows


def _calibration_drawing(bins: Sequence[Bin], confidences: Sequence[float], words: str) -> str:
    end = _full_fifth(max([*confidences, *(one.share for one in bins)]))
    frame = Frame(_shares("Confidence", end), _shares("Linked later", end))
    parts = [frame.axes(), line((frame.at_x(0), frame.at_y(0)), (frame.at_x(end), frame.at_y(end)), "guide")]
    for one in bins:
        x = frame.at_x(one.confidence)
        low, high = share_interval(round(one.share * one.count), one.count)
        parts += [line((x, frame.at_y(low)), (x, frame.at_y(high)), "whisker"), dot(x, frame.at_y(one.share), 4, "dot")]
    return drawing(words, [*parts, *_strip(confidences, end)], HEIGHT + _STRIP)


def _strip(confidences: Sequence[float], end: float) -> list[str]:
    """How many hits are in each tenth of the axis: bars below it, with their numbers."""
    counts = [0] * 10
    for confidence in confidences:
        counts[min(9, int(confidence / end * 10))] += 1
    width, floor = (WIDTH - LEFT - RIGHT) / 10, HEIGHT + _STRIP - 4
    parts = [text(LEFT - 6, floor, "Hits", "tick end")]
    for place, found in enumerate(counts):
        height, x = 26 * found / max(counts), LEFT + place * width
        parts.append(bar(x + 1, floor - height, (width - 2, height), "bar-quiet") if found else "")
        parts.append(text(x + width / 2, floor - height - 4, f"{found:,}", "tick middle small"))
    return parts


def _ranks_drawing(counts: Mapping[str, int], words: str) -> str:
    slot = (WIDTH - LEFT - RIGHT) / len(counts)
    frame = Frame(Axis("Rank", 1.0, ()), count_axis("Issues", max(counts.values()) * _HEADROOM))
    parts = [frame.axes()]
    for place, (name, found) in enumerate(counts.items()):
        top, x = frame.at_y(found), LEFT + place * slot
        style = "bar-quiet" if name == "not found" else "bar-full"
        parts.append(bar(x + 5, top, (slot - 10, HEIGHT - BOTTOM - top), style) if found else "")
        parts.append(text(x + slot / 2, top - 5, f"{found:,}", "value middle"))
        parts.append(text(x + slot / 2, HEIGHT - BOTTOM + 15, name, "tick middle small"))
    return drawing(words, parts)


def _times_drawing(counts: Sequence[int], step: float, marks: tuple[float, float], words: str) -> str:
    along = axis("Milliseconds", step * len(counts))
    end = step * len(counts)
    frame = Frame(
        Axis(along.label, end, tuple(tick for tick in along.ticks if tick[0] <= end)),
        count_axis("Issues", max(counts) * _HEADROOM),
    )
    parts = [frame.axes()]
    for place, found in enumerate(counts):
        left, right, top = frame.at_x(place * step), frame.at_x((place + 1) * step), frame.at_y(found)
        parts.append(bar(left + 1, top, (right - left - 2, HEIGHT - BOTTOM - top), "bar-full") if found else "")
    for value, name, y in ((marks[0], "p50", TOP - 4), (marks[1], "p95", TOP + 10)):
        x = frame.at_x(value)
        side, gap = ("start", 5) if x < WIDTH * 0.7 else ("end", -5)
        parts.append(line((x, TOP - 12), (x, HEIGHT - BOTTOM), "guide strong"))
        parts.append(text(x + gap, y, f"{name} {milliseconds(value)}", f"note {side}"))
    return drawing(words, parts)


def _shares(label: str, end: float) -> Axis:
    return axis(label, end, "\u00a0%", 100)


def _full_fifth(share: float) -> float:
    """Where an axis of shares ends."""
    return min(1.0, max(1, math.ceil(share * 5 - 1e-9)) / 5)
