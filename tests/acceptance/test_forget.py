"""A secret that was pasted into an issue is forgotten: the recipe of docs/security.md, played whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from bot.domain.thread import is_forgotten
from bot.index.protocol import Query
from bot.reading.analyzer import terms
from tests.acceptance.stage import BOT, REPOSITORY, Stage, rebuild, summary
from tests.examples import share
from tests.memory.remotes import git, inflated, shown

pytestmark = pytest.mark.slow

SECRET = "zebrafinch7731"
LEAKY, ASKS, ALIKE, OTHER = 2, 3, 4, 5


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Issue 2 has the secret in its title, text, a comment and its ending; 3 points at it, 4 is like it, 5 is neither.

    Our comments on 2, 3 and 4 and a reply on 3 show it.
    """
    with Stage(tmp_path) as stage:
        github = stage.github
        github.set_permission("octocat", "admin")
        github.set_permission("defunkt", "write")
        github.open_issue("monalisa", "Printer on fire", "It burns.", at="2025-07-15T10:00:00Z")
        github.open_issue("hubot", f"Login fails with {SECRET}", text(SECRET), at="2025-07-16T10:00:00Z")
        github.comment(LEAKY, "octocat", f"Fixed: remove {SECRET} from config/login.yml.", at="2025-07-22T10:00:00Z")
        github.comment(LEAKY, "hubot", f"See #1, and `/precedent search {SECRET}`", at="2025-07-23T10:00:00Z")
        github.close(LEAKY, "octocat", at="2025-07-23T10:00:00Z")
        for title, body in (
            ("Locked out", "As in #2."),
            ("Login fails after the update", text("it")),
            ("Footer floats", "Wide screens."),
        ):
            act(stage, "issues", "opened", github.open_issue("monalisa", title, body))
        asked = github.comment(LEAKY, "monalisa", f"/precedent search {SECRET}")
        act(stage, "issue_comment", "created", LEAKY, asked)
        act(stage, "issue_comment", "created", ASKS, github.comment(ASKS, "monalisa", "/precedent context #2"))
        assert sorted(where(stage)) == [LEAKY, ASKS, ASKS, ALIKE]
        assert leaks(stage)
        yield stage


def text(word: str) -> str:
    return f"Login stops.\n\n```\nLoginError: token {word} was refused by the session store\n```\n"


def act(stage: Stage, event: str, action: str | None = None, number: int | None = None, comment: int = 0) -> int:
    stage.github.clock.advance(150)
    return stage.act(event, action, number, comment or None)


def forget(stage: Stage, **inputs: str) -> int:
    stage.github.clock.advance(150)
    return stage.act("workflow_dispatch", inputs={"run": "forget", "issue": str(LEAKY)} | inputs)


def command(stage: Stage, by: str = "octocat", words: str = "/precedent forget") -> int:
    return stage.github.comment(LEAKY, by, words)


def where(stage: Stage, word: str = SECRET) -> list[int]:
    """The issues on which comments of ours hold this, one for each."""
    return [number for number in (1, LEAKY, ASKS, ALIKE, OTHER) for text in stage.comments(number) if word in text]


def leaks(stage: Stage) -> list[str]:
    """Where the branch has the secret: each object that it leads to, and all that the index decodes to."""
    found = []
    for name in git(stage.bare, "rev-list", "--objects", "--no-object-names", "precedent").split():
        kind = git(stage.bare, "cat-file", "-t", name)
        content = shown(stage.bare, kind, name)
        if any(SECRET.encode() in part for part in (content, *inflated(content))):
            found.append(f"{kind} {name}")
    return found + decoded(stage)


def decoded(stage: Stage) -> list[str]:
    memory = stage.memory()
    found = []
    for name, leaf in memory.index.segments().items():
        found += [f"{name}: a term" for key, _, _ in leaf.items() if SECRET.encode() in key]
        found += [f"{name}: an entry" for each in range(leaf.count) if SECRET in str(leaf.entry(each))]
    return found


def test_a_run_by_hand_leaves_no_trace_and_says_what_it_cannot_reach(stage: Stage) -> None:
    stage.github.edit_issue(LEAKY, title="Login fails", body=text("***"))
    assert forget(stage) == 0
    assert (leaks(stage), where(stage)) == ([], [])
    assert stage.comments(ASKS) == stage.comments(ALIKE) == stage.comments(LEAKY) == []
    told = summary(stage)
    assert "Issue 2 is forgotten: none of its text is on the branch precedent, and its older commits are gone." in told
    assert "Our comments that showed it were deleted on: 2, 3, 4." in told
    assert "These issues refer to it, may quote it, and stay in memory: 3." in told
    assert "Not reached: email already sent" in told
    assert SECRET not in told + stage.output.read_text(encoding="utf-8")
    assert not any(SECRET in path.read_text(encoding="utf-8") for path in (stage.folder / ".precedent").glob("*2*"))


