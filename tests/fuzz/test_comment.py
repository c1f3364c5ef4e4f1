"""What is made of strangers' words (comments, replies, summaries), and a repository's own templates and wording."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from itertools import cycle
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
from bot.pipeline.reconcile import CommentResult
from bot.settings.schema import SettingsError
from tests.comment.contexts import CASES, GITHUB, NOW
from tests.comment.detector import report
from tests.comment.gallery import GALLERY
from tests.comment.payloads import PAYLOADS
from tests.fuzz import inputs, seeds
from tests.fuzz.properties import fuzz
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
SAFE_FIELDS = frozenset({"state", "url", "kind"})
"""Fields that are ours, or that are checked at their source."""

SEARCHED = 1_204

TURN_CHARS = 1_000
"""The budget for a message of a condensed conversation."""

BOUNDS = {"release": MAX_NAME_CHARS, "role": MAX_NAME_CHARS}
"""Most characters of the fields that are cut when they are read."""

RENDERER = Renderer(links=GITHUB)


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
    return fill(shape, cycle(texts[1:] or [""]))


def assert_harmless(text: str, hosts: frozenset[str] = frozenset({HOST})) -> None:
    """The text notifies nobody, links only to ``hosts`` and has only our elements."""
    findings = report(text)
    for what in ("mentions", "references", "images", "formulas", "shortcodes"):
        assert not getattr(findings, what), what
    assert {urlsplit(address).hostname for address in findings.links} <= hosts
    assert [tag for tag in findings.tags if not is_ours(tag)] == []


def is_ours(tag: str) -> bool:
    path, _, attributes = tag.partition(" ")
    return set(path.split("/")) <= TAGS and attributes in ("", "start=1")


def assert_good_comment(rendered: Rendered, context: Context, reply_to: int | None = None) -> None:
    text = rendered.text
    assert find_marker(text, reply_to=reply_to)
    assert len(text) <= MAX_CHARS
    assert len(text.encode()) <= MAX_BYTES
    # Pages are linked directly: their addresses come from the sources of pages, not from strangers.
    pages = {urlsplit(page.url).hostname or "" for page in context.pages}
    assert_harmless(text.partition("\n")[2], frozenset({HOST, "github.com", *pages}))
    # A line in a quotation is a stranger's and in code; our own lines are outside.
    opened, closed = (len(re.findall(rf"(?m)^ *<{tag}>", text)) for tag in ("details", "/details"))
    assert opened == closed
    assert any(tag in ("p/sub", "sub") for tag in report(text).tags), "the footer is inside something else"


def lists() -> list[list[str]]:
    pieces = [text for text in seeds.texts() if len(text) < 500]
    return [[chr(97 + n), *pieces[n::40][:8], PAYLOADS[n]] for n in range(len(SHAPES))]


def render(renderer: Renderer, context: Context) -> Rendered:
    return renderer.render(context, thread_id=1_000, now=NOW, searched=SEARCHED)


@fuzz(inputs.lists_of_texts(lists, ("@a", "#1", "`", "</details>", "\n\n", "](")))
def test_a_comment_about_anything_is_harmless_repeatable_and_sealed(texts: list[str]) -> None:
    context = hostile_context(texts)
    rendered = render(RENDERER, context)
    assert rendered.problem is None
    assert_good_comment(rendered, context)
    assert render(RENDERER, context).text == rendered.text
    stored = read_seal(seal(rendered.text, fingerprint(context)))
    assert stored
    assert stored.untouched
    assert stored.content == fingerprint(context)


@fuzz(inputs.lists_of_texts(lists, ("@a", "#1", "> ", "\n\n")))
def test_a_reply_about_anything_is_harmless(texts: list[str]) -> None:
    context = hostile_context(texts)
    rendered = RENDERER.reply(context, asked=texts[-1], reply_to=77, now=NOW, searched=SEARCHED)
    assert_good_comment(rendered, context, reply_to=77)


@fuzz(inputs.texts(lambda: PAYLOADS, ("@a", "#1", "`", "<b", "www.", "\n", "\u200b")))
def test_a_defanged_text_is_harmless_and_a_line_is_one_line(text: str) -> None:
    shown = (
        f"- {link(text, 'https://redirect.github.com/o/r/issues/7')} x\n  “{inline(text, 200)}”\n\n{prose(text, 300)}"
    )
    assert_harmless(f"x {shown}\n\nsee {code_span(text, 200)} here\n\n{block(text, 2_000)}\n\n<sub>footer</sub>\n")
    for line in (inline(text, 200), code_span(text, 200), prose(text, 200), log_line(text)):
        assert not {"\n", "\r"} & set(line)
        line.encode()
    assert not re.match(r"\s*(?:::|##\[)", log_line(text)), "a command of the runner"


@fuzz(inputs.lists_of_texts(lists, ("]]>", "&", "<", "```")))
def test_a_file_for_agents_is_well_formed_and_a_summary_not_too_long(texts: list[str]) -> None:
    context = hostile_context(texts)
    xml = as_xml(context)
    if xml:
        ET.fromstring(xml)
    as_markdown(context).encode()
    visible(texts[-1]).encode()
    results = [CommentResult(7, text, "would say", text, text=inline(text, 2_000)) for text in texts]
    assert len(summarise(results, texts, texts).encode()) <= 1_048_576


def word_files() -> list[str]:
    content = (SHIPPED_FOLDER / WORDS_FILE).read_text(encoding="utf-8")
    lines = [line for line in content.splitlines() if re.match(r"[a-z_]+:", line)]
    return [content, "\n".join(lines[:12]), *lines[:40]]


@fuzz(inputs.texts(word_files, ("{link}", "{", "}", "**", ": ", "'")), SettingsError)
def test_a_comment_in_a_repositorys_own_words_is_harmless(text: str) -> None:
    own_words(shipped_words(), text)
    assert_good_comment(render(Renderer(links=GITHUB, overrides={WORDS_FILE: text}), SHAPES[0]), SHAPES[0])


def templates() -> list[str]:
    own = [
        '{% extends "base.md.j2" %}{% block footer %}x{% endblock %}',
        "{% for a in mentioned %}{{ a.title }}{% endfor %}",
    ]
    return [*own, *(path.read_text(encoding="utf-8") for path in sorted(SHIPPED_FOLDER.glob("*.md.j2")))]


@fuzz(inputs.texts(templates, ("{{", "}}", "{%", "loop", "|", "super()")), TemplateFault)
def test_a_repositorys_own_template_cannot_lose_the_marker_or_the_limit(text: str) -> None:
    rendered = render(Renderer(links=GITHUB, overrides={"context.md.j2": text}), SHAPES[0])
    assert find_marker(rendered.text)
    assert len(rendered.text) <= MAX_CHARS
    rendered.text.encode()
    view = {"marker": "m", "words": {"a": "b"}, "items": [{"x": 1}, {"x": [1, 2]}], "n": 3}
    Sandbox({"x": text}).render("x", view, 10_000)
