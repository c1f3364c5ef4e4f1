"""Renders a context as the Markdown of a comment, with templates that a repository may change but not abuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Self

from bot.comment.catalogue import Words, own_words
from bot.comment.clean_text import printable
from bot.comment.defang import inline
from bot.comment.links import CommentLinks
from bot.comment.marker import marker
from bot.comment.outcome_text import QUOTE_CHARS, CommentPhrases, ReleaseFacts, release_text
from bot.comment.template_sandbox import MAX_SOURCE_CHARS, OutputTooLong, Sandbox, TemplateFault, render_trusted
from bot.comment.template_view import Item, view_of
from bot.domain.answer import Context
from bot.domain.hosts import GITHUB
from bot.domain.post import reply_slot
from bot.domain.thread import Thread, ThreadId
from bot.errors import UserError, WorldError
from bot.files import shipped_folder
from bot.reading.language import language_of
from bot.settings.schema import ENGLISH, Settings
from bot.settings.yaml_file import load_texts

MAX_CHARS = 60_000
MAX_BYTES = 65_536
"""GitHub refuses more than 65,536 characters. Counting bytes as well is on the safe side."""

RESERVED_SIZE = 256
"""Characters and bytes reserved for the fingerprint line, which is added later."""

SHIPPED_FOLDER = shipped_folder("templates")
"""The folder of the shipped templates."""

TEMPLATE_NAMES = ("base.md.j2", "context.md.j2", "troubleshooting.md.j2", "reply.md.j2", "release.md.j2")
WORDS_FILE = "words.yml"
PAGE_FILES = (
    *("pages.css", "report.html.j2", "report.js", "digest.html.j2"),
    *("status.html.j2", "delivery.html.j2", "dead.html.j2", "server_digest.html.j2"),
)

_BLANK_LINES = re.compile(r"\n{3,}")
_GITHUB_KEYWORD = re.compile(
    r"[*_~\"“(+-]{0,20}(?:duplicate of|close[sd]?|fix(?:e[sd])?|resolve[sd]?)[: \t*_]{0,8}"
    r"(?:#[0-9]|gh-[0-9]|https?://|[\w.-]{1,40}/[\w.-]{1,100}#[0-9])",
    re.ASCII | re.IGNORECASE,
)
"""A line that GitHub would act on as if the account meant it."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A comment's text, and a line about the problem with the repository's templates or words, None without one."""

    text: str
    problem: str | None = None


def withdrawal_text(first_line: str, words: Words | None = None, *, off: bool = False) -> str:
    """The text of a comment that is no longer true or was switched ``off``; ``words`` None means the shipped ones."""
    text = (words or shipped_words()).texts["withdrawn_off" if off else "withdrawn"]
    return f"{first_line}\n<sub>{text}</sub>\n"


def shipped_words(language: str = ENGLISH, templates: Path = SHIPPED_FOLDER) -> Words:
    """The shipped words in a language."""
    name = WORDS_FILE if language == ENGLISH else f"words/{language}.yml"
    return _parse_words(_read(templates, (name,))[name], language)


@lru_cache(maxsize=4)
def _cached_sandbox(sources: tuple[tuple[str, str], ...]) -> Sandbox:
    """The sandbox of our own templates, compiled once even in a process with many renderers."""
    return Sandbox(dict(sources))


def render_page(name: str, values: Mapping[str, object]) -> str:
    """Render our own HTML template ``name`` with ``values`` as valid Unicode; strangers' words in them stay text, and
    reorder nothing."""
    return printable(render_trusted(_read(SHIPPED_FOLDER, PAGE_FILES), name, values))


