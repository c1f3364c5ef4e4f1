"""Reporters are told once in which release their problem is fixed, and never where that is not so."""

from __future__ import annotations

import pytest

from tests.acceptance.stage import BOT, REPOSITORY, Stage, summary

pytestmark = pytest.mark.slow
DAY = 24 * 3600
TELL = "releases:\n  notify: comment\n"
BODY = "Faster.\n\n## ⚠️ Breaking changes\n\nSessions are kept in `sessions.db` now. Delete the old files.\n\n## Fixes\n"


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """A project with a release and an issue by hubot (1) that is open; reporters are told of releases from now on."""
    github = empty_stage.github
    github.set_permission("octocat", "write")
    github.add_commit("Begin", "octocat", at="2025-11-01T10:00:00Z")
    github.add_release("v2.2.0", at="2025-11-01T10:00:00Z")
    github.open_issue("hubot", "Sessions are lost on restart", "All of them.", at="2025-12-01T10:00:00Z")
    settings(empty_stage, TELL)
    run(empty_stage, "schedule")
    return empty_stage


def settings(stage: Stage, text: str) -> None:
    stage.git.commit(REPOSITORY, ".github/precedent.yml", text)


def run(stage: Stage, event: str, action: str | None = None, number: int | None = None, code: int = 0) -> None:
    stage.github.clock.advance(600)
    stage.github.mark()
    assert stage.act(event, action, number) == code


def fix(stage: Stage, number: int = 1, title: str = "Keep sessions") -> int:
    """Merge a pull request that closes the issue; its number."""
    stage.github.clock.advance(600)
    pull = stage.github.add_pull("octocat", title, f"Fixes #{number}", closes=[number])
    stage.github.clock.advance(600)
    stage.github.merge_pull(pull, "octocat")
    return pull


def duplicate(stage: Stage, original: int = 1, author: str = "monalisa") -> int:
    """Report the same, and have it closed as a duplicate."""
    number = int(stage.github.open_issue(author, "Logged out after each restart", "Every time."))
    run(stage, "issues", "opened", number)
    stage.github.comment(number, "octocat", f"Duplicate of #{original}")
    stage.github.close(number, "octocat", "not_planned")
    run(stage, "issues", "closed", number)
    return number


def release(stage: Stage, tag: str = "v2.3.0", body: str = "Faster.", branch: str | None = None, **more: bool) -> None:
    stage.github.clock.advance(3600)
    stage.github.add_release(tag, body=body, branch=branch, **more)
    run(stage, "release", "published")


def notices(stage: Stage, number: int = 1) -> list[str]:
    """Our release notices on an issue, without their hidden first lines."""
    texts = [text for text in stage.comments(number) if " notice=" in text.partition("\n")[0]]
    return [text.partition("\n")[2].strip() for text in texts]


def told(tag: str, early: str = "") -> str:
    return f"Released in {early}[{tag}]("


def test_a_reporter_is_told_once_with_a_link_and_the_upgrade_note(stage: Stage) -> None:
    fix(stage)
    release(stage, body=BODY)
    (text,) = notices(stage)
    assert text == (
        f"Released in [v2.3.0]({stage.git.url}/{REPOSITORY}/releases/tag/v2.3.0).\n\n"
        "Upgrade note: “Sessions are kept in sessions.db now. Delete the old files.”\n\n"
        "<sub>Precedent, a bot, wrote this. To silence it here, comment `/precedent off`</sub>"
    )
    assert "its fix is released" in summary(stage)
    for event in ("schedule", "release", "schedule"):
        run(stage, event, "published" if event == "release" else None)
        assert len(notices(stage)) == 1
        assert stage.github.writes == 0
    assert stage.memory().records([1])[1].comments == (), "memory does not take the notice for a comment"


