"""Reporters are notified once of the release that fixes their issue, and never if no release does."""

from __future__ import annotations

import pytest

from tests.acceptance.stage import BOT, REPOSITORY, Stage, summary, with_memory

pytestmark = pytest.mark.slow
DAY = 24 * 3600
NOTIFY = "mentions:\n  speak: always\nreleases:\n  notify: comment\n"
BODY = "Faster.\n\n## ⚠️ Breaking changes\n\nSessions are kept in `sessions.db` now. Delete the old files.\n\n## Fixes\n"


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """A project with a release and an open issue by hubot (1); reporters are notified of releases from now on."""
    return empty_stage.begin(with_release, with_memory)


def with_release(stage: Stage) -> None:
    github = stage.github
    github.set_permission("octocat", "write")
    github.add_commit("Begin", "octocat", at="2025-11-01T10:00:00Z")
    github.add_release("v2.2.0", at="2025-11-01T10:00:00Z")
    github.open_issue("hubot", "Sessions are lost on restart", "All of them.", at="2025-12-01T10:00:00Z")
    stage.configure(NOTIFY)


def run(stage: Stage, event: str, action: str | None = None, number: int | None = None) -> None:
    stage.deliver(event, action, number, after=600)


def merge_fix(stage: Stage, number: int = 1, title: str = "Keep sessions") -> int:
    """Merge a pull request that closes the issue; returns its number."""
    stage.github.clock.advance(600)
    pull = stage.github.add_pull("octocat", title, f"Fixes #{number}", closes=[number])
    stage.github.clock.advance(600)
    stage.github.merge_pull(pull, "octocat")
    return pull


def report_duplicate(stage: Stage, original: int = 1, author: str = "monalisa") -> int:
    """Open an issue and close it as a duplicate of `original`; returns its number."""
    number = int(stage.github.open_issue(author, "Logged out after each restart", "Every time."))
    run(stage, "issues", "opened", number)
    stage.github.comment(number, "octocat", f"Duplicate of #{original}")
    stage.github.close(number, "octocat", "not_planned")
    run(stage, "issues", "closed", number)
    return number


def publish_release(
    stage: Stage, tag: str = "v2.3.0", body: str = "Faster.", branch: str | None = None, **options: bool
) -> None:
    stage.github.clock.advance(3600)
    stage.github.add_release(tag, body=body, branch=branch, **options)
    run(stage, "release", "published")


def release_amid_fault(stage: Stage) -> None:
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.act("release", "published")


def notices(stage: Stage, number: int = 1) -> list[str]:
    """Our release notices on an issue, without their hidden first lines."""
    texts = [text for text in stage.comments(number) if " notice=" in text.partition("\n")[0]]
    return [text.partition("\n")[2].strip() for text in texts]


def is_done(stage: Stage) -> bool:
    """Whether no reporter waits for a notice."""
    manifest = stage.memory().state.manifest
    return bool(
        manifest.notified_until and manifest.notifying_from and manifest.notified_until > manifest.notifying_from
    )


def notice_start(tag: str, label: str = "") -> str:
    return f"Released in {label}[{tag}]("


def test_a_reporter_is_notified_once_with_a_link_and_the_upgrade_note(stage: Stage) -> None:
    merge_fix(stage)
    publish_release(stage, body=BODY)
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


def test_the_oldest_report_comes_first_and_no_account_takes_all_that_a_day_allows(stage: Stage) -> None:
    stage.configure(f"{NOTIFY}comment:\n  daily_limit: 4\n")
    for author, title in (("hubot", "Icons are blurred"), ("hubot", "Wrong port"), ("monalisa", "Tables overflow")):
        stage.github.clock.advance(60)
        stage.github.open_issue(author, title, "")
    for number in (1, 2, 3, 4):
        merge_fix(stage, number)
        run(stage, "issues", "closed", number)
    publish_release(stage)
    assert [len(notices(stage, number)) for number in (1, 2, 3, 4)] == [1, 0, 0, 1]
    for _ in range(2):
        stage.github.clock.advance(DAY)
        run(stage, "schedule")
        assert [len(notices(stage, number)) for number in (1, 2, 3, 4)] == [1, 1, 0, 1], "two for each account"
    assert (stage.github.writes, is_done(stage)) == (0, True)


