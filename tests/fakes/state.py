"""The state of the fake GitHub: accounts, repositories, issues and pull requests, tokens, and the clock."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

BOT_LOGIN = "github-actions[bot]"
BOT_ID = 41898282
"""The account of a workflow's token."""
ACTIONS_SLUG = "github-actions"
DEFAULT_TOKEN = "ghs_fake_workflow_token"
DEFAULT_NOW = "2026-01-05T12:00:00Z"
WRITER_ROLES = frozenset({"write", "maintain", "admin"})
REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")

Moment = str | datetime | None


class Clock:
    """The fake's time in ISO 8601, in seconds (``2026-01-05T12:00:00Z``). It stands still; None is real time."""

    def __init__(self, now: Moment = DEFAULT_NOW) -> None:
        self._fixed = None if now is None else to_stamp(now)

    @property
    def now(self) -> str:
        return self._fixed or to_stamp(datetime.now(UTC))

    @now.setter
    def now(self, moment: Moment) -> None:
        self._fixed = None if moment is None else to_stamp(moment)

    @property
    def epoch(self) -> int:
        return int(datetime.fromisoformat(self.now).timestamp()) if self._fixed else int(time.time())

    def advance(self, seconds: int) -> None:
        self._fixed = from_epoch(self.epoch + seconds)

    def stamp(self, at: Moment) -> str:
        """``at`` as a stamp; None is now. A fixed clock advances to a later ``at``, so no event is in the future."""
        if at is None:
            return self.now
        moment = to_stamp(at)
        if self._fixed and moment > self._fixed:
            self._fixed = moment
        return moment


def to_stamp(moment: str | datetime) -> str:
    when = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_epoch(seconds: int) -> str:
    return to_stamp(datetime.fromtimestamp(seconds, UTC))


@dataclass(eq=False, slots=True)
class Account:
    login: str
    id: int
    type: str = "User"


@dataclass(eq=False, slots=True)
class Reaction:
    id: int
    author: Account | None
    content: str
    at: str


@dataclass(eq=False, slots=True)
class Comment:
    id: int
    issue: Issue
    author: Account | None
    association: str
    body: str
    created_at: str
    updated_at: str
    reactions: list[Reaction] = field(default_factory=list)
    app: str | None = None
    minimized: str | None = None


@dataclass(eq=False, slots=True)
class Event:
    """One entry of a timeline that is not a comment. ``kind`` is the REST name (``closed``, ``cross-referenced``, …).

    ``other`` is the other issue or pull request: the source of a reference, the original of a duplicate, the closer.
    """

    id: int
    kind: str
    actor: Account | None
    at: str
    commit: str | None = None
    other: Issue | None = None
    detail: str | None = None
    renamed: tuple[str, str] | None = None


@dataclass(eq=False, slots=True)
class ChangedFile:
    path: str
    status: str = "modified"
    additions: int = 1
    deletions: int = 1
    patch: str = "@@ -1 +1 @@"


@dataclass(eq=False, slots=True)
class Pull:
    """What a pull request has in addition to an issue."""

    head: str
    files: list[ChangedFile] = field(default_factory=list)
    closes: list[int] = field(default_factory=list)
    merged_at: str | None = None
    merge_commit: str | None = None
    merged_by: Account | None = None
    draft: bool = False
    base: str | None = None


@dataclass(eq=False, slots=True)
class Issue:
    repo: Repository
    number: int
    id: int
    title: str
    body: str | None
    author: Account | None
    association: str
    created_at: str
    updated_at: str
    state: str = "open"
    state_reason: str | None = None
    closed_at: str | None = None
    closed_by: Account | None = None
    locked: bool = False
    lock_reason: str | None = None
    labels: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    pull: Pull | None = None
    app: str | None = None
    changes: dict[str, dict[str, str]] = field(default_factory=dict)
    label_changed: str | None = None

    def touch(self, moment: str) -> None:
        """Set ``updated_at``, as GitHub does for every change of the issue, its comments and labels."""
        self.updated_at = max(self.updated_at, moment)