def test_by_default_nobody_is_told_and_our_own_comment_is_corrected(stage: Stage) -> None:
    settings(stage, "mode: comment\n")
    fix(stage)
    run(stage, "issues", "closed", 1)
    asking = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    run(stage, "issues", "opened", asking)
    assert "not in a release yet" in stage.comments(asking)[0]
    stage.github.clock.advance(2 * DAY)
    release(stage)
    assert "fixed in [v2.3.0]" in stage.comments(asking)[0]
    assert (len(stage.comments(asking)), notices(stage)) == (1, [])
    assert stage.memory().state.manifest.told_until is None


def test_switched_off_our_comment_says_what_it_said(stage: Stage) -> None:
    settings(stage, "releases:\n  notify: 'off'\n")
    fix(stage)
    asking = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    run(stage, "issues", "opened", asking)
    before = stage.comments(asking)
    stage.github.clock.advance(2 * DAY)
    release(stage)
    run(stage, "schedule")
    assert (stage.comments(asking), notices(stage)) == (before, [])


def test_the_reporter_of_a_duplicate_is_told_once_too(stage: Stage) -> None:
    number = duplicate(stage)
    fix(stage)
    release(stage)
    home = f"{stage.git.url}/{REPOSITORY}"
    (text,) = notices(stage, number)
    assert text.startswith(
        f"This was closed as a duplicate of [issue 1]({home}/issues/1), which is fixed."
        f" Released in [v2.3.0]({home}/releases/tag/v2.3.0)."
    )
    run(stage, "schedule")
    assert (len(notices(stage)), len(notices(stage, number))) == (1, 1)


def test_a_duplicate_of_a_duplicate_is_followed_to_the_fixed_issue(stage: Stage) -> None:
    first = duplicate(stage)
    number = duplicate(stage, first, "mona")
    fix(stage)
    release(stage)
    (text,) = notices(stage, number)
    assert text.startswith("This was closed as a duplicate of [issue 1](")


def test_a_maintainer_and_a_bot_know_and_their_duplicates_are_told(stage: Stage) -> None:
    own = int(stage.github.open_issue("octocat", "Sessions vanish at night", "Ours."))
    number = duplicate(stage, own)
    fix(stage, own)
    release(stage)
    assert (notices(stage, own), len(notices(stage, number))) == ([], 1)


def test_what_was_released_before_the_setting_is_told_to_nobody(stage: Stage) -> None:
    settings(stage, "mode: comment\n")
    run(stage, "schedule")
    fix(stage)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    settings(stage, TELL)
    run(stage, "release", "published")
    run(stage, "schedule")
    assert (notices(stage), stage.github.writes) == ([], 0)
    number = int(stage.github.open_issue("monalisa", "The clock is slow", "By an hour."))
    run(stage, "issues", "opened", number)
    fix(stage, number, "Wind the clock")
    release(stage, "v2.4.0")
    assert (notices(stage), len(notices(stage, number))) == ([], 1)


def test_a_pre_release_is_told_as_one_and_the_release_not_again(stage: Stage) -> None:
    fix(stage)
    release(stage, "v2.3.0-rc.1", prerelease=True)
    (text,) = notices(stage)
    assert text.startswith(told("v2.3.0-rc.1", "the pre-release "))
    stage.github.clock.advance(2 * DAY)
    release(stage, "v2.3.0")
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_a_pre_release_from_before_the_setting_leaves_the_release_to_tell(stage: Stage) -> None:
    settings(stage, "mode: comment\n")
    fix(stage)
    release(stage, "v2.3.0-rc.1", prerelease=True)
    asking = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    run(stage, "issues", "opened", asking)
    assert "v2.3.0-rc.1" in stage.comments(asking)[0]
    settings(stage, TELL)
    run(stage, "schedule")
    release(stage, "v2.3.0")
    (text,) = notices(stage)
    assert text.startswith(told("v2.3.0"))


def test_a_release_that_only_github_calls_early_is_told_as_such(stage: Stage) -> None:
    fix(stage)
    release(stage, "v2.3.0", prerelease=True)
    assert notices(stage)[0].startswith(told("v2.3.0", "the pre-release "))


