"""Our comments stay true: when what they show of other issues changes, the run that learns of it updates them."""

from __future__ import annotations

import pytest

from bot.comment.marker import read_seal
from tests.acceptance.stage import BOT, DECISION, Stage, rebuild, summary, with_mentions, with_past

pytestmark = pytest.mark.slow
WITHDRAWN = "it was withdrawn"
DAY = 24 * 3600


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """Issue 3 refers to 1, which contains a decision, and has our comment that shows it."""
    return empty_stage.begin(with_mentions, with_past, open_referring_issue)


def open_referring_issue(stage: Stage, target: int = 1) -> int:
    title = f"Everybody is logged out {len(stage.github.repo.issues)}"
    number = stage.github.open_issue("monalisa", title, f"As in #{target}.")
    stage.deliver("issues", "opened", number)
    assert len(stage.comments(number)) == 1
    return number


def deliver_change(stage: Stage, how: str, action: str, number: int, comment: int | None = None) -> None:
    """Let a run learn of the change from its own event, from that of another issue, or by schedule."""
    stage.github.clock.advance(60)
    match how:
        case "its event":
            stage.deliver("issue_comment" if comment else "issues", action, number, comment)
        case "a catch-up":
            stage.deliver("issues", "labeled", 2)
        case _:
            stage.deliver("schedule")


def delete_decision(stage: Stage) -> None:
    (decision,) = (comment.id for comment in stage.github.issue(1).comments)
    stage.github.delete_comment(decision)
    stage.deliver("issue_comment", "deleted", 1, decision)


def our_comment(stage: Stage, number: int) -> str:
    (text,) = stage.comments(number)
    return text


def patch_requests(stage: Stage) -> int:
    return sum(request.method == "PATCH" for request in stage.github.recent)


EACH_WAY = pytest.mark.parametrize("how", ["its event", "a catch-up", "the schedule"])


@EACH_WAY
def test_words_that_an_author_edits_away_disappear_from_our_comment(stage: Stage, how: str) -> None:
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    assert DECISION in our_comment(stage, 3)
    stage.github.edit_comment(decision, "I said something wrong here.")
    deliver_change(stage, how, "edited", 1, decision)
    text = our_comment(stage, 3)
    assert "PostgreSQL" not in text
    assert "Where should sessions live?" in text
    assert patch_requests(stage) == 1


@EACH_WAY
def test_a_comment_that_its_author_deletes_disappears_from_our_comment(stage: Stage, how: str) -> None:
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    stage.github.delete_comment(decision)
    deliver_change(stage, how, "deleted", 1, decision)
    assert "PostgreSQL" not in our_comment(stage, 3)


def test_deleted_words_that_only_the_conversation_showed_disappear_too(stage: Stage) -> None:
    """The facts stay the same; only the words are gone."""
    comment = stage.github.comment(1, "hubot", "My number is 555-0199, call me.")
    stage.deliver("issue_comment", "created", 1, comment)
    number = open_referring_issue(stage)
    assert "555-0199" in our_comment(stage, number)
    before = read_seal(our_comment(stage, number))
    stage.github.delete_comment(comment)
    stage.deliver("issue_comment", "deleted", 1, comment)
    assert "555-0199" not in our_comment(stage, number)
    after = read_seal(our_comment(stage, number))
    assert before
    assert after
    assert before.content == after.content
    assert patch_requests(stage) == 1, "the comment on 3 never quoted it"


@EACH_WAY
def test_an_edited_title_and_body_are_shown_as_they_are_now(stage: Stage, how: str) -> None:
    stage.github.edit_issue(1, title="Where do sessions live?", body="A file is slow.")
    deliver_change(stage, how, "edited", 1)
    text = our_comment(stage, 3)
    assert "Where do sessions live?" in text
    assert "Where should" not in text
    assert "Files are slow" not in text


@EACH_WAY
def test_an_issue_that_is_reopened_and_closed_is_shown_with_its_current_state(stage: Stage, how: str) -> None:
    stage.github.reopen(1, "octocat")
    deliver_change(stage, how, "reopened", 1)
    assert "open again" in our_comment(stage, 3)
    stage.github.close(1, "octocat")
    deliver_change(stage, how, "closed", 1)
    assert "open again" not in our_comment(stage, 3)


