"""A secret that was pasted into an issue is forgotten: the recipe of docs/security.md, from start to end."""

from __future__ import annotations

from itertools import product

import pytest

from bot.domain.thread import Thread, is_forgotten
from bot.index.protocol import Query
from bot.reading.analyzer import terms
from tests.acceptance.bare_repository import Bare
from tests.acceptance.stage import BOT, REPOSITORY, Stage, rebuild, summary, with_mentions
from tests.examples import share
from tests.memory.remotes import inflated

pytestmark = pytest.mark.slow

SECRET = "zebrafinch7731"
LEAKY, REFERRING, SIMILAR, UNRELATED = 2, 3, 4, 5


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """Issue 2 has the secret in its title, text, a comment and its outcome; 3 refers to it, 4 is like it, 5 is neither.

    Our comments on 2, 3 and 4 and a reply on 3 show it.
    """
    return empty_stage.begin(show_secret)


def show_secret(stage: Stage) -> None:
    with_mentions(stage)
    github = stage.github
    github.set_permission("octocat", "admin")
    github.set_permission("defunkt", "write")
    github.open_issue("monalisa", "Printer on fire", "It burns.", at="2025-07-15T10:00:00Z")
    github.open_issue("hubot", f"Login fails with {SECRET}", issue_body(SECRET), at="2025-07-16T10:00:00Z")
    github.comment(LEAKY, "octocat", f"Fixed: remove {SECRET} from config/login.yml.", at="2025-07-22T10:00:00Z")
    github.comment(LEAKY, "hubot", f"See #1, and `/precedent search {SECRET}`", at="2025-07-23T10:00:00Z")
    github.close(LEAKY, "octocat", at="2025-07-23T10:00:00Z")
    for title, body in (
        ("Locked out", "As in #2."),
        ("Login fails after the update", issue_body("it")),
        ("Footer floats", "Wide screens."),
    ):
        act(stage, "issues", "opened", github.open_issue("monalisa", title, body))
    comment = github.comment(LEAKY, "monalisa", f"/precedent search {SECRET}")
    act(stage, "issue_comment", "created", LEAKY, comment)
    act(stage, "issue_comment", "created", REFERRING, github.comment(REFERRING, "monalisa", "/precedent context #2"))
    assert sorted(issues_showing(stage)) == [LEAKY, REFERRING, REFERRING, SIMILAR]
    assert leaks(stage)


def issue_body(word: str) -> str:
    return f"Login stops.\n\n```\nLoginError: token {word} was refused by the session store\n```\n"


def act(stage: Stage, event: str, action: str | None = None, number: int | None = None, comment: int = 0) -> int:
    stage.github.clock.advance(150)
    return stage.act(event, action, number, comment or None)


def forget(stage: Stage, **inputs: str) -> int:
    stage.github.clock.advance(150)
    return stage.act("workflow_dispatch", inputs={"run": "forget", "issue": str(LEAKY)} | inputs)


def post_command(stage: Stage, by: str = "octocat", words: str = "/precedent forget") -> int:
    return stage.github.comment(LEAKY, by, words)


def issues_showing(stage: Stage, word: str = SECRET) -> list[int]:
    """The issues on which our comments contain the word, once for each comment."""
    return [
        number
        for number in (1, LEAKY, REFERRING, SIMILAR, UNRELATED)
        for text in stage.comments(number)
        if word in text
    ]


def leaks(stage: Stage, *words: str) -> list[str]:
    """Where the branch contains the secret, or one of these words: in its objects, and in what the index decodes to."""
    matches = []
    for name in stage.run_git("rev-list", "--objects", "--no-object-names", "precedent").split():
        content = Bare(stage.bare).object(name)
        for part in (content, *inflated(content)):
            matches += [f"{name}: {word}" for word in words or (SECRET,) if word.encode() in part.lower()]
    return matches + index_leaks(stage, *words)


def index_leaks(stage: Stage, *words: str) -> list[str]:
    memory = stage.memory()
    matches = []
    for name, segment in memory.index.segments().items():
        parts = [key for key, _, _ in segment.items()] + [str(segment.entry(n)).encode() for n in range(segment.count)]
        matches += [f"{name}: {word}" for part in parts for word in words or (SECRET,) if word.encode() in part.lower()]
    return matches