@pytest.mark.parametrize("words", ["Duplicate of #1", "This is a duplicate of #1.", "Fixed by #{pull}"])
def test_issues_that_an_account_closes_itself_get_no_notice(stage: Stage, words: str) -> None:
    pull = stage.github.add_pull("octocat", "Keep sessions", "Fixes #1", closes=[1])
    numbers = [int(stage.github.open_issue("mallory", f"Logged out {n}", f"At {n}.")) for n in range(4)]
    for number in numbers:
        stage.github.comment(number, "mallory", words.format(pull=pull))
        stage.github.close(number, "mallory", "completed")
    stage.github.merge_pull(pull, "octocat")
    duplicate = report_duplicate(stage)
    publish_release(stage)
    assert [len(notices(stage, number)) for number in (1, *numbers, duplicate)] == [1, 0, 0, 0, 0, 1]
    stage.github.clock.advance(DAY)
    run(stage, "schedule")
    assert (stage.github.writes, is_done(stage)) == (0, True)


def test_a_release_does_not_expire_while_notices_wait(stage: Stage) -> None:
    stage.configure(f"{NOTIFY}comment:\n  daily_limit: 2\n")
    numbers = [int(stage.github.open_issue(author, f"Crash of {author}", "")) for author in ("monalisa", "defunkt")]
    run(stage, "schedule")
    for number in (1, *numbers):
        merge_fix(stage, number, f"Mend {number}")
    publish_release(stage)
    for told in ([1, 1, 0], [1, 1, 1]):
        stage.github.clock.advance(20 * DAY)
        run(stage, "schedule")
        assert [len(notices(stage, number)) for number in (1, *numbers)] == told


def test_a_release_that_was_a_month_old_before_anybody_could_be_told_is_not_announced(stage: Stage) -> None:
    merge_fix(stage)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.github.clock.advance(31 * DAY)
    run(stage, "schedule")
    assert notices(stage) == []


@pytest.mark.parametrize(("author", "is_told"), [("octocat", True), ("hubot", False)])
def test_words_alone_need_a_maintainer_for_a_notice(stage: Stage, author: str, *, is_told: bool) -> None:
    """A contributor's "Fixed by #2" is shown, but tells nobody; nor do a maintainer's words in a declined issue."""
    declined = stage.github.open_issue("monalisa", "Logged out after each restart", "Every time.")
    pull = stage.github.add_pull("hubot", "Keep sessions", "A new table.")
    stage.github.merge_pull(pull, "octocat")
    for number, speaker, reason in ((1, author, "completed"), (declined, "octocat", "not_planned")):
        stage.github.comment(number, speaker, f"Fixed by #{pull}.")
        stage.github.close(number, "octocat", reason)
        run(stage, "issues", "closed", number)
    publish_release(stage)
    assert ([len(notices(stage, number)) for number in (1, declined)]) == [int(is_told), 0]


def test_by_default_nobody_is_notified_but_our_own_comment_is_updated(stage: Stage) -> None:
    stage.configure("mode: comment\n")
    merge_fix(stage)
    run(stage, "issues", "closed", 1)
    referring = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    run(stage, "issues", "opened", referring)
    assert "not in a release yet" in stage.comments(referring)[0]
    stage.github.clock.advance(2 * DAY)
    publish_release(stage)
    assert "fixed in [v2.3.0]" in stage.comments(referring)[0]
    assert (len(stage.comments(referring)), notices(stage)) == (1, [])
    assert stage.memory().state.manifest.notified_until is None


def test_with_release_notices_off_our_comment_does_not_change(stage: Stage) -> None:
    stage.configure("releases:\n  notify: 'off'\n")
    merge_fix(stage)
    referring = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    run(stage, "issues", "opened", referring)
    before = stage.comments(referring)
    stage.github.clock.advance(2 * DAY)
    publish_release(stage)
    run(stage, "schedule")
    assert (stage.comments(referring), notices(stage)) == (before, [])