def test_a_back_port_is_not_told_again(stage: Stage) -> None:
    stage.github.add_branch("2.2.x")
    fix(stage)
    release(stage, "v2.3.0")
    assert notices(stage)[0].startswith(told("v2.3.0"))
    pull = stage.github.add_pull("octocat", "Keep sessions (back-port)", "Fixes #1 in 2.2 as well")
    stage.github.retarget(pull, "2.2.x")
    stage.github.merge_pull(pull, "octocat")
    release(stage, "v2.2.1", branch="2.2.x")
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_a_release_of_an_older_line_without_the_fix_is_not_told(stage: Stage) -> None:
    stage.github.add_branch("2.2.x")
    fix(stage)
    stage.github.add_commit("A translation", "octocat", branch="2.2.x")
    release(stage, "v2.2.1", branch="2.2.x")
    run(stage, "schedule")
    assert notices(stage) == []
    stage.github.clock.advance(DAY)
    release(stage, "v2.3.0")
    assert notices(stage)[0].startswith(told("v2.3.0"))


@pytest.mark.parametrize("title", ['Revert "Keep sessions"', 'Revert "Revert "Revert "Keep sessions"""'])
def test_of_a_reverted_fix_nobody_is_told(stage: Stage, title: str) -> None:
    number, pull = duplicate(stage), fix(stage)
    stage.github.clock.advance(600)
    back = stage.github.add_pull("octocat", title, f"Reverts {REPOSITORY}#{pull}, or #{pull}")
    stage.github.merge_pull(back, "octocat")
    release(stage)
    run(stage, "schedule")
    assert (notices(stage), notices(stage, number)) == ([], [])


def test_a_revert_in_a_commit_counts_too(stage: Stage) -> None:
    pull = fix(stage)
    stage.github.clock.advance(600)
    back = stage.github.add_commit(f'Revert "Keep sessions (#{pull})"', "octocat")
    stage.github.reference(pull, back, "octocat")
    release(stage)
    assert notices(stage) == []


@pytest.mark.parametrize("title", ['Revert "Revert "Keep sessions""', 'Reapply "Keep sessions"'])
def test_a_fix_that_was_made_again_is_told(stage: Stage, title: str) -> None:
    pull = fix(stage)
    for named in ('Revert "Keep sessions"', title):
        stage.github.clock.advance(600)
        stage.github.merge_pull(stage.github.add_pull("octocat", named, f"Of #{pull}"), "octocat")
    release(stage)
    assert len(notices(stage)) == 1


def test_an_issue_that_was_reopened_gets_none_and_a_new_fix_is_told(stage: Stage) -> None:
    fix(stage)
    run(stage, "issues", "closed", 1)
    stage.github.reopen(1, "octocat")
    release(stage)
    run(stage, "schedule")
    assert notices(stage) == []
    fix(stage, title="Really keep sessions")
    release(stage, "v2.4.0")
    assert notices(stage)[0].startswith(told("v2.4.0"))


def test_an_issue_that_came_back_after_its_notice_gets_one_for_the_new_fix(stage: Stage) -> None:
    fix(stage)
    release(stage)
    stage.github.clock.advance(DAY)
    stage.github.reopen(1, "octocat")
    run(stage, "issues", "reopened", 1)
    stage.github.clock.advance(DAY)
    fix(stage, title="Really keep sessions")
    release(stage, "v2.4.0")
    run(stage, "schedule")
    assert [text.partition("]")[0] for text in notices(stage)] == ["Released in [v2.3.0", "Released in [v2.4.0"]