def test_a_deleted_issue_is_no_longer_shown(stage: Stage) -> None:
    stage.github.delete_issue(1)
    stage.deliver("issues", "deleted", 1)
    text = our_comment(stage, 3)
    assert WITHDRAWN in text
    assert "sessions" not in text
    posts = stage.memory().state.posts([1, 3])
    assert [(key, post.state, post.shows) for key in posts for post in posts[key].posts] == [(3, "withdrawn", ())]
    assert not any(thread.shown_by for thread in posts.values())


def test_a_transferred_issue_is_no_longer_shown(stage: Stage) -> None:
    elsewhere = stage.github.add_project("octo-org/elsewhere")
    stage.github.transfer(1, elsewhere, "octocat")
    stage.deliver("issues", "transferred", 1)
    assert WITHDRAWN in our_comment(stage, 3)


def test_our_comment_on_a_closed_and_locked_issue_is_kept_true(stage: Stage) -> None:
    stage.github.close(3, "octocat")
    stage.github.lock(3, actor="octocat")
    stage.deliver("issues", "locked", 3)
    stage.github.edit_issue(1, title="Where do sessions live?")
    stage.deliver("issues", "edited", 1)
    assert "Where do sessions live?" in our_comment(stage, 3)


def test_further_conversation_changes_no_comment(stage: Stage) -> None:
    before = our_comment(stage, 3)
    comment = stage.github.comment(1, "hubot", "Thanks for all of this.")
    stage.deliver("issue_comment", "created", 1, comment)
    assert our_comment(stage, 3) == before
    assert (stage.github.reads, stage.github.writes) == (2, 0)


def test_a_comment_that_is_still_true_is_not_updated(stage: Stage) -> None:
    stage.github.edit_issue(1, body="Files are slow.\n\n<!-- a note that nobody sees -->")
    stage.deliver("issues", "edited", 1)
    assert patch_requests(stage) == 0


def test_our_comment_is_left_alone_and_reported_if_a_person_edited_it(stage: Stage) -> None:
    ours = stage.github.comments_by(BOT, 3)[0]
    edited = f"{ours.body}\nA remark of a person."
    stage.github.edit_comment(ours.id, edited, by="octocat")
    stage.github.reopen(1, "octocat")
    stage.deliver("issues", "reopened", 1)
    assert our_comment(stage, 3) == edited
    assert "a person edited the comment: it is left as it is" in summary(stage)
    assert stage.memory().state.manifest.renewals_due == ()


def test_our_comment_is_withdrawn_if_it_quotes_deleted_words_even_if_a_person_edited_it(stage: Stage) -> None:
    ours = stage.github.comments_by(BOT, 3)[0]
    stage.github.edit_comment(ours.id, f"{ours.body}\nA remark of a person.", by="octocat")
    delete_decision(stage)
    assert WITHDRAWN in our_comment(stage, 3)
    assert read_seal(our_comment(stage, 3))


def test_words_in_the_middle_of_a_very_long_issue_stay_true(stage: Stage) -> None:
    """Memory shortens what is in the middle: neither what we quote from it nor the command there is gone."""
    talk_at_length(stage, 2)
    decision = stage.github.comment(2, "octocat", f"We decided to drop printers.\n{'x' * 2_000}")
    stage.deliver("issue_comment", "created", 2, decision)
    number = open_referring_issue(stage, 2)
    talk_at_length(stage, number)
    command = stage.github.comment(number, "hubot", f"{'x' * 2_000}\n\n/precedent context #2")
    stage.deliver("issue_comment", "created", number, command)
    first = stage.github.comments_by(BOT, number)[0]
    stage.github.edit_comment(first.id, f"{first.body}\nA remark of a person.", by="octocat")
    for long in (2, number):
        stage.deliver("issue_comment", "created", long, talk_at_length(stage, long))
    stage.github.reopen(2, "octocat")
    stage.deliver("issues", "reopened", 2)
    assert ["drop printers" in text for text in stage.comments(number)] == [True, True]
    stage.github.edit_comment(decision, "I said something wrong here.")
    stage.deliver("issue_comment", "edited", 2, decision)
    assert ["drop printers" in text for text in stage.comments(number)] == [False, False]


def talk_at_length(stage: Stage, number: int) -> int:
    """Add half of what memory stores of an issue; returns the last comment."""
    return [stage.github.comment(number, "hubot", "x" * 65_000) for _ in range(8)][-1]