def test_the_reporter_of_a_duplicate_is_notified_once_too(stage: Stage) -> None:
    number = report_duplicate(stage)
    merge_fix(stage)
    publish_release(stage)
    url = f"{stage.git.url}/{REPOSITORY}"
    (text,) = notices(stage, number)
    assert text.startswith(
        f"This was closed as a duplicate of [issue 1]({url}/issues/1), which is fixed."
        f" Released in [v2.3.0]({url}/releases/tag/v2.3.0)."
    )
    run(stage, "schedule")
    assert (len(notices(stage)), len(notices(stage, number))) == (1, 1)


def test_a_duplicate_of_a_duplicate_is_followed_to_the_fixed_issue(stage: Stage) -> None:
    first = report_duplicate(stage)
    number = report_duplicate(stage, first, "mona")
    merge_fix(stage)
    publish_release(stage)
    (text,) = notices(stage, number)
    assert text.startswith("This was closed as a duplicate of [issue 1](")


def test_maintainers_are_not_notified_but_reporters_of_duplicates_are(stage: Stage) -> None:
    own = int(stage.github.open_issue("octocat", "Sessions vanish at night", "Ours."))
    number = report_duplicate(stage, own)
    merge_fix(stage, own)
    publish_release(stage)
    assert (notices(stage, own), len(notices(stage, number))) == ([], 1)


def test_releases_from_before_the_setting_are_not_announced(stage: Stage) -> None:
    stage.configure("mode: comment\n")
    run(stage, "schedule")
    merge_fix(stage)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.configure(NOTIFY)
    run(stage, "release", "published")
    run(stage, "schedule")
    assert (notices(stage), stage.github.writes) == ([], 0)
    number = int(stage.github.open_issue("monalisa", "The clock is slow", "By an hour."))
    run(stage, "issues", "opened", number)
    merge_fix(stage, number, "Wind the clock")
    publish_release(stage, "v2.4.0")
    assert (notices(stage), len(notices(stage, number))) == ([], 1)


def test_a_pre_release_is_announced_as_one_and_the_release_is_not_announced_again(stage: Stage) -> None:
    merge_fix(stage)
    publish_release(stage, "v2.3.0-rc.1", prerelease=True)
    (text,) = notices(stage)
    assert text.startswith(notice_start("v2.3.0-rc.1", "the pre-release "))
    stage.github.clock.advance(2 * DAY)
    publish_release(stage, "v2.3.0")
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_after_a_pre_release_from_before_the_setting_the_release_is_announced(stage: Stage) -> None:
    stage.configure("mode: comment\n")
    merge_fix(stage)
    publish_release(stage, "v2.3.0-rc.1", prerelease=True)
    referring = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    run(stage, "issues", "opened", referring)
    assert "v2.3.0-rc.1" in stage.comments(referring)[0]
    stage.configure(NOTIFY)
    run(stage, "schedule")
    publish_release(stage, "v2.3.0")
    (text,) = notices(stage)
    assert text.startswith(notice_start("v2.3.0"))


def test_a_release_that_only_github_marks_as_pre_release_is_announced_as_one(stage: Stage) -> None:
    merge_fix(stage)
    publish_release(stage, "v2.3.0", prerelease=True)
    assert notices(stage)[0].startswith(notice_start("v2.3.0", "the pre-release "))


def test_a_backport_is_not_announced_again(stage: Stage) -> None:
    stage.github.add_branch("2.2.x")
    merge_fix(stage)
    publish_release(stage, "v2.3.0")
    assert notices(stage)[0].startswith(notice_start("v2.3.0"))
    pull = stage.github.add_pull("octocat", "Keep sessions (back-port)", "Fixes #1 in 2.2 as well")
    stage.github.retarget(pull, "2.2.x")
    stage.github.merge_pull(pull, "octocat")
    publish_release(stage, "v2.2.1", branch="2.2.x")
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_a_release_of_an_older_line_without_the_fix_is_not_announced(stage: Stage) -> None:
    stage.github.add_branch("2.2.x")
    merge_fix(stage)
    stage.github.add_commit("A translation", "octocat", branch="2.2.x")
    publish_release(stage, "v2.2.1", branch="2.2.x")
    run(stage, "schedule")
    assert notices(stage) == []
    stage.github.clock.advance(DAY)
    publish_release(stage, "v2.3.0")
    assert notices(stage)[0].startswith(notice_start("v2.3.0"))