class Renderer:
    """Renders comments with a repository's own templates and words if they work, else with the shipped ones.

    ``templates`` is read once, here. ``overrides`` maps ``NAME.md.j2`` to source text, which can extend ``base.md.j2``
    or the template that it replaces as ``shipped/NAME.md.j2``, and ``words.yml`` to a repository's words. ``commands``
    says whether the footer names commands. ``language`` is as in `bot.settings.schema.CommentSettings`.

    ``usual_language`` is asked for the language of comments on a thread whose own is unclear.
    """

    def __init__(
        self,
        templates: Path = SHIPPED_FOLDER,
        overrides: Mapping[str, str] | None = None,
        links: CommentLinks | None = None,
        *,
        instance: str = "action",
        commands: bool = True,
        language: str = "auto",
    ) -> None:
        sources = _read(templates, TEMPLATE_NAMES)
        remaining, self._templates = dict(overrides or {}), templates
        own = remaining.pop(WORDS_FILE, None)
        self._shipped_words = shipped_words(ENGLISH if language == "auto" else language, templates)
        self.words, problems = _load_words(own, self._shipped_words)
        self._may_choose_language = language == "auto" and not own
        self.usual_language: Callable[[ThreadId], str] = lambda _: ENGLISH
        accepted, problem = _accepted_templates(remaining)
        self._problem = _join_problems(*problems, problem)
        self._shipped = _cached_sandbox(tuple(sources.items()))
        self._custom = (
            Sandbox(sources | {f"shipped/{name}": sources[name] for name in TEMPLATE_NAMES} | accepted)
            if accepted
            else None
        )
        self._links = links or CommentLinks()
        self._instance = instance
        self._commands = commands
        marker(instance)

    @classmethod
    def of_repository(
        cls, settings: Settings, templates: Mapping[str, str], server: str, repo: str, instance: str = "action"
    ) -> Self:
        """The renderer for comments on ``repo`` (``owner/name``) on ``server``, with its settings and templates."""
        links = CommentLinks(server, repo, redirect=server == GITHUB)
        commands, language = settings.commands.enabled, settings.comment.language
        return cls(overrides=templates, links=links, instance=instance, commands=commands, language=language)

    def for_thread(self, thread: Thread) -> Self:
        """The same in the language of the thread, unless one is set or the repository has its own words."""
        if not self._may_choose_language:
            return self
        language = language_of(thread.title, thread.body) or self.usual_language(thread.id)
        if language == self.words.language:
            return self
        other = copy(self)
        other._shipped_words = other.words = shipped_words(language, self._templates)
        return other

    def render(self, context: Context, *, thread_id: ThreadId, now: datetime, searched: int) -> Rendered:
        """The comment on ``thread_id``, at most 60,000 characters and 65,536 bytes, cut at whole hits.

        ``searched`` is the number of issues searched, 0 to leave it out. Ages are counted to ``now``: pass the time of
        the question rather than of the run, so that a repeated run gives the same bytes.
        """
        points_at_some = context.mentioned or context.also_mentioned
        name = "context.md.j2" if points_at_some else "troubleshooting.md.j2"
        frame = {"marker": marker(self._instance), "asked": ""}
        return self._render(name, _without_thread(context, thread_id), now, searched, frame)

    def reply(
        self, context: Context, *, asked: str, reply_to: int, now: datetime, searched: int, answer: str = ""
    ) -> Rendered:
        """The reply to comment ``reply_to``, which asked ``asked``; it says so if nothing was found.

        ``answer`` is our own Markdown, shown above the findings or alone.
        """
        frame = {
            "marker": marker(self._instance, reply_slot(reply_to)),
            "asked": inline(asked, QUOTE_CHARS),
            "answer": answer,
        }
        return self._render("reply.md.j2", context, now, searched, frame)

    def notice(self, facts: ReleaseFacts, *, slot: str, now: datetime) -> Rendered:
        """The release notice with these facts; ``slot`` is that of its post."""
        text = release_text(facts, CommentPhrases(self._links, now, {}, self.words))
        frame = {"marker": marker(self._instance, slot), "asked": "", "answer": text}
        return self._render("release.md.j2", Context(), now, 0, frame)

    def _render(self, name: str, context: Context, now: datetime, searched: int, frame: Mapping[str, str]) -> Rendered:
        problem = self._problem
        for sandbox, words, blamed, instead in self._attempts(name):
            try:
                text = _fit(sandbox, name, self._views(context, words, now, searched, frame))
                _check(text, frame["marker"])
                return Rendered(text, problem)
            except TemplateFault as fault:
                problem = _join_problems(problem, f"{blamed}: {fault}; {instead}")
        return Rendered(
            _fit(self._shipped, name, self._views(context, self._shipped_words, now, searched, frame)), problem
        )

    def _attempts(self, name: str) -> Iterator[tuple[Sandbox, Words, str, str]]:
        """The combinations to try before the shipped ones, each with what to blame for a failure and what follows."""
        if self._custom is not None:
            yield self._custom, self.words, f".github/precedent, for {name}", "the shipped template was used"
        if self.words is not self._shipped_words:
            yield self._shipped, self.words, WORDS_FILE, "the shipped words were used"

    def _views(
        self, context: Context, words: Words, now: datetime, searched: int, frame: Mapping[str, str]
    ) -> Iterator[Item]:
        for smaller in smaller_contexts(context):
            similar, mentioned = smaller.seen_before, [each.id for each in smaller.mentioned if not each.missing]
            shown = [*(match.id for match in similar), *mentioned, *(match.id for match in smaller.open_now)]
            texts = {**words.fixed_texts(), **words.footer(searched, shown, commands=self._commands)}
            yield {**view_of(smaller, self._links, now, words), **frame, "words": texts}


