"""Only a change that closed an issue is shown as its fix, and announced: over the Action, and over an archive.

``play`` makes a closing happen at the fake GitHub, ``archive_lines`` writes the same history as an archive.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from bot.cli.main import main
from tests.acceptance.stage import Stage, with_memory
from tests.examples import share
from tests.fakes.commits import fake_sha
from tests.fakes.github import FakeGitHub

START = datetime(2025, 12, 1, 10, tzinfo=UTC)
MAINTAINER, REPORTER, STRANGER = "octocat", "hubot", "monalisa"

CLOSING_TEXTS = (
    "Fixes #{n}",
    "fixes: #{n}",
    "This closes #{n}, as sessions are kept in a table.",
    "Keep sessions in a table.\n\n- Resolves #{n}\n- Refs #900",
    "Resolves https://github.com/octo-org/hello-world/issues/{n}",
    "Backport of #900.\n\nFixes #{n}\n\n(cherry picked from commit 0123abc)",
    "Keep sessions (#900)\n\n* Add a table\n* Fixes #{n}\n\nCo-authored-by: monalisa <monalisa@example.com>",
)
"""Own texts of a change that say that it closes the issue."""

OTHER_TEXTS = (
    "Part of #{n}",
    "Refs #{n}",
    "Related to #{n}",
    "See #{n} for the discussion.",
    "Does not fix #{n}",
    "This doesn’t close #{n}, it only logs more.",
    "Found while looking at #{n}",
    "Partially fixes #{n}",
    "An attempt to fix #{n}",
    "Would fix #{n} if the table existed.",
    "> Fixes #{n}\n\nThat was said of another change.",
    "The commit that fixed #{n} broke the log.",
    "`Fixes #{n}` is what a commit has to say.",
    "<!-- Fixes #{n} -->\nA new table.",
    "Document the limitation (#{n})",
)
"""Texts that only mention the issue."""

FOREIGN_TITLES = (
    ("Bump libfoo from 1.2 to 1.3", "## Changelog\n- Fixes #{n}: a crash\n"),
    ("chore(deps): update dependency libfoo to v2", "Release notes:\n\n- fixes #{n}"),
    ('Revert "Fix sessions"', "This reverts commit 0123abc, which said: fixes #{n}"),
    ('Revert "Fixes #{n}"', "It broke the log."),
)
"""Titles and texts of changes that quote what others closed."""


@dataclass(frozen=True)
class Closing:
    """What happened to one issue.

    ``title`` and ``text`` are those of a pull request, in which {n} is the issue; it is ``merged`` two hours before the
    closing. If ``closes``, GitHub closes the issue with it. ``commit`` is the message of a commit that names the issue,
    and closes it if ``closes``. ``words`` are said by ``speaker`` a minute before somebody closes the issue by hand.
    """

    is_fixed: bool
    title: str = "Keep sessions"
    text: str = ""
    merged: bool = True
    closes: bool = False
    commit: str = ""
    words: str = ""
    speaker: str = MAINTAINER
    closer: str = MAINTAINER
    reason: str = "completed"
    needs_github: bool = False
    """Whether an archive, which has no messages of commits, cannot know."""

    @property
    def name(self) -> str:
        change = self.commit or (f"{self.title}: {self.text}" if self.text else "")
        how = "closes" if self.closes else "merged" if self.merged and self.text else ""
        return " · ".join(filter(None, (change, how, self.words and f"{self.speaker}: {self.words}", self.reason)))


def closings() -> list[Closing]:
    return [
        *(Closing(is_fixed=True, text=text, closes=True) for text in ("A new table.", "Refs #{n}", "Fixes #{n}")),
        Closing(is_fixed=True, commit="Keep sessions\n\nFixes #{n}", closes=True),
        Closing(is_fixed=True, commit="Keep sessions", closes=True),
        *(Closing(is_fixed=True, text=text) for text in CLOSING_TEXTS),
        *(Closing(is_fixed=False, text=text, merged=False) for text in CLOSING_TEXTS[:2]),
        *(Closing(is_fixed=False, text=text, reason=reason) for text, reason in
          product(CLOSING_TEXTS[:2], ("not_planned", "duplicate"))),
        *(Closing(is_fixed=False, text=text) for text in OTHER_TEXTS),
        *(Closing(is_fixed=False, title=title, text=text) for title, text in FOREIGN_TITLES),
        *(Closing(is_fixed=False, text=text, reason=reason) for text, reason in
          product(OTHER_TEXTS[:2], ("not_planned", "duplicate"))),
        Closing(is_fixed=True, commit="Keep sessions\n\nFixes #{n}", needs_github=True),
        *(Closing(is_fixed=False, commit=text) for text in
          ("Document the limitation (#{n})", "Refs #{n}", "Does not fix #{n}", 'Revert "Fixes #{n}"')),
        *(Closing(is_fixed=False, commit="Document the limitation, fixes #{n}", reason=reason) for reason in
          ("not_planned", "duplicate")),
        *(Closing(is_fixed=False, text="Refs #{n}", words=words) for words in
          ("Works for me.", "I cannot reproduce it.", "Closing.", "This isn’t fixed by #{p}.", "Is it fixed by #{p}?",
           "I think it was fixed by #{p}.", "It should be fixed by #{p}.", "Not fixed by #{p} as it seems.",
           "Fixed by #{p}, then reverted in #900.")),
        *(Closing(is_fixed=True, text="Refs #{n}", words=words) for words in
          ("Fixed by #{p}.", "#{p} fixed this.", "It’s fixed in #{p}, thanks!")),
        Closing(is_fixed=False, text="Refs #{n}", words="Fixed by #{p}.", speaker=STRANGER),
        Closing(is_fixed=False, text="Refs #{n}", words="Fixed by #{p}.", speaker=REPORTER, closer=REPORTER),
        Closing(is_fixed=True, text="Fixes #{n}", words="Fixed by #{p}.", speaker=STRANGER),
        Closing(is_fixed=False, text="Refs #{n}", words="Fixed by #{p}.", merged=False),
        Closing(is_fixed=False, text="Refs #{n}", words="Fixed by #{p}.", reason="not_planned"),
        Closing(is_fixed=False, words="Fixed in 2.3.0 (libfoo)."),
        Closing(is_fixed=False, words="Fixed in libfoo 2.3.0."),
        Closing(is_fixed=False),
    ]  # fmt: skip


def time_of(index: int, hours: float = 0) -> datetime:
    """Each issue has its own day."""
    return START + timedelta(minutes=10 * index, hours=hours)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def play(github: FakeGitHub, index: int, closing: Closing) -> int:
    """Make it happen; returns the number of the issue."""
    reporter = f"{REPORTER}-{index}"  # one account is told little about a release
    speaker, closer = (reporter if login == REPORTER else login for login in (closing.speaker, closing.closer))
    number = github.open_issue(reporter, f"Sessions of kind {index} are lost", "All.", at=stamp(time_of(index)))
    merged_at, closed_at = stamp(time_of(index, 1)), stamp(time_of(index, 3))
    pull = 0
    if closing.text:
        title, text = closing.title.format(n=number), closing.text.format(n=number)
        closes = [number] if closing.closes else []
        pull = github.add_pull(MAINTAINER, title, text, at=stamp(time_of(index, 0.5)), closes=closes)
        github.cross_reference(number, github.issue(pull), github.issue(pull).author, stamp(time_of(index, 0.5)))
        if closing.merged:
            github.merge_pull(pull, MAINTAINER, at=merged_at)
    sha = None
    if closing.commit:
        sha = github.add_commit(closing.commit.format(n=number), MAINTAINER, at=merged_at)
        github.reference(number, sha, MAINTAINER, at=merged_at)
    if closing.words:
        words = closing.words.format(n=number, p=pull)
        github.comment(number, speaker, words, at=stamp(time_of(index, 3) - timedelta(minutes=1)))
    github.close(number, closer, closing.reason, at=closed_at, commit=sha if closing.closes else None)
    return int(number)


def archive_lines(index: int, closing: Closing) -> list[dict[str, Any]]:
    """The issue (number 2 × ``index`` + 1000) and its pull request (the number after it) as lines of an archive."""
    number = 2 * index + 1000
    pull, closed_at = number + 1, time_of(index, 1 if closing.closes else 3)
    events: list[dict[str, Any]] = [{"event": "closed", "at": stamp(closed_at), "actor": closing.closer}]
    lines: list[dict[str, Any]] = []
    roles = {MAINTAINER: "MEMBER"}
    if closing.text:
        source = {"source": pull, "source_kind": "pull"}
        events.append({"event": "cross-referenced", "at": stamp(time_of(index, 0.5)), "actor": MAINTAINER, **source})
        events[0] |= source if closing.closes else {}
        lines.append(
            {
                "id": pull, "kind": "pull", "title": closing.title.format(n=number),
                "body": closing.text.format(n=number), "author": MAINTAINER, "author_association": "MEMBER",
                "created_at": stamp(time_of(index, 0.5)), "state": "closed" if closing.merged else "open",
            } | dict.fromkeys(("closed_at", "merged_at"), stamp(time_of(index, 1)) if closing.merged else None)
        )  # fmt: skip
    if closing.commit:
        sha = fake_sha(f"{index}")
        events.append({"event": "referenced", "at": stamp(time_of(index, 1)), "actor": MAINTAINER, "commit": sha})
        events[0] |= {"commit": sha} if closing.closes else {}
    comments = [
        {
            "author": closing.speaker, "association": roles.get(closing.speaker, "NONE"),
            "created_at": stamp(closed_at - timedelta(minutes=1)), "body": closing.words.format(n=number, p=pull),
        }
    ] if closing.words else []  # fmt: skip
    lines.append(
        {
            "id": number, "title": f"Sessions of kind {index} are lost", "body": "All.", "author": REPORTER,
            "author_association": "NONE", "created_at": stamp(time_of(index)), "state": "closed",
            "state_reason": closing.reason, "closed_at": stamp(closed_at), "closed_by": closing.closer,
            "comments": comments, "events": events,
        }
    )  # fmt: skip
    return lines


CLOSINGS = closings()
SETTINGS = "comment:\n  daily_limit: 500\nmentions:\n  speak: always\nreleases:\n  notify: comment\n"


def with_closings(stage: Stage) -> None:
    github = stage.github
    github.set_permission("octocat", "write")
    github.add_commit("Begin", "octocat", at="2025-11-01T10:00:00Z")
    github.add_release("v2.2.0", at="2025-11-01T10:00:00Z")
    stage.configure(SETTINGS)
    assert stage.act("schedule") == 0
    for index, closing in enumerate(CLOSINGS):
        assert play(github, index, closing)


def number_of(stage: Stage, index: int) -> int:
    title = f"Sessions of kind {index} are lost"
    return next(issue.number for issue in stage.github.repo.issues.values() if issue.title == title)


@pytest.mark.slow
@pytest.mark.parametrize("reads_history", [False, pytest.param(True, marks=pytest.mark.night)])
def test_only_what_closed_an_issue_is_shown_as_its_fix(empty_stage: Stage, *, reads_history: bool) -> None:
    """The history is read in bulk, where GitHub says what closed an issue; or with the events of each issue."""
    stage, asked_about = empty_stage, share(range(len(CLOSINGS)), 3)
    with_closings(stage)
    if reads_history:
        stage.deliver("schedule", after=40 * 24 * 3600)
    else:
        for index in asked_about:
            stage.deliver("issues", "closed", number_of(stage, index), after=5)
    shown: dict[str, bool] = {}
    for index in asked_about:
        closing, number = CLOSINGS[index], number_of(stage, index)
        asked = stage.github.open_issue("hubot", "Everybody is logged out", f"As in #{number}, but worse.")
        stage.deliver("issues", "opened", asked, after=5)
        shown[closing.name] = re.search(r"\*\*fixed", "".join(stage.comments(asked))) is not None
    expected = {closing.name: closing.is_fixed for closing in CLOSINGS}
    assert len(expected) == len(CLOSINGS) >= 60
    assert {name: is_fixed for name, is_fixed in shown.items() if is_fixed != expected[name]} == {}


@pytest.mark.slow
def test_only_reporters_of_what_was_fixed_are_notified(empty_stage: Stage) -> None:
    stage = empty_stage.begin(with_closings, with_memory)
    stage.github.clock.advance(24 * 3600)
    stage.github.add_release("v2.3.0")
    stage.deliver("release", "published", after=600)
    for _ in range(6):
        stage.deliver("schedule", after=24 * 3600)
    notified = {closing.name: bool(stage.comments(number_of(stage, i))) for i, closing in enumerate(CLOSINGS)}
    expected = {closing.name: closing.is_fixed for closing in CLOSINGS}
    assert {name: is_told for name, is_told in notified.items() if is_told != expected[name]} == {}


def test_an_archive_tells_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for index, closing in enumerate(CLOSINGS) for line in archive_lines(index, closing)]
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    store = str(tmp_path / "store")
    repo = ["--repo", "octo-org/hello-world"]
    assert main(["import", str(archive), "--store", store, "--no-learn", *repo]) == 0
    capsys.readouterr()
    assert main(["outcomes", "--store", store, "--json", *repo]) == 0
    kinds = {row["id"]: row["outcome"]["kind"] for row in json.loads(capsys.readouterr().out)}
    found = {closing.name: kinds[2 * index + 1000] == "fixed" for index, closing in enumerate(CLOSINGS)}
    assert {name: is_fixed for name, is_fixed in found.items() if is_fixed != _is_known(name)} == {}


def _is_known(name: str) -> bool:
    closing: Closing = next(each for each in CLOSINGS if each.name == name)
    return closing.is_fixed and not closing.needs_github
