"""A memory with something in each section of the digest, and reports made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.cluster import Cluster, ClusterMember
from bot.domain.thread import Kind, Message, RepositoryAddress, Thread, ThreadId, TimelineEvent
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.store import Store
from bot.pipeline.digest import digest_source
from bot.questions.digest import DigestRequest, DigestSource, MaintainerReport, maintainer_report
from bot.settings.schema import Settings

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
SINCE = NOW - timedelta(days=30)
REPO = "octo-org/linkbarn"
HOME = f"https://github.com/{REPO}"


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def issue(key: ThreadId, title: str, body: str = "", days: float = 5, **fields: object) -> Thread:
    """Return an open issue by an unknown author, opened some days ago."""
    return replace(Thread(key, title, body, f"user-{key}", ago(days), updated_at=ago(days)), **fields)


def closed(thread: Thread, days: float, *comments: str, **fields: object) -> Thread:
    """Return the issue as closed some days ago by a maintainer with these comments."""
    messages = tuple(message(text, days, hour) for hour, text in enumerate(reversed(comments), 1))[::-1]
    fields_when_closed = {"state": "closed", "closed_at": ago(days), "closed_by": "octocat", "updated_at": ago(days)}
    return replace(thread, comments=messages, **(fields_when_closed | fields))


def message(text: str, days: float, hours: float = 1, author: str = "octocat", role: str = "OWNER") -> Message:
    at = ago(days) - timedelta(hours=hours / 60)
    return Message(author, role, at, text, 7_000 + int(days * 10) + int(hours))


LOGIN = (
    "Since the upgrade the server answers every login with `SESSION_COOKIE_CONFLICT` and the browser shows the form "
    "again. The log says `session cookie lb_session conflicts with path /accounts` for each of these requests."
)
FIXED = closed(
    issue(48, "Login loop after the upgrade to 2.2", f"Linkbarn version: 2.2.0\n\n{LOGIN}", 220),
    200,
    "Fixed by #50, released in v2.3.0.",
)
BACK = issue(90, "Login loop again, the form comes back after every login", f"Linkbarn version: 2.4.1\n\n{LOGIN}", 5)
FIX = FixInfo(
    48, "#50", ago(199), is_pull=True, commit="4f" * 20, merged_at=ago(201), release="v2.3.0", released_at=ago(200)
)
PULL = issue(
    50,
    "Expire the old session cookie",
    "Closes #48.",
    205,
    kind=Kind.PULL,
    author="monalisa",
    role="MEMBER",
    state="closed",
    closed_at=ago(201),
    merged_at=ago(201),
)

WAITING = closed(
    issue(70, "Export leaves out the notes of archived links", days=60), 12, "Fixed in #71, thank you for the report!"
)
WAITING_FIX = FixInfo(70, "#71", ago(2), is_pull=True, commit="a1" * 20, merged_at=ago(12), unreleased=True)

DECIDED = replace(
    issue(75, "Should tags be case sensitive?", "Both have been asked for.", 25),
    comments=(message("We decided to keep tags in lower case, and to show them as they were first written.", 9),),
)

PARKED = closed(issue(62, "Dark theme for the printed list", days=150), 140, "We will not add this: paper is white.")
REPEATED = replace(
    issue(91, "Print the list on a dark background", days=4),
    comments=(message("Duplicate of #62.", 3, author="monalisa", role="MEMBER"),),
)

IMPORTS = (
    issue(60, "Import stops at 1,000 bookmarks", "The bar stays at 1,000 of 4,312.", 120),
    *(
        closed(
            issue(key, f"Import hangs after {count} bookmarks", "It stays there.", days),
            days - 1,
            "Duplicate of #60.",
            state_reason="duplicate",
        )
        for key, count, days in (
            *((64, 1000, 101), (72, 1001, 62), (78, 1000, 33), (83, 1003, 17)),
            *((84, 1000, 16), (86, 1000, 10), (87, 1002, 9), (89, 1000, 8)),
        )
    ),
    issue(93, "Importing from the browser never ends", "It stays at 1,000.", 1),
)


def answered(thread: Thread, days: float) -> Thread:
    """Return the question as closed after an answer for which its author thanked."""
    text = "Stop the server, copy linkbarn.db and the folder files to the new machine, then start it there."
    closed_thread = closed(thread, days, state_reason="completed")
    return replace(
        closed_thread,
        comments=(message(text, days, 50), message("Thanks, that worked!", days, 5, thread.author, "NONE")),
    )


QUESTION = "Which of the database, the attachments and the settings have to be copied to the new machine?"
MOVING = tuple(
    answered(issue(key, title, QUESTION, days), days - 1)
    for key, title, days in (
        (40, "How do I move to another machine?", 250),
        (66, "What must be copied to a new server?", 90),
        (85, "Moving the whole installation elsewhere", 8),
    )
)

PAGE = Thread(
    "docs:docs/tags.md",
    "Tags",
    "# Tags\n\nA tag groups links. Type it below the address.",
    "octocat",
    ago(300),
    kind=Kind.PAGE,
    updated_at=ago(300),
)

THREADS = (FIXED, BACK, PULL, WAITING, DECIDED, PARKED, REPEATED, *IMPORTS, *MOVING, PAGE)
FIXES = (FIX, WAITING_FIX)


def cluster(*threads: Thread, why: str = "same error line") -> Cluster:
    """Return a cluster of these threads; the first one is its canonical issue."""
    oldest = sorted(threads, key=lambda thread: thread.created_at)
    members = tuple(
        ClusterMember(thread.id, () if thread is threads[0] else (why,), thread.created_at, thread.author)
        for thread in oldest
    )
    people = len({thread.author for thread in threads})
    times = tuple(thread.created_at for thread in oldest)
    return Cluster(f"c{oldest[0].id}", threads[0].id, members, people, times, threads[0].title)


CLUSTERS = (
    cluster(*IMPORTS, why="a maintainer marked it as a duplicate"),
    cluster(*MOVING, why="the same rare words: linkbarn.db"),
)


def create_memory(
    location: Path | Store,
    threads: Iterable[Thread] = THREADS,
    fixes: Iterable[FixInfo] = FIXES,
    requests: Iterable[Request] = (),
) -> Memory:
    """Store these threads in a folder or store and return the memory; of two with one id the later counts."""
    store = FolderStore(location) if isinstance(location, Path) else location
    memory = Memory(store, sleep=lambda _: None, repo=REPO).open()
    records = tuple({thread.id: thread for thread in threads}.values())
    memory.stage(Changes(records=records, fixes=tuple(fixes), requests=tuple(requests)))
    memory.commit("Remember")
    return memory.open()


def source(
    memory: Memory,
    clusters: tuple[Cluster, ...] = CLUSTERS,
    settings: Settings | None = None,
    request: DigestRequest | None = None,
) -> DigestSource:
    request = request or DigestRequest(SINCE, NOW)
    digest = digest_source(memory, settings or Settings(), RepositoryAddress(REPO), request)
    return replace(digest, clusters=clusters, uncompared=0)


def report(memory: Memory, clusters: tuple[Cluster, ...] = CLUSTERS) -> MaintainerReport:
    return maintainer_report(source(memory, clusters))


def without_duplicate_mark(thread: Thread, days: float) -> Thread:
    """Return the issue as reopened after somebody removed its mark as a duplicate."""
    names = ("closed", "reopened", "unmarked_as_duplicate")
    return replace(
        thread, events=tuple(TimelineEvent(name, ago(days - hour / 24), "octocat") for hour, name in enumerate(names))
    )
