"""The plots of a report: each as a drawing in SVG, in words, and in numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from bot.comment.catalogue import count
from bot.comment.svg import bar, curve, dot, line, text
from bot.evaluation.metrics import Bin, Cut, expected_calibration_error, percentile, share_interval
from bot.evaluation.results import Grade

WIDTH, HEIGHT = 360, 236
LEFT, RIGHT, TOP, BOTTOM = 46, 18, 32, 40
_TICK_COUNT = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from 0 to ``end`` > 0, with ``ticks`` as (value, text)."""

    label: str
    end: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """Maps values on two axes to places in a drawing, 360 wide and 236 high."""

    x: Axis
    y: Axis

    def at_x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(value / self.x.end, 1.0)

    def at_y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(value / self.y.end, 1.0)

    def axes(self) -> str:
        """Grid lines at the ticks of y, and numbers and labels at both axes."""
        right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
        parts = [text(LEFT - 30, 13, self.y.label, "label")]
        for value, name in self.y.ticks:
            parts.append(line((LEFT, self.at_y(value)), (right, self.at_y(value)), "grid" if value else "axis"))
            parts.append(text(LEFT - 6, self.at_y(value) + 4, name, "tick end"))
        parts += [text(self.at_x(value), floor + 15, name, "tick middle") for value, name in self.x.ticks]
        parts.append(text(right, floor + 32, self.x.label, "label end"))
        return "".join(parts)


def axis(label: str, highest: float, suffix: str = "", scale: float = 1.0) -> Axis:
    """An axis to a round number, at least ``highest``; its numbers are values times ``scale``, 0 for whole numbers."""
    step = _round_step(max(highest * (scale or 1.0), 1e-9) / _TICK_COUNT)
    step, scale = (step, scale) if scale else (math.ceil(step), 1.0)
    steps = max(1, math.ceil(highest * scale / step - 1e-9))
    ticks = tuple((index * step / scale, number(index * step) + suffix) for index in range(steps + 1))
    return Axis(label, ticks[-1][0], ticks)


def drawing(name: str, parts: Sequence[str], height: int = HEIGHT) -> str:
    """A whole drawing; ``name`` describes it in words."""
    start = f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(name)}">'
    return start + "".join(parts) + "</svg>"