@pytest.mark.parametrize("title", ['Revert "Keep sessions"', 'Revert "Revert "Revert "Keep sessions"""'])
def test_a_reverted_fix_is_not_announced(stage: Stage, title: str) -> None:
    number, pull = report_duplicate(stage), merge_fix(stage)
    stage.github.clock.advance(600)
    revert = stage.github.add_pull("octocat", title, f"Reverts {REPOSITORY}#{pull}, or #{pull}")
    stage.github.merge_pull(revert, "octocat")
    publish_release(stage)
    run(stage, "schedule")
    assert (notices(stage), notices(stage, number)) == ([], [])


def test_a_revert_in_a_commit_counts_too(stage: Stage) -> None:
    pull = merge_fix(stage)
    stage.github.clock.advance(600)
    revert = stage.github.add_commit(f'Revert "Keep sessions (#{pull})"', "octocat")
    stage.github.reference(pull, revert, "octocat")
    publish_release(stage)
    assert notices(stage) == []


@pytest.mark.parametrize("title", ['Revert "Revert "Keep sessions""', 'Reapply "Keep sessions"'])
def test_a_reapplied_fix_is_announced(stage: Stage, title: str) -> None:
    pull = merge_fix(stage)
    for pull_title in ('Revert "Keep sessions"', title):
        stage.github.clock.advance(600)
        stage.github.merge_pull(stage.github.add_pull("octocat", pull_title, f"Of #{pull}"), "octocat")
    publish_release(stage)
    assert len(notices(stage)) == 1


def test_a_reopened_issue_gets_no_notice_until_it_is_fixed_again(stage: Stage) -> None:
    merge_fix(stage)
    run(stage, "issues", "closed", 1)
    stage.github.reopen(1, "octocat")
    publish_release(stage)
    run(stage, "schedule")
    assert notices(stage) == []
    merge_fix(stage, title="Really keep sessions")
    publish_release(stage, "v2.4.0")
    assert notices(stage)[0].startswith(notice_start("v2.4.0"))


def test_an_issue_reopened_after_its_notice_gets_another_one_for_the_new_fix(stage: Stage) -> None:
    merge_fix(stage)
    publish_release(stage)
    stage.github.clock.advance(DAY)
    stage.github.reopen(1, "octocat")
    run(stage, "issues", "reopened", 1)
    stage.github.clock.advance(DAY)
    merge_fix(stage, title="Really keep sessions")
    publish_release(stage, "v2.4.0")
    run(stage, "schedule")
    assert [text.partition("]")[0] for text in notices(stage)] == ["Released in [v2.3.0", "Released in [v2.4.0"]


@pytest.mark.parametrize("why", ["locked", "off", "label", "person"])
def test_people_who_want_no_notice_get_none(stage: Stage, why: str) -> None:
    number = report_duplicate(stage)
    merge_fix(stage)
    match why:
        case "locked":
            stage.github.lock(1)
        case "off":
            stage.github.comment(1, "hubot", "/precedent off")
        case "label":
            stage.github.label(1, "quiet")
            stage.configure(f"{NOTIFY}ignore:\n  labels: [quiet]\n")
        case _:
            stage.configure(f"{NOTIFY}ignore:\n  people: [hubot]\n")
    publish_release(stage)
    run(stage, "schedule")
    assert (notices(stage), len(notices(stage, number))) == ([], 1)


