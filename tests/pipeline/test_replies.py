"""What people ask in comments, and what they get: over a fake forge and a real memory, run after run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from bot.comment.links import CommentLinks
from bot.comment.marker import marker
from bot.comment.render import WORDS, Renderer
from bot.domain.changes import Changes, Request, is_off, threads_to_redo, wrong_matches_for, wrong_pairs
from bot.domain.thread import RepositoryAddress
from bot.github.client import GitHubClient
from bot.github.events import Event
from bot.github.fixes import FixFinder
from bot.github.history import GraphQLHistory
from bot.github.threads import OwnCommentRule
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.backfill import Clock, Deadline, backfill
from bot.pipeline.fetch import fetch_changes
from bot.pipeline.publish import CommentResult, promise_replies, publish_replies
from bot.pipeline.replies import DONE_REASONS, MAX_CONFIRMED, ReplyPlan, prepare_replies
from bot.pipeline.requests import find_requests, unread_requests
from bot.pipeline.run_context import FULL_DAY, RunContext
from bot.reading.requests import NAMES
from bot.server.inbox_rows import REASONS
from bot.settings.schema import CommandSettings, CommentSettings, IgnoreSettings, Settings
from tests.comment.detector import report
from tests.fakes.github import FakeGitHub
from tests.marker import find_marker

REPO = "octocat/hello-world"
BOT = "github-actions[bot]"
DECISION = "We decided to go with PostgreSQL for the session store."
POST = "POST /repos/*/issues/*/comments"
PERMISSION = "GET /repos/*/collaborators/*/permission"
RENDERER = Renderer(links=CommentLinks(repo=REPO))
LATER = 180
"""Seconds after which a run that promised a reply is not waited for any more."""


@dataclass
class Office:
    """A repository where people ask on issue 3; 1 decides for a database, 2 speaks of printers.

    ``copy_of``: the folder of an office whose memory this one begins with.
    """

    github: FakeGitHub
    folder: Path
    copy_of: Path | None = None
    settings: Settings = field(default_factory=Settings)
    renderer: Renderer = RENDERER
    muted: str = ""
    notes: list[str] = field(default_factory=list)
    redone: frozenset[object] = frozenset()

    def __post_init__(self) -> None:
        forge = self.github
        forge.set_permission("hubot", "write")
        forge.open_issue("octocat", "Session store", "Where should sessions live?", at="2025-07-01T10:00:00Z")
        forge.comment(1, "hubot", DECISION, at="2025-07-02T10:00:00Z")
        forge.close(1, "hubot", at="2025-07-03T10:00:00Z")
        forge.open_issue("octocat", "Printer prints nothing", "It is out of ink.", at="2025-08-01T10:00:00Z")
        forge.close(2, "hubot", "not_planned", at="2025-08-02T10:00:00Z")
        forge.open_issue("monalisa", "Zyx", "Wvu tsr qpo.", at="2026-01-05T11:00:00Z")
        if self.copy_of:
            shutil.copytree(self.copy_of, self.folder, dirs_exist_ok=True)
        else:
            self.run(Event("issues", "opened", 3))

    @property
    def own(self) -> OwnCommentRule:
        return OwnCommentRule(BOT, marker())

    def bot(self, memory: Memory) -> RunContext:
        forge = GitHubClient(self.github.url, self.github.token, REPO, write_gap=0)
        return RunContext(
            memory=memory,
            forge=forge,
            history=GraphQLHistory(self.github.url, self.github.token, REPO, self.own, forge),
            own=self.own,
            settings=self.settings,
            renderer=self.renderer,
            address=RepositoryAddress(REPO),
            fixes=FixFinder(forge, REPO),
            pages=(),
            now=datetime.fromisoformat(self.github.clock.now),
            clock=Clock(lambda: 0.0, lambda _: None, lambda _: None),
            began=0.0,
            note=self.notes.append,
            muted=self.muted,
        )

    def memory(self) -> Memory:
        return Memory(FolderStore(self.folder / "store"))

    def run(self, event: Event, dies: str = "", meanwhile: Callable[[], object] = lambda: None) -> list[CommentResult]:
        """One run: what is asked is answered. It may die ``before memory`` or ``before replies`` are written."""
        memory = self.memory()
        try:
            bot = self.bot(memory)
            look = fetch_changes(event, bot)
            bot.memory.stage(Changes(look.updates.records, cursor=look.updates.cursor))
            plans = self.planned(find_requests(look, bot), bot)
            if dies == "before memory":
                return []
            meanwhile()
            bot.memory.commit("Remember")
            return [] if dies == "before replies" else publish_replies(plans, bot)
        finally:
            memory.close()

    def planned(self, requests: list, bot: RunContext) -> list[ReplyPlan]:
        plans = prepare_replies(requests, bot)
        wishes = promise_replies(plans, bot)
        self.redone = threads_to_redo(wishes)
        bot.memory.stage(Changes(requests=wishes))
        return plans

    def say(self, text: str, by: str = "monalisa", on: int = 3, **rest: str) -> int:
        """Somebody comments, and the run that this starts comes some seconds later."""
        made = self.github.comment(on, by, text)
        self.github.clock.advance(20)
        self.run(Event("issue_comment", "created", on, comment_id=made, comment_author=by), **rest)
        return made

    def read_history(self) -> None:
        """A run that somebody starts by hand to have all of the history read again."""
        memory = self.memory().open()
        bot = self.bot(memory)
        backfill(
            memory,
            bot.history,
            Deadline(bot.clock, bot.now, within=bot.within),
            None,
            partial(unread_requests, run=bot),
        )
        memory.close()

    def later(self, seconds: int = LATER) -> list[CommentResult]:
        """A run that nothing special started."""
        self.github.clock.advance(seconds)
        return self.run(Event("schedule"))

    def replies(self, to: int | None = None) -> list[str]:
        texts = [str(comment.body) for comment in self.github.comments_by(BOT)]
        return texts if to is None else [text for text in texts if find_marker(text, reply_to=to)]

    def reactions(self, comment: int) -> list[str]:
        return [reaction.content for reaction in self.github.comment_by_id(comment).reactions]

    def requests(self, on: int = 3) -> tuple[Request, ...]:
        memory = self.memory().open()
        try:
            return memory.requests([on]).get(on, ())
        finally:
            memory.close()


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """One office for the whole table: each case asks on an issue of its own, an hour after the one before."""
    with FakeGitHub(REPO) as github:
        yield Office(github, tmp_path_factory.mktemp("counter"))
        assert github.violations == []


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the memory that every office begins with."""
    with FakeGitHub(REPO, validate=False) as github:
        return Office(github, tmp_path_factory.mktemp("opened")).folder


