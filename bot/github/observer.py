"""Tells an observer of each request to GitHub that its thread or task makes. Usually there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

TellAnswer = Callable[[int, Mapping[str, str]], None]
"""Takes the status of an answer and its headers, whose names are in lower case."""

RequestObserver = Callable[[str, str], AbstractContextManager[TellAnswer]]
"""Takes the verb and the path of a request, without its query, and returns a block around it.

The path has names of accounts and repositories: see `bot.github.routes`.
"""

_observer: ContextVar[RequestObserver | None] = ContextVar("request observer", default=None)
_unobserved = nullcontext[TellAnswer](lambda _status, _headers: None)


@contextmanager
def observed_by(observer: RequestObserver) -> Iterator[None]:
    """Tell the observer of every request that this thread or task makes within the block."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def observed(verb: str, path: str) -> AbstractContextManager[TellAnswer]:
    """Return the block for a request. If nothing is told within it, there was no answer."""
    observer = _observer.get()
    return observer(verb, path) if observer else _unobserved
