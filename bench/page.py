"""Writes the tables of bench/README.md, between two comments, from docs/benchmarks.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.figures import GROUPS, Result, cells, results_of, shown
from bench.machine import Machine

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


def fill_page(text: str, saved: Mapping[str, Any]) -> str:
    """The page with the saved results between the two comments; unchanged if these are missing."""
    between = re.compile(f"(?<={BEGIN}\n).*?(?={END})", re.DOTALL)
    return between.sub(lambda _: "\n" + "\n".join(markdown_blocks(saved)) + "\n", text)


def markdown_blocks(saved: Mapping[str, Any]) -> Iterator[str]:
    """Blocks of Markdown: the machine, exceeded limits, ratios behind a peer, and a part for each group."""
    if "machine" not in saved:
        yield "Nothing was measured yet.\n"
        return
    yield machine(saved)
    results = results_of(saved)
    yield summary_line("Over the limit", map(over, (result for result in results if result.is_within is False)))
    compared = [result.is_better for result in results if result.is_better is not None]
    yield f"**Behind a peer**: {compared.count(False)} of {len(compared)} ratios.\n"
    if any(result.ratio and result.group != "quality" for result in results):
        yield picture("bench-ratios.svg")
    for group in GROUPS:
        yield from part(group, [result for result in results if result.group == group], saved)
    yield from absent(saved)


def machine(saved: Mapping[str, Any]) -> str:
    """When and on which machine the last run was, and whether the machine was busy."""
    load, note = saved["load"], saved["note"]
    busy = "" if note == "idle" else " **The machine was not idle: the times are approximate; rely on the ratios.**"
    return (
        f"The newest part was measured on {saved['date']} at commit `{saved['commit']}`, in {saved['seconds']:,} s: "
        f"{Machine(**saved['machine']).as_text()}. "
        f"Load {load['start']:g} at the start and {load['end']:g} at the end; other processes took "
        f"{load['others']:g} of the cores.{busy}\n"
    )


def summary_line(title: str, items: Iterable[str]) -> str:
    """A summary line; "nothing" if there are no items."""
    return f"**{title}**: {'; '.join(items) or 'nothing'}.\n"


def over(result: Result) -> str:
    assert result.limit is not None
    reached = {"ratio": result.ratio or 0.0, "median": result.ours.median, "most": result.ours.most}[result.limit.of]
    unit = f"× {result.peer.name}" if result.limit.of == "ratio" and result.peer else result.unit
    return f"{result.what} ({shown(reached)} {unit}, limit {shown(result.limit.value)})"


def part(group: str, results: Sequence[Result], saved: Mapping[str, Any]) -> Iterator[str]:
    """A heading, the table, further tables, the plot and the data; the commit unless it is that of the newest part."""
    if not results:
        return
    yield f"### {TITLES[group]}\n"
    yield markdown(HEAD, list(once(results)))
    for entry in entries(group, saved):
        for table in entry["tables"]:
            if table["group"] == group:
                yield f"{table['title']}:\n\n{markdown(table['head'], table['rows'])}"
    if group in PICTURES:
        yield picture(PICTURES[group])
    for entry in entries(group, saved):
        is_newest = all(entry[key][:12] == saved[key][:12] for key in ("date", "commit", "note"))
        when = "" if is_newest else f" {entry['date']}, commit `{entry['commit']}`, {entry['note']}."
        yield f"{entry['data']}.{when}\n"


def once(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """The rows; the same measure with another peer repeats neither its name nor our figures."""
    before: tuple[str, ...] = ()
    for result in results:
        row = cells(result)
        yield ("", "", "", *row[3:]) if row[:3] == before else row
        before = row[:3]


def entries(group: str, saved: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The benchmarks that have results of this group."""
    return [
        entry
        for entry in saved["benches"].values()
        if any(result["group"] == group for result in entry.get("results", ()))
    ]


def absent(saved: Mapping[str, Any]) -> Iterator[str]:
    """The benchmarks that failed or were left out."""
    rows = [
        (f"`{name}`", why)
        for name, entry in saved["benches"].items()
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
    return f'<img src="../docs/images/{name}" width="600" alt="{ABOUT[name]}">\n'


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(escaped(cell) for cell in line) + " |\n" for line in lines)


def escaped(cell: str) -> str:
    """The cell with Markdown escaped, as it may contain output of a failed program."""
    return re.sub(r"([|<>\[\]*_])", r"\\\1", cell) if not cell.startswith("`") else cell