@pytest.fixture
def office(opened: Path, tmp_path: Path) -> Iterator[Office]:
    with FakeGitHub(REPO, validate=False) as github:
        yield Office(github, tmp_path, opened)


def with_commands(office: Office, **rest: int | bool) -> None:
    office.settings = replace(office.settings, commands=replace(CommandSettings(), **rest))


def words(name: str) -> str:
    """The beginning of a sentence of ours, up to its first value."""
    return RENDERER.words.texts[f"reply_{name}"].partition("{")[0]


# -- the table -----------------------------------------------------------------------------------------------------

SEARCH = "/precedent search session store"


@pytest.mark.parametrize(
    ("text", "by", "reply", "reaction", "kept"),
    [
        (SEARCH, "stranger", DECISION, "rocket", "search"),
        (SEARCH.upper(), "stranger", DECISION, "rocket", "search"),
        (f"Please:\n{SEARCH}\nThank you", "stranger", DECISION, "rocket", "search"),
        (
            "/precedent search flux capacitor",
            "stranger",
            "“flux capacitor”.\n\nSearched: ",
            "confused",
            "search",
        ),
        ("/precedent context #1", "stranger", DECISION, "rocket", "context"),
        ("/precedent context 1", "stranger", DECISION, "rocket", "context"),
        ("/precedent context #99", "stranger", "no record of this issue", "confused", "context"),
        ("/precedent help", "stranger", words("help"), "rocket", "help"),
        ("/precedent", "stranger", words("unclear"), "confused", "help"),
        ("/precedent make coffee", "stranger", words("unclear"), "confused", "help"),
        ("/precedent wrong", "hubot", words("unclear"), "confused", "help"),
        ("/precedent wrong #1", "monalisa", words("wrong_one"), "rocket", "wrong"),
        ("/precedent wrong #1 and #2", "hubot", words("wrong_many"), "rocket", "wrong"),
        ("/precedent same #1", "monalisa", words("same_one"), "rocket", "same"),
        ("/precedent same #1 and #2", "hubot", words("same_many"), "rocket", "same"),
        ("/precedent different 1 another door", "hubot", words("different_one"), "rocket", "different"),
        ("/precedent original #1", "hubot", words("original"), "rocket", "original"),
        ("/precedent original", "hubot", words("unclear"), "confused", "help"),
        ("/precedent same #1", "stranger", words("refused"), "confused", "refused"),
        ("/precedent off", "monalisa", words("off"), "rocket", "off"),
        ("/precedent on", "hubot", "", "rocket", "on"),
        ("/precedent refresh", "hubot", words("refresh"), "rocket", "refresh"),
        ("/precedent wrong #1", "stranger", words("refused"), "confused", "refused"),
        ("/precedent off", "stranger", words("refused"), "confused", "refused"),
        ("/precedent on", "stranger", words("refused"), "confused", "refused"),
        ("/precedent refresh", "stranger", words("refused"), "confused", "refused"),
        (f"{SEARCH}\n/precedent off", "stranger", words("others_left"), "rocket", "search"),
        ("What did we decide about the session store?", "stranger", DECISION, "", "recall"),
        ("Remember what we decided in #1?", "stranger", DECISION, "", "recall"),
        ("Search all past conversations for mentions of printers", "stranger", "Printer prints nothing", "", "recall"),
        ("What did we decide about the flux capacitor?", "stranger", "", "", "recall"),
        ("What did we decide in #99?", "stranger", "", "", "recall"),
        ("Didn't we discuss this before?", "stranger", "", "", "recall"),
        (f"    {SEARCH}", "hubot", "", "", ""),
        (f"```\n{SEARCH}\n```", "hubot", "", "", ""),
        (f"`{SEARCH}`", "hubot", "", "", ""),
        (f"> {SEARCH}", "hubot", "", "", ""),
        (f"> as she said:\n{SEARCH}", "hubot", "", "", ""),
        (f"<!--\n{SEARCH}\n-->", "hubot", "", "", ""),
        (f"Try {SEARCH}", "hubot", "", "", ""),
        (f"- {SEARCH}", "hubot", "", "", ""),
        (f"\\{SEARCH}", "hubot", "", "", ""),
        ("/precedents off", "hubot", "", "", ""),
        ("> What did we decide about the session store?", "hubot", "", "", ""),
        ("`what did we decide about the session store`", "hubot", "", "", ""),
        ("I remember what we decided about the session store.", "hubot", "", "", ""),
        (SEARCH, "dependabot[bot]", "", "", ""),
        (SEARCH, None, DECISION, "rocket", "search"),
        ("/precedent off", None, words("refused"), "confused", "refused"),
    ],
)
def test_who_says_what_and_what_happens(
    counter: Office, text: str, by: str | None, reply: str, reaction: str, kept: str
) -> None:
    before = len(counter.replies())
    counter.github.clock.advance(3_700)
    unlike_others = "".join(chr(97 + int(digit)) for digit in counter.github.clock.now if digit.isdigit())
    number = counter.github.open_issue("monalisa", unlike_others)
    comment = counter.github.comment(number, by, text)
    counter.github.clock.advance(20)
    counter.run(Event("issue_comment", "created", number, comment_id=comment, comment_author=by or ""))
    assert [wish.name for wish in counter.requests(number)] == ([kept] if kept else [])
    assert counter.reactions(comment) == (["eyes", reaction] if reaction else [])
    assert len(counter.replies(comment)) == len(counter.replies()) - before == bool(reply)
    assert all(reply in told for told in counter.replies(comment))