@pytest.mark.parametrize("why", ["locked", "off", "label", "person"])
def test_who_wants_none_gets_none(stage: Stage, why: str) -> None:
    number = duplicate(stage)
    fix(stage)
    match why:
        case "locked":
            stage.github.lock(1)
        case "off":
            stage.github.comment(1, "hubot", "/precedent off")
        case "label":
            stage.github.label(1, "quiet")
            settings(stage, f"{TELL}ignore:\n  labels: [quiet]\n")
        case _:
            settings(stage, f"{TELL}ignore:\n  people: [hubot]\n")
    release(stage)
    run(stage, "schedule")
    assert (notices(stage), len(notices(stage, number))) == ([], 1)


@pytest.mark.parametrize("said", ["Will be in 2.3.", "Fixed in v2.3.0."])
def test_an_issue_closed_by_hand_counts_as_fixed_by_the_release_that_a_maintainer_names(
    stage: Stage, said: str
) -> None:
    number = duplicate(stage)
    stage.github.comment(1, "octocat", said)
    stage.github.close(1, "octocat")
    run(stage, "issues", "closed", 1)
    release(stage, "v2.2.1")
    assert notices(stage) == []
    stage.github.clock.advance(DAY)
    release(stage, "v2.3.0")
    assert notices(stage)[0].startswith(told("v2.3.0"))
    assert len(notices(stage, number)) == 1


@pytest.mark.parametrize(
    ("author", "said"),
    [
        ("hubot", "Will be fixed in 2.3.0, closing."),
        ("semantic-releasebot", ":tada: This issue has been resolved in version 2.3.0 :tada:"),
        ("octocat", "Fixed in [v2.3.0](https://github.com/other/thing/releases/tag/v2.3.0)."),
    ],
)
def test_neither_a_stranger_nor_a_release_of_others_makes_a_notice(stage: Stage, author: str, said: str) -> None:
    number = duplicate(stage)
    stage.github.comment(1, author, said)
    stage.github.close(1, "hubot" if author == "hubot" else "octocat")
    run(stage, "issues", "closed", 1)
    release(stage, "v2.3.0")
    assert (notices(stage), notices(stage, number)) == ([], [])


def test_who_was_told_by_a_person_after_the_release_is_not_told_again(stage: Stage) -> None:
    number = duplicate(stage)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.github.comment(1, "octocat", "Fixed in v2.3.0.")
    stage.github.close(1, "octocat")
    run(stage, "release", "published")
    assert (notices(stage), len(notices(stage, number))) == ([], 1)


def test_who_knows_of_a_release_is_not_told_of_another_one_without_a_reopening(stage: Stage) -> None:
    comment = stage.github.comment(1, "octocat", "Will be in 2.3.")
    stage.github.close(1, "octocat")
    run(stage, "issues", "closed", 1)
    release(stage, "v2.3.0")
    stage.github.edit_comment(comment, "Will be in 2.4.")
    run(stage, "issues", "labeled", 1)
    release(stage, "v2.4.0")
    run(stage, "schedule")
    (text,) = notices(stage)
    assert text.startswith(told("v2.3.0"))


def test_after_a_revert_the_release_that_has_it_after_all_is_told(stage: Stage) -> None:
    stage.github.comment(1, "octocat", "Will be in 2.3.")
    stage.github.close(1, "octocat")
    stage.github.clock.advance(2 * DAY)
    stage.github.merge_pull(stage.github.add_pull("octocat", 'Revert "Keep sessions"', "Of #1"), "octocat")
    release(stage, "v2.3.0")
    assert notices(stage) == []
    stage.github.clock.advance(600)
    stage.github.comment(1, "octocat", "Will be in 2.4.")
    run(stage, "issues", "labeled", 1)
    release(stage, "v2.4.0")
    assert [text.partition("]")[0] for text in notices(stage)] == ["Released in [v2.4.0"]


def test_a_commit_that_github_has_no_more_stops_no_notice(stage: Stage) -> None:
    pull = fix(stage)
    other = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    fix(stage, other, "Log in again")
    stage.github.clock.advance(600)
    sha = stage.github.add_commit("Tidy up", "octocat")
    stage.github.reference(pull, sha, "octocat")
    stage.github.faults.add(f"GET *commits/{sha}", "422", times=None)
    release(stage)
    assert (len(notices(stage)), len(notices(stage, other))) == (1, 1)