def test_a_manual_run_leaves_no_trace_and_says_what_it_cannot_reach(stage: Stage) -> None:
    stage.github.edit_issue(LEAKY, title="Login fails", body=issue_body("***"))
    assert forget(stage) == 0
    assert (leaks(stage), issues_showing(stage)) == ([], [])
    assert stage.comments(REFERRING) == stage.comments(SIMILAR) == stage.comments(LEAKY) == []
    job_summary = summary(stage)
    assert (
        "Issue 2 is forgotten: none of its text is on the branch precedent, and its older commits are gone."
        in job_summary
    )
    assert "Our comments that showed it were deleted on: 2, 3, 4." in job_summary
    assert "These issues refer to it, may quote it, and stay in memory: 3." in job_summary
    assert "Not reached: email already sent" in job_summary
    assert SECRET not in job_summary + stage.output.read_text(encoding="utf-8")
    assert not any(SECRET in path.read_text(encoding="utf-8") for path in (stage.folder / ".precedent").glob("*2*"))


def test_a_maintainer_undoes_it_by_deleting_the_tombstone(stage: Stage) -> None:
    assert forget(stage) == 0
    stage.git.commit(REPOSITORY, f"records/0000/{LEAKY}.json", None, "refs/heads/precedent")
    assert stage.act("workflow_dispatch", inputs={"run": "answer", "issue": str(LEAKY)}) == 0
    assert rebuild(stage) == 0
    assert not is_forgotten(stage.memory().records([LEAKY])[LEAKY])
    assert stage.memory().search(Query(dict.fromkeys(terms("login"), 1.0)))


@pytest.mark.parametrize("event", ["issues edited", "rebuild", "schedule"])
def test_a_forgotten_issue_stays_forgotten_whatever_is_read_later(stage: Stage, event: str) -> None:
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


def test_an_administrator_forgets_an_issue_with_a_command(stage: Stage) -> None:
    comment = post_command(stage)
    assert act(stage, "issue_comment", "created", LEAKY, comment) == 0
    assert (leaks(stage), issues_showing(stage)) == ([], [])
    (reply,) = stage.comments(LEAKY)
    assert "This issue is forgotten" in reply
    assert "The history of the memory branch, which held it, is gone too" in reply
    assert "Out of Precedent's reach: e-mail" in reply
    assert [reaction.content for reaction in stage.github.comment_by_id(comment).reactions] == ["eyes", "rocket"]
    assert SECRET not in summary(stage) + stage.output.read_text(encoding="utf-8")
    stage.github.mark()
    assert act(stage, "issue_comment", "created", LEAKY, comment) == 0
    assert stage.comments(LEAKY) == [reply]
    assert stage.github.writes == 0


@pytest.mark.parametrize("by", ["hubot", "defunkt"])
def test_nobody_else_may_have_an_issue_forgotten_not_even_its_author(stage: Stage, by: str) -> None:
    before = issues_showing(stage)
    comment = post_command(stage, by)
    assert act(stage, "issue_comment", "created", LEAKY, comment) == 0
    assert issues_showing(stage) == before
    assert "only administrators of the repository may do that" in stage.comments(LEAKY)[-1]
    assert [reaction.content for reaction in stage.github.comment_by_id(comment).reactions] == ["eyes", "confused"]
    assert leaks(stage)


def test_the_command_waits_while_permissions_cannot_be_looked_up(stage: Stage) -> None:
    comment = post_command(stage)
    stage.github.faults.add("GET */collaborators/*", "5xx", times=8)
    act(stage, "issue_comment", "created", LEAKY, comment)
    assert issues_showing(stage)
    assert not any("for administrators" in text for text in stage.comments(LEAKY))
    stage.github.faults.clear()
    assert act(stage, "schedule") == 0
    assert (leaks(stage), issues_showing(stage), len(stage.comments(LEAKY))) == ([], [], 1)


def test_the_command_cannot_forget_another_issue(stage: Stage) -> None:
    comment = stage.github.comment(UNRELATED, "octocat", "/precedent forget #2")
    assert act(stage, "issue_comment", "created", UNRELATED, comment) == 0
    assert "Precedent did not understand that" in stage.comments(UNRELATED)[-1]
    assert not any(is_forgotten(record) for record in stage.memory().records([LEAKY, UNRELATED]).values())


