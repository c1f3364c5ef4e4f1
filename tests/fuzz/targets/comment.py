"""What is made of strangers' words (comments, replies, summaries), and a repository's own templates and wording."""

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
from bot.comment.clean_text import MAX_NAME_CHARS, log_line
from bot.comment.defang import block, code_span, inline, link, prose
from bot.comment.marker import fingerprint, read_seal, seal
from bot.comment.prompt import as_markdown, as_xml, visible
from bot.comment.render import MAX_BYTES, MAX_CHARS, SHIPPED_FOLDER, WORDS_FILE, Rendered, Renderer, shipped_words
from bot.comment.template_sandbox import Sandbox, TemplateFault
from bot.domain.answer import CondensedTurn, Context
from bot.pipeline.publish import CommentResult
from bot.settings.schema import SettingsError
from tests.comment.contexts import CASES, GITHUB, NOW
from tests.comment.detector import report
from tests.comment.payloads import PAYLOADS
from tests.fuzz import seeds
from tests.fuzz.target import Target, require
from tests.marker import find_marker
from tools.gallery import GALLERY

HOST = "redirect.github.com"
TAGS = frozenset(
    {"p", "a", "strong", "em", "del", "ul", "ol", "li", "details", "summary", "sub", "br", "code", "pre", "blockquote"}
    | {"!--"}
)
SHAPES: tuple[Context, ...] = (
    *(context for name, (context, _) in CASES.items() if name != "long"),
    *(shown.context for shown in GALLERY.values()),
)
SAFE_FIELDS = frozenset({"state", "url", "kind"})
"""Fields that are ours, or that are checked at their source."""

SEARCHED = 1_204

TURN_CHARS = 1_000
"""The budget for a message of a condensed conversation."""

BOUNDS = {"release": MAX_NAME_CHARS, "role": MAX_NAME_CHARS}
"""Most characters of the fields that are cut when they are read."""


@cache
def renderer() -> Renderer:
    return Renderer(links=GITHUB)


