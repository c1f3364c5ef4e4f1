"""The scenes: each a repository at some moment, and an event whose run makes the calls that will fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bot.comment.marker import read_seal
from bot.pipeline.draft import WITHDRAWN_FINGERPRINT
from tests.acceptance.stage import BOT
from tests.faults.logged_stage import LoggedStage

Event = tuple[str, str | None, int | None, int | None]


def has_comment(t: LoggedStage, number: int) -> bool:
    """Whether our comment is on the issue."""
    return len(t.comments(number)) > 0


def has_new_text(t: LoggedStage, number: int) -> bool:
    return "Dark mode" in "".join(t.comments(number))


def is_replied(t: LoggedStage, number: int) -> bool:
    return any("reply" in text.splitlines()[0] for text in t.comments(number))


def is_obeyed(t: LoggedStage, number: int) -> bool:
    """Whether our comment is withdrawn, or the reply says why not."""
    seals = [read_seal(text) for text in t.comments(number)]
    is_withdrawn = any(seal is not None and seal.content == WITHDRAWN_FINGERPRINT for seal in seals)
    return is_withdrawn or is_replied(t, number)


def is_counted(t: LoggedStage, number: int) -> bool:
    return t.memory().state.comments([number])[number].votes != ()


@dataclass(frozen=True)
class Scene:
    """``set_up`` brings a repository to the moment and returns the event; ``done`` says whether the work due on the
    issue ``due`` was done; ``optional_issue`` need not be in memory, as nobody could see it when it was new."""

    name: str
    set_up: Callable[[LoggedStage], Event]
    due: int = 2
    done: Callable[[LoggedStage, int], bool] = has_comment
    optional_issue: int | None = None


def opened(t: LoggedStage) -> Event:
    """An issue that refers to a decision was opened."""
    t.act("schedule")
    return "issues", "opened", t.github.open_issue("hubot", "Everybody is logged out", "As in #1."), None


def commented(t: LoggedStage) -> Event:
    """An issue without any match got a comment that refers to a decision."""
    number = t.github.open_issue("hubot", "Zyx", "Wvu tsr.")
    t.act("issues", "opened", number)
    return "issue_comment", "created", number, t.github.comment(number, "hubot", "Is that as in #1?")


def busy(t: LoggedStage) -> Event:
    """Comments on two issues at once."""
    event = commented(t)
    other = t.github.open_issue("monalisa", "Abc", "Def ghi.")
    t.github.comment(other, "hubot", "Jkl.")
    return event


def unseen(t: LoggedStage) -> Event:
    """An issue that nobody could see is back, older than everything listed."""
    number = t.github.open_issue("hubot", "Everybody is logged out", "As in #1.")
    t.github.hide_issue(number)
    t.github.open_issue("monalisa", "Abc", "Def ghi.", at="2026-01-05T13:00:00Z")
    t.act("schedule")
    t.github.show_issue(number)
    return "issues", "opened", number, None


def mentioning(t: LoggedStage) -> Event:
    """An issue refers to a decision, and to an issue that is not in memory."""
    other = t.github.open_issue("monalisa", "Abc", "Def ghi.")
    t.github.hide_issue(other)
    t.github.clock.advance(1200)
    t.github.open_issue("monalisa", "Mno", "Pqr stu.")
    t.act("schedule")
    t.github.show_issue(other)
    return "issues", "opened", t.github.open_issue("hubot", "Everybody is logged out", f"As in #1 and #{other}."), None


def closed(t: LoggedStage) -> Event:
    """An issue with a comment was closed, and another was opened that refers to a decision."""
    number = t.github.open_issue("hubot", "Everybody is logged out", "Wvu tsr.")
    t.github.comment(number, "monalisa", "Me too.")
    t.act("issues", "opened", number)
    t.github.close(number, "octocat")
    return "issues", "opened", t.github.open_issue("hubot", "Logged out again", "As in #1."), None


def unposted(t: LoggedStage) -> Event:
    """A comment is promised, and posting it got no answer."""
    event = opened(t)
    t.github.faults.add("POST *", "drop", None)
    t.act(*event)
    t.github.faults.clear()
    t.github.clock.advance(300)
    return "schedule", None, None, None


def liked(t: LoggedStage) -> Event:
    """Somebody liked our comment."""
    t.act(*opened(t))
    t.github.clock.advance(1200)
    (own_comment,) = t.github.comments_by(BOT, 2)
    t.github.react(2, "monalisa", "+1", own_comment.id)
    return "schedule", None, None, None


def commanded(t: LoggedStage, words: str = "off") -> Event:
    """Somebody with write access gives a command."""
    t.act(*opened(t))
    return "issue_comment", "created", 2, t.github.comment(2, "octocat", f"/precedent {words}")


def edited(t: LoggedStage) -> Event:
    """The issue now refers to another one, so the comment changes."""
    t.github.open_issue("monalisa", "Dark mode for the printer", "At night it glares.", at="2025-08-01T10:00:00Z")
    t.act("schedule")
    number = t.github.open_issue("hubot", "Everybody is logged out", "As in #1.")
    t.act("issues", "opened", number)
    t.github.edit_issue(number, body="As in #2.")
    return "issues", "edited", number, None


def first(t: LoggedStage) -> Event:
    """There is no memory yet."""
    return "issues", "opened", t.github.open_issue("hubot", "Everybody is logged out", "As in #1."), None


def fixed(t: LoggedStage) -> Event:
    """Three referenced issues were closed by pull requests, which are in a release."""
    github = t.github
    for topic in ("Sessions", "Drafts", "Carts"):
        number = github.open_issue("monalisa", f"{topic} are lost", "On each restart.", at="2025-08-01T10:00:00Z")
        at, files = "2025-08-02T10:00:00Z", [f"src/{topic.lower()}.py"]
        pull = github.add_pull("octocat", f"Keep {topic.lower()}", at=at, files=files, closes=[number])
        github.merge_pull(pull, "octocat", at="2025-08-03T10:00:00Z")
    github.add_release("v1.2.0", at="2025-08-04T10:00:00Z")
    t.act("schedule")
    return "issues", "opened", github.open_issue("hubot", "Everybody is logged out", "As in #2, #4 and #6."), None


def committed(t: LoggedStage) -> Event:
    """The referenced issue was closed by a commit, which has a tag."""
    github = t.github
    github.open_issue("monalisa", "Sessions are lost", "On each restart.", at="2025-08-01T10:00:00Z")
    commit = github.add_commit("Keep sessions", "octocat", at="2025-08-03T10:00:00Z", files=["src/sessions.py"])
    github.close(2, "octocat", at="2025-08-03T10:00:00Z", commit=commit)
    github.add_tag("v1.2.0")
    t.act("schedule")
    return "issues", "opened", github.open_issue("hubot", "Everybody is logged out", "As in #2."), None


def with_open_pull(t: LoggedStage) -> Event:
    """A referenced issue is open, and a pull request says that it closes it."""
    number = t.github.open_issue("monalisa", "Sessions are lost", "On each restart.", at="2025-08-01T10:00:00Z")
    t.github.add_pull("octocat", "Keep sessions", at="2025-08-02T10:00:00Z", closes=[number])
    t.act("schedule")
    return "issues", "opened", t.github.open_issue("hubot", "Everybody is logged out", f"As in #{number}."), None


def renamed(t: LoggedStage) -> Event:
    """The repository has a new name, and the workflow knows the old one."""
    event = opened(t)
    t.github.rename_repo("octo-org/goodbye-world")
    return event


SCENES = {
    scene.name: scene
    for scene in (
        Scene("opened", opened), Scene("commented", commented), Scene("busy", busy), Scene("unlisted", unseen),
        Scene("mentioning", mentioning, 4, optional_issue=2), Scene("closed", closed, 3), Scene("promised", unposted),
        Scene("thumbs", liked, 2, is_counted), Scene("told to", commanded, 2, is_obeyed),
        Scene("asked", partial(commanded, words="wrong"), 2, is_replied),
        Scene("edited", edited, 3, has_new_text),
        Scene("first", first), Scene("fixed", fixed, 8), Scene("committed", committed, 3), Scene("renamed", renamed),
        Scene("open", with_open_pull, 4),
    )
}  # fmt: skip