def test_our_comment_is_deleted_even_if_a_person_edited_it(stage: Stage) -> None:
    (mine,) = stage.github.comments_by(BOT, SIMILAR)
    stage.github.edit_comment(mine.id, f"{mine.body}\n\nIndeed.", by="octocat")
    assert forget(stage) == 0
    assert stage.comments(SIMILAR) == []


def test_an_issue_whose_only_match_was_forgotten_gets_no_new_comment(stage: Stage) -> None:
    assert forget(stage) == 0
    assert act(stage, "issues", "edited", SIMILAR) == 0
    assert stage.comments(SIMILAR) == []
    record = stage.memory().state.comments([SIMILAR])[SIMILAR]
    assert (record.state, record.comment_id, record.matches) == ("silent", None, ())


def test_a_comment_of_somebody_else_is_never_deleted(stage: Stage) -> None:
    theirs = stage.github.comment(SIMILAR, "monalisa", f"As in #2: {SECRET}")
    assert forget(stage) == 0
    assert stage.github.comment_by_id(theirs).body == f"As in #2: {SECRET}"


def test_a_dry_run_says_what_would_be_deleted_and_deletes_nothing(stage: Stage) -> None:
    before = issues_showing(stage)
    assert forget(stage, **{"dry-run": "true"}) == 0
    assert (issues_showing(stage), bool(leaks(stage))) == (before, True)
    assert "Issue 2 would be forgotten" in summary(stage)
    assert "Our comments that showed it would be deleted on: 2, 3, 4." in summary(stage)


def test_a_manual_run_needs_the_issue_number(stage: Stage) -> None:
    assert stage.act("workflow_dispatch", inputs={"run": "forget"}) == 2


def test_a_number_that_neither_memory_nor_github_has_is_refused_so_that_the_later_issue_is_remembered(
    stage: Stage,
) -> None:
    later = UNRELATED + 1
    assert forget(stage, issue=str(later)) == 2
    assert f"issue {later} cannot be forgotten: GitHub does not have it" in summary(stage)
    assert stage.github.open_issue("hubot", "As before", "As in #2.") == later
    assert act(stage, "issues", "opened", later) == 0
    assert len(stage.comments(later)) == 1


def test_a_number_that_only_github_has_can_be_forgotten(stage: Stage) -> None:
    later = stage.github.open_issue("hubot", "As before", "As in #2.")
    assert forget(stage, issue=str(later)) == 0
    assert is_forgotten(stage.memory().records([later])[later])


def test_a_forgotten_issue_is_remembered_again_as_github_has_it_now(stage: Stage) -> None:
    assert forget(stage) == 0
    stage.github.edit_issue(LEAKY, title="Login fails", body=issue_body("***"))
    for comment in stage.github.issue(LEAKY).comments:
        stage.github.edit_comment(comment.id, "Fixed: remove it.")
    assert forget(stage, run="remember") == 0
    assert f"Issue {LEAKY} is remembered again, as GitHub has it now." in summary(stage)
    for event in ("issues", "schedule"):
        assert act(stage, event, *(("edited", LEAKY) if event == "issues" else ())) == 0
        record = stage.memory().records([LEAKY])[LEAKY]
        assert (isinstance(record, Thread) and record.title, leaks(stage)) == ("Login fails", [])
    assert LEAKY in [hit.entry.id for hit in stage.memory().search(Query(dict.fromkeys(terms("login"), 1.0)))]
    assert forget(stage) == 0
    assert is_forgotten(stage.memory().records([LEAKY])[LEAKY])


@pytest.mark.parametrize("number", [UNRELATED, UNRELATED + 1])
def test_only_a_forgotten_issue_can_be_remembered_again(stage: Stage, number: int) -> None:
    assert forget(stage, run="remember", issue=str(number)) == 2
    assert f"issue {number} is not forgotten" in summary(stage)


def test_a_request_to_forget_that_was_not_finished_does_not_undo_a_later_one_to_remember(stage: Stage) -> None:
    act(stage, "issue_comment", "created", LEAKY, post_command(stage))
    assert forget(stage, run="remember") == 0
    for _ in range(2):
        assert act(stage, "schedule") == 0
    assert not is_forgotten(stage.memory().records([LEAKY])[LEAKY])


