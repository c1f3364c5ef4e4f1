"""Organisations made of the development archives, for `bench_elsewhere`: documents, links, queries."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from bench.archives import ARCHIVE, DATA
from bot.domain.digest import FOREVER
from bot.domain.organisation import OrganisationThread
from bot.domain.post import OrganisationKey
from bot.domain.thread import Outcome, Thread
from bot.domain.thread_json import thread_from_archive
from bot.index.document import unvouched_until
from bot.organisation.documents import MemorySource, organisation_thread
from tests.fakes.candidates import InMemoryCandidates

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
    """The sibling repository of a Rust issue: its alphabetically first label of an area, a team or an operating system;
    issues without one, most of them, share a repository, like an inbox."""
    return next((f"rust-{area[1]}" for label in sorted(thread.labels) if (area := _AREA.match(label))), "rust-inbox")


def by_number(thread: Thread) -> str:
    """One of eight sibling repositories, by the issue's number: all siblings are about the same topics."""
    return f"rust-{int(thread.id) % SIBLINGS}"


def in_one_repository(_: Thread) -> str:
    return RUST


SPLITS: Mapping[str, Split] = {"labels": by_label, "numbers": by_number, "archives": in_one_repository}


@dataclass(frozen=True)
class Organisation:
    """Threads of many repositories; ``repositories`` maps names to numbers."""

    repositories: Mapping[str, int]
    threads: Mapping[OrganisationKey, Thread]
    keys_by_number: Mapping[tuple[str, int], OrganisationKey]
    index: InMemoryCandidates

    def others(self, key: OrganisationKey) -> set[int]:
        return set(self.repositories.values()) - {key.repository}


@dataclass(frozen=True)
class CrossQuery:
    """A Rust issue with the issues in other repositories that people linked it to."""

    key: OrganisationKey
    relevant: frozenset[OrganisationKey]


@cache
def archive(name: str) -> dict[int, Thread]:
    """The issues of an archive."""
    path = ARCHIVE if name == RUST else DATA / f"threads/{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        threads = (thread_from_archive(json.loads(line)) for line in lines)
        return {
            thread.id: thread for thread in threads if isinstance(thread.id, int) and thread.kind.traits.is_suggested
        }


def without_references(thread: Thread) -> Thread:
    """The thread with every reference in its title and opening text masked."""
    return replace(thread, title=_REFERENCE.sub(" ", thread.title), body=_REFERENCE.sub(" ", thread.body))


@cache
def document(name: str, number: int) -> OrganisationThread:
    """The document of an archive's issue, without an outcome, which does not affect its rank."""
    thread = without_references(archive(name)[number])
    return organisation_thread(replace(thread, role=""), MemorySource(0, name, 1), Outcome())


def organisation(names: Sequence[str], split: Split) -> Organisation:
    """These archives as one organisation, with Rust split into several repositories.

    An issue by an unknown author is in the index from the moment when somebody else took part.
    """
    assigned = [
        (name, split(thread) if name == RUST else name, thread) for name in names for thread in archive(name).values()
    ]
    numbers = {name: number for number, name in enumerate(sorted({repository for _, repository, _ in assigned}), 1)}
    threads, keys_by_number, documents, since = {}, {}, list[OrganisationThread](), dict[object, datetime]()
    for name, repository, thread in assigned:
        assert isinstance(thread.id, int)
        key = OrganisationKey(numbers[repository], thread.id)
        threads[key], keys_by_number[name, thread.id] = thread, key
        since[key] = (unvouched_until(thread) if thread.role else None) or thread.created_at
        if since[key] != FOREVER:
            entry = document(name, thread.id)
            documents.append(replace(entry, repository=key.repository, name=f"octo-org/{repository}"))
    return Organisation(numbers, threads, keys_by_number, InMemoryCandidates(documents, since))


def cross_queries(org: Organisation) -> Iterator[CrossQuery]:
    """The development queries with an earlier duplicate in another repository, oldest first."""
    rows = map(json.loads, (DATA / "rust_pre2015/queries.jsonl").read_text(encoding="utf-8").splitlines())
    for row in sorted(rows, key=lambda row: str(row["created_at"])):
        key = org.keys_by_number[RUST, row["id"]]
        relevant = frozenset(org.keys_by_number[RUST, target] for target in row["relevant"])
        if across := frozenset(target_key for target_key in relevant if target_key.repository != key.repository):
            yield CrossQuery(key, across)


def links_between(archives: Sequence[str]) -> int:
    """How often texts of one archive link to an issue of another one, by their names on GitHub."""
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
        for thread in archive(name).values()
        for text in (thread.title, thread.body, *(comment.text for comment in thread.comments))
    )
    mentioned = ((name, names.get(repository.lower())) for name, text in texts for repository, _ in _LINK.findall(text))
    return sum(other is not None and other != name for name, other in mentioned)