@pytest.mark.parametrize("text", ["Will be in 2.3.", "Fixed in v2.3.0."])
def test_an_issue_closed_by_hand_counts_as_fixed_in_the_release_that_a_maintainer_names(
    stage: Stage, text: str
) -> None:
    number = report_duplicate(stage)
    stage.github.comment(1, "octocat", text)
    stage.github.close(1, "octocat")
    run(stage, "issues", "closed", 1)
    publish_release(stage, "v2.2.1")
    assert notices(stage) == []
    stage.github.clock.advance(DAY)
    publish_release(stage, "v2.3.0")
    assert notices(stage)[0].startswith(notice_start("v2.3.0"))
    assert len(notices(stage, number)) == 1


@pytest.mark.parametrize(
    ("author", "text"),
    [
        ("hubot", "Will be fixed in 2.3.0, closing."),
        ("semantic-releasebot", ":tada: This issue has been resolved in version 2.3.0 :tada:"),
        ("octocat", "Fixed in [v2.3.0](https://github.com/other/thing/releases/tag/v2.3.0)."),
    ],
)
def test_a_release_named_by_a_stranger_or_of_another_project_causes_no_notice(
    stage: Stage, author: str, text: str
) -> None:
    number = report_duplicate(stage)
    stage.github.comment(1, author, text)
    stage.github.close(1, "hubot" if author == "hubot" else "octocat")
    run(stage, "issues", "closed", 1)
    publish_release(stage, "v2.3.0")
    assert (notices(stage), notices(stage, number)) == ([], [])


@pytest.mark.parametrize(("account", "told"), [("release-helper[bot]", 1), ("bridge[bot]", 0), ("release-helper", 0)])
def test_only_a_listed_bot_leads_to_a_notice_by_its_words(stage: Stage, account: str, told: int) -> None:
    stage.configure(f'{NOTIFY}bots:\n  release: ["release-helper[bot]"]\n')
    stage.github.close(1, "octocat", "completed")
    stage.github.comment(1, account, ":tada: This issue has been resolved in version 2.3.0 :tada:")
    run(stage, "issues", "closed", 1)
    publish_release(stage)
    assert len(notices(stage)) == told


def test_a_reporter_whom_a_maintainer_told_after_the_release_is_not_notified_again(stage: Stage) -> None:
    number = report_duplicate(stage)
    stage.github.clock.advance(3600)
    stage.github.add_release("v2.3.0")
    stage.github.comment(1, "octocat", "Fixed in v2.3.0.")
    stage.github.close(1, "octocat")
    run(stage, "release", "published")
    assert (notices(stage), len(notices(stage, number))) == ([], 1)


def test_a_second_release_is_not_announced_unless_the_issue_was_reopened(stage: Stage) -> None:
    comment = stage.github.comment(1, "octocat", "Will be in 2.3.")
    stage.github.close(1, "octocat")
    run(stage, "issues", "closed", 1)
    publish_release(stage, "v2.3.0")
    stage.github.edit_comment(comment, "Will be in 2.4.")
    run(stage, "issues", "labeled", 1)
    publish_release(stage, "v2.4.0")
    run(stage, "schedule")
    (text,) = notices(stage)
    assert text.startswith(notice_start("v2.3.0"))


def test_after_a_revert_the_later_release_with_the_fix_is_announced(stage: Stage) -> None:
    stage.github.comment(1, "octocat", "Will be in 2.3.")
    stage.github.close(1, "octocat")
    stage.github.clock.advance(2 * DAY)
    stage.github.merge_pull(stage.github.add_pull("octocat", 'Revert "Keep sessions"', "Of #1"), "octocat")
    publish_release(stage, "v2.3.0")
    assert notices(stage) == []
    stage.github.clock.advance(600)
    stage.github.comment(1, "octocat", "Will be in 2.4.")
    run(stage, "issues", "labeled", 1)
    publish_release(stage, "v2.4.0")
    assert [text.partition("]")[0] for text in notices(stage)] == ["Released in [v2.4.0"]


def test_a_commit_that_github_no_longer_has_does_not_prevent_notices(stage: Stage) -> None:
    pull = merge_fix(stage)
    other = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    merge_fix(stage, other, "Log in again")
    stage.github.clock.advance(600)
    sha = stage.github.add_commit("Tidy up", "octocat")
    stage.github.reference(pull, sha, "octocat")
    stage.github.faults.add(f"GET *commits/{sha}", "422", times=None)
    publish_release(stage)
    assert (len(notices(stage)), len(notices(stage, other))) == (1, 1)