@pytest.mark.parametrize("kind", ["404", "500"])
def test_an_issue_that_cannot_be_read_leaves_the_others_their_notices_and_gets_its_own_later(
    stage: Stage, kind: str
) -> None:
    fix(stage)
    other = int(stage.github.open_issue("monalisa", "The clock is slow", "By an hour."))
    fix(stage, other, "Wind the clock")
    run(stage, "issues", "closed", other)
    stage.github.faults.add(f"GET *issues/{other}/timeline", kind, times=None)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.act("release", "published")
    assert (len(notices(stage)), notices(stage, other)) == (1, [])
    stage.github.faults.clear()
    for _ in range(2):
        run(stage, "schedule")
        assert (len(notices(stage)), len(notices(stage, other))) == (1, 1)


@pytest.mark.parametrize("failing", ["GET *compare*", "GET *pulls/2*"])
def test_after_an_outage_the_notice_is_posted(stage: Stage, failing: str) -> None:
    assert fix(stage) == 2
    stage.github.faults.add(failing, "500", times=None)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.act("release", "published")
    assert "GitHub answered 500" in summary(stage)
    assert notices(stage) == []
    stage.github.faults.clear()
    run(stage, "schedule")
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_a_duplicate_of_an_issue_that_is_hidden_gets_none_that_links_it(stage: Stage) -> None:
    number = duplicate(stage)
    fix(stage)
    run(stage, "issues", "closed", 1)
    stage.github.faults.add("GET *issues/1/timeline", "404", times=None)
    stage.github.faults.add("GET *issues/1", "404", times=None)
    release(stage)
    assert notices(stage, number) == []
    stage.github.faults.clear()
    run(stage, "schedule")
    assert len(notices(stage, number)) == 1


def test_a_notice_that_a_person_deletes_is_not_written_again(stage: Stage) -> None:
    fix(stage)
    release(stage)
    stage.github.delete_comment(stage.github.comments_by(BOT, 1)[0].id, by="octocat")
    for tag in ("v2.3.1", "v2.4.0"):
        release(stage, tag)
        run(stage, "schedule")
        assert stage.comments(1) == []


@pytest.mark.parametrize("deleted", [False, True])
def test_a_crash_after_the_post_does_not_tell_twice(stage: Stage, deleted: bool) -> None:
    fix(stage)
    stage.git.faults.add("POST *git-receive-pack", "secondary403", times=None, after=1)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.act("release", "published")
    assert len(notices(stage)) == 1
    assert stage.memory().state.thread_comments([1])[1].notices[0].state == "pending"
    stage.git.faults.clear()
    if deleted:
        stage.github.clock.advance(60)
        stage.github.delete_comment(stage.github.comments_by(BOT, 1)[0].id, by="octocat")
    run(stage, "schedule")
    run(stage, "schedule")
    assert len(notices(stage)) == (0 if deleted else 1)
    state = stage.memory().state.thread_comments([1])[1].notices[0].state
    assert state == ("removed" if deleted else "said")


def test_a_crash_between_the_push_and_the_post_is_made_good(stage: Stage) -> None:
    fix(stage)
    stage.github.faults.add("POST *comments", "5xx", times=None)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.act("release", "published")
    assert notices(stage) == []
    stage.github.faults.clear()
    run(stage, "schedule")
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_a_lost_answer_does_not_tell_twice(stage: Stage) -> None:
    fix(stage)
    stage.github.faults.add("POST *comments", "cut", times=1)
    release(stage)
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_half_of_a_days_comments_is_left_to_answers_and_the_rest_is_told_later(stage: Stage) -> None:
    settings(stage, f"{TELL}comment:\n  daily_limit: 4\n")
    numbers = [int(stage.github.open_issue("monalisa", f"Crash {n}", f"At {n} o'clock.")) for n in range(3)]
    run(stage, "schedule")
    for number in (1, *numbers):
        fix(stage, number, f"Mend {number}")
    release(stage)
    assert sum(len(notices(stage, number)) for number in (1, *numbers)) == 2
    assert "Some reporters are not notified yet" in summary(stage)
    run(stage, "schedule")
    assert stage.github.writes == 0
    stage.github.clock.advance(DAY)
    run(stage, "schedule")
    assert [len(notices(stage, number)) for number in (1, *numbers)] == [1, 1, 1, 1]
    run(stage, "schedule")
    assert stage.github.writes == 0