def number(value: float) -> str:
    """At most two decimals, without trailing zeros."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def thin_out(points: Sequence[tuple[float, float]], gap: float = 1.0) -> list[tuple[float, float]]:
    """Drop points less than ``gap`` pixels to the right of the last kept one; keep both ends of the curve."""
    thinned = list(points[:1])
    for point in points[1:-1]:
        if point[0] - thinned[-1][0] >= gap:
            thinned.append(point)
    return [*thinned, *points[1:][-1:]]


def _round_step(step: float) -> float:
    unit = 10.0 ** math.floor(math.log10(step))
    return next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= step * (1 - 1e-9))


RANK_BARS: tuple[tuple[str, int, int], ...] = (
    *(("1", 1, 1), ("2–3", 2, 3), ("4–5", 4, 5), ("6–10", 6, 10), ("11–20", 11, 20)),
    ("> 20", 21, 10**9),
)
"""The bars of the rank plot: name, first and last rank."""

_BAR_COUNT = 14
"""About as many bars as can be told apart on a phone."""

_HEADROOM = 1.1
"""Height of a plot relative to its highest bar, to leave room for the number above it."""

_STRIP_HEIGHT = 46
"""Height of the strip of counts below the calibration plot."""


@dataclass(frozen=True, slots=True)
class Plot:
    """``svg`` is "" where there is nothing to draw; ``words`` describe the drawing, ``rows`` hold its numbers."""

    title: str
    about: str
    words: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def plot_precision(cuts: Sequence[Cut], threshold: float) -> Plot:
    """Precision against coverage at each threshold, with the present one marked."""
    present = _cut_at(cuts, threshold)
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
        "How often a comment shows a thread that people linked, if there were more or fewer comments. A lower bound.",
        words,
        _precision_drawing(cuts, present, threshold, words) if cuts else "",
        ("Threshold", "Issues with a comment", "Comments with a linked thread"),
        tuple(_cut_rows(cuts, threshold)),
    )


def plot_calibration(bins: Sequence[Bin], confidences: Sequence[float]) -> Plot:
    """The share of linked hits against their confidence, and the number of hits by confidence."""
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
    """The number of issues by the rank of their first related thread."""
    counts = {name: sum(1 for rank in ranks if rank and low <= rank <= high) for name, low, high in RANK_BARS}
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
        "Issues that people linked to an older one later, by the rank that the search gave it.",
        words,
        _ranks_drawing(counts, words) if ranks else "",
        ("Rank", "Issues", "Share"),
        tuple((name, f"{issues:,}", percent(issues / len(ranks))) for name, issues in counts.items() if ranks),
    )


def plot_times(times: Sequence[float]) -> Plot:
    """The number of issues by the time that an answer took."""
    half, most = percentile(times, 0.5), percentile(times, 0.95)
    if half is None or most is None:
        return Plot("Time per issue", _TIMES_CAPTION, "No issue was answered.", "", ("Milliseconds", "Issues"), ())
    step = axis("", max(min(max(times), 2 * most), 1e-3) * 5 / _BAR_COUNT).ticks[1][0]
    counts = [0] * max(1, math.ceil(min(max(times), 2 * most) / step - 1e-9))
    for time in times:
        counts[min(int(time / step), len(counts) - 1)] += 1
    has_longer = max(times) > step * len(counts)
    words = f"Half of the issues took at most {milliseconds(half)}, 95 % at most {milliseconds(most)}."
    names = [f"{number(index * step)} to {number((index + 1) * step)}" for index in range(len(counts))]
    names[-1] = f"{number((len(counts) - 1) * step)} and more" if has_longer else names[-1]
    return Plot(
        "Time per issue",
        _TIMES_CAPTION + (" The last bar holds all longer times." if has_longer else ""),
        words,
        _times_drawing(counts, step, (half, most), words),
        ("Milliseconds", "Issues"),
        tuple((name, f"{issues:,}") for name, issues in zip(names, counts, strict=True)),
    )


def grade_bar(counts: Mapping[Grade, int]) -> str:
    """One bar divided among the grades, in their order; "" if there are none. The legend is next to it."""
    total, start, parts = sum(counts.values()), 0.0, []
    for grade in Grade:
        width = 1000 * counts.get(grade, 0) / max(total, 1)
        parts.append(bar(start, 0, (width, 14), f"fill-{grade.value}") if width else "")
        start += width
    opening = '<svg class="shares" viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">'
    return f"{opening}{''.join(parts)}</svg>" if total else ""


def similarity_bar(similarity: float) -> str:
    full = bar(0, 0, (40, 4), "bar-whole") + bar(0, 0, (40 * min(max(similarity, 0.0), 1.0), 4), "bar-part")
    return f'<svg class="similarity" viewBox="0 0 40 4" preserveAspectRatio="none" aria-hidden="true">{full}</svg>'


def percent(share: float | None) -> str:
    """``12.7 %``, with a space that does not break; ``–`` for None."""
    return "–" if share is None else f"{100 * share:.1f}\u00a0%"


def milliseconds(value: float | None) -> str:
    """``13 ms``; ``0.8 ms`` below ten."""
    return "–" if value is None else f"{value:,.0f}\u00a0ms" if value >= 10 else f"{value:.1f}\u00a0ms"


_TIMES_CAPTION = "From the text of an issue to the comment on it, without the network."


def _precision_drawing(cuts: Sequence[Cut], present: Cut | None, threshold: float, words: str) -> str:
    highest = _round_up_to_fifth(max(cut.precision for cut in cuts))
    frame = Frame(_share_axis("Issues with a comment", 1.0), _share_axis("Comments with a linked thread", highest))
    points = [(frame.at_x(cut.coverage), frame.at_y(cut.precision)) for cut in cuts]
    parts = [frame.axes(), curve(thin_out(points), "curve") if len(points) > 1 else dot(*points[0], 3, "dot")]
    if present:
        x, y = frame.at_x(present.coverage), frame.at_y(present.precision)
        parts += [line((x, TOP), (x, HEIGHT - BOTTOM), "guide"), line((LEFT, y), (x, y), "guide"), dot(x, y, 5, "mark")]
        side, gap = ("start", 6) if x < WIDTH * 0.6 else ("end", -6)
        parts.append(text(x + gap, TOP + 12, f"threshold {number(threshold)}", f"note {side}"))
    return drawing(words, parts)


def _cut_at(cuts: Sequence[Cut], threshold: float) -> Cut | None:
    """The cut at this threshold; None if it would have led to no comment."""
    return next((cut for cut in reversed(cuts) if cut.threshold >= threshold), None)


def _cut_rows(cuts: Sequence[Cut], threshold: float) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for level in sorted({*(step / 20 for step in range(4, 20)), threshold}, reverse=True):
        if cut := _cut_at(cuts, level):
            name = number(level) + (" (present)" if level == threshold else "")
            rows.append((name, percent(cut.coverage), percent(cut.precision)))
    return rows


def _calibration_drawing(bins: Sequence[Bin], confidences: Sequence[float], words: str) -> str:
    end = _round_up_to_fifth(max([*confidences, *(group.share for group in bins)]))
    frame = Frame(_share_axis("Confidence", end), _share_axis("Linked later", end))
    parts = [frame.axes(), line((frame.at_x(0), frame.at_y(0)), (frame.at_x(end), frame.at_y(end)), "guide")]
    for group in bins:
        x = frame.at_x(group.confidence)
        low, high = share_interval(round(group.share * group.count), group.count)
        parts += [
            line((x, frame.at_y(low)), (x, frame.at_y(high)), "whisker"),
            dot(x, frame.at_y(group.share), 4, "dot"),
        ]
    return drawing(words, [*parts, *_count_strip(confidences, end)], HEIGHT + _STRIP_HEIGHT)


def _count_strip(confidences: Sequence[float], end: float) -> list[str]:
    counts = [0] * 10
    for confidence in confidences:
        counts[min(9, int(confidence / end * 10))] += 1
    width, floor = (WIDTH - LEFT - RIGHT) / 10, HEIGHT + _STRIP_HEIGHT - 4
    parts = [text(LEFT - 6, floor, "Hits", "tick end")]
    for index, hits in enumerate(counts):
        height, x = 26 * hits / max(counts), LEFT + index * width
        parts.append(bar(x + 1, floor - height, (width - 2, height), "bar-quiet") if hits else "")
        parts.append(text(x + width / 2, floor - height - 4, f"{hits:,}", "tick middle small"))
    return parts


def _ranks_drawing(counts: Mapping[str, int], words: str) -> str:
    slot = (WIDTH - LEFT - RIGHT) / len(counts)
    frame = Frame(Axis("Rank", 1.0, ()), axis("Issues", max(counts.values()) * _HEADROOM, scale=0))
    parts = [frame.axes()]
    for index, (name, issues) in enumerate(counts.items()):
        top, x = frame.at_y(issues), LEFT + index * slot
        style = "bar-quiet" if name == "not found" else "bar-full"
        parts.append(bar(x + 5, top, (slot - 10, HEIGHT - BOTTOM - top), style) if issues else "")
        parts.append(text(x + slot / 2, top - 5, f"{issues:,}", "value middle"))
        parts.append(text(x + slot / 2, HEIGHT - BOTTOM + 15, name, "tick middle small"))
    return drawing(words, parts)


def _times_drawing(counts: Sequence[int], step: float, marks: tuple[float, float], words: str) -> str:
    x_axis = axis("Milliseconds", step * len(counts))
    end = step * len(counts)
    frame = Frame(
        Axis(x_axis.label, end, tuple(tick for tick in x_axis.ticks if tick[0] <= end)),
        axis("Issues", max(counts) * _HEADROOM, scale=0),
    )
    parts = [frame.axes()]
    for index, issues in enumerate(counts):
        left, right, top = frame.at_x(index * step), frame.at_x((index + 1) * step), frame.at_y(issues)
        parts.append(bar(left + 1, top, (right - left - 2, HEIGHT - BOTTOM - top), "bar-full") if issues else "")
    for value, name, y in ((marks[0], "p50", TOP - 4), (marks[1], "p95", TOP + 10)):
        x = frame.at_x(value)
        side, gap = ("start", 5) if x < WIDTH * 0.7 else ("end", -5)
        parts.append(line((x, y - 8), (x, HEIGHT - BOTTOM), "guide strong"))
        parts.append(text(x + gap, y, f"{name} {milliseconds(value)}", f"note {side}"))
    return drawing(words, parts)


def _share_axis(label: str, end: float) -> Axis:
    return axis(label, end, "\u00a0%", 100)


def _round_up_to_fifth(share: float) -> float:
    return min(1.0, max(1, math.ceil(share * 5 - 1e-9)) / 5)