@pytest.mark.parametrize("kind", ["404", "500"])
def test_an_issue_that_cannot_be_read_gets_its_notice_later_and_delays_no_others(stage: Stage, kind: str) -> None:
    merge_fix(stage)
    other = int(stage.github.open_issue("monalisa", "The clock is slow", "By an hour."))
    merge_fix(stage, other, "Wind the clock")
    run(stage, "issues", "closed", other)
    stage.github.faults.add(f"GET *issues/{other}/timeline", kind, times=None)
    release_amid_fault(stage)
    assert (len(notices(stage)), notices(stage, other)) == (1, [])
    stage.github.faults.clear()
    for _ in range(2):
        run(stage, "schedule")
        assert (len(notices(stage)), len(notices(stage, other))) == (1, 1)


@pytest.mark.parametrize("failing", ["GET *compare*", "GET *pulls/2*"])
def test_after_an_outage_the_notice_is_posted(stage: Stage, failing: str) -> None:
    assert merge_fix(stage) == 2
    stage.github.faults.add(failing, "500", times=None)
    release_amid_fault(stage)
    assert "GitHub answered 500" in summary(stage)
    assert notices(stage) == []
    stage.github.faults.clear()
    run(stage, "schedule")
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_a_duplicate_of_a_hidden_issue_gets_no_notice_that_links_to_it(stage: Stage) -> None:
    number = report_duplicate(stage)
    merge_fix(stage)
    run(stage, "issues", "closed", 1)
    stage.github.faults.add("GET *issues/1/timeline", "404", times=None)
    stage.github.faults.add("GET *issues/1", "404", times=None)
    publish_release(stage)
    assert notices(stage, number) == []
    stage.github.faults.clear()
    run(stage, "schedule")
    assert len(notices(stage, number)) == 1


def test_a_notice_that_a_person_deletes_is_not_written_again(stage: Stage) -> None:
    merge_fix(stage)
    publish_release(stage)
    stage.github.delete_comment(stage.github.comments_by(BOT, 1)[0].id, by="octocat")
    for tag in ("v2.3.1", "v2.4.0"):
        publish_release(stage, tag)
        run(stage, "schedule")
        assert stage.comments(1) == []


@pytest.mark.parametrize("deleted", [False, True])
def test_a_crash_after_the_post_does_not_notify_twice(stage: Stage, deleted: bool) -> None:
    merge_fix(stage)
    stage.git.faults.add("POST *git-receive-pack", "secondary403", times=None, after=1)
    release_amid_fault(stage)
    assert len(notices(stage)) == 1
    (notice,) = stage.memory().state.posts([1])[1].notices()
    assert notice.state == "pending"
    stage.git.faults.clear()
    if deleted:
        stage.github.clock.advance(60)
        stage.github.delete_comment(stage.github.comments_by(BOT, 1)[0].id, by="octocat")
    run(stage, "schedule")
    run(stage, "schedule")
    assert len(notices(stage)) == (0 if deleted else 1)
    (notice,) = stage.memory().state.posts([1])[1].notices()
    assert notice.state == ("removed" if deleted else "said")


def test_a_notice_lost_between_the_push_and_the_post_is_posted_by_the_next_run(stage: Stage) -> None:
    merge_fix(stage)
    stage.github.faults.add("POST *comments", "5xx", times=None)
    release_amid_fault(stage)
    assert notices(stage) == []
    stage.github.faults.clear()
    run(stage, "schedule")
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_a_lost_response_does_not_notify_twice(stage: Stage) -> None:
    merge_fix(stage)
    stage.github.faults.add("POST *comments", "cut", times=1)
    publish_release(stage)
    run(stage, "schedule")
    assert len(notices(stage)) == 1


