"""Answers from memory: the best threads first, with findings, and nothing rather than weak hits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.comment.marker import fingerprint
from bot.domain.answer import Context, quoted_in
from bot.domain.card import Passage
from bot.domain.hidden_people import HiddenPeople
from bot.domain.thread import Message, OutcomeKind, RepositoryAddress
from bot.memory.memory import Memory
from bot.pipeline.memory_cards import MemoryCards
from bot.questions.issue import MAX_THREADS, QuestionService, about_issue, about_words
from bot.reading.search_query import search_query
from bot.recall.mentions import NO_RECORD
from bot.settings.schema import Settings
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, duplicate, message, thread

DECISION = "We decided to use PostgreSQL for the session store."
STORE = closed(
    1,
    "Session store",
    "Where should sessions live?",
    comments=(message("Files are slow.", 1.1), message(DECISION, 1.2, "hubot", "MEMBER")),
)
LOGIN = closed(
    2,
    "Login fails after a restart",
    "The session is lost.",
    comments=(message("Fixed by #40.", 2.4, "hubot", "MEMBER"),),
)
CACHE = thread(3, "Cache of thumbnails", "Thumbnails are slow, the store of sessions is not.")
FOOTER = closed(
    4,
    "The footer floats",
    "On wide screens.",
    comments=(message("We decided to leave the footer as it is.", 4.2, "hubot", "MEMBER"),),
)
FILLER = [closed(number, f"Report {number}", "Something else is odd.") for number in range(10, 40)]


@pytest.fixture
def memory(remember: Remember) -> Memory:
    return remember(STORE, LOGIN, CACHE, FOOTER, *FILLER)


def service(memory: Memory) -> QuestionService:
    return QuestionService(memory, Settings(), RepositoryAddress("octo-org/hello-world"))


def search(words: str, memory: Memory, *skip: int) -> Context:
    cards = MemoryCards(memory, lambda key: key not in skip)
    return about_words(search_query(words, at(2_000), strict=False), cards, cards.read, service(memory))


def asked(topic: str, memory: Memory, *skip: int) -> Context:
    return search(f"What did we discuss about {topic}?", memory, *skip)


def decided(topic: str, memory: Memory, *skip: int) -> Context:
    return search(f"What did we decide about {topic}?", memory, *skip)


def ids(context: Context) -> list[object]:
    return [mention.id for mention in context.mentioned]


# -- search --------------------------------------------------------------------------------------------------------


def test_a_search_lists_the_best_threads_first_with_their_endings(memory: Memory) -> None:
    answer = search("session store", memory)
    assert ids(answer) == [1, 3]
    assert answer.mentioned[0].decisions[0].text == DECISION
    assert answer.searched == memory.state.manifest.threads
    assert search("restart", memory).mentioned[0].outcome.kind is OutcomeKind.FIXED


def test_a_search_matches_inflected_words(memory: Memory) -> None:
    assert ids(search("thumbnail caching", memory)) == [3]


def test_a_thread_with_the_smaller_part_of_the_words_is_not_a_hit(memory: Memory) -> None:
    assert ids(search("session of parliament in autumn", memory)) == []


def test_words_that_nobody_used_find_nothing(memory: Memory) -> None:
    phrases = ["", "   ", "the of and", "flux capacitor", "[" * 60_000, "\0\ud800", "#97 #98"]
    assert [words for words in phrases if ids(search(words, memory))] == []
    assert ids(decided("the flux capacitor", memory)) == ids(asked("the flux capacitor", memory)) == []


def test_an_answer_lists_at_most_five_threads(memory: Memory) -> None:
    assert len(search("report", memory).mentioned) == MAX_THREADS


def test_the_thread_of_the_question_is_left_out(memory: Memory) -> None:
    assert ids(search("session store", memory, 1)) == [3]


def test_a_duplicate_is_shown_as_its_original(remember: Remember) -> None:
    memory = remember(STORE, *FILLER, duplicate(41, of=1, title="Session store again", body="As before."))
    assert ids(search("session store", memory)) == [1]


def test_a_thread_named_among_the_words_comes_first(memory: Memory) -> None:
    assert ids(search("footer #1", memory)) == [1, 4]
    assert ids(search("#3, #1 and (#2)?", memory)) == [3, 1, 2]
    assert ids(search("Summarize the decisions in #2, #4 and #1", memory)) == [2, 4, 1]


# -- decisions -----------------------------------------------------------------------------------------------------


def test_a_decision_comes_before_mere_mentions(remember: Remember) -> None:
    talk = thread(50, "Session store", "Session store, session store, session store: how big is it?")
    memory = remember(talk, STORE, LOGIN, FOOTER, *FILLER)
    assert ids(decided("the session store", memory)) == [1, 50]


def test_only_decisions_on_the_topic_are_shown(remember: Remember) -> None:
    both = replace(
        STORE,
        title="Planning",
        comments=(*STORE.comments, message("We decided to meet on Mondays.", 1.3, "hubot", "MEMBER")),
    )
    memory = remember(both, FOOTER, *FILLER)
    (mention,) = decided("session store", memory).mentioned
    assert [decision.text for decision in mention.decisions] == [DECISION]


def test_a_decision_on_something_else_is_not_an_answer(memory: Memory) -> None:
    assert ids(decided("the colour of the footer on phones in landscape", memory)) == []


# -- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["What did we decide about the session store?", "We need to know.\n\nDo we use PostgreSQL?"]
)
@pytest.mark.parametrize("comments", [(), (message("Nobody?", 5.1, "monalisa"),)])
def test_an_issue_that_only_asks_is_not_an_answer(remember: Remember, body: str, comments: tuple[Message, ...]) -> None:
    title = "What did we decide about the session store?"
    asking = thread(50, title, body, author="monalisa", comments=comments)
    memory = remember(STORE, asking, *FILLER)
    assert ids(decided("the session store", memory)) == [1]
    assert ids(asked("the session store", memory)) == [1]
    assert 50 in ids(search("the session store", memory))
    answered = thread(50, title, body, author="monalisa", comments=(message("PostgreSQL.", 5.2, "hubot"),))
    assert 50 in ids(decided("the session store", remember(STORE, answered, *FILLER)))


def test_a_known_issue_is_shown_in_full_and_a_missing_one_is_reported(memory: Memory) -> None:
    known, missing = about_issue((1, 99), service(memory)).mentioned
    assert (known.id, known.decisions[0].text, missing.missing) == (1, DECISION, NO_RECORD)
    assert "Files are slow." in str(known.conversation)


def test_an_answer_never_quotes_ignored_people(memory: Memory) -> None:
    memory.hidden = HiddenPeople(["Hubot"])
    for answer in (about_issue((1,), service(memory)), search("session store", memory)):
        assert answer.mentioned[0].title == "Session store"
        assert DECISION not in repr(answer)
    assert DECISION not in repr(decided("session store", memory))


# -- passages ------------------------------------------------------------------------------------------------------

TALK = closed(
    60,
    "Planning",
    "What comes next?",
    labels=("later",),
    comments=(
        message("The importer takes ages.", 60.1, "octocat"),
        message("Yes. The flux capacitor\nof the importer is too small.", 60.2, "hubot", "MEMBER", id=602),
    ),
)
ASKING = thread(61, "What did we decide about the flux capacitor?", "Does anybody know?")


@pytest.fixture
def memory_with_talk(remember: Remember) -> Memory:
    return remember(STORE, LOGIN, CACHE, FOOTER, TALK, ASKING, *FILLER)


@pytest.mark.parametrize(
    ("words", "expected"),
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
def test_a_search_finds_messages_and_honours_its_qualifiers(
    memory_with_talk: Memory, words: str, expected: list[int]
) -> None:
    assert ids(search(words, memory_with_talk)) == expected


def test_a_passage_names_its_author(memory_with_talk: Memory) -> None:
    mention, *_ = search("importer capacitor", memory_with_talk).mentioned
    assert mention.passage == Passage(
        60, "hubot", "MEMBER", at(60.2), "The flux capacitor of the importer is too small.", 602
    )


def test_a_question_is_not_answered_with_an_issue_that_only_asks_it(memory_with_talk: Memory) -> None:
    assert ids(asked("the flux capacitor", memory_with_talk)) == [60]
    assert ids(decided("the flux capacitor", memory_with_talk)) == [60]
    assert ids(decided("the flux capacitor", memory_with_talk, 60)) == []


@pytest.mark.parametrize("text", ["/precedent search warp drive", "What did we decide about the warp drive?"])
def test_a_comment_that_only_asks_is_never_shown_as_a_passage(remember: Remember, text: str) -> None:
    asking = thread(
        70,
        "Zyx",
        "Wvu.",
        comments=(message("Look at the printer first.", 70.1, "hubot", "MEMBER"), message(text, 70.2)),
    )
    memory = remember(STORE, asking, *FILLER)
    assert not any(mention.passage for mention in search("warp drive", memory).mentioned)


def test_a_decision_is_shown_without_another_passage(memory_with_talk: Memory) -> None:
    mention = decided("the session store", memory_with_talk).mentioned[0]
    assert (mention.decisions[0].text, mention.passage) == (DECISION, None)


def test_passages_of_ignored_people_are_not_shown(memory_with_talk: Memory) -> None:
    memory_with_talk.hidden = HiddenPeople(["Hubot"])
    found = search("importer capacitor", memory_with_talk)
    assert "too small" not in repr(found)


def test_a_passage_counts_as_quoted(memory_with_talk: Memory) -> None:
    mention = replace(search("importer capacitor", memory_with_talk).mentioned[0], conversation=(), summary="")
    assert TALK.comments[1].text_id in quoted_in(Context(mentioned=(mention,)), {60: TALK})
    assert fingerprint(Context(mentioned=(mention,))) != fingerprint(
        Context(mentioned=(replace(mention, passage=None),))
    )
