"""What is made of strangers' words: comments, replies, summaries; and what a repository gives to make them of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from bot.action.report import summarise
from bot.comment.catalogue import own_words
from bot.comment.clean_text import MAX_NAME, log_line
from bot.comment.defang import block, code_span, inline, link, prose
from bot.comment.marker import fingerprint, read_seal, seal
from bot.comment.prompt import as_markdown, as_xml, visible
from bot.comment.render import MAX_BYTES, MAX_CHARS, SHIPPED, WORDS, Rendered, Renderer, shipped_words
from bot.comment.template_sandbox import Sandbox, TemplateFault
from bot.domain.answer import CondensedTurn, Context
from bot.pipeline.publish import CommentResult
from bot.settings.schema import SettingsError
from tests.comment.contexts import CASES, GITHUB, NOW
from tests.comment.detector import report
from tests.comment.gallery import GALLERY
from tests.comment.payloads import PAYLOADS
from tests.fuzz import seeds
from tests.fuzz.target import Target, require
from tests.marker import find_marker

HOST = "redirect.github.com"
TAGS = frozenset(
    {"p", "a", "strong", "em", "del", "ul", "ol", "li", "details", "summary", "sub", "br", "code", "pre", "blockquote"}
    | {"!--"}
)
SHAPES: tuple[Context, ...] = (
    *(context for name, (context, _) in CASES.items() if name != "long"),
    *(shown.context for shown in GALLERY.values()),
)
KEPT = frozenset({"state", "url", "kind"})
"""Fields that are ours, or that are checked where they come from."""

SEARCHED = 1_204

TURN_CHARS = 1_000
"""No message of a condensed conversation is longer: it has a budget."""

BOUNDS = {"release": MAX_NAME, "role": MAX_NAME}
"""Characters of what is cut where it is read."""


@cache
def renderer() -> Renderer:
    return Renderer(links=GITHUB)


def filled(value: Any, texts: Iterator[str]) -> Any:
    """A context with the texts in the place of everything that a stranger has written."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return next(texts)
    if isinstance(value, tuple):
        items = [filled(item, texts) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        given = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in KEPT}
        bounds = BOUNDS | {"text": TURN_CHARS} if isinstance(value, CondensedTurn) else BOUNDS
        made = {name: filled(item, texts) for name, item in given.items()}
        made |= {name: made[name][: bounds[name]] for name in bounds if isinstance(made.get(name), str)}
        return replace(value, **made)
    return value


def hostile(given: Sequence[str]) -> Context:
    """The context that a list of texts means: the first chooses the shape, the others are taken in turn."""
    shape = SHAPES[sum(map(ord, given[0])) % len(SHAPES)]
    return filled(shape, _in_turn(given[1:] or [""]))


def _in_turn(texts: Sequence[str]) -> Iterator[str]:
    while True:
        yield from texts


def harmless(text: str, hosts: frozenset[str] = frozenset({HOST})) -> None:
    """It reaches nobody, links nowhere else, and is made of our elements only."""
    found = report(text)
    for what in ("mentions", "references", "images", "formulas", "shortcodes"):
        require(not getattr(found, what), f"{what}: {getattr(found, what)!r:.200}")
    foreign = [address for address in found.links if urlsplit(address).hostname not in hosts]
    require(not foreign, f"links: {foreign!r:.200}")
    strange = [tag for tag in found.tags if not _is_ours(tag)]
    require(not strange, f"elements: {strange!r:.200}")


def _is_ours(tag: str) -> bool:
    path, _, attributes = tag.partition(" ")
    return set(path.split("/")) <= TAGS and attributes in ("", "start=1")


def _rendered(made: Rendered, context: Context, reply_to: int | None = None) -> None:
    text = made.text
    require(find_marker(text, reply_to=reply_to), "the marker is not its first line")
    require(len(text) <= MAX_CHARS and len(text.encode()) <= MAX_BYTES, f"{len(text)} characters")
    addresses = frozenset({HOST, "github.com", *_hosts(context)})
    harmless(text.partition("\n")[2], addresses)
    found = report(text)
    # A line in a quotation is a stranger's, in code; ours stand outside.
    opened, closed = (len(re.findall(rf"(?m)^ *<{tag}>", text)) for tag in ("details", "/details"))
    require(opened == closed, f"{opened} details are opened, {closed} closed")
    require(any(tag in ("p/sub", "sub") for tag in found.tags), "the footer is inside something else")