def test_our_comment_is_not_written_again_if_a_person_deleted_it(stage: Stage) -> None:
    stage.github.delete_comment(stage.github.comments_by(BOT, 3)[0].id, by="octocat")
    stage.github.reopen(1, "octocat")
    stage.deliver("issues", "reopened", 1)
    assert stage.comments(3) == []
    stage.github.clock.advance(300)
    stage.deliver("schedule")
    assert (stage.comments(3), stage.memory().state.manifest.renewals_due) == ([], ())


def test_many_comments_are_updated_ten_in_a_run(empty_stage: Stage) -> None:
    stage = empty_stage.begin(with_mentions, with_past)
    numbers = [stage.github.open_issue("monalisa", f"Logged out, {n}", "As in #1.") for n in range(20)]
    stage.configure("comment:\n  daily_limit: 500\n")
    for _ in range(4):
        stage.deliver("schedule")
    assert all(DECISION in our_comment(stage, number) for number in numbers)
    delete_decision(stage)
    for finished in (1, 2):
        updated = [number for number in numbers if DECISION not in our_comment(stage, number)]
        assert len(updated) == 10 * finished
        assert (patch_requests(stage), len(stage.memory().state.manifest.renewals_due)) == (10, 20 - 10 * finished)
        stage.deliver("schedule")
    assert patch_requests(stage) == 0


def test_an_update_that_failed_after_memory_was_saved_is_made_by_a_later_run(stage: Stage) -> None:
    (decision,) = (c.id for c in stage.github.issue(1).comments)
    stage.github.delete_comment(decision)
    stage.github.faults.add("PATCH *", "5xx", times=None)
    stage.github.clock.advance(20)
    stage.act("issue_comment", "deleted", 1, decision)
    assert DECISION in our_comment(stage, 3)
    assert [update.key for update in stage.memory().state.manifest.renewals_due] == [(3, "", 1)]
    stage.github.faults.clear()
    stage.github.clock.advance(9 * DAY)
    stage.deliver("schedule")
    assert DECISION not in our_comment(stage, 3)
    assert stage.memory().state.manifest.renewals_due == ()
    stage.deliver("schedule")
    assert patch_requests(stage) == 0


def test_a_reply_is_kept_true_too(stage: Stage) -> None:
    command = stage.github.comment(3, "hubot", "/precedent context #1")
    stage.deliver("issue_comment", "created", 3, command)
    assert DECISION in stage.comments(3)[1]
    delete_decision(stage)
    assert patch_requests(stage) == 2
    assert [text for text in stage.comments(3) if "PostgreSQL" in text] == []
    assert "Where should sessions live?" in stage.comments(3)[1]


def test_an_updated_reply_shows_no_issue_that_it_did_not_show_before(stage: Stage) -> None:
    command = stage.github.comment(3, "hubot", "/precedent search sessions")
    stage.deliver("issue_comment", "created", 3, command)
    other = stage.github.open_issue("hubot", "Sessions again", "Where do sessions live, sessions?")
    stage.deliver("issues", "opened", other)
    stage.github.edit_issue(1, title="Where do sessions live?")
    stage.deliver("issues", "edited", 1)
    assert "Where do sessions live?" in stage.comments(3)[1]
    assert "Sessions again" not in stage.comments(3)[1]


def test_a_reply_that_a_person_edited_is_left_alone_unless_it_is_false(stage: Stage) -> None:
    command = stage.github.comment(3, "hubot", "/precedent context #1")
    stage.deliver("issue_comment", "created", 3, command)
    reply = stage.github.comments_by(BOT, 3)[1]
    edited = f"{reply.body}\nA remark of a person."
    stage.github.edit_comment(reply.id, edited, by="octocat")
    stage.github.reopen(1, "octocat")
    stage.deliver("issues", "reopened", 1)
    assert stage.comments(3)[1] == edited
    delete_decision(stage)
    assert WITHDRAWN in stage.comments(3)[1]


def test_a_reply_is_withdrawn_if_its_request_is_deleted(stage: Stage) -> None:
    command = stage.github.comment(3, "hubot", "/precedent search sessions")
    stage.deliver("issue_comment", "created", 3, command)
    assert "search sessions" in stage.comments(3)[1]
    stage.github.delete_comment(command)
    stage.deliver("issue_comment", "deleted", 3, command)
    assert WITHDRAWN in stage.comments(3)[1]
    assert "search sessions" not in stage.comments(3)[1]
    assert DECISION in stage.comments(3)[0]


