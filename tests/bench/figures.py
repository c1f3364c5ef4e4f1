"""What a benchmark hands over: results of one shape, each beside its peer; tables and curves where they say more."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

GROUPS = ("search", "build", "event", "memory", "growth", "quality", "start", "logs", "server", "image")
"""What results are about, in the order of the page."""

DIGITS = 4


@dataclass(frozen=True, slots=True)
class Spread:
    """``n`` measured values: half lie below ``median``, 95 of 100 below ``p95``, all from ``least`` to ``most``."""

    n: int
    median: float
    p95: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value. With fewer than 20 the 95th of a hundred is the highest."""
        known = sorted(values)
        late = quantiles(known, n=20, method="inclusive")[-1] if len(known) >= 20 else known[-1]
        return cls(len(known), *(_short(value) for value in (median(known), late, known[0], known[-1])))


@dataclass(frozen=True, slots=True)
class Peer:
    """What ours is set beside: a library, a tool or a method, as it was in the same run of the same machine."""

    name: str
    version: str
    spread: Spread


@dataclass(frozen=True, slots=True)
class Limit:
    """What is demanded: at most ``value`` (at least, where higher is better) of the ``ratio`` or of our ``value``."""

    of: str
    value: float

    def __post_init__(self) -> None:
        if self.of not in ("ratio", "median", "most"):
            raise ValueError(f"a limit is of the ratio, the median or the most, not of {self.of!r}")


@dataclass(frozen=True, slots=True)
class Result:
    """One figure of ours. ``name`` is unique; without a peer there is no ratio, without a limit no verdict."""

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
        """Whether the limit is kept; None where there is none."""
        if self.limit is None:
            return None
        reached = {"ratio": self.ratio, "median": self.ours.median, "most": self.ours.most}[self.limit.of]
        if reached is None:
            return None
        return reached >= self.limit.value if self.higher_is_better else reached <= self.limit.value

    @property
    def is_better(self) -> bool | None:
        """Whether ours beats the peer, or is its equal; None without a peer."""
        if self.ratio is None:
            return None
        return self.ratio >= 1 if self.higher_is_better else self.ratio <= 1

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "is_within": self.is_within}

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> Result:
        """KeyError, TypeError or ValueError when it is no result."""
        given = {name: value for name, value in kept.items() if name not in ("ratio", "is_within")}
        peer, limit = given.pop("peer"), given.pop("limit")
        if given["group"] not in GROUPS:
            raise ValueError(f"no such group: {given['group']!r}")
        return cls(
            ours=Spread(**given.pop("ours")),
            peer=peer and Peer(peer["name"], peer["version"], Spread(**peer["spread"])),
            limit=limit and Limit(**limit),
            **given,
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that belong together, where a figure alone would be a choice among them."""

    group: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """How something grew: points from left to right, of ours or of a peer."""

    group: str
    name: str
    x: str
    y: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All that a benchmark measured. ``data``: of what."""

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
    def of_json(cls, kept: Mapping[str, Any]) -> Report:
        """KeyError, TypeError or ValueError when it is no report."""
        tables = (
            Table(**(one | {"head": tuple(one["head"]), "rows": tuple(map(tuple, one["rows"]))}))
            for one in kept["tables"]
        )
        curves = (Curve(**(one | {"points": tuple(map(_pair, one["points"]))})) for one in kept["curves"])
        return cls(str(kept["data"]), tuple(map(Result.of_json, kept["results"])), tuple(tables), tuple(curves))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.as_json(), indent=1) + "\n", encoding="utf-8")

    def told(self) -> str:
        """The results as a table for a terminal."""
        return table_of(self.results)


def report_main(text: str | None, measured: Callable[..., Report], **numbers: int) -> int:
    """The command line of a benchmark: measures with ``numbers``, each an option, prints the report and keeps it."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--json", type=Path)
    given = vars(parser.parse_args())
    path = given.pop("json")
    report = measured(*given.values())
    print(report.told())
    if path:
        report.write(path)
    return 0


def results_of(kept: Mapping[str, Any], chosen: Iterable[str] | None = None) -> list[Result]:
    """The results that are kept, in the order of their groups: all, or only those of some benchmarks."""
    wanted = set(kept["benches"] if chosen is None else chosen)
    found = [
        Result.of_json(result)
        for name, entry in kept["benches"].items()
        if name in wanted
        for result in entry.get("results", ())
    ]
    return sorted(found, key=lambda result: GROUPS.index(result.group))


def table_of(results: Sequence[Result]) -> str:
    """One line for each: ours, the peer, the ratio, the limit and whether it is kept."""
    head = ("", "ours", "p95", "peer", "", "ratio", "limit", "")
    rows = [head, *(cells(result) for result in results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = (0, 4, 7)
    lines = (
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def cells(result: Result) -> tuple[str, ...]:
    """What, ours, ours at the 95th of a hundred, the peer's, the peer, ratio, limit, verdict."""
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
    """The limit in words; "" where there is none."""
    if result.limit is None:
        return ""
    words = "≥" if result.higher_is_better else "≤"
    suffix = {"ratio": " ×", "median": "", "most": " at most"}[result.limit.of]
    return f"{words} {shown(result.limit.value)}{suffix}"


def shown(value: float) -> str:
    """Three digits that count, and never an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.5f}".rstrip("0")


def one(value: float, n: int = 1) -> Spread:
    """A figure that is not spread: a size, or a mean over ``n``."""
    short = _short(value)
    return Spread(n, short, short, short, short)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _pair(point: Sequence[float]) -> tuple[float, float]:
    x, y = point
    return float(x), float(y)