@dataclass(eq=False, slots=True)
class DiscussionComment:
    """A comment in a discussion, or with a ``parent`` a reply to one."""

    id: int
    discussion: Discussion
    author: Account | None
    association: str
    body: str
    created_at: str
    updated_at: str
    parent: DiscussionComment | None = None
    deleted_at: str | None = None
    minimized: str | None = None
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Discussion:
    repo: Repository
    number: int
    id: int
    title: str
    body: str
    author: Account | None
    association: str
    created_at: str
    updated_at: str
    category: str = "Q&A"
    closed: bool = False
    closed_at: str | None = None
    state_reason: str | None = None
    locked: bool = False
    labels: list[str] = field(default_factory=list)
    comments: list[DiscussionComment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    answer: DiscussionComment | None = None
    answered_at: str | None = None
    answered_by: Account | None = None
    moved_to: Discussion | None = None

    def touch(self, moment: str) -> None:
        self.updated_at = max(self.updated_at, moment)


@dataclass(eq=False, slots=True)
class Commit:
    sha: str
    message: str
    author: Account | None
    at: str
    files: list[ChangedFile] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Release:
    id: int
    tag: str
    at: str
    body: str = ""
    prerelease: bool = False
    draft: bool = False


@dataclass(eq=False, slots=True)
class Repository:
    id: int
    owner: Account
    name: str
    created_at: str
    private: bool = False
    internal: bool = False
    """Every member of the enterprise may read it; ``private`` is set as well, as on GitHub."""
    archived: bool = False
    has_issues: bool = True
    has_discussions: bool = False
    default_branch: str = "main"
    next_number: int = 1
    issues: dict[int, Issue] = field(default_factory=dict)
    outsiders: dict[int, Issue] = field(default_factory=dict)
    """Issues that only appear as the other end of a reference, because the archive does not hold them."""
    comments: dict[int, Comment] = field(default_factory=dict)
    deleted: dict[int, Issue] = field(default_factory=dict)
    removed: dict[int, Comment] = field(default_factory=dict)
    """Deleted issues and comments, which the webhook about the deletion still shows."""
    moved: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Number here → (repository id, number there) of transferred issues."""
    discussions: dict[int, Discussion] = field(default_factory=dict)
    lost_discussions: dict[int, Discussion] = field(default_factory=dict)
    """Deleted or transferred discussions, which the webhook about it still shows."""
    roles: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    releases: list[Release] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    """Name → SHA of the newest commit, for branches with commits."""

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def visibility(self) -> str:
        return ("internal" if self.internal else "private") if self.private else "public"

    def role(self, account: Account | None) -> str:
        """``admin``, ``maintain``, ``write``, ``triage``, ``read`` or, on a private repository, ``none``."""
        if account is self.owner:
            return "admin"
        default = "none" if self.private else "read"
        return default if account is None else self.roles.get(account.login.lower(), default)

    def writable_by(self, account: Account | None) -> bool:
        return self.role(account) in WRITER_ROLES


@dataclass(eq=False, slots=True)
class Token:
    """A token of an account. ``permissions``: all that it may do; None means everything that the account may do."""

    value: str
    account: Account
    permissions: dict[str, str] | None = None
    app: str | None = None
    installation: int | None = None
    expires_at: str | None = None
    limit: int = 5000


class World:
    """All state behind one server; every request and every method of `History` holds ``lock``."""

    def __init__(self, now: Moment = DEFAULT_NOW) -> None:
        self.clock = Clock(now)
        self.lock = threading.RLock()
        self.accounts: dict[str, Account] = {}
        self.repositories: dict[int, Repository] = {}
        self.names: dict[str, int] = {}
        """Lower-case full name → id, including former names."""
        self.tokens: dict[str, Token] = {}
        self.version = 0
        """Counts possible changes, so that sorted lists can be cached until the next one."""
        self.last_id = 1_000_000
        self.accounts[BOT_LOGIN] = Account(BOT_LOGIN, BOT_ID, "Bot")

    def next_id(self) -> int:
        with self.lock:
            self.last_id += 1
            return self.last_id

    def account(self, login: str | None) -> Account | None:
        """The account of this login, created if needed; None for None and ``ghost``, which mean a deleted account."""
        if not login or login == "ghost":
            return None
        return self.ensure_account(login)

    def ensure_account(self, login: str) -> Account:
        kind = "Bot" if login.endswith("[bot]") else "User"
        return self.accounts.setdefault(login.lower(), Account(login, 1000 + len(self.accounts), kind))

    def add_repository(self, full_name: str) -> Repository:
        owner, name = full_name.split("/")
        repo = Repository(self.next_id(), self.ensure_account(owner), name, self.clock.now)
        self.repositories[repo.id] = repo
        self.names[full_name.lower()] = repo.id
        return repo

    def add_token(self, token: Token) -> Token:
        self.tokens[token.value] = token
        return token