def test_forget_takes_the_notice_and_its_record(stage: Stage) -> None:
    fix(stage)
    release(stage)
    assert len(notices(stage)) == 1
    assert stage.act("workflow_dispatch", inputs={"run": "forget", "issue": "1"}) == 0
    assert (stage.comments(1), stage.memory().state.thread_comments([1])) == ([], {})


def test_forget_takes_the_notices_on_duplicates_that_name_it(stage: Stage) -> None:
    number = duplicate(stage)
    further = duplicate(stage, number, "mona")
    fix(stage)
    release(stage)
    assert [len(notices(stage, key)) for key in (1, number, further)] == [1, 1, 1]
    assert stage.act("workflow_dispatch", inputs={"run": "forget", "issue": "1"}) == 0
    assert [notices(stage, key) for key in (1, number, further)] == [[], [], []]
    linked = stage.memory().state.thread_comments([number, further])
    assert [(one.state, one.original) for each in linked.values() for one in each.notices] == [("removed", None)] * 2
    release(stage, "v2.3.1")
    assert [notices(stage, key) for key in (number, further)] == [[], []]


def test_forget_names_only_the_notices_that_stood(stage: Stage) -> None:
    number = duplicate(stage)
    fix(stage)
    stage.github.faults.add("POST *comments", "5xx", times=None)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.act("release", "published")
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    assert stage.act("workflow_dispatch", inputs={"run": "forget", "issue": "1"}) == 0
    assert "were deleted on" not in summary(stage)
    (kept,) = stage.memory().state.thread_comments([number])[number].notices
    assert (kept.state, kept.original) == ("removed", None)


def test_a_quiet_day_costs_no_request_more(stage: Stage) -> None:
    """Without a new release the schedule reads as much as with the default setting."""
    run(stage, "schedule")
    costs = stage.github.reads
    settings(stage, "mode: comment\n")
    run(stage, "schedule")
    run(stage, "schedule")
    assert stage.github.reads == costs


def test_the_marker_of_a_stranger_makes_no_notice(stage: Stage) -> None:
    fix(stage)
    release(stage)
    forged = str(stage.github.comments_by(BOT, 1)[0].body)
    stage.github.reopen(1, "octocat")
    stage.github.comment(1, "monalisa", forged)
    run(stage, "issues", "reopened", 1)
    assert [comment.author for comment in stage.memory().records([1])[1].comments] == ["monalisa"]


def test_beside_a_notice_a_comment_that_was_deleted_goes_from_memory(stage: Stage) -> None:
    """Its event was lost, and as many comments are left as memory knows of: ours and one more."""
    other = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    run(stage, "issues", "opened", other)
    comment = stage.github.comment(other, "monalisa", "My number is 555-0199.")
    fix(stage, other, "Log in again")
    release(stage)
    assert (len(stage.comments(other)), len(notices(stage, other))) == (2, 1)
    assert len(stage.memory().records([other])[other].comments) == 1
    stage.github.clock.advance(DAY)
    run(stage, "schedule")
    stage.github.delete_comment(comment)
    stage.github.comment(1, "monalisa", "Still there?")
    run(stage, "issues", "labeled", 1)
    assert stage.memory().records([other])[other].comments == ()