@pytest.mark.parametrize("asked_for", ["/precedent context #1", "Remember what we decided in #1?"])
def test_what_a_reply_quotes_is_understood_when_it_is_copied(office: Office, asked_for: str) -> None:
    (first,) = office.replies(office.say(asked_for, "stranger"))
    quoted = first.partition("\n> ")[2].partition("\n")[0]
    assert quoted == asked_for.replace("#", "#\u200b")
    assert all(DECISION in reply for reply in office.replies(office.say(quoted, "stranger")))
    assert len(office.replies()) == 2


def test_a_private_member_counts_by_permission_not_by_association(office: Office) -> None:
    office.github.repo.roles["defunkt"] = "write"
    member = office.github.comment(3, "defunkt", "/precedent off", association="CONTRIBUTOR")
    outsider = office.github.comment(3, "mojombo", "/precedent on", association="MEMBER")
    office.later(20)
    assert words("off") in office.replies(member)[0]
    assert words("refused") not in office.replies(member)[0]
    assert [wish.name for wish in office.requests()] == ["off", "refused"]
    assert office.reactions(outsider) == ["eyes", "confused"]


def test_a_deleted_account_is_not_taken_for_the_author_that_was_deleted_too(office: Office) -> None:
    number = office.github.open_issue(None, "Whose", "Nobody knows.")
    comment = office.github.comment(number, None, "/precedent off")
    office.later(20)
    assert words("refused") in office.replies(comment)[0]


def test_permission_is_what_it_is_when_the_command_is_read(office: Office) -> None:
    office.github.repo.roles["hubot"] = "read"
    comment = office.say("/precedent off", "hubot")
    assert words("refused") in office.replies(comment)[0]


def test_an_edited_comment_is_not_obeyed(office: Office) -> None:
    comment = office.github.comment(3, "hubot", "Hello.")
    office.github.clock.advance(30)
    office.github.edit_comment(comment, "/precedent off")
    office.later(20)
    assert (office.replies(), office.requests(), office.reactions(comment)) == ([], (), [])


def test_an_edit_of_an_answered_comment_changes_nothing(office: Office) -> None:
    comment = office.say(SEARCH)
    before = office.replies()
    office.github.clock.advance(30)
    office.github.edit_comment(comment, "/precedent off")
    office.later()
    assert office.replies() == before
    assert not is_off(office.requests())


def test_a_comment_is_answered_once_however_often_a_run_looks(office: Office) -> None:
    comment = office.say(SEARCH)
    for seconds in (1, 60, LATER, LATER):
        office.later(seconds)
        office.run(Event("issue_comment", "created", 3, comment_id=comment))
    assert len(office.replies()) == 1
    assert [(wish.state, wish.trying_since) for wish in office.requests()] == [("done", None)]
    assert office.requests()[0].reply_id == office.github.comments_by(BOT)[0].id