_TRIM_ORDER = (
    "also_mentioned",
    "pages",
    "organisation",
    "open_now",
    "seen_before",
    "mentioned",
)
"""The sections of a comment that is too long, in the order in which they lose hits."""


def smaller_contexts(context: Context) -> Iterator[Context]:
    """The context, then smaller and smaller ones: first without conversations, then without hits, from the end."""
    yield context
    for section in ("open_now", "seen_before", "mentioned"):
        for index in reversed(range(len(getattr(context, section)))):
            hits = list(getattr(context, section))
            if hits[index].conversation:
                hits[index] = replace(hits[index], conversation=())
                context = _with_hits(context, section, hits)
                yield context
    for section in _TRIM_ORDER:
        while hits := list(getattr(context, section)):
            context = _with_hits(context, section, hits[:-1])
            yield context


def _with_hits(context: Context, section: str, hits: list[object]) -> Context:
    change: dict[str, object] = {section: tuple(hits)}
    return replace(context, **change)  # type: ignore[arg-type]


def _without_thread(context: Context, thread_id: ThreadId) -> Context:
    """The context without the thread that the comment is on."""
    for section in ("mentioned", "also_mentioned", "seen_before", "open_now"):
        context = _with_hits(context, section, [hit for hit in getattr(context, section) if hit.id != thread_id])
    return context


def _fit(sandbox: Sandbox, name: str, views: Iterator[Item]) -> str:
    for view in views:
        try:
            text = _tidy(sandbox.render(name, view, MAX_CHARS))
        except OutputTooLong:
            continue
        if len(text) <= MAX_CHARS - RESERVED_SIZE and len(text.encode()) <= MAX_BYTES - RESERVED_SIZE:
            return text
    raise OutputTooLong(f"its text is longer than {MAX_CHARS:,} characters even with nothing in it")


def _tidy(text: str) -> str:
    valid = text.encode("utf-8", "replace").decode()
    return _BLANK_LINES.sub("\n\n", valid).strip() + "\n"


def _check(text: str, expected: str) -> None:
    first, _, rest = text.partition("\n")
    lines = list(_outside_code(rest))
    if first.rstrip() != expected or any(line.startswith("<!-- precedent") for line in lines):
        raise TemplateFault("it must start with the hidden marker, once (keep {% block marker %} as it is)")
    for line in lines:
        if match := _GITHUB_KEYWORD.match(line):
            raise TemplateFault(f"no line may start with {match[0].strip()!r}, GitHub would act on it")


def _outside_code(text: str) -> Iterator[str]:
    """The lines outside fenced code, without leading quotation and list marks."""
    fence = ""
    for line in text.split("\n"):
        bare = line.lstrip(" \t>-+*")
        ticks = bare[: len(bare) - len(bare.lstrip("`"))]
        if fence:
            fence = "" if len(ticks) >= len(fence) and bare.rstrip() == ticks else fence
        elif len(ticks) >= 3:
            fence = ticks
        else:
            yield bare


def _read(folder: Path, names: Iterable[str]) -> dict[str, str]:
    try:
        return {name: (folder / name).read_text(encoding="utf-8") for name in names}
    except (OSError, UnicodeDecodeError) as fault:
        raise WorldError(f"the shipped templates cannot be read ({fault}): reinstall Precedent") from fault


@cache
def _parse_words(source: str, language: str) -> Words:
    return Words({name: entry.text for name, entry in load_texts(source, WORDS_FILE).items()}, language)


def _load_words(source: str | None, shipped: Words) -> tuple[Words, list[str]]:
    if not source:
        return shipped, []
    try:
        return own_words(shipped, source), []
    except UserError as fault:
        return shipped, [f"{fault}; the shipped words were used"]


def _join_problems(*problems: str | None) -> str | None:
    return "; ".join(filter(None, problems)) or None


def _accepted_templates(overrides: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    if unknown := sorted(set(overrides) - set(TEMPLATE_NAMES)):
        problem = f"template {unknown[0][:60]!r} is not used: the valid names are {', '.join(TEMPLATE_NAMES)}"
        return {name: overrides[name] for name in TEMPLATE_NAMES if name in overrides}, problem
    if sum(len(source) for source in overrides.values()) > MAX_SOURCE_CHARS:
        return {}, f"the repository's templates are larger than {MAX_SOURCE_CHARS:,} characters together: none is used"
    return dict(overrides), None
