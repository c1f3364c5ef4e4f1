"""The tables of docs/benchmarks.md, written between two comments from what is kept in docs/benchmarks.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.bench.figures import GROUPS, Result, cells, results_of, shown
from tests.bench.machine import Machine

BEGIN, END = "<!-- results -->", "<!-- /results -->"
TITLES = {
    "search": "Search",
    "build": "Build",
    "event": "One event",
    "memory": "Memory",
    "growth": "Growth of the branch",
    "quality": "Finding the known duplicate",
    "start": "From a shell, and for an agent",
    "logs": "Searching logs",
    "server": "The server's queue",
    "image": "Cold start of the image",
}
PICTURES = {"growth": "bench-growth.svg", "quality": "bench-quality.svg"}
ABOUT = {
    "bench-ratios.svg": "Every ratio as a bar: left of the line, ours needs less than its peer; right of it, more.",
    "bench-growth.svg": "Megabytes that a clone gets, by number of events: the branch, and the records as JSON.",
    "bench-quality.svg": "RR@1, RR@5, RR@10 and MRR of ours, of BM25 and of similar titles, as bars.",
}
HEAD = ("what", "ours", "95 of 100", "peer's", "peer", "ratio", "limit", "")


def filled(text: str, kept: Mapping[str, Any]) -> str:
    """The page with what is kept between the two comments; as it is where these are missing."""
    between = re.compile(f"(?<={BEGIN}\n).*?(?={END})", re.DOTALL)
    return between.sub(lambda _: "\n" + "\n".join(written(kept)) + "\n", text)


def written(kept: Mapping[str, Any]) -> Iterator[str]:
    """Blocks of Markdown: the machine, what is over, where a peer is ahead, and a part for each group."""
    if "machine" not in kept:
        yield "Nothing was measured yet.\n"
        return
    yield machine(kept)
    results = results_of(kept)
    yield listed("Over the limit", map(over, (result for result in results if result.is_within is False)))
    compared = [result.is_better for result in results if result.is_better is not None]
    yield f"**Behind a peer**: {compared.count(False)} of {len(compared)} ratios.\n"
    if any(result.ratio and result.group != "quality" for result in results):
        yield picture("bench-ratios.svg")
    for group in GROUPS:
        yield from part(group, [result for result in results if result.group == group], kept)
    yield from absent(kept)


def machine(kept: Mapping[str, Any]) -> str:
    """Where and when the last run was, and whether the machine had something else to do."""
    load, note = kept["load"], kept["note"]
    busy = "" if note == "idle" else " **The machine was not idle: the times are approximate; rely on the ratios.**"
    return (
        f"The newest part was measured on {kept['date']} at commit `{kept['commit']}`, in {kept['seconds']:,} s: "
        f"{Machine(**kept['machine']).told()}. "
        f"Load {load['start']:g} at the start and {load['end']:g} at the end; other processes took "
        f"{load['others']:g} of the cores.{busy}\n"
    )


def listed(title: str, told: Iterable[str]) -> str:
    """What is to be said first; a word where there is nothing."""
    return f"**{title}**: {'; '.join(told) or 'nothing'}.\n"


def over(result: Result) -> str:
    assert result.limit is not None
    reached = {"ratio": result.ratio or 0.0, "median": result.ours.median, "most": result.ours.most}[result.limit.of]
    unit = f"× {result.peer.name}" if result.limit.of == "ratio" and result.peer else result.unit
    return f"{result.what} ({shown(reached)} {unit}, limit {shown(result.limit.value)})"


def part(group: str, results: Sequence[Result], kept: Mapping[str, Any]) -> Iterator[str]:
    """A heading, the table, further tables, the plot, and the data; the commit if it is not that of the newest part."""
    if not results:
        return
    yield f"### {TITLES[group]}\n"
    yield markdown(HEAD, list(once(results)))
    for entry in entries(group, kept):
        for table in entry["tables"]:
            if table["group"] == group:
                yield f"{table['title']}:\n\n{markdown(table['head'], table['rows'])}"
    if group in PICTURES:
        yield picture(PICTURES[group])
    for entry in entries(group, kept):
        is_newest = all(entry[key][:12] == kept[key][:12] for key in ("date", "commit", "note"))
        when = "" if is_newest else f" {entry['date']}, commit `{entry['commit']}`, {entry['note']}."
        yield f"{entry['data']}.{when}\n"


def once(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """The rows; the same measure with a further peer repeats neither its name nor our figures."""
    before: tuple[str, ...] = ()
    for result in results:
        row = cells(result)
        yield ("", "", "", *row[3:]) if row[:3] == before else row
        before = row[:3]


def entries(group: str, kept: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The benchmarks that have results of this group."""
    return [
        entry
        for entry in kept["benches"].values()
        if any(result["group"] == group for result in entry.get("results", ()))
    ]


def absent(kept: Mapping[str, Any]) -> Iterator[str]:
    """What failed and what was left out."""
    rows = [
        (f"`{name}`", why)
        for name, entry in kept["benches"].items()
        for why in (
            *([f"failed on {entry['failed']['date']}: {entry['failed']['reason']}"] if "failed" in entry else []),
            *([f"left out: {entry['left_out']}"] if "left_out" in entry else []),
            *([] if entry else ["not measured yet"]),
        )
    ]
    if rows:
        yield "### Not in the tables\n"
        yield markdown(("benchmark", "why"), rows)


def picture(name: str) -> str:
    return f'<img src="images/{name}" width="600" alt="{ABOUT[name]}">\n'


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(escaped(cell) for cell in line) + " |\n" for line in lines)


def escaped(cell: str) -> str:
    """Words of a program that failed are among them."""
    return re.sub(r"([|<>\[\]*_])", r"\\\1", cell) if not cell.startswith("`") else cell