def test_the_same_words_in_two_comments_are_two_requests(office: Office) -> None:
    first, second = office.say(SEARCH), office.say(SEARCH)
    assert [len(office.replies(comment)) for comment in (first, second)] == [1, 1]


def test_a_lost_event_is_made_good_by_the_next_run(office: Office) -> None:
    comment = office.github.comment(3, "hubot", SEARCH)
    office.later(3_600)
    assert len(office.replies(comment)) == 1


@pytest.mark.parametrize("text", ["/precedent help", SEARCH, "What did we decide about the session store?"])
def test_what_was_first_read_as_history_is_answered_by_the_next_run(office: Office, text: str) -> None:
    comment = office.github.comment(3, "stranger", text)
    office.github.clock.advance(3_600)
    office.read_history()
    assert [(wish.name, wish.state) for wish in office.requests()] == [("waiting", "pending")]
    for _ in range(3):
        office.later(3_600)
    assert len(office.replies(comment)) == len(office.replies()) == 1
    assert [wish.state for wish in office.requests()] == ["done"]


def test_a_question_in_an_issue_that_was_first_read_as_history_is_answered(office: Office) -> None:
    number = office.github.open_issue("stranger", "What did we decide about the session store?")
    office.read_history()
    office.later()
    assert len(office.replies(number)) == 1


def test_what_was_answered_is_not_answered_again_after_history_was_read_anew(office: Office) -> None:
    comment = office.say(SEARCH)
    office.later()
    held = office.requests()
    office.read_history()
    assert office.requests() == held
    office.later()
    assert len(office.replies(comment)) == 1


def test_what_was_answered_before_memory_was_lost_is_not_answered_again(office: Office) -> None:
    comment, off = office.say(SEARCH), office.say("/precedent off")
    shutil.rmtree(office.folder / "store")
    office.read_history()
    office.later()
    assert [len(office.replies(key)) for key in (comment, off)] == [1, 1]
    assert is_off(office.requests()), "what it changed holds again"


def test_whether_it_was_answered_before_memory_was_lost_is_not_guessed(office: Office) -> None:
    comment = office.say(SEARCH)
    shutil.rmtree(office.folder / "store")
    office.github.faults.add("GET */issues/3/comments", "5xx", None)
    office.run(Event("issues", "edited", 3))
    assert [(wish.name, wish.state) for wish in office.requests()] == [("waiting", "pending")]
    office.github.faults.clear()
    office.later()
    assert len(office.replies(comment)) == 1


def test_of_history_what_is_old_edited_or_of_nobody_to_be_heard_asks_nothing(office: Office) -> None:
    office.github.comment(2, "hubot", SEARCH, at="2026-01-02T10:00:00Z")
    edited = office.github.comment(3, "hubot", SEARCH)
    office.github.comment(3, "dependabot[bot]", SEARCH)
    office.github.comment(3, "hubot", f"> {SEARCH}")
    office.github.clock.advance(30)
    office.github.edit_comment(edited, f"{SEARCH}!")
    office.read_history()
    assert (office.requests(2), office.requests(3)) == ((), ())
    office.settings = replace(office.settings, mode="off")
    office.github.comment(3, "hubot", SEARCH)
    office.read_history()
    assert office.requests() == ()


def test_what_nobody_saw_for_a_day_is_not_answered_after_the_fact(office: Office) -> None:
    office.github.comment(3, "hubot", SEARCH)
    office.later(25 * 3_600)
    assert office.replies() == []


def test_a_comment_that_the_list_does_not_show_yet_is_read_by_itself(office: Office) -> None:
    memory = office.memory()
    bot = office.bot(memory)
    look = fetch_changes(Event("issues", "edited", 3), bot)
    comment = office.github.comment(3, "hubot", SEARCH)
    late = replace(look, event=Event("issue_comment", "created", 3, comment_id=comment, comment_author="hubot"))
    assert [request.key for request in find_requests(late, bot)] == [comment]
    assert find_requests(replace(late, event=replace(late.event, comment_id=comment + 1)), bot) == []
    memory.close()


# -- half-done runs ------------------------------------------------------------------------------------------------


def test_a_run_that_dies_before_it_writes_memory_leaves_the_reply_to_the_next(office: Office) -> None:
    comment = office.say(SEARCH, dies="before memory")
    assert (office.replies(), office.requests()) == ([], ())
    office.later()
    assert len(office.replies(comment)) == 1


def test_a_run_that_dies_before_it_replies_is_made_good_after_two_minutes(office: Office) -> None:
    comment = office.say("/precedent off", "hubot", dies="before replies")
    assert is_off(office.requests())
    office.later(60)
    assert office.replies() == []
    office.later(LATER)
    office.later(LATER)
    assert len(office.replies(comment)) == 1
    assert [wish.state for wish in office.requests()] == ["done"]


