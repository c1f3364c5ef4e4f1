"""Requests in comments and the replies to them, over a fake GitHub and a real memory, run after run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bot.comment.catalogue import COMMAND_SYNTAX
from bot.comment.links import CommentLinks
from bot.comment.marker import marker
from bot.comment.render import WORDS_FILE, Renderer
from bot.domain.changes import Changes, is_off, wrong_matches_for
from bot.domain.kinds import Kind
from bot.domain.post import reply_slot
from bot.github.events import Event
from bot.pipeline.commands import ABOUT_ISSUES, DONE_REASONS
from bot.pipeline.fetch import fetch_changes
from bot.pipeline.requests import find_requests
from bot.pipeline.tools import DAILY_LIMIT_REACHED
from bot.reading.requests import COMMAND_NAMES
from bot.server.storage.counters import REASONS
from bot.settings.schema import CommandSettings, CommentSettings, IgnoreSettings
from tests.comment.detector import report
from tests.examples import mostly_slow
from tests.fakes.github import FakeGitHub
from tests.pipeline.sample_repository import BOT, DECISION, LATER, RENDERER, REPO, SampleRepository
from tests.recall.samples import thread

POST = "POST /repos/*/issues/*/comments"
PERMISSION = "GET /repos/*/collaborators/*/permission"


@pytest.fixture(scope="module")
def shared_sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleRepository]:
    """One repository for the whole table: each case asks on its own issue, an hour after the previous one."""
    with FakeGitHub(REPO) as github:
        yield SampleRepository(github, tmp_path_factory.mktemp("counter"))
        assert github.violations == []


def set_commands(sample: SampleRepository, **options: int | bool) -> None:
    sample.settings = replace(sample.settings, commands=replace(CommandSettings(), **options))


def sentence_start(name: str) -> str:
    """The beginning of a sentence in our replies, up to its first placeholder."""
    return RENDERER.words.texts[f"reply_{name}"].partition("{")[0]


# -- who may use which command -------------------------------------------------------------------------------------

SEARCH = "/precedent search session store"


@pytest.mark.parametrize(
    ("text", "by", "reply", "reaction", "request_name"),
    mostly_slow(
        [
            (SEARCH, "stranger", DECISION, "rocket", "search"),
            (SEARCH.upper(), "stranger", DECISION, "rocket", "search"),
            (f"Please:\n{SEARCH}\nThank you", "stranger", DECISION, "rocket", "search"),
            ("/precedent search flux capacitor", "stranger", "“flux capacitor”.\n\nSearched: ", "confused", "search"),
            ("/precedent context #1", "stranger", DECISION, "rocket", "context"),
            ("/precedent context 1", "stranger", DECISION, "rocket", "context"),
            ("/precedent context #99", "stranger", "no record of this issue", "confused", "context"),
            ("/precedent help", "stranger", sentence_start("help"), "rocket", "help"),
            ("/precedent", "stranger", sentence_start("unclear"), "confused", "unclear"),
            ("/precedent make coffee", "stranger", sentence_start("unclear"), "confused", "unclear"),
            ("/precedent wrong", "hubot", "Add its number:\n\n- `/precedent wrong #N`\n", "confused", "which"),
            ("/precedent wrong #N", "stranger", sentence_start("refused"), "confused", "refused"),
            ("/precedent wrong #1", "monalisa", "", "rocket", "wrong"),
            ("/precedent wrong #1 and #2", "hubot", "", "rocket", "wrong"),
            ("/precedent same 1", "monalisa", "", "rocket", "same"),
            ("/precedent same 1 and 2", "hubot", "", "rocket", "same"),
            ("/precedent different 1 another door", "hubot", "", "rocket", "different"),
            ("/precedent original #1", "hubot", "", "rocket", "original"),
            ("/precedent original", "hubot", sentence_start("which"), "confused", "which"),
            ("/precedent same #1", "stranger", sentence_start("refused"), "confused", "refused"),
            ("/precedent off", "monalisa", "", "rocket", "off"),
            ("/precedent on", "hubot", "", "rocket", "on"),
            ("/precedent refresh", "hubot", "", "rocket", "refresh"),
            ("/precedent wrong #1", "stranger", sentence_start("refused"), "confused", "refused"),
            ("/precedent off", "stranger", sentence_start("refused"), "confused", "refused"),
            ("/precedent on", "stranger", sentence_start("refused"), "confused", "refused"),
            ("/precedent refresh", "stranger", sentence_start("refused"), "confused", "refused"),
            (f"{SEARCH}\n/precedent off", "stranger", sentence_start("others_left"), "rocket", "search"),
            ("What did we decide about the session store?", "stranger", DECISION, "", "recall"),
            ("Remember what we decided in #1?", "stranger", DECISION, "", "recall"),
            ("Search all past conversations for mentions of printers", "stranger", "Printer prints", "", "recall"),
            ("What did we decide about the flux capacitor?", "stranger", "", "", "recall"),
            ("What did we decide in #99?", "stranger", "", "", "recall"),
            ("Didn't we discuss this before?", "stranger", "", "", "recall"),
            (f"```\n{SEARCH}\n```", "hubot", "", "", ""),
            (f"> {SEARCH}", "hubot", "", "", ""),
            ("> What did we decide about the session store?", "hubot", "", "", ""),
            ("`what did we decide about the session store`", "hubot", "", "", ""),
            ("I remember what we decided about the session store.", "hubot", "", "", ""),
            (SEARCH, "dependabot[bot]", "", "", ""),
            (SEARCH, None, DECISION, "rocket", "search"),
            ("/precedent off", None, sentence_start("refused"), "confused", "refused"),
        ]
    ),
)
def test_who_may_use_which_command_and_what_it_does(
    shared_sample: SampleRepository, text: str, by: str | None, reply: str, reaction: str, request_name: str
) -> None:
    before = len(shared_sample.replies())
    shared_sample.github.clock.advance(3_700)
    unique_title = "".join(chr(97 + int(digit)) for digit in shared_sample.github.clock.now if digit.isdigit())
    number = shared_sample.github.open_issue("monalisa", unique_title)
    comment = shared_sample.github.comment(number, by, text)
    shared_sample.github.clock.advance(20)
    shared_sample.run(Event("issue_comment", "created", number, comment_id=comment, comment_author=by or ""))
    stored = shared_sample.requests(number)
    assert [request.name for request in stored] == ([request_name] if request_name else [])
    about = tuple(map(int, re.findall(r"\d", text))) if request_name in ABOUT_ISSUES else ()
    assert all(request.about == about for request in stored)
    assert shared_sample.reactions(comment) == (["eyes", reaction] if reaction else [])
    assert len(shared_sample.replies(comment)) == len(shared_sample.replies()) - before == bool(reply)
    assert all(reply in posted for posted in shared_sample.replies(comment))


@pytest.mark.parametrize("request_text", ["/precedent context #1", "Remember what we decided in #1?"])
def test_a_command_copied_from_a_reply_is_understood(sample: SampleRepository, request_text: str) -> None:
    (first,) = sample.replies(sample.say(request_text, "stranger"))
    quoted = first.partition("\n> ")[2].partition("\n")[0]
    assert quoted == request_text.replace("#", "#\u200b")
    assert all(DECISION in reply for reply in sample.replies(sample.say(quoted, "stranger")))
    assert len(sample.replies()) == 2


def test_pages_do_not_crowd_out_issues(sample: SampleRepository) -> None:
    memory = sample.memory().open()
    pages = [thread(f"docs/{number}.md", "Session store", "The session store.", kind=Kind.PAGE) for number in range(12)]
    memory.stage(Changes(records=tuple(pages)))
    memory.commit("Pages")
    memory.close()
    assert DECISION in sample.replies(sample.say(SEARCH))[0]


@pytest.mark.parametrize(
    "text", ["@octocat why did we choose PostgreSQL?", "Interesting, why did we choose PostgreSQL?"]
)
def test_a_question_after_other_words_is_about_its_topic(sample: SampleRepository, text: str) -> None:
    number = sample.github.open_issue("monalisa", "Printer prints nothing again", "Still no ink.")
    assert DECISION in sample.replies(sample.say(text, on=number))[0]


def test_permission_counts_and_not_the_association_of_a_comment(sample: SampleRepository) -> None:
    sample.github.repo.roles["defunkt"] = "write"
    member = sample.github.comment(3, "defunkt", "/precedent off", association="CONTRIBUTOR")
    outsider = sample.github.comment(3, "mojombo", "/precedent on", association="MEMBER")
    sample.later(20)
    assert [request.name for request in sample.requests()] == ["off", "refused"]
    assert (sample.reactions(member), sample.reactions(outsider)) == (["eyes", "rocket"], ["eyes", "confused"])


def test_a_deleted_account_is_not_mistaken_for_a_deleted_author(sample: SampleRepository) -> None:
    number = sample.github.open_issue(None, "Whose", "Nobody knows.")
    comment = sample.github.comment(number, None, "/precedent off")
    sample.later(20)
    assert sentence_start("refused") in sample.replies(comment)[0]


def test_the_permission_at_the_time_of_reading_counts(sample: SampleRepository) -> None:
    sample.github.repo.roles["hubot"] = "read"
    comment = sample.say("/precedent off", "hubot")
    assert sentence_start("refused") in sample.replies(comment)[0]


def test_an_edited_comment_is_not_obeyed(sample: SampleRepository) -> None:
    comment = sample.github.comment(3, "hubot", "Hello.")
    sample.github.clock.advance(30)
    sample.github.edit_comment(comment, "/precedent off")
    sample.later(20)
    assert (sample.replies(), sample.requests(), sample.reactions(comment)) == ([], (), [])


def test_an_edit_of_an_answered_comment_withdraws_the_reply_and_does_nothing_else(sample: SampleRepository) -> None:
    comment = sample.say(SEARCH)
    sample.github.clock.advance(30)
    sample.github.edit_comment(comment, "/precedent off")
    sample.later()
    (reply,) = sample.replies(comment)
    assert RENDERER.words.texts["withdrawn"] in reply
    assert not is_off(sample.requests())


def test_a_comment_is_answered_once_however_often_it_is_read(sample: SampleRepository) -> None:
    comment = sample.say(SEARCH)
    for seconds in (1, 60, LATER, LATER):
        sample.later(seconds)
        sample.run(Event("issue_comment", "created", 3, comment_id=comment))
    assert len(sample.replies()) == 1
    assert [(request.state, request.trying_since) for request in sample.requests()] == [("done", None)]
    (post,) = sample.memory().open().state.posts([3])[3].posts[1:]
    assert (post.slot, post.state) == (reply_slot(comment), "said")
    assert post.comment_id == sample.github.comments_by(BOT)[0].id


def test_the_same_text_in_two_comments_makes_two_requests(sample: SampleRepository) -> None:
    first, second = sample.say(SEARCH), sample.say(SEARCH)
    assert [len(sample.replies(comment)) for comment in (first, second)] == [1, 1]


def test_the_next_run_makes_up_for_a_lost_event(sample: SampleRepository) -> None:
    comment = sample.github.comment(3, "hubot", SEARCH)
    sample.later(3_600)
    assert len(sample.replies(comment)) == 1


@pytest.mark.parametrize("text", ["/precedent help", SEARCH, "What did we decide about the session store?"])
def test_a_request_first_read_as_history_is_answered_by_the_next_run(sample: SampleRepository, text: str) -> None:
    comment = sample.github.comment(3, "stranger", text)
    sample.github.clock.advance(3_600)
    sample.read_history()
    assert [(request.name, request.state) for request in sample.requests()] == [("waiting", "pending")]
    for _ in range(3):
        sample.later(3_600)
    assert len(sample.replies(comment)) == len(sample.replies()) == 1
    assert [request.state for request in sample.requests()] == ["done"]


def test_a_question_in_an_issue_that_was_first_read_as_history_is_answered(sample: SampleRepository) -> None:
    number = sample.github.open_issue("stranger", "What did we decide about the session store?")
    sample.read_history()
    sample.later()
    assert len(sample.replies(number)) == 1


def test_an_answered_request_is_not_answered_again_after_a_rebuild(sample: SampleRepository) -> None:
    comment = sample.say(SEARCH)
    sample.later()
    before = sample.requests()
    sample.read_history()
    assert sample.requests() == before
    sample.later()
    assert len(sample.replies(comment)) == 1


def test_an_answered_request_is_not_answered_again_after_memory_was_lost(sample: SampleRepository) -> None:
    comment, off = sample.say(SEARCH), sample.say("/precedent off")
    shutil.rmtree(sample.folder / "store")
    sample.read_history()
    sample.later()
    assert (len(sample.replies(comment)), sample.replies(off), sample.reactions(off)) == (1, [], ["eyes", "rocket"])
    assert is_off(sample.requests()), "what it changed holds again"


def test_a_request_waits_until_it_is_known_whether_it_was_answered(sample: SampleRepository) -> None:
    comment = sample.say(SEARCH)
    shutil.rmtree(sample.folder / "store")
    sample.github.faults.add("GET */issues/3/comments", "5xx", None)
    sample.run(Event("issues", "edited", 3))
    assert [(request.name, request.state) for request in sample.requests()] == [("waiting", "pending")]
    sample.github.faults.clear()
    sample.later()
    assert len(sample.replies(comment)) == 1


def test_old_edited_and_ignored_comments_of_the_history_make_no_requests(sample: SampleRepository) -> None:
    sample.github.comment(2, "hubot", SEARCH, at="2026-01-02T10:00:00Z")
    edited = sample.github.comment(3, "hubot", SEARCH)
    sample.github.comment(3, "dependabot[bot]", SEARCH)
    sample.github.comment(3, "hubot", f"> {SEARCH}")
    sample.github.clock.advance(30)
    sample.github.edit_comment(edited, f"{SEARCH}!")
    sample.read_history()
    assert (sample.requests(2), sample.requests(3)) == ((), ())
    sample.settings = replace(sample.settings, mode="off")
    sample.github.comment(3, "hubot", SEARCH)
    sample.read_history()
    assert sample.requests() == ()


def test_a_request_unseen_for_a_day_is_not_answered(sample: SampleRepository) -> None:
    sample.github.comment(3, "hubot", SEARCH)
    sample.later(25 * 3_600)
    assert sample.replies() == []


def test_a_comment_not_listed_yet_is_read_on_its_own(sample: SampleRepository) -> None:
    memory = sample.memory()
    run = sample.tools(memory)
    state = fetch_changes(Event("issues", "edited", 3), run)
    comment = sample.github.comment(3, "hubot", SEARCH)
    late_state = replace(state, event=Event("issue_comment", "created", 3, comment_id=comment, comment_author="hubot"))
    assert [request.key for request in find_requests(late_state, run)] == [comment]
    assert find_requests(replace(late_state, event=replace(late_state.event, comment_id=comment + 1)), run) == []
    memory.close()


# -- half-done runs ------------------------------------------------------------------------------------------------


def test_a_run_that_dies_before_writing_memory_leaves_the_reply_to_the_next(sample: SampleRepository) -> None:
    comment = sample.say(SEARCH, dies="push")
    assert (sample.replies(), sample.requests()) == ([], ())
    sample.later()
    assert len(sample.replies(comment)) == 1


def test_a_run_that_dies_before_replying_is_made_up_for_after_two_minutes(sample: SampleRepository) -> None:
    comment = sample.say(SEARCH, "hubot", dies="say")
    sample.later(60)
    assert sample.replies() == []
    sample.later(LATER)
    sample.later(LATER)
    assert len(sample.replies(comment)) == 1
    assert [request.state for request in sample.requests()] == ["done"]


def test_a_change_holds_although_the_run_died_before_its_reaction(sample: SampleRepository) -> None:
    sample.say("/precedent off", "hubot", dies="say")
    sample.later()
    assert is_off(sample.requests())
    assert (sample.replies(), sample.requests()[0].state) == ([], "done")


def test_a_promised_refusal_changes_nothing(sample: SampleRepository) -> None:
    sample.say("/precedent off", "stranger", dies="say")
    assert [(request.name, request.state) for request in sample.requests()] == [("refused", "pending")]
    assert not is_off(sample.requests())
    sample.later()
    sample.later()
    assert len(sample.replies()) == 1


def test_a_reply_whose_confirmation_was_lost_is_not_written_twice(sample: SampleRepository) -> None:
    sample.github.faults.add(POST, "dup")
    comment = sample.say(SEARCH)
    sample.later()
    assert len(sample.replies(comment)) == 1
    assert sample.reactions(comment) == ["eyes", "rocket"]


def test_a_reply_that_never_arrived_is_written_by_a_later_run(sample: SampleRepository) -> None:
    sample.github.faults.add(POST, "drop")
    comment = sample.say(SEARCH)
    assert sample.replies() == []
    sample.later()
    sample.later()
    assert len(sample.replies(comment)) == 1


def test_a_reply_that_a_person_deleted_is_not_written_again(sample: SampleRepository) -> None:
    sample.say(SEARCH)
    (reply,) = sample.github.comments_by(BOT)
    sample.github.delete_comment(reply.id, by="octocat")
    sample.later()
    sample.later()
    assert sample.replies() == []
    assert [request.state for request in sample.requests()] == ["done"]


def test_a_deleted_reply_is_not_written_again_even_if_the_runners_clock_is_ahead(sample: SampleRepository) -> None:
    clock = sample.github.clock
    comment = sample.github.comment(3, "monalisa", SEARCH)
    true_time = clock.now
    clock.advance(45)
    sample.run(Event("issue_comment", "created", 3, comment_id=comment, comment_author="monalisa"))
    (reply,) = sample.github.comments_by(BOT)
    sample.github.delete_comment(reply.id, by="octocat", at=true_time)
    sample.later()
    assert sample.replies() == []


def test_a_deleted_command_is_not_answered(sample: SampleRepository) -> None:
    comment = sample.say(SEARCH, dies="say")
    sample.github.delete_comment(comment)
    sample.later()
    assert sample.replies() == []
    assert [request.state for request in sample.requests()] == ["refused"]


def test_only_one_of_two_concurrent_runs_replies(sample: SampleRepository) -> None:
    comment = sample.github.comment(3, "hubot", SEARCH)
    sample.github.clock.advance(20)
    sample.run(
        Event("schedule"), meanwhile=lambda: sample.run(Event("issue_comment", "created", 3, comment_id=comment))
    )
    assert len(sample.replies(comment)) == 1


def test_a_later_run_asks_if_permission_cannot_be_read(sample: SampleRepository) -> None:
    sample.github.faults.add(PERMISSION, "secondary403")
    comment = sample.say("/precedent off", "hubot")
    assert ([request.name for request in sample.requests()], sample.replies()) == (["waiting"], [])
    sample.later()
    assert is_off(sample.requests())
    assert (sample.replies(comment), sample.reactions(comment)) == ([], ["eyes", "rocket"])


def test_a_locked_conversation_gets_no_reply_but_commands_take_effect(sample: SampleRepository) -> None:
    search = sample.github.comment(3, "stranger", SEARCH)
    sample.github.comment(3, "hubot", "/precedent off")
    sample.github.lock(3)
    about_issue, *replies = sample.later(20)
    assert (about_issue.action, [result.is_refused for result in replies]) == ("silent", [True, False])
    assert {request.name: request.state for request in sample.requests()} == {"search": "refused", "off": "done"}
    sample.later()
    assert sample.replies(search) == []


# -- effects -------------------------------------------------------------------------------------------------------


def test_off_and_on_stay_in_effect_until_the_other_and_make_the_issue_due(sample: SampleRepository) -> None:
    for text, is_now_off, actions in (
        ("/precedent off", True, ["silent", "silent"]),
        ("/precedent on", False, ["silent", "silent"]),
        (SEARCH, False, ["replied"]),
    ):
        assert sample.reactions(sample.say(text)) == ["eyes", "rocket"]
        assert is_off(sample.requests()) is is_now_off
        assert [result.action for result in sample.results] == actions


def test_while_an_issue_is_off_nothing_is_written_and_changes_take_effect(sample: SampleRepository) -> None:
    sample.say("/precedent off")
    faults = [sample.say(text, "stranger") for text in (SEARCH, "/precedent make coffee", "/precedent on")]
    faults.append(sample.say("/precedent wrong", "hubot"))
    wrong = sample.say("/precedent wrong #1", "hubot")
    sample.say("What did we decide about the session store?", "stranger")
    assert sample.replies() == []
    assert [sample.reactions(comment) for comment in faults] == [["eyes", "confused"]] * 4
    assert (sample.reactions(wrong), wrong_matches_for(sample.requests())) == (["eyes", "rocket"], {1})
    sample.say("/precedent on")
    assert len(sample.replies(sample.say(SEARCH, "octocat"))) == 1


def test_a_refresh_writes_a_deleted_comment_again_and_gets_only_a_reaction(sample: SampleRepository) -> None:
    number = open_answered_issue(sample)
    (comment,) = sample.github.comments_by(BOT, number)
    assert sample.reactions(sample.say("/precedent refresh", "hubot", on=number)) == ["eyes", "rocket"]
    sample.github.delete_comment(comment.id, by="octocat")
    assert sample.reactions(sample.say("/precedent refresh", "hubot", on=number)) == ["eyes", "rocket"]
    assert (sample.replies(), len(sample.github.comments_by(BOT, number))) == ([], 1)


@pytest.mark.parametrize("typed", ["wrong", "same #N"])
def test_a_command_without_a_number_gets_the_commands_to_choose_from(sample: SampleRepository, typed: str) -> None:
    number, name = open_answered_issue(sample), typed.partition(" ")[0]
    asked = sample.say(f"/precedent {typed}", on=number)
    (reply,) = sample.replies(asked)
    assert f"\n\nWhich issue? Add its number:\n\n- `/precedent {name} 1`: Session store\n\n" in reply
    assert (sample.reactions(asked), sample.results[-1].reason) == (["eyes", "confused"], DONE_REASONS["which"])
    chosen = sample.say(f"/precedent {name} 1", on=number)
    assert (sample.replies(chosen), sample.reactions(chosen)) == ([], ["eyes", "rocket"])
    assert [(request.name, request.about) for request in sample.requests(number)] == [("which", ()), (name, (1,))]


def open_answered_issue(sample: SampleRepository) -> int:
    """Open an issue that refers to issue 1, and answer it."""
    number = sample.github.open_issue("monalisa", "Sessions", "As in #1.")
    sample.later(20)
    assert len(sample.github.comments_by(BOT, number)) == 1
    return number


def test_wrong_pairs_are_remembered(sample: SampleRepository) -> None:
    sample.say("/precedent wrong #1\n/precedent wrong #2")
    assert wrong_matches_for(sample.requests()) == {1, 2}
    assert [result.action for result in sample.results] == ["silent", "silent"]


def test_a_stored_thread_does_not_contain_our_replies(sample: SampleRepository) -> None:
    sample.say(SEARCH)
    sample.later()
    memory = sample.memory().open()
    thread = memory.records([3])[3]
    assert [comment.author for comment in thread.comments] == ["monalisa"]
    memory.close()


# -- limits and settings -------------------------------------------------------------------------------------------


def test_questions_are_limited_per_account_and_hour_which_the_next_command_explains(sample: SampleRepository) -> None:
    set_commands(sample, searches_per_hour=2)
    texts = [SEARCH, SEARCH, "What did we decide about the session store?", SEARCH, SEARCH]
    assert [len(sample.replies(sample.say(text, "stranger"))) for text in texts] == [1, 1, 0, 1, 0]
    assert "Each account may ask 2 times an hour here." in sample.replies()[-1]
    assert len(sample.replies(sample.say(SEARCH, "hubot"))) == 1
    sample.github.clock.advance(3_700)
    assert "Session store" in sample.replies(sample.say(SEARCH, "stranger"))[0]


@pytest.mark.parametrize(
    ("text", "by", "has_offer"),
    [
        (SEARCH, "stranger", True),
        ("/precedent search flux capacitor", "stranger", False),
        ("/precedent help", "stranger", False),
        ("/precedent make coffee", "stranger", False),
        ("/precedent off", "stranger", False),
    ],
)
def test_only_replies_with_results_offer_the_wrong_command(
    sample: SampleRepository, text: str, by: str, has_offer: bool
) -> None:
    (reply,) = sample.replies(sample.say(text, by))
    footer = reply.strip().rpartition("\n<sub>")[2]
    assert footer.startswith("Precedent, a bot, ")
    assert ("Not helpful?" in footer) is ("/precedent off" in footer) is has_offer


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("/precedent serach session store", "`/precedent search WORDS`"),
        ("/Precedent HLEP", "`/precedent help`"),
        ("/precedent wrnog 1", "`/precedent wrong #N`"),
        ("/precedent sing", ""),
        ("/precedent", ""),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(sample: SampleRepository, text: str, suggestion: str) -> None:
    (reply,) = sample.replies(sample.say(text, "stranger"))
    assert f"\n{sentence_start('unclear')}{f' Did you mean {suggestion}?' if suggestion else ''}\n" in reply


@pytest.mark.parametrize(("words", "is_shown"), [("", True), ('example_question: "Was haben wir zu … gesagt?"', False)])
def test_help_shows_how_to_ask_a_question_if_it_would_be_understood(
    sample: SampleRepository, words: str, is_shown: bool
) -> None:
    sample.renderer = Renderer(overrides={WORDS_FILE: words} if words else {}, links=CommentLinks(repo=REPO))
    (text,) = sample.replies(sample.say("/precedent help", "stranger"))
    assert ("\n\nOr ask a question: `" in text) is is_shown


def test_help_shows_reporters_three_commands_and_people_with_write_access_all(sample: SampleRepository) -> None:
    def commands(by: str) -> list[str]:
        (text,) = sample.replies(sample.say("/precedent help", by))
        return re.findall(r"^- `/precedent (\w+)", text, re.MULTILINE)

    assert commands("stranger") == ["search", "wrong", "off"]
    assert commands("hubot") == list(COMMAND_SYNTAX)


@pytest.mark.slow
def test_the_summary_says_what_was_asked_and_why_it_was_not_done(sample: SampleRepository) -> None:
    set_commands(sample, searches_per_hour=1)

    def reason_for(text: str, by: str) -> str:
        comment = sample.github.comment(3, by, text)
        sample.github.clock.advance(20)
        *_, result = sample.run(Event("issue_comment", "created", 3, comment_id=comment, comment_author=by))
        return result.reason

    assert reason_for("What did we decide about the session store?", "stranger") == "asked what was decided"
    used_up = "the account has used up its questions for this hour (commands.searches_per_hour: 1)"
    assert reason_for(SEARCH, "stranger") == reason_for(SEARCH, "stranger") == used_up
    assert reason_for("/precedent make coffee", "hubot") == "the request was not understood"
    refused = "only its author or people with write access may ask for that"
    assert reason_for("/precedent off", "stranger") == refused
    assert reason_for("/precedent off", "monalisa") == "switched off on this issue"
    assert reason_for(SEARCH, "octocat") == "somebody switched it off on this issue"


def test_every_request_name_has_a_reason_in_words() -> None:
    assert set(DONE_REASONS) == {*COMMAND_NAMES, "recall", "unclear", "which"}
    assert [reason for reason in DONE_REASONS.values() if reason not in REASONS] == []


def test_an_account_is_told_once_an_hour_why_a_command_was_not_carried_out(sample: SampleRepository) -> None:
    texts = ["/precedent off", "/precedent make coffee", "/precedent wrong", "/precedent off"]
    comments = [sample.say(text, "stranger") for text in texts]
    assert [len(sample.replies(comment)) for comment in comments] == [1, 0, 0, 0]
    assert all(sample.reactions(comment) == ["eyes", "confused"] for comment in comments)
    others = [sample.say(text, "hubot") for text in ("/precedent wrong", "/precedent make coffee", SEARCH)]
    assert [len(sample.replies(comment)) for comment in others] == [1, 0, 1], "an answer is no explanation"
    sample.github.clock.advance(3_700)
    assert sentence_start("unclear") in sample.replies(sample.say("/precedent make coffee", "stranger"))[0]


def test_the_limit_counts_across_issues_and_within_one_run(sample: SampleRepository) -> None:
    set_commands(sample, searches_per_hour=1)
    comments = [sample.github.comment(on, "stranger", SEARCH) for on in (1, 2, 3)]
    sample.later(20)
    assert [len(sample.replies(comment)) for comment in comments] == [1, 1, 0]
    assert sentence_start("limited_one") in sample.replies(comments[1])[0]


def test_changes_are_not_limited_and_get_only_a_reaction(sample: SampleRepository) -> None:
    set_commands(sample, searches_per_hour=0)
    comments = [sample.say(f"/precedent {words}") for words in ("on", "wrong 2", "wrong 2", *("off", "on") * 3, "off")]
    assert [sample.reactions(comment) for comment in comments] == [["eyes", "rocket"]] * 10
    assert sample.replies() == []
    assert (is_off(sample.requests()), wrong_matches_for(sample.requests())) == (True, {2})


def set_daily_limit(sample: SampleRepository, limit: int, mode: str = "comment") -> None:
    sample.settings = replace(sample.settings, mode=mode, comment=replace(CommentSettings(), daily_limit=limit))


def test_replies_count_among_the_comments_of_any_24_hours(sample: SampleRepository) -> None:
    set_daily_limit(sample, 2)
    first = sample.say(SEARCH, "octocat")
    sample.github.clock.advance(15 * 3_600)  # into the next day
    second, third = sample.say(SEARCH, "stranger"), sample.say("What did we decide about the session store?", "hubot")
    assert [len(sample.replies(comment)) for comment in (first, second, third)] == [1, 1, 0]
    assert sample.later()[0].reason == DAILY_LIMIT_REACHED
    sample.github.clock.advance(9 * 3_600)
    sample.later()
    assert [len(sample.replies(comment)) for comment in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize(("limit", "written"), [(1, [1, 0, 0]), (2, [1, 1, 0]), (3, [1, 1, 1])])
def test_all_replies_of_one_run_share_the_daily_limit(sample: SampleRepository, limit: int, written: list[int]) -> None:
    set_daily_limit(sample, limit)
    comments = [sample.github.comment(on, "octocat", SEARCH) for on in (1, 2, 3)]
    sample.later(20)
    assert [len(sample.replies(comment)) for comment in comments] == written


def test_commands_take_effect_even_if_no_more_comments_are_allowed(sample: SampleRepository) -> None:
    set_daily_limit(sample, 1)
    sample.say(SEARCH, "stranger")
    off = sample.say("/precedent off")
    assert (sample.replies(off), sample.reactions(off)) == ([], ["eyes", "rocket"])
    assert is_off(sample.requests())
    assert [request.state for request in sample.requests() if request.name == "off"] == ["done"]
    refused = sample.say("/precedent on", "stranger")
    assert (sample.replies(refused), sample.reactions(refused)) == ([], ["eyes", "confused"])


def test_a_question_postponed_by_the_daily_limit_still_counts_for_its_hour(sample: SampleRepository) -> None:
    set_daily_limit(sample, 1)
    set_commands(sample, searches_per_hour=2)
    sample.say(SEARCH, "octocat")
    waiting = [sample.say(SEARCH, "stranger") for _ in range(2)]
    sample.later()
    assert [sample.reactions(comment) for comment in waiting] == [["eyes"], ["eyes"]]
    assert sample.reactions(sample.say(SEARCH, "stranger")) == ["eyes", "confused"]


def test_a_retry_of_a_promised_reply_counts_once(sample: SampleRepository) -> None:
    set_daily_limit(sample, 1)
    comment = sample.say(SEARCH, "stranger", dies="say")
    sample.later()
    assert len(sample.replies(comment)) == 1


def test_summary_mode_does_not_use_up_the_daily_limit(sample: SampleRepository) -> None:
    set_daily_limit(sample, 1, mode="summary")
    runs = [sample.run(Event("schedule"))]
    for by in ("octocat", "stranger", "hubot"):
        comment = sample.github.comment(3, by, SEARCH)
        sample.github.clock.advance(20)
        runs.append(sample.run(Event("issue_comment", "created", 3, comment_id=comment, comment_author=by)))
    assert [[result.action for result in results] for results in runs] == [[], *[["would say"]] * 3]
    set_daily_limit(sample, 1)
    assert len(sample.replies(sample.say(SEARCH, "someone-else"))) == 1


def test_a_repeated_delivery_adds_no_reaction(sample: SampleRepository) -> None:
    comment = sample.say("/precedent on")
    for _ in range(3):
        sample.run(Event("issue_comment", "created", 3, comment_id=comment, comment_author="monalisa"))
        sample.later()
    assert sample.reactions(comment) == ["eyes", "rocket"]


def test_commands_can_be_switched_off(sample: SampleRepository) -> None:
    set_commands(sample, enabled=False)
    sample.say("/precedent off")
    assert (sample.replies(), sample.requests()) == ([], ())


@pytest.mark.parametrize(
    ("ignore", "on"),
    [(IgnoreSettings(authors=("Monalisa",)), 3), (IgnoreSettings(labels=("Quiet",)), 3)],
    ids=["author", "label"],
)
def test_ignored_authors_and_labels_get_no_reply(sample: SampleRepository, ignore: IgnoreSettings, on: int) -> None:
    sample.settings = replace(sample.settings, ignore=ignore)
    sample.github.label(3, "quiet")
    sample.say(SEARCH, on=on)
    assert sample.replies() == []


def test_people_who_opted_out_are_answered_on_command_and_not_quoted(sample: SampleRepository) -> None:
    sample.settings = replace(sample.settings, ignore=IgnoreSettings(people=("stranger", "hubot")))
    sample.say("What did we decide about the session store?", "stranger")
    assert sample.replies() == []
    (text,) = sample.replies(sample.say(SEARCH, "stranger"))
    assert "> " not in text.partition("\n- ")[0]
    assert DECISION not in text
    assert "Session store" in text


def test_a_repository_can_override_the_words_of_replies(sample: SampleRepository) -> None:
    own = 'reply_meant: "Gemeint ist wohl {command}."\nreply_help_off: "nichts mehr sagen"'
    sample.renderer = Renderer(overrides={WORDS_FILE: own}, links=CommentLinks(repo=REPO))
    (reply,) = sample.replies(sample.say("/precedent hlep"))
    assert "Gemeint ist wohl `/precedent help`." in reply
    assert "\n- `/precedent off`: nichts mehr sagen\n" in reply


def test_in_summary_mode_a_reply_is_reported_and_not_posted(sample: SampleRepository) -> None:
    sample.settings = replace(sample.settings, mode="summary")
    comment = sample.github.comment(3, "stranger", SEARCH)
    results = sample.later(20)
    assert [(result.action, DECISION in result.text) for result in results] == [("would say", True)]
    assert (sample.replies(), sample.reactions(comment)) == ([], [])
    sample.settings = replace(sample.settings, mode="comment")
    sample.later()
    assert sample.replies() == []


def test_in_off_mode_no_request_is_read(sample: SampleRepository) -> None:
    sample.settings = replace(sample.settings, mode="off")
    sample.say(SEARCH)
    assert (sample.replies(), sample.requests()) == ([], ())


def test_a_muted_run_leaves_requests_to_a_later_one(sample: SampleRepository) -> None:
    sample.muted = "the settings cannot be used"
    comment = sample.github.comment(3, "hubot", SEARCH)
    sample.later(20)
    sample.muted = ""
    sample.later(20)
    assert len(sample.replies(comment)) == 1


def test_many_requests_are_answered_over_several_runs(sample: SampleRepository) -> None:
    comments = [sample.github.comment(3, f"user{number}", SEARCH) for number in range(12)]
    assert sum(result.is_owed for result in sample.later(20)) == 2
    assert sum(len(sample.replies(comment)) for comment in comments) == 10
    sample.later()
    assert [len(sample.replies(comment)) for comment in comments] == [1] * 12


# -- questions in an issue's own text ------------------------------------------------------------------------------


def test_a_question_in_an_opening_text_gets_one_reply(sample: SampleRepository) -> None:
    number = sample.github.open_issue("hubot", "Research", "Search all past conversations for mentions of sessions")
    for _ in range(3):
        sample.later()
    (text,) = sample.replies(number)
    assert "Session store" in text
    assert "Printer" not in text


def test_a_question_in_a_title_counts_too(sample: SampleRepository) -> None:
    number = sample.github.open_issue("hubot", "What did we decide about the session store?", "")
    sample.later()
    assert DECISION in sample.replies(number)[0]


def test_a_question_about_an_issue_number_is_left_to_the_comment_on_the_issue(sample: SampleRepository) -> None:
    sample.github.open_issue("hubot", "Research", "As in #1: what did we decide about the session store?")
    sample.later()
    assert sample.replies() == []


# -- safety --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "/precedent search " + "[" * 20_000,
        "/precedent search \x00\ud800 @octocat #1 https://example.com",
        "/precedent " + "\u202e#1\u200b",
        "/precedent wrong #1 #2 <img src=x> @octocat",
        "what did we decide about " + "a " * 30_000,
        "what did we decide about @octocat #1 closes #2 <script>",
    ],
)
def test_replies_to_hostile_text_are_harmless(sample: SampleRepository, text: str) -> None:
    comment = sample.say(text, "hubot")
    for reply in sample.replies(comment):
        detected = report(reply)
        assert (detected.mentions, detected.references, detected.images) == ([], [], [])
        assert all(link.startswith("https://redirect.github.com/") for link in detected.links)
        assert len(reply) < 20_000


def test_a_comment_with_our_marker_by_somebody_else_is_not_ours(sample: SampleRepository) -> None:
    comment = sample.github.comment(3, "monalisa", SEARCH)
    sample.github.comment(3, "stranger", f"{marker(slot=reply_slot(comment))}\nNothing is known.")
    sample.later(20)
    sample.later()
    assert len(sample.replies(comment)) == 1


def test_commands_in_our_own_comments_are_never_obeyed(sample: SampleRepository) -> None:
    sample.settings = replace(sample.settings, comment=replace(sample.settings.comment, author=BOT))
    sample.github.comment(3, BOT, f"{marker(slot=reply_slot(1))}\n{SEARCH}")
    sample.github.comment(3, BOT, SEARCH)
    sample.later(20)
    assert sample.requests() == ()
