"""What memory has to say to somebody who asks: the best first, with findings, and nothing rather than weak hits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.comment.marker import fingerprint
from bot.domain.answer import Context, mark, quoted_in
from bot.domain.card import Passage
from bot.domain.thread import Message, OutcomeKind, RepositoryAddress
from bot.memory.memory import Memory
from bot.questions.issue import MAX_THREADS, QuestionService, about_issue, decisions_about, search_words
from bot.recall.mentions import NO_RECORD
from bot.settings.schema import IgnoreSettings, Settings
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, duplicate, said, thread

DECISION = "We decided to use PostgreSQL for the session store."
STORE = closed(
    1,
    "Session store",
    "Where should sessions live?",
    comments=(said("Files are slow.", 1.1), said(DECISION, 1.2, "hubot", "MEMBER")),
)
LOGIN = closed(
    2, "Login fails after a restart", "The session is lost.", comments=(said("Fixed by #40.", 2.4, "hubot", "MEMBER"),)
)
CACHE = thread(3, "Cache of thumbnails", "Thumbnails are slow, the store of sessions is not.")
FOOTER = closed(
    4,
    "The footer floats",
    "On wide screens.",
    comments=(said("We decided to leave the footer as it is.", 4.2, "hubot", "MEMBER"),),
)
OTHERS = [closed(number, f"Report {number}", "Something else is odd.") for number in range(10, 40)]


@pytest.fixture
def memory(remember: Remember) -> Memory:
    return remember(STORE, LOGIN, CACHE, FOOTER, *OTHERS)


def desk(memory: Memory, settings: Settings | None = None, skip: tuple[int, ...] = ()) -> QuestionService:
    return QuestionService(memory, settings or Settings(), RepositoryAddress("octo-org/hello-world"), skip)


def ids(context: Context) -> list[object]:
    return [mention.id for mention in context.mentioned]


# -- search --------------------------------------------------------------------------------------------------------


def test_a_search_finds_the_best_first_with_how_they_ended(memory: Memory) -> None:
    found = search_words("session store", desk(memory))
    assert ids(found) == [1, 3]
    assert found.mentioned[0].decisions[0].text == DECISION
    assert found.searched == memory.state.manifest.threads
    assert search_words("restart", desk(memory)).mentioned[0].outcome.kind is OutcomeKind.FIXED


def test_words_are_found_however_they_are_bent(memory: Memory) -> None:
    assert ids(search_words("thumbnail caching", desk(memory))) == [3]


def test_a_thread_that_holds_the_smaller_part_of_the_words_is_no_hit(memory: Memory) -> None:
    assert ids(search_words("session of parliament in autumn", desk(memory))) == []


@pytest.mark.parametrize("words", ["", "   ", "the of and", "flux capacitor", "[" * 60_000, "\0\ud800", "#1 #2 #3"])
def test_what_nobody_spoke_of_is_not_found(memory: Memory, words: str) -> None:
    assert ids(search_words(words, desk(memory))) == ids(decisions_about(words, desk(memory))) == []


def test_an_answer_holds_five_at_most(memory: Memory) -> None:
    assert len(search_words("report", desk(memory)).mentioned) == MAX_THREADS


def test_the_thread_that_is_asked_on_is_left_out(memory: Memory) -> None:
    assert ids(search_words("session store", desk(memory, skip=(1,)))) == [3]


def test_a_duplicate_is_shown_as_what_it_is_a_duplicate_of(remember: Remember) -> None:
    memory = remember(STORE, *OTHERS, duplicate(41, of=1, title="Session store again", body="As before."))
    assert ids(search_words("session store", desk(memory))) == [1]


def test_a_number_among_the_words_is_no_reference(memory: Memory) -> None:
    assert ids(search_words("footer #1 GH-2", desk(memory))) in ([4], [])


# -- decisions -----------------------------------------------------------------------------------------------------


def test_who_decided_comes_before_who_only_spoke_of_it(remember: Remember) -> None:
    talk = thread(50, "Session store", "Session store, session store, session store: how big is it?")
    memory = remember(talk, STORE, LOGIN, FOOTER, *OTHERS)
    assert ids(decisions_about("the session store", desk(memory))) == [1, 50]


def test_only_decisions_on_the_topic_are_told(remember: Remember) -> None:
    both = replace(
        STORE,
        title="Planning",
        comments=(*STORE.comments, said("We decided to meet on Mondays.", 1.3, "hubot", "MEMBER")),
    )
    memory = remember(both, FOOTER, *OTHERS)
    (found,) = decisions_about("session store", desk(memory)).mentioned
    assert [decision.text for decision in found.decisions] == [DECISION]


def test_a_decision_on_something_else_is_no_answer(memory: Memory) -> None:
    assert ids(decisions_about("the colour of the footer on phones in landscape", desk(memory))) == []


# -- by number -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["What did we decide about the session store?", "We need to know.\n\nDo we use PostgreSQL?"]
)
@pytest.mark.parametrize("comments", [(), (said("Nobody?", 5.1, "monalisa"),)])
def test_an_issue_that_only_asks_is_no_answer(remember: Remember, body: str, comments: tuple[Message, ...]) -> None:
    title = "What did we decide about the session store?"
    asking = thread(50, title, body, author="monalisa", comments=comments)
    found = remember(STORE, asking, *OTHERS)
    assert ids(decisions_about("the session store", desk(found))) == [1]
    assert ids(search_words("the session store", desk(found), is_question=True)) == [1]
    assert 50 in ids(search_words("the session store", desk(found)))
    answered = thread(50, title, body, author="monalisa", comments=(said("PostgreSQL.", 5.2, "hubot"),))
    assert 50 in ids(decisions_about("the session store", desk(remember(STORE, answered, *OTHERS))))


def test_an_issue_is_told_in_full_and_a_missing_one_is_said_to_be(memory: Memory) -> None:
    known, missing = about_issue((1, 99), desk(memory)).mentioned
    assert (known.id, known.decisions[0].text, missing.missing) == (1, DECISION, NO_RECORD)
    assert "Files are slow." in str(known.conversation)


def test_of_people_who_want_it_so_nothing_is_quoted(memory: Memory) -> None:
    quiet = replace(Settings(), ignore=IgnoreSettings(people=("Hubot",)))
    for found in (about_issue((1,), desk(memory, quiet)), search_words("session store", desk(memory, quiet))):
        assert found.mentioned[0].title == "Session store"
        assert DECISION not in repr(found)
    assert DECISION not in repr(decisions_about("session store", desk(memory, quiet)))


# -- what was said -------------------------------------------------------------------------------------------------

TALK = closed(
    60,
    "Planning",
    "What comes next?",
    labels=("later",),
    comments=(
        said("The importer takes ages.", 60.1, "octocat"),
        said("Yes. The flux capacitor\nof the importer is too small.", 60.2, "hubot", "MEMBER", id=602),
    ),
)
ASKING = thread(61, "What did we decide about the flux capacitor?", "Does anybody know?")


@pytest.fixture
def talking(remember: Remember) -> Memory:
    return remember(STORE, LOGIN, CACHE, FOOTER, TALK, ASKING, *OTHERS)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("flux capacitor", [61, 60]),
        ("importer ages", [60]),
        ('"capacitor of the importer"', [60]),
        ('"importer of the capacitor"', []),
        ("flux capacitor author:hubot", [60]),
        ("flux capacitor is:open", [61]),
        ("flux capacitor label:later", [60]),
        ("importer after:2024-03-01", [60]),
        ("importer after:2024-03-02", []),
        ("importer before:2024-03-01", []),
        ("importer is:nonsense", [60]),
        ("importer role:maintainer", [60]),
        ("ages role:maintainer", []),
        ("importer label:nobody", []),
    ],
)
def test_a_search_finds_what_was_said(talking: Memory, words: str, found: list[int]) -> None:
    assert ids(search_words(words, desk(talking))) == found


def test_the_passage_is_told_with_who_said_it(talking: Memory) -> None:
    (one,) = search_words("importer capacitor", desk(talking)).mentioned
    assert one.passage == Passage(
        60, "hubot", "MEMBER", at(60.2), "The flux capacitor of the importer is too small.", 602
    )


def test_a_question_is_not_answered_by_one_who_only_asks_it(talking: Memory) -> None:
    assert ids(search_words("the flux capacitor", desk(talking), is_question=True)) == [60]
    assert ids(decisions_about("the flux capacitor", desk(talking))) == [60]
    assert ids(decisions_about("the flux capacitor", desk(talking, skip=(60,)))) == []


@pytest.mark.parametrize("text", ["/precedent search warp drive", "What did we decide about the warp drive?"])
def test_a_comment_that_only_asks_is_never_shown_as_what_was_said(remember: Remember, text: str) -> None:
    asked = thread(
        70, "Zyx", "Wvu.", comments=(said("Look at the printer first.", 70.1, "hubot", "MEMBER"), said(text, 70.2))
    )
    memory = remember(STORE, asked, *OTHERS)
    assert not any(one.passage for one in search_words("warp drive", desk(memory)).mentioned)


def test_a_decision_is_told_without_another_passage(talking: Memory) -> None:
    found = decisions_about("the session store", desk(talking)).mentioned[0]
    assert (found.decisions[0].text, found.passage) == (DECISION, None)


def test_of_people_who_want_it_so_no_passage_is_shown(talking: Memory) -> None:
    quiet = replace(Settings(), ignore=IgnoreSettings(people=("Hubot",)))
    assert "capacitor" not in repr(search_words("importer capacitor", desk(talking, quiet)))


def test_a_message_that_is_quoted_counts_as_quoted(talking: Memory) -> None:
    found = replace(search_words("importer capacitor", desk(talking)).mentioned[0], conversation=(), summary="")
    assert mark(TALK.comments[1].text) in quoted_in(Context(mentioned=(found,)), {60: TALK})
    assert fingerprint(Context(mentioned=(found,))) != fingerprint(Context(mentioned=(replace(found, passage=None),)))