def test_a_promise_of_a_refusal_changes_nothing(office: Office) -> None:
    office.say("/precedent off", "stranger", dies="before replies")
    assert [(wish.name, wish.state) for wish in office.requests()] == [("refused", "pending")]
    assert not is_off(office.requests())
    office.later()
    office.later()
    assert len(office.replies()) == 1


def test_a_reply_whose_confirmation_was_lost_is_not_written_twice(office: Office) -> None:
    office.github.faults.add(POST, "dup")
    comment = office.say(SEARCH)
    office.later()
    assert len(office.replies(comment)) == 1
    assert office.reactions(comment) == ["eyes", "rocket"]


def test_a_reply_that_never_arrived_is_written_by_a_later_run(office: Office) -> None:
    office.github.faults.add(POST, "drop")
    comment = office.say(SEARCH)
    assert office.replies() == []
    office.later()
    office.later()
    assert len(office.replies(comment)) == 1


def test_a_reply_that_a_person_deleted_is_not_written_again(office: Office) -> None:
    office.say(SEARCH)
    (reply,) = office.github.comments_by(BOT)
    office.github.delete_comment(reply.id, by="octocat")
    office.later()
    office.later()
    assert office.replies() == []
    assert [wish.state for wish in office.requests()] == ["done"]


def test_a_reply_that_was_deleted_is_not_written_again_where_the_runners_clock_is_ahead(office: Office) -> None:
    clock = office.github.clock
    made = office.github.comment(3, "monalisa", SEARCH)
    truth = clock.now
    clock.advance(45)
    office.run(Event("issue_comment", "created", 3, comment_id=made, comment_author="monalisa"))
    (reply,) = office.github.comments_by(BOT)
    office.github.delete_comment(reply.id, by="octocat", at=truth)
    office.later()
    assert office.replies() == []


def test_a_command_that_was_deleted_meanwhile_is_not_answered(office: Office) -> None:
    comment = office.say(SEARCH, dies="before replies")
    office.github.delete_comment(comment)
    office.later()
    assert office.replies() == []
    assert [wish.state for wish in office.requests()] == ["refused"]


def test_of_two_runs_at_once_one_replies(office: Office) -> None:
    comment = office.github.comment(3, "hubot", SEARCH)
    office.github.clock.advance(20)
    office.run(
        Event("schedule"), meanwhile=lambda: office.run(Event("issue_comment", "created", 3, comment_id=comment))
    )
    assert len(office.replies(comment)) == 1


def test_where_permission_cannot_be_asked_a_later_run_asks(office: Office) -> None:
    office.github.faults.add(PERMISSION, "secondary403")
    comment = office.say("/precedent off", "hubot")
    assert ([wish.name for wish in office.requests()], office.replies()) == (["waiting"], [])
    office.later()
    assert is_off(office.requests())
    assert words("off") in office.replies(comment)[0]


def test_a_locked_conversation_gets_no_reply_and_keeps_what_was_wished(office: Office) -> None:
    search = office.github.comment(3, "stranger", SEARCH)
    office.github.comment(3, "hubot", "/precedent off")
    office.github.lock(3)
    told = office.later(20)
    assert [spoken.is_refused for spoken in told] == [True, True]
    assert {wish.name: wish.state for wish in office.requests()} == {"search": "refused", "off": "done"}
    office.later()
    assert office.replies(search) == []


# -- what it changes -----------------------------------------------------------------------------------------------


def test_off_and_on_hold_until_the_other_and_make_the_issue_due(office: Office) -> None:
    office.say("/precedent off")
    assert (is_off(office.requests()), office.redone) == (True, {3})
    office.say("/precedent on")
    assert (is_off(office.requests()), office.redone) == (False, {3})
    office.say(SEARCH)
    assert office.redone == frozenset()


def test_while_it_is_off_only_on_is_answered(office: Office) -> None:
    office.say("/precedent off")
    before = office.replies()
    search, wrong = office.say(SEARCH, "stranger"), office.say("/precedent wrong #1", "hubot")
    office.say("What did we decide about the session store?", "stranger")
    assert office.replies() == before
    assert (office.reactions(search), office.reactions(wrong)) == (["eyes", "confused"], ["eyes", "rocket"])
    assert wrong_matches_for(office.requests()) == {1}
    assert len(office.replies(office.say("/precedent on"))) == 1


def test_wrong_pairs_are_known(office: Office) -> None:
    office.say("/precedent wrong #1\n/precedent wrong #2")
    assert wrong_pairs(office.requests()) == {(3, 1), (3, 2)}
    assert office.redone == {3}


def test_a_thread_knows_nothing_of_our_replies(office: Office) -> None:
    office.say(SEARCH)
    office.later()
    memory = office.memory().open()
    thread = memory.records([3])[3]
    assert [comment.author for comment in thread.comments] == ["monalisa"]
    memory.close()


# -- limits and settings -------------------------------------------------------------------------------------------


