"""Why a thread was found, in a few plain words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.model import Thread
from bot.reading.signals import normalise_error, read_signals
from bot.reading.words import token_terms, tokens

MAX_REASONS = 3
MAX_TERMS = 4


@dataclass(frozen=True, slots=True)
class Shared:
    """What two texts both hold: error lines (as the first one writes them), file paths, identifiers."""

    errors: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def shared_signals(question: Thread, found: Thread) -> Shared:
    """The signals that the opening texts share; error lines agree when their numbers and paths are masked."""
    here, there = read_signals(_text(question)), read_signals(_text(found))
    lines = {normalise_error(line): line for line in here.errors}
    same = dict.fromkeys(lines[form] for line in there.errors if (form := normalise_error(line)) in lines)
    files, names = set(there.files), set(there.identifiers)
    return Shared(
        tuple(same),
        tuple(path for path in here.files if path in files),
        tuple(name for name in here.identifiers if name in names),
    )


def reasons(question: Thread, shared: Shared, terms: Iterable[str]) -> tuple[str, ...]:
    """What both name, strongest first: error lines, error codes and types, files, then words.

    Values stand between backticks where they are code; they are strangers' text and not yet harmless.
    """
    told: list[str] = []
    if shared.errors:
        told.append(f"same error `{_code(shared.errors[0])}`")
    if shared.files:
        told.append(f"same file `{_code(shared.files[0])}`")
    names = [name for name in shared.names if not _is_told(name, told)]
    if names and len(told) < MAX_REASONS:
        told.append("both name " + " and ".join(f"`{_code(name)}`" for name in names[:2]))
    words = [word for word in surface_forms(_text(question), list(terms)) if not _is_told(word, told)]
    if words and len(told) < MAX_REASONS:
        told.append("both speak of " + ", ".join(words[:MAX_TERMS]))
    return tuple(told[:MAX_REASONS])


def _is_told(word: str, told: Iterable[str]) -> bool:
    return any(word.lower() in reason.lower() for reason in told)


def surface_forms(text: str, wanted: Sequence[str]) -> list[str]:
    """The words of ``text`` that the analysed terms ``wanted`` come from, in the order of ``wanted``, each once."""
    forms: dict[str, str] = {}
    for token in tokens(text):
        for term in token_terms(token):
            forms.setdefault(term, token)
    return list(dict.fromkeys(forms[term] for term in wanted if term in forms))


def _text(thread: Thread) -> str:
    return "\n".join([thread.title, thread.body])


def _code(text: str) -> str:
    return text.replace("`", "'").strip()