def test_a_maintainer_takes_it_back_by_deleting_the_mark(stage: Stage) -> None:
    assert forget(stage) == 0
    stage.git.commit(REPOSITORY, f"records/0000/{LEAKY}.json", None, "refs/heads/precedent")
    assert stage.act("workflow_dispatch", inputs={"run": "answer", "issue": str(LEAKY)}) == 0
    assert rebuild(stage) == 0
    assert not is_forgotten(stage.memory().records([LEAKY])[LEAKY])
    assert stage.memory().search(Query(dict.fromkeys(terms("login"), 1.0)))


@pytest.mark.parametrize("event", ["issues edited", "rebuild", "schedule"])
def test_what_is_forgotten_stays_so_whatever_is_read_later(stage: Stage, event: str) -> None:
    assert forget(stage) == 0
    stage.github.comment(LEAKY, "hubot", f"Again: {SECRET}")
    if event == "rebuild":
        assert rebuild(stage) == 0
    else:
        assert act(stage, *event.split(), *([LEAKY] if " " in event else [])) == 0
    assert act(stage, "issues", "opened", stage.github.open_issue("monalisa", "Locked out once more", "As in #2.")) == 0
    assert leaks(stage) == []
    assert is_forgotten(stage.memory().records([LEAKY])[LEAKY])
    assert not any(SECRET in text for text in stage.comments(6))


def test_an_administrator_has_it_forgotten_by_a_command(stage: Stage) -> None:
    asked = command(stage)
    assert act(stage, "issue_comment", "created", LEAKY, asked) == 0
    assert (leaks(stage), where(stage)) == ([], [])
    (reply,) = stage.comments(LEAKY)
    assert "This issue is forgotten" in reply
    assert "The history of the memory branch, which held it, is gone too" in reply
    assert "Out of Precedent's reach: e-mail" in reply
    assert [each.content for each in stage.github.comment_by_id(asked).reactions] == ["eyes", "rocket"]
    assert SECRET not in summary(stage) + stage.output.read_text(encoding="utf-8")
    stage.github.mark()
    assert act(stage, "issue_comment", "created", LEAKY, asked) == 0
    assert stage.comments(LEAKY) == [reply]
    assert stage.github.writes == 0


@pytest.mark.parametrize("by", ["hubot", "defunkt"])
def test_nobody_else_has_anything_forgotten_not_even_its_author(stage: Stage, by: str) -> None:
    before = where(stage)
    asked = command(stage, by)
    assert act(stage, "issue_comment", "created", LEAKY, asked) == 0
    assert where(stage) == before
    assert "only administrators of the repository may do that" in stage.comments(LEAKY)[-1]
    assert [each.content for each in stage.github.comment_by_id(asked).reactions] == ["eyes", "confused"]
    assert leaks(stage)


def test_where_nobody_can_be_asked_who_may_the_command_waits(stage: Stage) -> None:
    asked = command(stage)
    stage.github.faults.add("GET */collaborators/*", "5xx", times=8)
    act(stage, "issue_comment", "created", LEAKY, asked)
    assert where(stage)
    assert not any("for administrators" in text for text in stage.comments(LEAKY))
    stage.github.faults.clear()
    assert act(stage, "schedule") == 0
    assert (leaks(stage), where(stage), len(stage.comments(LEAKY))) == ([], [], 1)


def test_the_command_takes_no_other_issue(stage: Stage) -> None:
    asked = stage.github.comment(OTHER, "octocat", "/precedent forget #2")
    assert act(stage, "issue_comment", "created", OTHER, asked) == 0
    assert "Precedent did not understand that" in stage.comments(OTHER)[-1]
    assert not any(is_forgotten(record) for record in stage.memory().records([LEAKY, OTHER]).values())


def test_a_comment_that_a_person_edited_goes_too(stage: Stage) -> None:
    (mine,) = stage.github.comments_by(BOT, ALIKE)
    stage.github.edit_comment(mine.id, f"{mine.body}\n\nIndeed.", by="octocat")
    assert forget(stage) == 0
    assert stage.comments(ALIKE) == []


def test_what_stood_there_beside_it_comes_again_when_somebody_asks(stage: Stage) -> None:
    assert forget(stage) == 0
    assert act(stage, "issues", "edited", ALIKE) == 0
    assert stage.comments(ALIKE) == []
    said = stage.memory().state.answers([ALIKE])[ALIKE]
    assert (said.state, said.comment_id, said.matches) == ("silent", None, ())


def test_a_comment_of_somebody_else_is_never_deleted(stage: Stage) -> None:
    theirs = stage.github.comment(ALIKE, "monalisa", f"As in #2: {SECRET}")
    assert forget(stage) == 0
    assert stage.github.comment_by_id(theirs).body == f"As in #2: {SECRET}"