def test_an_account_may_search_so_many_times_an_hour_and_is_told_once(office: Office) -> None:
    with_commands(office, searches_per_hour=2)
    told = [len(office.replies(office.say(SEARCH, "stranger"))) for _ in range(5)]
    assert told == [1, 1, 1, 0, 0]
    assert words("limited_many") in office.replies()[-1]
    assert len(office.replies(office.say(SEARCH, "hubot"))) == 1
    office.github.clock.advance(3_700)
    assert "Session store" in office.replies(office.say(SEARCH, "stranger"))[0]


@pytest.mark.parametrize(
    ("text", "by", "offers"),
    [
        (SEARCH, "stranger", True),
        ("/precedent search flux capacitor", "stranger", False),
        ("/precedent help", "stranger", False),
        ("/precedent make coffee", "stranger", False),
        ("/precedent off", "stranger", False),
        ("/precedent off", "monalisa", False),
    ],
)
def test_only_what_was_found_is_offered_to_be_called_wrong(office: Office, text: str, by: str, offers: bool) -> None:
    (reply,) = office.replies(office.say(text, by))
    footer = reply.strip().rpartition("\n<sub>")[2]
    assert footer.startswith("Precedent, a bot, ")
    assert ("Not helpful?" in footer) is ("/precedent off" in footer) is offers


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/precedent serach session store", "`/precedent search WORDS`"),
        ("/Precedent HLEP", "`/precedent help`"),
        ("/precedent wrong", "`/precedent wrong #N`"),
        ("/precedent sing", ""),
        ("/precedent", ""),
    ],
)
def test_what_is_nearly_a_command_is_asked_whether_it_was_meant(office: Office, text: str, meant: str) -> None:
    (reply,) = office.replies(office.say(text, "stranger"))
    assert f"\n{words('unclear')}{f' Did you mean {meant}?' if meant else ''}\n" in reply


@pytest.mark.parametrize(
    ("phrases", "shown"),
    [(Settings().recall_phrases, True), ((), False), (("was haben wir zu {topic} gesagt",), False)],
)
def test_help_shows_how_to_ask_a_question_where_it_would_be_understood(
    office: Office, phrases: tuple[str, ...], shown: bool
) -> None:
    office.settings = replace(office.settings, recall_phrases=phrases)
    (text,) = office.replies(office.say("/precedent help", "stranger"))
    assert ("\n\nOr ask a question: `What did we decide about …?`\n" in text) is shown


def test_the_summary_says_in_words_what_was_asked_and_why_it_was_not_done(office: Office) -> None:
    with_commands(office, searches_per_hour=1)

    def told(text: str, by: str) -> str:
        made = office.github.comment(3, by, text)
        office.github.clock.advance(20)
        (spoken,) = office.run(Event("issue_comment", "created", 3, comment_id=made, comment_author=by))
        return spoken.reason

    assert told("What did we decide about the session store?", "stranger") == "asked what was said before"
    used_up = "the account's questions of this hour are used up (commands.searches_per_hour: 1)"
    assert told(SEARCH, "stranger") == told(SEARCH, "stranger") == used_up
    assert told("/precedent make coffee", "hubot") == "the request was not understood"
    refused = "only its author or people with write access may ask for that"
    assert told("/precedent off", "stranger") == refused
    assert told("/precedent off", "monalisa") == "asked to say nothing more here"
    assert told(SEARCH, "octocat") == "somebody switched it off on this issue"


def test_every_name_of_a_request_is_told_in_words() -> None:
    assert set(DONE_REASONS) == {*NAMES, "recall"}
    assert [reason for reason in DONE_REASONS.values() if reason not in REASONS] == []


def test_a_question_too_many_is_left_alone_and_the_next_command_is_told(office: Office) -> None:
    with_commands(office, searches_per_hour=1)
    asked_for = [SEARCH, "What did we decide about the session store?", SEARCH, SEARCH]
    assert [len(office.replies(office.say(each, "stranger"))) for each in asked_for] == [1, 0, 1, 0]
    assert words("limited_one") in office.replies()[-1]


def test_who_may_change_nothing_is_told_so_a_few_times(office: Office) -> None:
    with_commands(office, searches_per_hour=2)
    told = [len(office.replies(office.say("/precedent off", "stranger"))) for _ in range(4)]
    assert told == [1, 1, 0, 0]


def test_the_limit_counts_on_all_issues_and_for_what_comes_in_one_run(office: Office) -> None:
    with_commands(office, searches_per_hour=1)
    asked_for = [office.github.comment(on, "stranger", SEARCH) for on in (1, 2, 3)]
    office.later(20)
    assert [len(office.replies(comment)) for comment in asked_for] == [1, 1, 0]


def test_what_the_author_may_do_is_not_limited(office: Office) -> None:
    with_commands(office, searches_per_hour=0)
    assert words("off") in office.replies(office.say("/precedent off"))[0]