def _hosts(context: Context) -> set[str]:
    """Pages are linked where they are: their addresses come from the sources of pages, not from strangers."""
    return {urlsplit(page.url).hostname or "" for page in context.pages}


def _comment(given: list[str]) -> None:
    context = hostile(given)
    made = renderer().render(context, thread_id=1_000, now=NOW, searched=SEARCHED)
    require(made.problem is None, f"a problem: {made.problem}")
    _rendered(made, context)
    again = renderer().render(context, thread_id=1_000, now=NOW, searched=SEARCHED)
    require(again.text == made.text, "other bytes the second time")
    found = read_seal(seal(made.text, fingerprint(context)))
    require(found and found.untouched and found.content == fingerprint(context), "the seal is broken")


def _reply(given: list[str]) -> None:
    context = hostile(given)
    made = renderer().reply(context, asked=given[-1], reply_to=77, now=NOW, searched=SEARCHED)
    _rendered(made, context, reply_to=77)


def _defanged(text: str) -> None:
    shown = (
        f"- {link(text, 'https://redirect.github.com/o/r/issues/7')} x\n  “{inline(text, 200)}”\n\n{prose(text, 300)}"
    )
    harmless(f"x {shown}\n\nsee {code_span(text, 200)} here\n\n{block(text, 2_000)}\n\n<sub>footer</sub>\n")
    for line in (inline(text, 200), code_span(text, 200), prose(text, 200), log_line(text)):
        require("\n" not in line and "\r" not in line, "a line is broken")
        line.encode()
    require(not re.match(r"\s*(?:::|##\[)", log_line(text)), "a command of the runner")


def _packed(given: list[str]) -> None:
    context = hostile(given)
    xml = as_xml(context)
    if xml:
        ET.fromstring(xml)
    as_markdown(context).encode()
    visible(given[-1]).encode()
    said = [CommentResult(7, text, "would say", text, text=inline(text, 2_000)) for text in given]
    summary = summarise(said, given, given)
    require(len(summary.encode()) <= 1_048_576, "a summary of more than a megabyte")


def _words(text: str) -> None:
    own_words(shipped_words(), text)
    context = SHAPES[0]
    made = Renderer(links=GITHUB, overrides={WORDS: text}).render(context, thread_id=1_000, now=NOW, searched=SEARCHED)
    _rendered(made, context)


def _template(text: str) -> None:
    made = Renderer(links=GITHUB, overrides={"context.md.j2": text}).render(
        SHAPES[0], thread_id=1, now=NOW, searched=SEARCHED
    )
    require(find_marker(made.text), "the marker is not its first line")
    require(len(made.text) <= MAX_CHARS, f"{len(made.text)} characters")
    made.text.encode()
    view = {"marker": "m", "words": {"a": "b"}, "items": [{"x": 1}, {"x": [1, 2]}], "n": 3}
    Sandbox({"x": text}).render("x", view, 10_000)


def _word_files() -> list[str]:
    whole = (SHIPPED / WORDS).read_text(encoding="utf-8")
    lines = [line for line in whole.splitlines() if re.match(r"[a-z_]+:", line)]
    return [whole, "\n".join(lines[:12]), *lines[:40]]


def _templates() -> list[str]:
    own = [
        '{% extends "base.md.j2" %}{% block footer %}x{% endblock %}',
        "{% for a in mentioned %}{{ a.title }}{% endfor %}",
    ]
    return [*own, *(path.read_text(encoding="utf-8") for path in sorted(SHIPPED.glob("*.md.j2")))]


def _lists() -> list[list[str]]:
    pieces = [text for text in seeds.texts() if len(text) < 500]
    return [[chr(97 + n), *pieces[n::40][:8], PAYLOADS[n]] for n in range(len(SHAPES))]


TARGETS = (
    Target("defang", "text", lambda: PAYLOADS, _defanged, tokens=("@a", "#1", "`", "<b", "www.", "\n", "\u200b")),
    Target("comment", "texts", _lists, _comment, tokens=("@a", "#1", "`", "</details>", "\n\n", "](")),
    Target("reply", "texts", _lists, _reply, tokens=("@a", "#1", "> ", "\n\n")),
    Target("pack", "texts", _lists, _packed, tokens=("]]>", "&", "<", "```")),
    Target("wording", "text", _word_files, _words, (SettingsError,), tokens=("{link}", "{", "}", "**", ": ", "'")),
    Target(
        "template", "text", _templates, _template, (TemplateFault,), tokens=("{{", "}}", "{%", "loop", "|", "super()")
    ),
)