def test_notices_use_at_most_half_of_the_daily_limit_and_the_others_follow_later(stage: Stage) -> None:
    stage.configure(f"{NOTIFY}comment:\n  daily_limit: 4\n")
    numbers = [int(stage.github.open_issue(f"reader{n}", f"Crash {n}", f"At {n} o'clock.")) for n in range(3)]
    run(stage, "schedule")
    for number in (1, *numbers):
        merge_fix(stage, number, f"Mend {number}")
    publish_release(stage)
    assert sum(len(notices(stage, number)) for number in (1, *numbers)) == 2
    assert "Some reporters are not notified yet" in summary(stage)
    run(stage, "schedule")
    assert stage.github.writes == 0
    stage.github.clock.advance(DAY)
    run(stage, "schedule")
    assert [len(notices(stage, number)) for number in (1, *numbers)] == [1, 1, 1, 1]
    run(stage, "schedule")
    assert stage.github.writes == 0


def test_forget_removes_the_notice_and_its_record(stage: Stage) -> None:
    merge_fix(stage)
    publish_release(stage)
    assert len(notices(stage)) == 1
    assert stage.act("workflow_dispatch", inputs={"run": "forget", "issue": "1"}) == 0
    assert (stage.comments(1), stage.memory().state.posts([1])) == ([], {})


def test_forget_removes_the_notices_on_duplicates_that_name_the_issue(stage: Stage) -> None:
    number = report_duplicate(stage)
    further = report_duplicate(stage, number, "mona")
    merge_fix(stage)
    publish_release(stage)
    assert [len(notices(stage, key)) for key in (1, number, further)] == [1, 1, 1]
    assert stage.act("workflow_dispatch", inputs={"run": "forget", "issue": "1"}) == 0
    assert [notices(stage, key) for key in (1, number, further)] == [[], [], []]
    records = stage.memory().state.posts([number, further])
    assert [(notice.state, notice.shows) for posts in records.values() for notice in posts.notices()] == [
        ("removed", ())
    ] * 2
    publish_release(stage, "v2.3.1")
    assert [notices(stage, key) for key in (number, further)] == [[], []]


def test_forget_lists_only_notices_that_were_posted(stage: Stage) -> None:
    number = report_duplicate(stage)
    merge_fix(stage)
    stage.github.faults.add("POST *comments", "5xx", times=None)
    release_amid_fault(stage)
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    assert stage.act("workflow_dispatch", inputs={"run": "forget", "issue": "1"}) == 0
    assert "were deleted on" not in summary(stage)
    (notice,) = stage.memory().state.posts([number])[number].notices()
    assert (notice.state, notice.shows) == ("removed", ())


def test_a_day_without_releases_costs_no_additional_request(stage: Stage) -> None:
    """Without a new release, a scheduled run reads as much as with the default setting."""
    run(stage, "schedule")
    costs = stage.github.reads
    stage.configure("mode: comment\n")
    run(stage, "schedule")
    run(stage, "schedule")
    assert stage.github.reads == costs


def test_a_copy_of_our_notice_by_a_stranger_is_not_ours(stage: Stage) -> None:
    merge_fix(stage)
    publish_release(stage)
    forged = str(stage.github.comments_by(BOT, 1)[0].body)
    stage.github.reopen(1, "octocat")
    stage.github.comment(1, "monalisa", forged)
    run(stage, "issues", "reopened", 1)
    assert [comment.author for comment in stage.memory().records([1])[1].comments] == ["monalisa"]


def test_a_deleted_comment_on_an_issue_with_a_notice_is_removed_from_memory(stage: Stage) -> None:
    """The event of the deletion was lost, and the number of comments is as memory expects: ours and one more."""
    other = int(stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1."))
    run(stage, "issues", "opened", other)
    comment = stage.github.comment(other, "monalisa", "My number is 555-0199.")
    merge_fix(stage, other, "Log in again")
    publish_release(stage)
    assert (len(stage.comments(other)), len(notices(stage, other))) == (2, 1)
    assert len(stage.memory().records([other])[other].comments) == 1
    stage.github.clock.advance(DAY)
    run(stage, "schedule")
    stage.github.delete_comment(comment)
    stage.github.comment(1, "monalisa", "Still there?")
    run(stage, "issues", "labeled", 1)
    assert stage.memory().records([other])[other].comments == ()
