"""Organisations made of the development archives, for `bench_elsewhere`: documents, links, queries."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from bot.domain.answer import OrganisationKey
from bot.domain.digest import FOREVER
from bot.domain.organisation import OrganisationThread
from bot.domain.thread import Outcome, Thread
from bot.domain.thread_json import thread_from_archive
from bot.index.document import unvouched_until
from bot.organisation.documents import MemorySource, organisation_thread
from tests.fakes.candidates import RememberedCandidates

DATA = Path(__file__).resolve().parents[3] / "shared/data"
RUST = "rust"
ARCHIVES = ("bitcoin_gui", "ietf_http2-spec", "ietf_mls-protocol", "ietf_qlog")
SIBLINGS = 8

_REFERENCE = re.compile(
    r"(?:https?://)?github\.com/[\w.-]+/[\w.-]+/(?:issues|pull|commit)/\w+|(?:[\w.-]+/[\w.-]+)?#\d+|\bGH-\d+"
)
_LINK = re.compile(r"(?:github\.com/)?([\w.-]+/[\w.-]+)(?:#|/issues/|/pull/)(\d+)")
_AREA = re.compile(r"[ATO]-(.+)")

Split = Callable[[Thread], str]


def by_label(thread: Thread) -> str:
    """The sibling repository of a Rust issue: its first label of an area, a team or an operating system in the order of
    the alphabet; issues without one, most of them, are in a repository of their own, as in an inbox."""
    return next((f"rust-{found[1]}" for label in sorted(thread.labels) if (found := _AREA.match(label))), "rust-inbox")


def by_number(thread: Thread) -> str:
    """One of eight sibling repositories, by the issue's number: siblings that speak of the same things."""
    return f"rust-{int(thread.id) % SIBLINGS}"


def whole(_: Thread) -> str:
    return RUST


SPLITS: Mapping[str, Split] = {"labels": by_label, "numbers": by_number, "archives": whole}


@dataclass(frozen=True)
class Organisation:
    """Threads of many repositories; ``repository`` is the number of each, by its name."""

    repositories: Mapping[str, int]
    threads: Mapping[OrganisationKey, Thread]
    places: Mapping[tuple[str, int], OrganisationKey]
    index: RememberedCandidates

    def others(self, key: OrganisationKey) -> set[int]:
        return set(self.repositories.values()) - {key.repository}


@dataclass(frozen=True)
class CrossQuery:
    """A Rust issue with those that people linked it to and that lie in another repository."""

    key: OrganisationKey
    relevant: frozenset[OrganisationKey]


@cache
def archive(name: str) -> dict[int, Thread]:
    """The issues of an archive."""
    path = DATA / ("rust_pre2015/issues.jsonl.gz" if name == RUST else f"threads/{name}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = (thread_from_archive(json.loads(line)) for line in lines)
        return {one.id: one for one in found if isinstance(one.id, int) and one.kind.traits.is_suggested}


def without_references(thread: Thread) -> Thread:
    """The thread with every reference in its title and opening text masked."""
    return replace(thread, title=_REFERENCE.sub(" ", thread.title), body=_REFERENCE.sub(" ", thread.body))


@cache
def document(name: str, number: int) -> OrganisationThread:
    """The document of an issue of an archive; how it ended plays no part in its place."""
    thread = without_references(archive(name)[number])
    return organisation_thread(replace(thread, role=""), MemorySource(0, name, 1), Outcome())


def organisation(names: Sequence[str], split: Split) -> Organisation:
    """These archives as one organisation, that of Rust as several repositories.

    An issue of an unknown author is in the index from when somebody else stood behind it.
    """
    named = [(name, split(one) if name == RUST else name, one) for name in names for one in archive(name).values()]
    numbers = {name: number for number, name in enumerate(sorted({repository for _, repository, _ in named}), 1)}
    threads, places, documents, since = {}, {}, list[OrganisationThread](), dict[object, datetime]()
    for name, repository, thread in named:
        assert isinstance(thread.id, int)
        key = OrganisationKey(numbers[repository], thread.id)
        threads[key], places[name, thread.id] = thread, key
        since[key] = (unvouched_until(thread) if thread.role else None) or thread.created_at
        if since[key] != FOREVER:
            known = document(name, thread.id)
            documents.append(replace(known, repository=key.repository, name=f"octo-org/{repository}"))
    return Organisation(numbers, threads, places, RememberedCandidates(documents, since))


def cross_queries(org: Organisation) -> Iterator[CrossQuery]:
    """The development queries whose earlier duplicate lies in another repository, oldest first."""
    rows = map(json.loads, (DATA / "rust_pre2015/queries.jsonl").read_text(encoding="utf-8").splitlines())
    for row in sorted(rows, key=lambda row: str(row["created_at"])):
        key = org.places[RUST, row["id"]]
        found = frozenset(org.places[RUST, target] for target in row["relevant"])
        if across := frozenset(one for one in found if one.repository != key.repository):
            yield CrossQuery(key, across)


def links_between(archives: Sequence[str]) -> int:
    """How often texts of one archive name an issue of another one, by their names on GitHub."""
    names = {
        "mozilla/rust": RUST,
        "rust-lang/rust": RUST,
        "bitcoin-core/gui": "bitcoin_gui",
        "http2/http2-spec": "ietf_http2-spec",
        "httpwg/http2-spec": "ietf_http2-spec",
        "mlswg/mls-protocol": "ietf_mls-protocol",
        "quicwg/qlog": "ietf_qlog",
        "quiclog/internet-drafts": "ietf_qlog",
    }
    texts = (
        (name, text)
        for name in archives
        for one in archive(name).values()
        for text in (one.title, one.body, *(comment.text for comment in one.comments))
    )
    named = ((name, names.get(repository.lower())) for name, text in texts for repository, _ in _LINK.findall(text))
    return sum(other is not None and other != name for name, other in named)