def test_an_issue_already_deleted_on_github_is_forgotten_with_its_history(stage: Stage) -> None:
    stage.github.write_event(stage.folder / "event.json", "issues", "deleted", LEAKY)
    stage.github.delete_issue(LEAKY)
    assert forget(stage) == 0
    assert (leaks(stage), issues_showing(stage)) == ([], [])


# -- interruptions and concurrent runs -----------------------------------------------------------------------------


def test_if_the_server_refuses_to_replace_history_the_rest_is_done_and_the_remedy_shown(stage: Stage) -> None:
    stage.run_git("config", "receive.denyNonFastForwards", "true")
    comment = post_command(stage)
    assert act(stage, "issue_comment", "created", LEAKY, comment) == 1
    assert issues_showing(stage) == []
    job_summary = summary(stage)
    assert "issue 2 was removed from memory, but older commits of the branch precedent still contain it" in job_summary
    assert "allow this token to force-push to precedent, then start" in job_summary
    assert "The server refused to replace the history" in stage.comments(LEAKY)[0]
    assert [reaction.content for reaction in stage.github.comment_by_id(comment).reactions] == ["eyes", "confused"]
    assert index_leaks(stage) == []
    stage.run_git("config", "receive.denyNonFastForwards", "false")
    assert act(stage, "issue_comment", "created", LEAKY, post_command(stage)) == 0
    assert leaks(stage) == []


STEPS = ("GET */issues/2/comments*", "DELETE *", "GET */issues/4/comments*", "POST */issues/2/comments")


@pytest.mark.parametrize(
    ("fault", "at"), [*share(product(["429"], STEPS), 2, 0), *share(product(["drop"], STEPS), 2, 1)]
)
def test_an_interrupted_run_is_finished_by_the_next(stage: Stage, at: str, fault: str) -> None:
    comment = post_command(stage)
    stage.github.faults.add(at, fault, after=int(at == STEPS[0]), times=8 if at.startswith("GET") else 1)
    act(stage, "issue_comment", "created", LEAKY, comment)
    assert leaks(stage) == []
    stage.github.faults.clear()
    stage.github.clock.advance(3600)
    assert act(stage, "schedule") == 0
    assert issues_showing(stage) == []
    (reply,) = stage.comments(LEAKY)
    assert "This issue is forgotten" in reply
    assert [request.state for request in stage.memory().requests([LEAKY])[LEAKY]] == ["done"]


def test_only_one_of_two_runs_replies_to_the_same_command(stage: Stage) -> None:
    comment = post_command(stage)

    def run_again(request: str) -> None:
        if request.endswith(f"/comments/{comment}/reactions"):
            stage.github.on_request = lambda _: None
            stage.act("issue_comment", "created", LEAKY, comment)

    stage.github.on_request = run_again
    assert act(stage, "issue_comment", "created", LEAKY, comment) == 0
    assert act(stage, "schedule") == 0
    assert (leaks(stage), issues_showing(stage), len(stage.comments(LEAKY))) == ([], [], 1)


def test_a_run_that_planned_to_show_the_issue_writes_nothing_once_it_is_forgotten(stage: Stage) -> None:
    number = stage.github.open_issue("monalisa", "Locked out again", "As in #2, the same.")
    forget_during(stage, f"GET /repos/{REPOSITORY}/issues")  # memory is opened before this request
    assert act(stage, "issues", "opened", number) == 0
    assert stage.comments(number) == []
    assert act(stage, "schedule") == 0
    assert (leaks(stage), issues_showing(stage)) == ([], [])
    assert not any(SECRET in text for text in stage.comments(number))


def test_a_comment_posted_just_after_the_issue_was_forgotten_is_deleted_by_the_next_run(stage: Stage) -> None:
    number = stage.github.open_issue("monalisa", "Locked out again", "As in #2, the same.")
    forget_during(stage, f"POST /repos/{REPOSITORY}/issues/{number}/comments")
    assert act(stage, "issues", "opened", number) == 0
    assert SECRET in stage.comments(number)[0]
    assert act(stage, "schedule") == 0
    assert (leaks(stage), stage.comments(number)) == ([], [])


def forget_during(stage: Stage, request: str) -> None:
    """Have another run forget the issue while one makes this request."""

    def forget_at_request(current: str) -> None:
        if current == request:
            stage.github.on_request = lambda _: None
            stage.act("workflow_dispatch", inputs={"run": "forget", "issue": str(LEAKY)})

    stage.github.on_request = forget_at_request
