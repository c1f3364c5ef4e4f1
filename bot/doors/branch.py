"""What there is to know of a branch, as a text for an agent's prompt."""

from __future__ import annotations

from collections.abc import Iterator

from bot.comment.pack import DATA_NOTICE, FENCE_NOTICE, attributes_of, bare, element, fenced
from bot.doors.rows import Row

SECTIONS = {
    "related": "Related to this branch",
    "decisions": "Decided about its files",
    "tasks": "Open tasks",
    "recent": "Decided last",
}


def branch_text(found: dict[str, list[Row]], form: str, chars: int) -> str:
    """These sections as XML or Markdown (``form``), the last threads left out where all are more than ``chars``; ""
    for nothing. Other people's words are marked as data, and nothing is hidden in them."""
    write = _xml if form == "xml" else _markdown
    kept = [(name, each) for name, rows in found.items() for each in rows]
    while kept:
        text = write(kept)
        if len(text) <= chars:
            return text
        kept.pop()
    return ""


def _xml(kept: list[tuple[str, Row]]) -> str:
    body = "".join(f"<{name}>\n{''.join(map(_thread, rows))}</{name}>\n" for name, rows in _sections(kept))
    return f"<branch-context>\n{element('notice', DATA_NOTICE)}{body}</branch-context>\n"


def _thread(one: Row) -> str:
    attributes = attributes_of(
        id=one["id"], kind=one["kind"], state=one["state"], updated=one["updated_at"], url=one["url"], **_ending(one)
    )
    parts = [element("why", "; ".join(one["why"])), element("title", one["title"])]
    for each in one["decisions"]:
        named = attributes_of(author=each["author"], role=each["role"], at=each["at"])
        parts.append(element("decision", each["text"]).replace("<decision>", f"<decision{named}>", 1))
    parts += [element("outcome", one["outcome"]["quote"]), element("summary", one["summary"])]
    return f"<thread{attributes}>\n{''.join(parts)}</thread>\n"


def _markdown(kept: list[tuple[str, Row]]) -> str:
    body = "".join(f"\n## {SECTIONS[name]}\n{''.join(map(_paragraph, rows))}" for name, rows in _sections(kept))
    return f"# What is known of this branch\n\n{DATA_NOTICE} {FENCE_NOTICE}\n{body}"


def _paragraph(one: Row) -> str:
    facts = [f"state: {one['state']}", f"changed: {one['updated_at'][:10]}"]
    facts += [f"{name}: {bare(str(value))}" for name, value in _ending(one).items() if value not in (None, "")]
    words = [fenced("why", "; ".join(one["why"])), fenced("title", one["title"])]
    words += [fenced("decision", each["text"]) for each in one["decisions"]]
    words += [fenced("outcome", one["outcome"]["quote"]), fenced("summary", one["summary"])]
    listed = "".join(f"- {fact}\n" for fact in facts)
    return f"\n### {bare(one['cite'])}\n\n{listed}{''.join(words)}"


def _ending(one: Row) -> dict[str, object]:
    outcome = one["outcome"]
    kind = "" if outcome["kind"] == "unknown" else outcome["kind"].replace(" ", "-")
    return {name: outcome[name] for name in ("fix", "release", "duplicate_of")} | {"outcome": kind}


def _sections(kept: list[tuple[str, Row]]) -> Iterator[tuple[str, list[Row]]]:
    for name in SECTIONS:
        if rows := [each for section, each in kept if section == name]:
            yield name, rows
