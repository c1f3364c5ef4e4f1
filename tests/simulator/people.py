"""What people do in the repository: they open, edit, comment, close, lock, delete, and change our comments."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, TypeVar

from tests.fakes.github import FakeGitHub
from tests.fakes.state import BOT_LOGIN, Comment, Issue
from tests.simulator.displays import NOTE, is_shown
from tests.simulator.scene import Delivery, Scene

T = TypeVar("T")
OWNER = "octo-org"
WRITER = "monalisa"
CROWD = ("octocat", "hubot", "defunkt", WRITER, OWNER)
REASONS = ("completed", "completed", "not_planned", "duplicate")

SUBJECTS = (
    ("Parser stops at an unterminated string", "LexerError: unterminated string literal at src/lexer.py:41",
     "Upgrade to 2.3.1, the lexer reads multi-line strings since then."),
    ("Upload of large files times out", "TimeoutError: upload of part 7 exceeded 30 seconds in storage/upload.go",
     "Fixed by raising upload.timeout to 300 in the configuration."),
    ("Dark theme shows white flashes", "FlashOfUnstyledContent: theme.css loaded after paint in web/theme.ts",
     "Inline the theme attribute in index.html, then the flash is gone."),
    ("Migration fails on PostgreSQL 15", "ERROR: permission denied for schema public in migrations/0007_roles.sql",
     "Grant create on schema public to the migration role."),
    ("Memory grows while websockets are open", "heap snapshot shows 40,000 SocketSession objects in net/socket.rs",
     "We decided to keep sessions weakly; released in 1.9.0."),
    ("Install script breaks on Alpine", "sh: bash: not found in scripts/install.sh line 3",
     "Works with apk add bash; we will not support busybox."),
    ("Calendar shows the wrong week", "AssertionError: week 53 expected, got 1 in dates/iso_week.py",
     "ISO weeks are used since 4.0, set week_start to monday."),
    ("Search ignores umlauts", "normalize: 'ä' not folded by tokenizer_fold in search/fold.c",
     "Set fold_accents = true in the search section."),
)  # fmt: skip
WORDS = ("again", "since yesterday", "on two machines", "after the upgrade", "only sometimes", "with a clean profile")
STEPS = (0, 0, 0, 1, 20, 90, 200, 400, 1800, 7200, 30_000, 100_000, 300_000)
"""Seconds between two actions; 0 gives equal timestamps."""


def add_earlier_issues(fake: FakeGitHub, subjects: int) -> None:
    """Add the issues from before the history: closed ones with their endings, and a last one that is open."""
    fake.set_permission(WRITER, "write")
    start = "2026-01-01T{:02d}:{:02d}:00Z"
    for index, (title, error, remedy) in enumerate(SUBJECTS[:subjects]):
        number = fake.open_issue(CROWD[index % 3], title, f"Steps:\n\n```\n{error}\n```\n", start.format(index, 0))
        fake.comment(number, WRITER, remedy, start.format(index, 10))
        fake.comment(number, CROWD[index % 3], "Thanks, that works.", start.format(index, 20))
        if index < subjects - 1:
            fake.close(number, WRITER, "completed", start.format(index, 30))
    fake.clock.now = "2026-01-05T12:00:00Z"


EARLY_CHANGES = 7
"""How many changes, each with its own run, bring a branch close to its squash."""


def make_small_change(fake: FakeGitHub, turn: int) -> None:
    """Add a label on the day before the history begins."""
    fake.label(len(SUBJECTS), f"label-{turn}", at=f"2026-01-04T00:{turn:02d}:00Z", actor=WRITER)


class ImpossibleError(Exception):
    """An action is not possible now."""


class People:
    """Random people: `act` performs one action and returns the event that GitHub sends for it, if any."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self.scene, self.fake, self.chance = scene, scene.fake, chance
        self.report: Callable[[str], None] = lambda line: None
        self.is_calm = False
        self.notes = 0

    def act(self) -> Delivery | None:
        """Perform one of the actions that are possible now; opening an issue always is."""
        verbs, weights = zip(*(self.USUAL if self.is_calm else self.ALL).items(), strict=True)
        for _ in range(20):
            verb = self.chance.choices(verbs, weights)[0]
            with suppress(ImpossibleError):
                delivery: Delivery | None = getattr(self, f"_{verb}")()
                return delivery
        return self._open()

    # -- each returns the event, or None if GitHub sends none ---------------------------------------------------------

    def _open(self) -> Delivery:
        title, error, _ = self._subject()
        detail = self.chance.choice(WORDS)
        body = f"It happens {detail}:\n\n```\n{error}\n```\n"
        if self.chance.random() < 0.45 and (numbers := self._numbers()):
            body += self.chance.choice(("Is this the same as #{}?", "Looks like #{}.", "See #{} for more.")).format(
                self.chance.choice(numbers)
            )
        if self.chance.random() < 0.08:
            body += "\n\nDid we ever decide about " + title.lower() + "?"
        number = self.fake.open_issue(
            self._somebody(), f"{title} {detail}" if self.chance.random() < 0.5 else title, body
        )
        return self._event("issues", "opened", number)

    def _edit(self) -> Delivery:
        issue = self._any_issue()
        if self.chance.random() < 0.4:
            self.fake.edit_issue(issue.number, title=f"{issue.title} ({self.chance.choice(WORDS)})")
        else:
            numbers = [number for number in self._numbers() if number != issue.number]
            addition = (
                f"\n\nSee #{self.chance.choice(numbers)}." if numbers and self.chance.random() < 0.6 else "\n\nMore."
            )
            self.fake.edit_issue(issue.number, body=(issue.body or "") + addition)
        return self._event("issues", "edited", issue.number)

    def _comment(self) -> Delivery:
        issue = self._any_issue()
        _title, error, remedy = self._subject()
        numbers = [number for number in self._numbers() if number != issue.number] or [1]
        texts = (remedy, f"I see `{error}` too.", "Any news?", f"This is like #{self.chance.choice(numbers)}, I think.",
                 f"Duplicate of #{self.chance.choice(numbers)}", "We decided to keep it as it is.")  # fmt: skip
        return self._comment_event(
            issue.number, self._somebody(), f"{self.chance.choice(texts)}\n\nAs in {self._note()}."
        )

    def _command(self) -> Delivery:
        issue = self._any_issue()
        number = self.chance.choice(self._numbers() or [1])
        words = self._subject()[0].lower()
        lines = ("off", "on", "refresh", f"wrong #{number}", f"wrong {number}", "same", f"search {words}",
                 f"context #{number}", "help", "nonsense")  # fmt: skip
        line = self.chance.choices(lines, (3, 3, 3, 1, 1, 1, 3, 1, 1, 1))[0]
        return self._comment_event(issue.number, self._somebody(), f"/precedent {line}")

    def _question(self) -> Delivery:
        issue = self._any_issue()
        topic = self._subject()[0].lower()
        text = self.chance.choice((f"Did we ever discuss {topic}?", f"What did we decide about {topic}?"))
        return self._comment_event(issue.number, self._somebody(), text)

    def _forge(self) -> Delivery:
        """A stranger puts our marker at the top of a comment."""
        issue = self._any_issue()
        return self._comment_event(
            issue.number, "octocat", "<!-- precedent:v1 id=action -->\nSeen before: nothing at all."
        )

    def _edit_comment(self) -> Delivery:
        comment = self._any_comment()
        if comment.issue.updated_at == self.fake.clock.now:
            # GitHub's times are whole seconds: no list shows an edit in the same second in which the thread was read.
            # If its event is lost too, nothing reveals it before the thread changes again.
            self.fake.clock.advance(1)
        removes_note = self.chance.random() < 0.5
        text = NOTE.sub(self._note(), comment.body) if removes_note else comment.body
        self.fake.edit_comment(comment.id, f"{text}\n\nEdit: {self.chance.choice(WORDS)}.")
        return self._event("issue_comment", "edited", comment.issue.number, comment.id)

    def _delete_comment(self) -> Delivery:
        comment = self._any_comment()
        self.fake.delete_comment(comment.id)
        return self._event("issue_comment", "deleted", comment.issue.number, comment.id)

    def _close(self) -> Delivery:
        issue = self._any_issue("open")
        kind = self.chance.randrange(5)
        if kind == 0:
            self.fake.close(issue.number, WRITER, "completed", commit=f"{self.chance.getrandbits(160):040x}")
        elif kind == 1:
            pull = self.fake.add_pull(WRITER, f"Fix {issue.title}", f"Fixes #{issue.number}", closes=[issue.number])
            self.fake.merge_pull(pull, WRITER)
        else:
            reason = self.chance.choice(REASONS)
            others = [number for number in self._numbers() if number != issue.number]
            if reason == "duplicate" and others:
                self.fake.mark_duplicate(issue.number, self.chance.choice(others), WRITER)
            self.fake.close(issue.number, self.chance.choice((WRITER, OWNER)), reason)
        return self._event("issues", "closed", issue.number)

    def _reopen(self) -> Delivery:
        issue = self._any_issue("closed")
        self.fake.reopen(issue.number, WRITER)
        return self._event("issues", "reopened", issue.number)

    def _label(self) -> Delivery:
        issue = self._any_issue()
        if issue.labels:
            name = issue.labels[0]
            self.fake.unlabel(issue.number, name, actor=WRITER)
            return self._event("issues", "unlabeled", issue.number)
        self.fake.label(issue.number, self.chance.choice(("bug", "help wanted", "area: web")), actor=WRITER)
        return self._event("issues", "labeled", issue.number)

    def _lock(self) -> Delivery:
        issue = self._any_issue()
        if issue.locked:
            self.fake.unlock(issue.number, actor=WRITER)
            return self._event("issues", "unlocked", issue.number)
        self.fake.lock(issue.number, actor=WRITER)
        return self._event("issues", "locked", issue.number)

    def _delete(self) -> Delivery:
        issue = self._any_issue()
        if len(self.fake.repo.issues) < 3:
            raise ImpossibleError
        self.fake.delete_issue(issue.number)
        return self._event("issues", "deleted", issue.number)

    def _transfer(self) -> Delivery:
        issue = self._any_issue()
        if len(self.fake.repo.issues) < 3:
            raise ImpossibleError
        number = issue.number
        self.fake.transfer(number, self.scene.elsewhere, WRITER)
        return self._event("issues", "transferred", number)

    def _delete_ours(self) -> Delivery:
        ours = self._ours()
        self.fake.delete_comment(ours.id, by=WRITER)
        return self._event("issue_comment", "deleted", ours.issue.number, ours.id)

    def _edit_ours(self) -> Delivery:
        ours = self._ours()
        self.fake.edit_comment(ours.id, ours.body.replace("\n", "\nA remark of a person.\n", 1), by=WRITER)
        return self._event("issue_comment", "edited", ours.issue.number, ours.id)

    def _thumb(self) -> None:
        ours = self._ours()
        self.fake.react(ours.issue.number, self._somebody(), self.chance.choice(("+1", "-1")), ours.id)
        self.report("somebody puts a thumb on our comment")

    ALL: ClassVar[dict[str, int]] = {
        "open": 26, "edit": 9, "comment": 16, "command": 12, "question": 3, "forge": 2, "edit_comment": 6,
        "delete_comment": 5, "close": 10, "reopen": 4, "label": 2, "lock": 2, "delete": 3, "transfer": 2,
        "delete_ours": 7, "edit_ours": 3, "thumb": 2,
    }  # fmt: skip
    USUAL: ClassVar[dict[str, int]] = {"open": 5, "edit": 2, "comment": 5, "close": 4, "reopen": 1, "label": 1}

    # -- parts -----------------------------------------------------------------------------------------------------

    def _comment_event(self, number: int, login: str, text: str) -> Delivery:
        comment = self.fake.comment(number, login, text)
        return self._event("issue_comment", "created", number, comment)

    def _event(self, name: str, action: str, number: int, comment: int | None = None) -> Delivery:
        delivery = self.scene.make_delivery(name, action, number, comment)
        body = self.fake.repo.comments[comment].body if comment in self.fake.repo.comments else ""
        self.report(f"{delivery.label} {body[:60]!r}" if body else delivery.label)
        return delivery

    def _note(self) -> str:
        """Unique words, so that a comment that shows them can be traced to its source."""
        self.notes += 1
        return f"note {self.notes:04d}"

    def _subject(self) -> Sequence[str]:
        return self.chance.choice(SUBJECTS)

    def _somebody(self) -> str:
        return self.chance.choice(CROWD)

    def _numbers(self) -> list[int]:
        return [number for number, issue in sorted(self.fake.repo.issues.items()) if not issue.pull]

    def _any_issue(self, state: str = "") -> Issue:
        """A random issue, mostly one of the newest."""
        numbers = [number for number in self._numbers() if state in ("", self.fake.issue(number).state)]
        fresh = [number for number in numbers if self.fake.issue(number).created_at >= "2026-01-05"]
        chosen = fresh if fresh and self.chance.random() < 0.85 else numbers
        return self.fake.issue(self._pick(chosen))

    def _any_comment(self) -> Comment:
        """One of the newest comments; half the time one on an issue that a comment of ours shows."""
        comments = [c for _, c in sorted(self.fake.repo.comments.items()) if c.author and c.author.login != BOT_LOGIN]
        shown = [c for c in comments if NOTE.search(c.body) and is_shown(self.scene, c.issue.number)]
        chosen = shown if shown and self.chance.random() < 0.5 else comments
        return self._pick(chosen[-4:])

    def _ours(self) -> Comment:
        return self._pick([c for c in self.fake.comments_by(BOT_LOGIN) if c.id in self.fake.repo.comments])

    def _pick(self, among: Sequence[T]) -> T:
        if not among:
            raise ImpossibleError
        return self.chance.choice(among)