def fill(value: Any, texts: Iterator[str]) -> Any:
    """The value with everything that a stranger wrote replaced by the texts."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return next(texts)
    if isinstance(value, tuple):
        items = [fill(item, texts) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        originals = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in SAFE_FIELDS}
        bounds = BOUNDS | {"text": TURN_CHARS} if isinstance(value, CondensedTurn) else BOUNDS
        replaced = {name: fill(item, texts) for name, item in originals.items()}
        replaced |= {name: replaced[name][: bounds[name]] for name in bounds if isinstance(replaced.get(name), str)}
        return replace(value, **replaced)
    return value


def hostile_context(texts: Sequence[str]) -> Context:
    """The context for a list of texts: the first selects the shape, the others fill it in turn."""
    shape = SHAPES[sum(map(ord, texts[0])) % len(SHAPES)]
    return fill(shape, _in_turn(texts[1:] or [""]))


def _in_turn(texts: Sequence[str]) -> Iterator[str]:
    while True:
        yield from texts


def require_harmless(text: str, hosts: frozenset[str] = frozenset({HOST})) -> None:
    """Raises Violated unless the text notifies nobody, links only to ``hosts`` and has only our elements."""
    findings = report(text)
    for what in ("mentions", "references", "images", "formulas", "shortcodes"):
        require(not getattr(findings, what), f"{what}: {getattr(findings, what)!r:.200}")
    foreign = [address for address in findings.links if urlsplit(address).hostname not in hosts]
    require(not foreign, f"links: {foreign!r:.200}")
    unknown = [tag for tag in findings.tags if not _is_ours(tag)]
    require(not unknown, f"elements: {unknown!r:.200}")


def _is_ours(tag: str) -> bool:
    path, _, attributes = tag.partition(" ")
    return set(path.split("/")) <= TAGS and attributes in ("", "start=1")


def _check_rendered(rendered: Rendered, context: Context, reply_to: int | None = None) -> None:
    text = rendered.text
    require(find_marker(text, reply_to=reply_to), "the marker is not its first line")
    require(len(text) <= MAX_CHARS and len(text.encode()) <= MAX_BYTES, f"{len(text)} characters")
    addresses = frozenset({HOST, "github.com", *_hosts(context)})
    require_harmless(text.partition("\n")[2], addresses)
    findings = report(text)
    # A line in a quotation is a stranger's and in code; our own lines are outside.
    opened, closed = (len(re.findall(rf"(?m)^ *<{tag}>", text)) for tag in ("details", "/details"))
    require(opened == closed, f"{opened} details are opened, {closed} closed")
    require(any(tag in ("p/sub", "sub") for tag in findings.tags), "the footer is inside something else")


def _hosts(context: Context) -> set[str]:
    """Pages are linked directly: their addresses come from the sources of pages, not from strangers."""
    return {urlsplit(page.url).hostname or "" for page in context.pages}


def _comment(texts: list[str]) -> None:
    context = hostile_context(texts)
    rendered = renderer().render(context, thread_id=1_000, now=NOW, searched=SEARCHED)
    require(rendered.problem is None, f"a problem: {rendered.problem}")
    _check_rendered(rendered, context)
    again = renderer().render(context, thread_id=1_000, now=NOW, searched=SEARCHED)
    require(again.text == rendered.text, "other bytes the second time")
    stored = read_seal(seal(rendered.text, fingerprint(context)))
    require(stored and stored.untouched and stored.content == fingerprint(context), "the seal is broken")


def _reply(texts: list[str]) -> None:
    context = hostile_context(texts)
    rendered = renderer().reply(context, asked=texts[-1], reply_to=77, now=NOW, searched=SEARCHED)
    _check_rendered(rendered, context, reply_to=77)


def _defanged(text: str) -> None:
    shown = (
        f"- {link(text, 'https://redirect.github.com/o/r/issues/7')} x\n  “{inline(text, 200)}”\n\n{prose(text, 300)}"
    )
    require_harmless(f"x {shown}\n\nsee {code_span(text, 200)} here\n\n{block(text, 2_000)}\n\n<sub>footer</sub>\n")
    for line in (inline(text, 200), code_span(text, 200), prose(text, 200), log_line(text)):
        require("\n" not in line and "\r" not in line, "a line is broken")
        line.encode()
    require(not re.match(r"\s*(?:::|##\[)", log_line(text)), "a command of the runner")


def _packed(texts: list[str]) -> None:
    context = hostile_context(texts)
    xml = as_xml(context)
    if xml:
        ET.fromstring(xml)
    as_markdown(context).encode()
    visible(texts[-1]).encode()
    results = [CommentResult(7, text, "would say", text, text=inline(text, 2_000)) for text in texts]
    summary = summarise(results, texts, texts)
    require(len(summary.encode()) <= 1_048_576, "a summary of more than a megabyte")


def _words(text: str) -> None:
    own_words(shipped_words(), text)
    context = SHAPES[0]
    rendered = Renderer(links=GITHUB, overrides={WORDS_FILE: text}).render(
        context, thread_id=1_000, now=NOW, searched=SEARCHED
    )
    _check_rendered(rendered, context)


def _template(text: str) -> None:
    rendered = Renderer(links=GITHUB, overrides={"context.md.j2": text}).render(
        SHAPES[0], thread_id=1, now=NOW, searched=SEARCHED
    )
    require(find_marker(rendered.text), "the marker is not its first line")
    require(len(rendered.text) <= MAX_CHARS, f"{len(rendered.text)} characters")
    rendered.text.encode()
    view = {"marker": "m", "words": {"a": "b"}, "items": [{"x": 1}, {"x": [1, 2]}], "n": 3}
    Sandbox({"x": text}).render("x", view, 10_000)


def _word_files() -> list[str]:
    content = (SHIPPED_FOLDER / WORDS_FILE).read_text(encoding="utf-8")
    lines = [line for line in content.splitlines() if re.match(r"[a-z_]+:", line)]
    return [content, "\n".join(lines[:12]), *lines[:40]]


def _templates() -> list[str]:
    own = [
        '{% extends "base.md.j2" %}{% block footer %}x{% endblock %}',
        "{% for a in mentioned %}{{ a.title }}{% endfor %}",
    ]
    return [*own, *(path.read_text(encoding="utf-8") for path in sorted(SHIPPED_FOLDER.glob("*.md.j2")))]


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