def test_what_changes_nothing_gets_a_reaction_only(office: Office) -> None:
    for text in ("/precedent on", "/precedent wrong #2", "/precedent wrong #2", "/precedent off", "/precedent off"):
        office.github.clock.advance(3_700)
        asked_for = office.say(text)
        assert office.reactions(asked_for) == ["eyes", "rocket"]
    assert [len(office.replies(comment.id)) for comment in office.github.comments_by("monalisa")] == [0, 1, 0, 1, 0]


def test_on_and_off_for_an_hour_get_a_few_replies_and_go_on_to_count(office: Office) -> None:
    asked_for = [office.say(f"/precedent {name}") for name in ("off", "on") * 30]
    assert [len(office.replies(comment)) for comment in asked_for] == [1] * MAX_CONFIRMED + [0] * (60 - MAX_CONFIRMED)
    assert all(office.reactions(comment) == ["eyes", "rocket"] for comment in asked_for)
    assert not is_off(office.requests())
    office.github.clock.advance(3_700)
    assert len(office.replies(office.say("/precedent off"))) == 1


def with_limit(office: Office, limit: int, mode: str = "comment") -> None:
    office.settings = replace(office.settings, mode=mode, comment=replace(CommentSettings(), daily_limit=limit))


def test_replies_count_among_the_comments_of_any_24_hours(office: Office) -> None:
    with_limit(office, 2)
    first = office.say(SEARCH, "octocat")
    office.github.clock.advance(15 * 3_600)  # another day begins
    second, third = office.say(SEARCH, "stranger"), office.say("What did we decide about the session store?", "hubot")
    assert [len(office.replies(comment)) for comment in (first, second, third)] == [1, 1, 0]
    assert office.later()[0].reason == FULL_DAY
    office.github.clock.advance(9 * 3_600)
    office.later()
    assert [len(office.replies(comment)) for comment in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize(("limit", "written"), [(1, [1, 0, 0]), (2, [1, 1, 0]), (3, [1, 1, 1])])
def test_replies_of_one_run_stay_within_the_limit_together(office: Office, limit: int, written: list[int]) -> None:
    with_limit(office, limit)
    asked_for = [office.github.comment(on, "octocat", SEARCH) for on in (1, 2, 3)]
    office.later(20)
    assert [len(office.replies(comment)) for comment in asked_for] == written


def test_what_is_to_be_done_is_done_when_no_more_may_be_written(office: Office) -> None:
    with_limit(office, 1)
    office.say(SEARCH, "stranger")
    asked_for = office.say("/precedent off")
    assert (office.replies(asked_for), office.reactions(asked_for)) == ([], ["eyes", "rocket"])
    assert is_off(office.requests())
    assert [wish.state for wish in office.requests() if wish.name == "off"] == ["done"]
    refused = office.say("/precedent on", "stranger")
    assert (office.replies(refused), office.reactions(refused)) == ([], ["eyes", "confused"])


def test_a_question_that_waits_for_its_day_is_asked_once_and_keeps_its_place_in_the_hour(office: Office) -> None:
    with_limit(office, 1)
    with_commands(office, searches_per_hour=2)
    office.say(SEARCH, "octocat")
    waits = [office.say(SEARCH, "stranger") for _ in range(2)]
    office.later()
    assert [office.reactions(comment) for comment in waits] == [["eyes"], ["eyes"]]
    assert office.reactions(office.say(SEARCH, "stranger")) == ["eyes", "confused"]


def test_a_retry_of_a_promised_reply_counts_once(office: Office) -> None:
    with_limit(office, 1)
    made = office.say(SEARCH, "stranger", dies="before replies")
    office.later()
    assert len(office.replies(made)) == 1


def test_nothing_is_counted_where_nothing_is_written(office: Office) -> None:
    with_limit(office, 1, mode="summary")
    told = [office.run(Event("schedule"))]
    for by in ("octocat", "stranger", "hubot"):
        made = office.github.comment(3, by, SEARCH)
        office.github.clock.advance(20)
        told.append(office.run(Event("issue_comment", "created", 3, comment_id=made, comment_author=by)))
    assert [[one.action for one in said] for said in told] == [[], *[["would say"]] * 3]
    with_limit(office, 1)
    assert len(office.replies(office.say(SEARCH, "someone-else"))) == 1


def test_a_delivery_that_comes_again_adds_no_reaction(office: Office) -> None:
    made = office.say("/precedent on")
    for _ in range(3):
        office.run(Event("issue_comment", "created", 3, comment_id=made, comment_author="monalisa"))
        office.later()
    assert office.reactions(made) == ["eyes", "rocket"]


def test_commands_can_be_switched_off(office: Office) -> None:
    with_commands(office, enabled=False)
    office.say("/precedent off")
    assert (office.replies(), office.requests()) == ([], ())


@pytest.mark.parametrize(
    ("ignore", "on"),
    [(IgnoreSettings(authors=("Monalisa",)), 3), (IgnoreSettings(labels=("Quiet",)), 3)],
    ids=["author", "label"],
)
def test_who_and_what_is_ignored_is_not_answered(office: Office, ignore: IgnoreSettings, on: int) -> None:
    office.settings = replace(office.settings, ignore=ignore)
    office.github.label(3, "quiet")
    office.say(SEARCH, on=on)
    assert office.replies() == []


def test_who_wants_to_be_left_alone_is_answered_on_command_and_not_quoted(office: Office) -> None:
    office.settings = replace(office.settings, ignore=IgnoreSettings(people=("stranger", "hubot")))
    office.say("What did we decide about the session store?", "stranger")
    assert office.replies() == []
    (text,) = office.replies(office.say(SEARCH, "stranger"))
    assert "> " not in text.partition("\n- ")[0]
    assert DECISION not in text
    assert "Session store" in text


def test_a_repository_replies_in_its_own_words(office: Office) -> None:
    own = 'reply_off: "Hier wird geschwiegen, bis jemand {command} schreibt."\nreply_help_on: "wieder reden"'
    office.renderer = Renderer(overrides={WORDS: own}, links=CommentLinks(repo=REPO))
    off = office.say("/precedent off")
    assert "Hier wird geschwiegen, bis jemand `/precedent on` schreibt." in office.replies(off)[0]
    office.say("/precedent on")
    assert "\n- `/precedent on`: wieder reden\n" in office.replies(office.say("/precedent help"))[0]


def test_in_summary_mode_it_is_told_and_not_written(office: Office) -> None:
    office.settings = replace(office.settings, mode="summary")
    made = office.github.comment(3, "stranger", SEARCH)
    told = office.later(20)
    assert [(spoken.action, DECISION in spoken.text) for spoken in told] == [("would say", True)]
    assert (office.replies(), office.reactions(made)) == ([], [])
    office.settings = replace(office.settings, mode="comment")
    office.later()
    assert office.replies() == []


def test_in_off_mode_nothing_is_looked_at(office: Office) -> None:
    office.settings = replace(office.settings, mode="off")
    office.say(SEARCH)
    assert (office.replies(), office.requests()) == ([], ())


def test_a_run_that_may_say_nothing_leaves_it_to_one_that_may(office: Office) -> None:
    office.muted = "the settings cannot be used"
    comment = office.github.comment(3, "hubot", SEARCH)
    office.later(20)
    office.muted = ""
    office.later(20)
    assert len(office.replies(comment)) == 1


def test_a_crowd_is_answered_by_several_runs(office: Office) -> None:
    made = [office.github.comment(3, f"user{number}", SEARCH) for number in range(12)]
    assert sum(told.is_owed for told in office.later(20)) == 2
    assert sum(len(office.replies(comment)) for comment in made) == 10
    office.later()
    assert [len(office.replies(comment)) for comment in made] == [1] * 12


# -- questions in an issue's own text ------------------------------------------------------------------------------


def test_a_question_in_an_opening_text_gets_one_reply(office: Office) -> None:
    number = office.github.open_issue("hubot", "Research", "Search all past conversations for mentions of sessions")
    for _ in range(3):
        office.later()
    (text,) = office.replies(number)
    assert "Session store" in text
    assert "Printer" not in text


def test_a_question_in_a_title_counts_too(office: Office) -> None:
    number = office.github.open_issue("hubot", "What did we decide about the session store?", "")
    office.later()
    assert DECISION in office.replies(number)[0]


def test_a_question_for_an_issue_by_number_is_left_to_the_comment_on_the_issue(office: Office) -> None:
    office.github.open_issue("hubot", "Database", "What database did we choose in #1?")
    office.later()
    assert office.replies() == []


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
def test_hostile_words_are_answered_harmlessly(office: Office, text: str) -> None:
    comment = office.say(text, "hubot")
    for reply in office.replies(comment):
        found = report(reply)
        assert (found.mentions, found.references, found.images) == ([], [], [])
        assert all(link.startswith("https://redirect.github.com/") for link in found.links)
        assert len(reply) < 20_000


def test_who_writes_our_marker_is_not_taken_for_us(office: Office) -> None:
    comment = office.github.comment(3, "monalisa", SEARCH)
    office.github.comment(3, "stranger", f"{marker(reply_to=comment)}\nNothing is known.")
    office.later(20)
    office.later()
    assert len(office.replies(comment)) == 1


def test_our_own_words_are_never_obeyed(office: Office) -> None:
    office.settings = replace(office.settings, comment=replace(office.settings.comment, author=BOT))
    office.github.comment(3, BOT, f"{marker(reply_to=1)}\n{SEARCH}")
    office.github.comment(3, BOT, SEARCH)
    office.later(20)
    assert office.requests() == ()


def test_a_young_wish_of_an_hour_is_what_the_limit_looks_at(office: Office) -> None:
    office.say(SEARCH, "stranger")
    memory = office.memory().open()
    now = datetime.fromisoformat(office.github.clock.now)
    assert [wish.by for wish in memory.state.manifest.requests_since(now - timedelta(hours=1))] == ["stranger"]
    memory.close()
