"""Checks a draft of an issue: what the bot would say about it, given the memory and the settings on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bot.comment.catalogue import count
from bot.comment.render import Renderer
from bot.domain.answer import Answer, Context, Speak
from bot.domain.hosts import GITHUB
from bot.domain.thread import RepositoryAddress, ThreadId
from bot.errors import PrecedentError
from bot.local_cache.local_memory import LocalMemory, settings_of, templates_of
from bot.local_cache.sync import memory_of
from bot.memory.memory import Memory
from bot.memory.model_store import Embedder
from bot.memory.text_model import MODEL_OF_THE_IMAGE, open_text_model
from bot.questions.comment import NEIGHBOURS, comment_on, draft_thread, language_among
from bot.questions.fields import PAGE_FIELDS, RELATED_FIELDS, Row, rows_of
from bot.questions.issue import related_threads
from bot.questions.requests import DraftRequest
from bot.recall.answer import recall
from bot.settings.schema import Settings

BY_WORDS_ONLY = (
    "Compared by words only: the bot compares by meaning too, with a text model that is not on this machine."
)


class DraftAnswer(NamedTuple):
    """What the bot would say about a draft; ``threads`` and ``messages`` count what it was compared with.

    ``comment`` is the Markdown that the Action would post, without its hidden lines; "" if it would stay silent.
    """

    answer: Answer
    comment: str
    threads: int
    messages: int

    @property
    def context(self) -> Context:
        return self.answer.context if isinstance(self.answer, Speak) else Context()

    @property
    def nothing(self) -> str:
        """The sentence for silence."""
        searched = f"{count(self.threads, 'thread')}, {count(self.messages, 'message')} searched"
        return f"Nothing similar is in memory ({searched})."

    @property
    def rows(self) -> Row:
        """The threads and pages that the comment names, and the comment."""
        return {
            "comment": self.comment,
            "related": rows_of(RELATED_FIELDS, related_threads(self.context)),
            "pages": rows_of(PAGE_FIELDS, self.context.pages),
            "messages": self.messages,
        }


def check_draft(request: DraftRequest, local_memory: LocalMemory) -> DraftAnswer:
    """Return what the bot would say about the draft as a new issue. Nothing is fetched or written."""
    settings = settings_of(local_memory)
    server = local_memory.home.removesuffix(f"/{local_memory.repo}") or GITHUB
    address = RepositoryAddress.at(server, local_memory.repo or None, settings.commands.questions)
    renderer = Renderer.of_repository(settings, templates_of(local_memory), server, local_memory.repo)
    thread = draft_thread(request)
    with comparing_memory(local_memory, settings) as memory:
        renderer.usual_language = lambda _: language_among(memory, _newest_issues(local_memory))
        context = recall(thread, memory, settings, address)
        context = replace(context, searched=context.searched + 1)  # the Action counts the new issue too
        proposal = comment_on(thread, context, renderer, settings.mentions)
        if proposal.problem not in local_memory.note:
            local_memory.warn(proposal.problem)
    _, _, comment = proposal.text.partition("\n")  # the first line is the hidden marker
    return DraftAnswer(
        proposal.answer, comment.lstrip("\n"), local_memory.local_cache.size, local_memory.local_cache.turn_count
    )


def _newest_issues(local_memory: LocalMemory) -> list[ThreadId]:
    return [card.id for card in local_memory.local_cache.newest(NEIGHBOURS, lambda card: isinstance(card.id, int))]


@contextmanager
def comparing_memory(local_memory: LocalMemory, settings: Settings) -> Iterator[Memory]:
    """Open the memory to compare issues as the bot does, with the text model of these settings if it is on this
    machine. Warns about what went wrong, and if the bot has a model that is not here."""
    embedder, fault = None, ""
    try:
        embedder = _embedder(local_memory, settings.similar.model)
    except PrecedentError as error:
        fault = f"Similar threads are found without embeddings: {error}"
        local_memory.warn(fault)
    with memory_of(local_memory, embedder) as memory:
        is_wanted = settings.similar.model and not local_memory.store and not fault
        if is_wanted and memory.state.manifest.embedder and (not embedder or memory.index.has_foreign_vectors):
            local_memory.warn(BY_WORDS_ONLY)
        yield memory
        for note in memory.notes:
            if note not in local_memory.note:
                local_memory.warn(note)


def _embedder(local_memory: LocalMemory, named: str) -> Embedder | None:
    """The text model in this folder; None if it is not on this machine."""
    top = local_memory.top
    if top is None and named != MODEL_OF_THE_IMAGE:
        return None  # it is in the checkout, which is not here
    top = top or Path("/")
    return open_text_model(named, top) if (top / named).is_dir() else None
