"""Comments that stand stay true: what they show of other issues changes, and the run that learns it changes them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from bot.action import main
from bot.comment.marker import read_seal
from tests.acceptance.stage import BOT, DECISION, REPOSITORY, Stage, rebuild, summary, with_past

pytestmark = pytest.mark.slow
WITHDRAWN = "it was withdrawn"
DAY = 24 * 3600


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """Issue 3 points at 1, which holds a decision, and has the comment that says so."""
    point(stage)
    return stage


def point(stage: Stage, at: int = 1) -> int:
    number = int(
        stage.github.open_issue("monalisa", f"Everybody is logged out {len(stage.github.repo.issues)}", f"As in #{at}.")
    )
    run(stage, "issues", "opened", number)
    assert len(stage.comments(number)) == 1
    return number


def run(
    stage: Stage, event: str, action: str | None = None, number: int | None = None, comment: int | None = None
) -> None:
    stage.github.clock.advance(20)
    stage.github.mark()
    stage.git.mark()
    assert stage.act(event, action, number, comment) == 0


def learn(stage: Stage, how: str, action: str, number: int, comment: int | None = None) -> None:
    """Have the change known by its own event, by one of another issue, or by the schedule."""
    stage.github.clock.advance(60)
    match how:
        case "its event":
            run(stage, "issue_comment" if comment else "issues", action, number, comment)
        case "a catch-up":
            run(stage, "issues", "labeled", 2)
        case _:
            run(stage, "schedule")


def comment_on(stage: Stage, number: int) -> str:
    (text,) = stage.comments(number)
    return text


def patches(stage: Stage) -> int:
    return sum(request.method == "PATCH" for request in stage.github.recent)


HOW = pytest.mark.parametrize("how", ["its event", "a catch-up", "the schedule"])


@HOW
def test_what_an_author_edits_away_goes_from_the_comment(stage: Stage, how: str) -> None:
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    assert DECISION in comment_on(stage, 3)
    stage.github.edit_comment(decision, "I said something wrong here.")
    learn(stage, how, "edited", 1, decision)
    text = comment_on(stage, 3)
    assert "PostgreSQL" not in text
    assert "Where should sessions live?" in text
    assert patches(stage) == 1


@HOW
def test_what_an_author_deletes_goes_from_the_comment(stage: Stage, how: str) -> None:
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    stage.github.delete_comment(decision)
    learn(stage, how, "deleted", 1, decision)
    assert "PostgreSQL" not in comment_on(stage, 3)


def test_what_is_only_in_the_conversation_goes_too(stage: Stage) -> None:
    """The facts stay the same: it is the words that are not there any more."""
    comment = stage.github.comment(1, "hubot", "My number is 555-0199, call me.")
    run(stage, "issue_comment", "created", 1, comment)
    number = point(stage)
    assert "555-0199" in comment_on(stage, number)
    before = read_seal(comment_on(stage, number))
    stage.github.delete_comment(comment)
    run(stage, "issue_comment", "deleted", 1, comment)
    assert "555-0199" not in comment_on(stage, number)
    after = read_seal(comment_on(stage, number))
    assert before
    assert after
    assert before.content == after.content
    assert patches(stage) == 1, "the comment on 3 never quoted it"


@HOW
def test_a_title_and_a_text_that_were_edited_are_shown_as_they_are_now(stage: Stage, how: str) -> None:
    stage.github.edit_issue(1, title="Where do sessions live?", body="A file is slow.")
    learn(stage, how, "edited", 1)
    text = comment_on(stage, 3)
    assert "Where do sessions live?" in text
    assert "Where should" not in text
    assert "Files are slow" not in text


@HOW
def test_an_issue_that_is_reopened_and_closed_is_told_as_it_stands(stage: Stage, how: str) -> None:
    stage.github.reopen(1, "octocat")
    learn(stage, how, "reopened", 1)
    assert "open again" in comment_on(stage, 3)
    stage.github.close(1, "octocat")
    learn(stage, how, "closed", 1)
    assert "open again" not in comment_on(stage, 3)


def test_of_an_issue_that_is_deleted_nothing_is_shown(stage: Stage) -> None:
    stage.github.delete_issue(1)
    run(stage, "issues", "deleted", 1)
    text = comment_on(stage, 3)
    assert WITHDRAWN in text
    assert "sessions" not in text
    assert stage.memory().state.thread_comments([1, 3]) == {}


def test_of_an_issue_that_is_transferred_nothing_is_shown(stage: Stage) -> None:
    elsewhere = stage.github.add_project("octo-org/elsewhere")
    stage.github.transfer(1, elsewhere, "octocat")
    run(stage, "issues", "transferred", 1)
    assert WITHDRAWN in comment_on(stage, 3)


def test_a_closed_and_locked_issue_keeps_a_comment_that_is_true(stage: Stage) -> None:
    stage.github.close(3, "octocat")
    stage.github.lock(3, actor="octocat")
    run(stage, "issues", "locked", 3)
    stage.github.edit_issue(1, title="Where do sessions live?")
    run(stage, "issues", "edited", 1)
    assert "Where do sessions live?" in comment_on(stage, 3)


def test_that_people_go_on_talking_changes_no_comment(stage: Stage) -> None:
    before = comment_on(stage, 3)
    comment = stage.github.comment(1, "hubot", "Thanks for all of this.")
    run(stage, "issue_comment", "created", 1, comment)
    assert comment_on(stage, 3) == before
    assert (stage.github.reads, stage.github.writes) == (2, 0)


def test_a_comment_that_says_what_is_so_is_not_looked_at(stage: Stage) -> None:
    stage.github.edit_issue(1, body="Files are slow.\n\n<!-- a note that nobody sees -->")
    run(stage, "issues", "edited", 1)
    assert patches(stage) == 0


def test_what_a_person_edited_is_left_alone_and_told_of(stage: Stage) -> None:
    ours = stage.github.comments_by(BOT, 3)[0]
    edited = f"{ours.body}\nA remark of a person."
    stage.github.edit_comment(ours.id, edited, by="octocat")
    stage.github.reopen(1, "octocat")
    run(stage, "issues", "reopened", 1)
    assert comment_on(stage, 3) == edited
    assert "a person edited the comment: it is left as it is" in summary(stage)
    assert stage.memory().state.manifest.owed == ()


def test_what_a_person_edited_goes_where_it_quotes_what_was_taken_back(stage: Stage) -> None:
    ours = stage.github.comments_by(BOT, 3)[0]
    stage.github.edit_comment(ours.id, f"{ours.body}\nA remark of a person.", by="octocat")
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    stage.github.delete_comment(decision)
    run(stage, "issue_comment", "deleted", 1, decision)
    assert WITHDRAWN in comment_on(stage, 3)
    assert read_seal(comment_on(stage, 3))


def test_what_a_person_deleted_is_not_written_again(stage: Stage) -> None:
    stage.github.delete_comment(stage.github.comments_by(BOT, 3)[0].id, by="octocat")
    stage.github.reopen(1, "octocat")
    run(stage, "issues", "reopened", 1)
    assert stage.comments(3) == []
    stage.github.clock.advance(300)
    run(stage, "schedule")
    assert (stage.comments(3), stage.memory().state.manifest.owed) == ([], ())


@pytest.mark.parametrize(("count", "runs"), [(10, 1), (40, 4)])
def test_many_comments_are_changed_ten_in_a_run_the_oldest_first(tmp_path: Path, count: int, runs: int) -> None:
    with Stage(tmp_path) as made:
        with_past(made)
        github = made.github
        numbers = [github.open_issue("monalisa", f"Logged out, {n}", "As in #1.") for n in range(count)]
        made.git.commit("octo-org/hello-world", ".github/precedent.yml", "comment:\n  daily_limit: 500\n")
        for _ in range(count // 5):
            run(made, "schedule")
        assert all(DECISION in comment_on(made, number) for number in numbers)
        (decision,) = (c.id for c in github.issue(1).comments)
        github.delete_comment(decision)
        run(made, "issue_comment", "deleted", 1, decision)
        for done in range(1, runs + 1):
            true = [number for number in numbers if DECISION not in comment_on(made, number)]
            assert len(true) == 10 * done
            assert (patches(made), len(made.memory().state.manifest.owed)) == (10, count - 10 * done)
            run(made, "schedule")
        assert patches(made) == 0


def test_a_crash_between_memory_and_the_edit_is_made_good(stage: Stage) -> None:
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    stage.github.delete_comment(decision)
    stage.github.faults.add("PATCH *", "5xx", times=None)
    stage.github.clock.advance(20)
    stage.act("issue_comment", "deleted", 1, decision)
    assert DECISION in comment_on(stage, 3)
    assert [one.key for one in stage.memory().state.manifest.owed] == [(3, 0, 1)]
    stage.github.faults.clear()
    stage.github.clock.advance(9 * DAY)
    run(stage, "schedule")
    assert DECISION not in comment_on(stage, 3)
    assert stage.memory().state.manifest.owed == ()
    run(stage, "schedule")
    assert patches(stage) == 0


def test_a_reply_is_kept_true_too(stage: Stage) -> None:
    asked = stage.github.comment(3, "hubot", "/precedent context #1")
    run(stage, "issue_comment", "created", 3, asked)
    assert DECISION in stage.comments(3)[1]
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    stage.github.delete_comment(decision)
    run(stage, "issue_comment", "deleted", 1, decision)
    assert patches(stage) == 2
    assert [text for text in stage.comments(3) if "PostgreSQL" in text] == []
    assert "Where should sessions live?" in stage.comments(3)[1]


def test_a_reply_shows_nothing_that_it_did_not_show_before(stage: Stage) -> None:
    asked = stage.github.comment(3, "hubot", "/precedent search sessions")
    run(stage, "issue_comment", "created", 3, asked)
    other = stage.github.open_issue("hubot", "Sessions again", "Where do sessions live, sessions?")
    run(stage, "issues", "opened", other)
    stage.github.edit_issue(1, title="Where do sessions live?")
    run(stage, "issues", "edited", 1)
    assert "Where do sessions live?" in stage.comments(3)[1]
    assert "Sessions again" not in stage.comments(3)[1]


def test_a_reply_that_a_person_edited_is_left_alone_unless_it_is_false(stage: Stage) -> None:
    asked = stage.github.comment(3, "hubot", "/precedent context #1")
    run(stage, "issue_comment", "created", 3, asked)
    reply = stage.github.comments_by(BOT, 3)[1]
    edited = f"{reply.body}\nA remark of a person."
    stage.github.edit_comment(reply.id, edited, by="octocat")
    stage.github.reopen(1, "octocat")
    run(stage, "issues", "reopened", 1)
    assert stage.comments(3)[1] == edited
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    stage.github.delete_comment(decision)
    run(stage, "issue_comment", "deleted", 1, decision)
    assert WITHDRAWN in stage.comments(3)[1]


def test_a_reply_goes_with_the_request(stage: Stage) -> None:
    asked = stage.github.comment(3, "hubot", "/precedent search sessions")
    run(stage, "issue_comment", "created", 3, asked)
    assert "search sessions" in stage.comments(3)[1]
    stage.github.delete_comment(asked)
    run(stage, "issue_comment", "deleted", 3, asked)
    assert WITHDRAWN in stage.comments(3)[1]
    assert "search sessions" not in stage.comments(3)[1]
    assert DECISION in stage.comments(3)[0]


@pytest.mark.parametrize("how", ["its event", "a rebuild"])
def test_of_an_issue_that_cannot_be_seen_any_more_nothing_is_shown_until_it_can_be(stage: Stage, how: str) -> None:
    point(stage, 2)
    stage.github.edit_issue(4, body="As in #1 and #2.")
    run(stage, "issues", "edited", 4)
    stage.github.clock.advance(3600)
    run(stage, "schedule")
    stage.github.write_event(stage.folder / "event.json", "issues", "labeled", 1)
    payload = (stage.folder / "event.json").read_text()
    stage.github.hide_issue(1)
    stage.github.clock.advance(20)
    if how == "a rebuild":
        assert rebuild(stage) == 0
        run(stage, "schedule")
    else:
        act_on(stage, "issues", payload)
    assert WITHDRAWN in comment_on(stage, 3)
    assert "PostgreSQL" not in comment_on(stage, 4)
    assert "Dark mode" in comment_on(stage, 4)
    stage.github.show_issue(1)
    act_on(stage, "issues", payload)
    assert DECISION in comment_on(stage, 4)
    assert 1 in stage.memory().records([1])


def act_on(stage: Stage, event: str, payload: str) -> None:
    """Run the Action on an event of which the payload was made before."""
    stage.github.clock.advance(20)
    (stage.folder / "event.json").write_text(payload)
    environment = stage.github.environment(event, stage.folder) | {"GITHUB_REPOSITORY": REPOSITORY}
    assert main.run(environment, datetime.fromisoformat(stage.github.clock.now), write_gap=0) == 0


def test_a_fix_that_is_reverted_is_told_as_one(stage: Stage) -> None:
    github = stage.github
    number = github.open_issue("hubot", "Sessions are lost on restart", "All of them.", at="2025-09-01T10:00:00Z")
    github.comment(number, "octocat", "Fixed in v1.4.0.", at="2025-09-02T10:00:00Z")
    github.close(number, "octocat", at="2025-09-02T10:00:00Z")
    run(stage, "schedule")
    asking = point(stage, number)
    assert "**fixed in v1.4.0**" in comment_on(stage, asking)
    comment = github.comment(number, "octocat", "Reverted, it broke the login: this is not fixed in v1.4.0.")
    github.reopen(number, "octocat")
    run(stage, "issue_comment", "created", number, comment)
    assert "open again" in comment_on(stage, asking)


def test_the_first_release_with_a_fix_is_told_once_it_is_there(stage: Stage) -> None:
    github = stage.github
    github.add_release("v1.0.0", at="2025-08-01T10:00:00Z")
    number = github.open_issue("hubot", "Sessions are lost on restart", "All of them.", at="2025-09-01T10:00:00Z")
    pull = github.add_pull("octocat", "Keep sessions", f"Fixes #{number}", closes=[number], at="2025-09-02T10:00:00Z")
    github.merge_pull(pull, "octocat", at="2025-09-03T10:00:00Z")
    run(stage, "schedule")
    asking = point(stage, number)
    assert "not in a release yet" in comment_on(stage, asking)
    github.clock.advance(2 * DAY)
    github.add_release("v1.1.0")
    run(stage, "schedule")
    assert "fixed in [v1.1.0]" in comment_on(stage, asking)
    assert stage.memory().state.manifest.owed == ()


def test_a_thread_called_wrong_elsewhere_goes_from_the_comment(stage: Stage) -> None:
    """Somebody says on 1 that it has nothing to do with 3; what 3 points at stays, as its author wrote so."""
    comment = stage.github.comment(1, "octocat", "/precedent wrong #3")
    run(stage, "issue_comment", "created", 1, comment)
    assert DECISION in comment_on(stage, 3)
    assert stage.memory().state.manifest.owed == ()


def test_an_event_on_an_issue_that_is_shown_nowhere_costs_what_it_did(stage: Stage) -> None:
    """The figures are those from before anything was kept of what comments show."""
    for title in ("Dark mode for the plotter", "Dark mode for printers"):
        stage.github.edit_issue(2, title=title)
        run(stage, "issues", "edited", 2)
        fetches = sum(served.method == "POST" and served.path.endswith("upload-pack") for served in stage.git.requests)
        assert (stage.github.reads, stage.github.writes, stage.git.pushes, fetches) == (2, 0, 1, 5)