def test_a_dry_run_says_what_would_go_and_leaves_it(stage: Stage) -> None:
    before = where(stage)
    assert forget(stage, **{"dry-run": "true"}) == 0
    assert (where(stage), bool(leaks(stage))) == (before, True)
    assert "Issue 2 would be forgotten" in summary(stage)
    assert "Our comments that showed it would be deleted on: 2, 3, 4." in summary(stage)


def test_a_run_by_hand_needs_the_number(stage: Stage) -> None:
    assert stage.act("workflow_dispatch", inputs={"run": "forget"}) == 2


def test_an_issue_that_github_has_no_more_is_forgotten_with_its_history(stage: Stage) -> None:
    stage.github.write_event(stage.folder / "event.json", "issues", "deleted", LEAKY)
    stage.github.delete_issue(LEAKY)
    assert forget(stage) == 0
    assert (leaks(stage), where(stage)) == ([], [])


# -- halfway, and at once ------------------------------------------------------------------------------------------


def test_where_the_server_keeps_the_history_all_else_is_done_and_the_remedy_is_told(stage: Stage) -> None:
    git(stage.bare, "config", "receive.denyNonFastForwards", "true")
    asked = command(stage)
    assert act(stage, "issue_comment", "created", LEAKY, asked) == 1
    assert where(stage) == []
    told = summary(stage)
    assert "issue 2 was removed from memory, but older commits of the branch precedent still contain it" in told
    assert "allow this token to force-push to precedent, then start" in told
    assert "The server refused to replace the history" in stage.comments(LEAKY)[0]
    assert [each.content for each in stage.github.comment_by_id(asked).reactions] == ["eyes", "confused"]
    assert decoded(stage) == []
    git(stage.bare, "config", "receive.denyNonFastForwards", "false")
    assert act(stage, "issue_comment", "created", LEAKY, command(stage)) == 0
    assert leaks(stage) == []


STEPS = ("GET */issues/2/comments*", "DELETE *", "GET */issues/4/comments*", "POST */issues/2/comments")


@pytest.mark.parametrize(
    ("fault", "at"), [*share(product(["429"], STEPS), 2, 0), *share(product(["drop"], STEPS), 2, 1)]
)
def test_a_run_that_ended_on_the_way_is_finished_by_the_next(stage: Stage, at: str, fault: str) -> None:
    asked = command(stage)
    stage.github.faults.add(at, fault, after=int(at == STEPS[0]), times=8 if at.startswith("GET") else 1)
    act(stage, "issue_comment", "created", LEAKY, asked)
    assert leaks(stage) == []
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    assert act(stage, "schedule") == 0
    assert where(stage) == []
    (reply,) = stage.comments(LEAKY)
    assert "This issue is forgotten" in reply
    assert [wish.state for wish in stage.memory().requests([LEAKY])[LEAKY]] == ["done"]


def test_of_two_runs_with_one_command_one_replies(stage: Stage) -> None:
    asked = command(stage)

    def meanwhile(seen: str) -> None:
        if seen.endswith(f"/comments/{asked}/reactions"):
            stage.github.on_request = lambda _: None
            stage.act("issue_comment", "created", LEAKY, asked)

    stage.github.on_request = meanwhile
    assert act(stage, "issue_comment", "created", LEAKY, asked) == 0
    assert act(stage, "schedule") == 0
    assert (leaks(stage), where(stage), len(stage.comments(LEAKY))) == ([], [], 1)


def test_a_run_that_planned_to_show_it_writes_nothing_once_it_is_forgotten(stage: Stage) -> None:
    number = stage.github.open_issue("monalisa", "Locked out again", "As in #2, the same.")
    at_once(stage, f"GET /repos/{REPOSITORY}/issues")  # memory was opened before that
    assert act(stage, "issues", "opened", number) == 0
    assert stage.comments(number) == []
    assert act(stage, "schedule") == 0
    assert (leaks(stage), where(stage)) == ([], [])
    assert not any(SECRET in text for text in stage.comments(number))


def test_what_another_run_writes_a_moment_later_is_found_by_the_next(stage: Stage) -> None:
    number = stage.github.open_issue("monalisa", "Locked out again", "As in #2, the same.")
    at_once(stage, f"POST /repos/{REPOSITORY}/issues/{number}/comments")
    assert act(stage, "issues", "opened", number) == 0
    assert SECRET in stage.comments(number)[0]
    assert act(stage, "schedule") == 0
    assert (leaks(stage), stage.comments(number)) == ([], [])


def at_once(stage: Stage, request: str) -> None:
    """Have the issue forgotten by another run while one makes this request."""

    def meanwhile(seen: str) -> None:
        if seen == request:
            stage.github.on_request = lambda _: None
            stage.act("workflow_dispatch", inputs={"run": "forget", "issue": str(LEAKY)})

    stage.github.on_request = meanwhile