@pytest.mark.parametrize("how", ["its event", "a rebuild"])
def test_a_hidden_issue_is_not_shown_until_it_is_visible_again(stage: Stage, how: str) -> None:
    open_referring_issue(stage, 2)
    stage.github.edit_issue(4, body="As in #1 and #2.")
    stage.deliver("issues", "edited", 4)
    stage.github.clock.advance(3600)
    stage.deliver("schedule")
    stage.github.write_event(stage.folder / "event.json", "issues", "labeled", 1)
    payload = (stage.folder / "event.json").read_text()
    stage.github.hide_issue(1)
    stage.github.clock.advance(20)
    if how == "a rebuild":
        assert rebuild(stage) == 0
        stage.deliver("schedule")
    else:
        run_with_payload(stage, "issues", payload)
    assert WITHDRAWN in our_comment(stage, 3)
    assert "PostgreSQL" not in our_comment(stage, 4)
    assert "Dark mode" in our_comment(stage, 4)
    stage.github.show_issue(1)
    run_with_payload(stage, "issues", payload)
    assert DECISION in our_comment(stage, 4)
    assert 1 in stage.memory().records([1])


def run_with_payload(stage: Stage, event: str, payload: str) -> None:
    """Run the Action on an event with a payload from earlier."""
    stage.github.clock.advance(20)
    (stage.folder / "event.json").write_text(payload)
    assert stage.run(event) == 0


def test_an_issue_with_a_reverted_fix_is_shown_as_open_again(stage: Stage) -> None:
    github = stage.github
    number = github.open_issue("hubot", "Sessions are lost on restart", "All of them.", at="2025-09-01T10:00:00Z")
    github.comment(number, "octocat", "Fixed in v1.4.0.", at="2025-09-02T10:00:00Z")
    github.close(number, "octocat", at="2025-09-02T10:00:00Z")
    stage.deliver("schedule")
    asking = open_referring_issue(stage, number)
    assert "**fixed in v1.4.0**" in our_comment(stage, asking)
    comment = github.comment(number, "octocat", "Reverted, it broke the login: this is not fixed in v1.4.0.")
    github.reopen(number, "octocat")
    stage.deliver("issue_comment", "created", number, comment)
    assert "open again" in our_comment(stage, asking)


def test_the_first_release_with_a_fix_is_shown_once_it_is_published(stage: Stage) -> None:
    github = stage.github
    github.add_release("v1.0.0", at="2025-08-01T10:00:00Z")
    number = github.open_issue("hubot", "Sessions are lost on restart", "All of them.", at="2025-09-01T10:00:00Z")
    pull = github.add_pull("octocat", "Keep sessions", f"Fixes #{number}", closes=[number], at="2025-09-02T10:00:00Z")
    github.merge_pull(pull, "octocat", at="2025-09-03T10:00:00Z")
    stage.deliver("schedule")
    asking = open_referring_issue(stage, number)
    assert "not in a release yet" in our_comment(stage, asking)
    github.clock.advance(2 * DAY)
    github.add_release("v1.1.0")
    stage.deliver("schedule")
    assert "fixed in [v1.1.0]" in our_comment(stage, asking)
    assert stage.memory().state.manifest.renewals_due == ()


def test_a_thread_called_wrong_on_another_issue_is_still_shown_where_an_author_refers_to_it(stage: Stage) -> None:
    """Somebody says on 1 that it has nothing to do with 3; 3 still shows 1, because its author refers to it."""
    comment = stage.github.comment(1, "octocat", "/precedent wrong #3")
    stage.deliver("issue_comment", "created", 1, comment)
    assert DECISION in our_comment(stage, 3)
    assert stage.memory().state.manifest.renewals_due == ()


def test_an_event_on_an_issue_that_no_comment_shows_costs_no_additional_request(stage: Stage) -> None:
    """The figures are from before memory recorded what comments show; three fetches read the settings."""
    for title in ("Dark mode for the plotter", "Dark mode for printers"):
        stage.github.edit_issue(2, title=title)
        stage.deliver("issues", "edited", 2)
        fetches = sum(
            request.method == "POST" and request.path.endswith("upload-pack") for request in stage.git.requests
        )
        assert (stage.github.reads, stage.github.writes, stage.git.pushes, fetches) == (2, 0, 1, 8)
