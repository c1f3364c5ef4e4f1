"""A complete branch: values that set every field that this program can write."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.domain.changes import (
    AnswerRecord,
    Changes,
    DiscussionProgress,
    FixInfo,
    HistoryProgress,
    OpenPull,
    OrganisationKey,
    ReleaseNotice,
    Renewal,
    Request,
    StandingComment,
)
from bot.domain.cluster import ClusterLink, ClusterLinks
from bot.domain.thread import FORGOTTEN, Kind, Message, Thread, TimelineEvent, Tombstone
from bot.index.protocol import Sizes
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.model_store import ModelUpdate
from bot.ranking.weights import shipped
from bot.sources.archive_file import read_archive

SAMPLE = Path(__file__).parents[2] / "sample" / "history.jsonl"
AT = datetime(2026, 11, 20, tzinfo=UTC)
SMALL = Sizes(8, 8, 400)
"""Index sizes so small that this branch has parts."""

MESSAGE = Message("hubot", "MEMBER", AT, "So it is.", 900, AT, (("+1", 2),), True)
EVENTS = (
    TimelineEvent("closed", AT, "octocat", "a" * 40),
    TimelineEvent("cross-referenced", AT, "octocat", None, 12, Kind.PULL),
    TimelineEvent("answered", AT, "octocat", comment=900),
)
THREAD = Thread(
    *(900, "All of it", "See #12.", "octocat", AT, Kind.PULL, "OWNER", True, AT, "closed", "completed", AT, "octocat"),
    *(True, True, AT, ("bug",), (("heart", 1),), (MESSAGE,), EVENTS),
)
CLAIM = Thread(
    *(903, "Said to be fixed", "Of it.", "octocat", AT), state="closed", closed_at=AT,
    comments=(Message("hubot", "NONE", AT, "Fixed by #12."),),
)  # fmt: skip
EDITED_CLAIM = replace(CLAIM, title="Said again to be fixed", updated_at=AT + timedelta(days=1))
PAGE = Thread("docs/all.md", "All", "Of it.", "octocat", AT, Kind.PAGE)
TRANSFERRED = Tombstone(901, AT, "transferred", "octo-org/elsewhere#1")
FORGOTTEN_THREAD = Tombstone(904, AT, FORGOTTEN)
ANSWERS = (
    AnswerRecord(900, "said", AT, "told", "f", 905, ((12, 0.5),), "q", AT, 1, 2),
    AnswerRecord(902, "pending", AT, text_hash="f"),
)
REQUESTS = (
    Request(900, 906, "wrong", "octocat", AT, (12,), "done", 907, AT),
    Request(900, 908, "context", "octocat", AT, (12, "docs/all.md"), "pending", None, AT),
)
FIX = FixInfo(900, "#12", AT, True, "b" * 40, AT, ("src/all.py",), "v1.0", AT, True, True)
LATER_FIX = FixInfo(12, "b" * 40, AT)

PULL = OpenPull(12, 900, "All of it", closes=True, draft=True, files=("src/all.py",), seen_at=AT)
STANDING = (
    StandingComment(900, AT, 0, "f", (12, "docs/all.md"), ("0a1b2c3d",), pulls=(PULL,)),
    StandingComment(900, AT, 906, "f", (12, 900), (), AT),
    StandingComment(902, AT, 0, "f", others=(OrganisationKey(7, 31),)),
)
NOTICES = (ReleaseNotice(900, "#12", "v2.3.0", AT, 12, "said", 907, AT),)
LINKS = (ClusterLinks(12, AT, (ClusterLink(900, "error", "Error: of it"),)),)
DONE = Renewal(900, 906, 12, AT)
OWED = Renewal(902, 0, 902, AT)
CHANGES = Changes(
    records=(THREAD, CLAIM, PAGE, TRANSFERRED, FORGOTTEN_THREAD),
    answers=ANSWERS,
    requests=REQUESTS,
    fixes=(FIX,),
    standing=STANDING,
    owed=(OWED,),
    renewed=(DONE,),
    notices=NOTICES,
    unseen=(Tombstone(903, AT, "unseen"),),
    pages=(("docs", "b" * 40),),
    cursor=AT,
    reading=HistoryProgress(AT, AT, frozenset({1, 900})),
    read_whole=datetime(2026, 11, 1, tzinfo=UTC),
    told_until=AT,
    links=LINKS,
    linked_to=12,
    relink=True,
    discussions=DiscussionProgress(AT, AT, "Y3Vyc29y", is_done=True),
)
MODEL_UPDATE = ModelUpdate(None, shipped(), 70, {"threads": 70})


def files(folder: Path) -> dict[str, bytes]:
    """The files of this branch, as this program writes them."""
    memory = Memory(FolderStore(folder), sizes=SMALL).open()
    memory.stage(Changes(records=tuple(read_archive(SAMPLE))))
    memory.stage(CHANGES)
    memory.stage(Changes(fixes=(LATER_FIX,), records=(EDITED_CLAIM,)))
    memory.install_model(MODEL_UPDATE)
    memory.rebuild_index()
    memory.commit("All of it")
    memory.close()
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if not name.startswith(".store/")}


def unset_fields() -> list[str]:
    """Fields that none of the values above sets, so that a change in how they are written would go unnoticed."""
    kinds: dict[type, list[Any]] = {}
    others = (FIX, *STANDING, PULL, *NOTICES, DONE, *LINKS, *LINKS[0].links)
    values = (THREAD, PAGE, TRANSFERRED, *ANSWERS, *REQUESTS, *others, MESSAGE, *EVENTS, CHANGES, MODEL_UPDATE)
    for value in (*values, CHANGES.reading, CHANGES.discussions):
        kinds.setdefault(type(value), []).append(value)
    return [
        f"{kind.__name__}.{field.name}"
        for kind, values in kinds.items()
        for field in (fields(kind) if is_dataclass(kind) else ())
        if field.name != "words" and all(getattr(each, field.name) == _default(field) for each in values)
    ]


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default
