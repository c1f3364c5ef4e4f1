"""The report of a benchmark: results of one shape, each with its peer, and tables and curves where they say more."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

GROUPS = ("search", "build", "event", "memory", "growth", "quality", "start", "logs", "server", "image")
"""The topics of results, in the order of the page."""

DIGITS = 4


@dataclass(frozen=True, slots=True)
class Spread:
    """``n`` measured values, with their median, their 95th percentile, and the extremes ``least`` and ``most``."""

    n: int
    median: float
    p95: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value. With fewer than 20, ``p95`` is the highest."""
        ordered = sorted(values)
        late = quantiles(ordered, n=20, method="inclusive")[-1] if len(ordered) >= 20 else ordered[-1]
        return cls(len(ordered), *(_short(value) for value in (median(ordered), late, ordered[0], ordered[-1])))


@dataclass(frozen=True, slots=True)
class Peer:
    """What ours is compared with: a library, a tool or a method, measured in the same run on the same machine."""

    name: str
    version: str
    spread: Spread


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit for the ratio or our value: at most ``value``, or at least if higher is better."""

    of: str
    value: float

    def __post_init__(self) -> None:
        if self.of not in ("ratio", "median", "most"):
            raise ValueError(f"a limit is of the ratio, the median or the most, not of {self.of!r}")


@dataclass(frozen=True, slots=True)
class Result:
    """One of our figures. ``name`` is unique; without a peer there is no ratio, without a limit no verdict."""

    name: str
    group: str
    what: str
    unit: str
    ours: Spread
    peer: Peer | None = None
    limit: Limit | None = None
    higher_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """Our median as a multiple of the peer's."""
        return _short(self.ours.median / self.peer.spread.median) if self.peer and self.peer.spread.median else None

    @property
    def is_within(self) -> bool | None:
        """Whether the limit is kept; None without a limit."""
        if self.limit is None:
            return None
        reached = {"ratio": self.ratio, "median": self.ours.median, "most": self.ours.most}[self.limit.of]
        if reached is None:
            return None
        return reached >= self.limit.value if self.higher_is_better else reached <= self.limit.value

    @property
    def is_better(self) -> bool | None:
        """Whether ours is at least as good as the peer; None without a peer."""
        if self.ratio is None:
            return None
        return self.ratio >= 1 if self.higher_is_better else self.ratio <= 1

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "is_within": self.is_within}

    @classmethod
    def of_json(cls, saved: Mapping[str, Any]) -> Result:
        """Raises KeyError, TypeError or ValueError if it is no result."""
        fields = {name: value for name, value in saved.items() if name not in ("ratio", "is_within")}
        peer, limit = fields.pop("peer"), fields.pop("limit")
        if fields["group"] not in GROUPS:
            raise ValueError(f"no such group: {fields['group']!r}")
        return cls(
            ours=Spread(**fields.pop("ours")),
            peer=peer and Peer(peer["name"], peer["version"], Spread(**peer["spread"])),
            limit=limit and Limit(**limit),
            **fields,
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that belong together, where a single figure would be a selection."""

    group: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """How something of ours or of a peer grew: points from left to right."""

    group: str
    name: str
    x: str
    y: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a benchmark measured, and the ``data`` it used."""

    data: str
    results: tuple[Result, ...]
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "data": self.data,
            "results": [result.as_json() for result in self.results],
            "tables": [asdict(table) for table in self.tables],
            "curves": [asdict(curve) for curve in self.curves],
        }

    @classmethod
    def of_json(cls, saved: Mapping[str, Any]) -> Report:
        """Raises KeyError, TypeError or ValueError if it is no report."""
        tables = (
            Table(**(entry | {"head": tuple(entry["head"]), "rows": tuple(map(tuple, entry["rows"]))}))
            for entry in saved["tables"]
        )
        curves = (Curve(**(entry | {"points": tuple(map(_pair, entry["points"]))})) for entry in saved["curves"])
        return cls(str(saved["data"]), tuple(map(Result.of_json, saved["results"])), tuple(tables), tuple(curves))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.as_json(), indent=1) + "\n", encoding="utf-8")

    def as_text(self) -> str:
        """The results as a table for a terminal."""
        return table_of(self.results)


def report_main(text: str | None, measured: Callable[..., Report], **numbers: int) -> int:
    """The command line of a benchmark: measures with ``numbers``, each an option, and prints or writes the report."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--json", type=Path)
    options = vars(parser.parse_args())
    path = options.pop("json")
    report = measured(*options.values())
    print(report.as_text())
    if path:
        report.write(path)
    return 0


def results_of(saved: Mapping[str, Any], chosen: Iterable[str] | None = None) -> list[Result]:
    """The saved results in the order of their groups: all, or only those of some benchmarks."""
    names = set(saved["benches"] if chosen is None else chosen)
    results = [
        Result.of_json(result)
        for name, entry in saved["benches"].items()
        if name in names
        for result in entry.get("results", ())
    ]
    return sorted(results, key=lambda result: GROUPS.index(result.group))


def table_of(results: Sequence[Result]) -> str:
    """One line for each result: ours, the peer, the ratio, the limit and whether it is kept."""
    head = ("", "ours", "p95", "peer", "", "ratio", "limit", "")
    rows = [head, *(cells(result) for result in results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = (0, 4, 7)
    lines = (
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def cells(result: Result) -> tuple[str, ...]:
    """The cells: title, our median, our 95th percentile, the peer's median, the peer, ratio, limit, verdict."""
    ours, peer = result.ours, result.peer
    return (
        f"{result.what}, {result.unit}" if result.unit else result.what,
        shown(ours.median),
        shown(ours.p95) if ours.n > 1 and ours.least < ours.most else "",
        shown(peer.spread.median) if peer else "",
        f"{peer.name} {peer.version}".strip() if peer else "no peer",
        "" if result.ratio is None else shown(result.ratio),
        limit_of(result),
        {None: "", True: "within", False: "OVER"}[result.is_within],
    )


def limit_of(result: Result) -> str:
    """The limit in words; "" without a limit."""
    if result.limit is None:
        return ""
    words = "≥" if result.higher_is_better else "≤"
    suffix = {"ratio": " ×", "median": "", "most": " at most"}[result.limit.of]
    return f"{words} {shown(result.limit.value)}{suffix}"


def shown(value: float) -> str:
    """Three significant digits, never with an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.5f}".rstrip("0")


def single(value: float, n: int = 1) -> Spread:
    """A single value as a spread: a size, or a mean over ``n``."""
    short = _short(value)
    return Spread(n, short, short, short, short)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _pair(point: Sequence[float]) -> tuple[float, float]:
    x, y = point
    return float(x), float(y)
