"""What a search finds in threads and their messages, in which order, and what it shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.card import CardId, MessageHit, Worktree
from bot.domain.kinds import Kind
from bot.index.scoring import rank_key
from bot.questions.evidence import ThreadEvidence, rank_by_evidence
from bot.questions.requests import WordSearch, WorkRequest
from bot.questions.search import ThreadHits, search_memory
from bot.questions.work import find_for_work
from bot.reading.search_query import given_filters, search_query
from tests.questions.in_memory_cards import NOW, InMemoryCards
from tests.recall.samples import at, closed, duplicate, message, thread

STORE = closed(
    1,
    "Session store",
    "Where should sessions live?",
    labels=("backend",),
    comments=(
        message("Files are slow on my machine.", 1.1, "octocat", "NONE", id=11),
        message("We use PostgreSQL. The file system\nis out of the question.", 1.2, "hubot", "MEMBER", id=12),
    ),
)
CACHE = thread(2, "Thumbnails are slow", "They should be kept.", labels=("good first issue",), comments=(
    message("I would ask the memcached people.", 2.1, "octocat", "CONTRIBUTOR", id=21),
    message("A file for each thumbnail? The system of files is slow.", 2.2, "monalisa", id=22),
))  # fmt: skip
PAGE = thread(
    "docs/cache.md", "How the cache works", "It keeps thumbnails in memcached.", kind=Kind.PAGE, author="docs"
)
PULL = closed(3, "Use PostgreSQL", "Closes the question of sessions.", kind=Kind.PULL, author="hubot")
FILLER = [thread(number, f"Report {number}", "Something else is odd.") for number in range(50, 70)]
CARDS = InMemoryCards.of([STORE, CACHE, PAGE, PULL, *FILLER])


def search(text: str, limit: int = 10, **filters: Any) -> ThreadHits:
    query = search_query(text, NOW, given=given_filters(**filters))
    return search_memory(WordSearch(text, query, limit), CARDS, CARDS.read)


def ids(text: str) -> list[CardId]:
    return [hit.card.id for hit in search(text).hits]


def test_words_that_are_no_terms_are_searched_as_typed() -> None:
    titles = ["To be or not to be", "R crashes", "Our readers", "2^31-1 overflows", "🚀 on start", "C++ and C# meet F#"]
    threads = [thread(100 + number, title, "Nothing else.") for number, title in enumerate(titles)]
    cards = InMemoryCards.of([*threads, *FILLER, closed(200, "Odd", "It must not happen.")])
    expected = {
        "R": [101], '"to be or not to be"': [100], "2^31-1": [103], "🚀": [104], "C++": [105], '"c#"': [105],
        "or not": [100], "R is:closed": [], "r": [101], "^": [103], "...": [],
    }  # fmt: skip
    actual = {
        text: [hit.card.id for hit in search_memory(WordSearch(text, search_query(text, NOW)), cards).hits]
        for text in expected
    }
    assert actual == expected


def test_words_that_are_left_out_are_named() -> None:
    expected = {
        "R": (), "the R parser": ("R",), "🚀 launch R": ("🚀, R",), "launch - now": (), "C++ code": (), "to parse": (),
    }  # fmt: skip
    notes = {text: search_query(text, NOW).unused for text in expected}
    assert {text: tuple(note.partition(":")[0] for note in found) for text, found in notes.items()} == expected


DECIDED = [
    closed(110, "Where do sessions live?", "In files?", comments=(
        message("We decided to keep sessions in PostgreSQL.", 110.1, "hubot", "MEMBER"),
    )),
    closed(111, "Drop Redis", "It is a second server.", comments=(message("Done.", 111.1, "hubot", "MEMBER"),)),
    closed(112, "Redis or memcached for sessions", "Which one?", comments=(
        message("We decided to use Redis for sessions.", 112.1, "hubot", "MEMBER"),
    )),
    thread(113, "What did we decide about sessions?", "Does anybody know?"),
    closed(114, "Sessions are lost", "All sessions, and more sessions."),
    thread(116, "Drop memcached", "Shall we?"),
    closed(117, "What did we decide about chutney?", "Who knows?", comments=(
        message("No activity.", 117.1, "stale[bot]"),
    )),
    closed(118, "The disk is full", "It has 40 GB.", comments=(
        message("The folder of the sessions grew.", 118.1, "hubot"),
    )),
    duplicate(115, of=110, title="Where do sessions live again?", body="As before."),
]  # fmt: skip
ASKED = InMemoryCards.of([*DECIDED, *FILLER])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sessions", {110, 112, 113, 114, 115, 118}),
        ("sessions decision", [110, 112]),
        ("What did we decide about sessions?", [110, 112]),
        ("what did we decide about #112 and #110?", [112, 110]),
        ("why did we drop Redis?", [111, 112]),
        ("reason for dropping Redis", [111]),
        ("why did we drop memcached?", [112]),
        ("what did we decide about chutney?", []),
        ("what did we decide about #112 is:open", []),
        ("Have we discussed the flux capacitor before?", []),
    ],
)
def test_a_question_is_answered_by_the_threads_that_decide(text: str, expected: list[int] | set[int]) -> None:
    found = search_memory(WordSearch(text, search_query(text, NOW)), ASKED, ASKED.read).hits
    keys = [hit.card.id for hit in found]
    assert (set(keys) if isinstance(expected, set) else keys[: len(expected) or None]) == expected
    if text.startswith("What did"):
        assert [hit.decides for hit in found][:2] == [True, True]
        assert 113 not in keys


def test_the_work_at_hand_does_not_widen_the_answer_to_a_question() -> None:
    text, checkout = "What did we decide about sessions?", Worktree(branch="fix/118-full")
    query = search_query(text, NOW)
    listed = {hit.card.id for hit in search_memory(WordSearch(text, query), ASKED, ASKED.read).hits}
    request = WorkRequest(checkout, NOW, text, query=query, is_search=True)
    assert {hit.card.id for hit in find_for_work(request, ASKED, ASKED.read).threads} == listed
    assert 118 not in listed


def test_a_persons_words_count_together_with_their_thread() -> None:
    assert ids("slow session store author:octocat") == [1]
    assert ids("session store author:hubot") == ids("thumbnails slow author:hubot") == []


def test_threads_are_found_by_their_messages_and_authors() -> None:
    expected = {
        "machine": [1],
        "memcached": ["docs/cache.md", 2],
        "quantum zebra": [],
        '"file system"': [1],
        '"FILE   system is out"': [1],
        '"system file"': [],
        'slow "file system"': [1],
        '"session store"': [1],
        '"session store" "file system"': [1],
        '"session store" "of files"': [],
        "slow author:octocat": [1],
        "slow author:@Monalisa": [2, 1],
        "slow role:maintainer": [],
        "postgresql role:maintainer": [1],
        "memcached role:contributor": [2],
        "sessions author:hubot": [3],
        "slow after:2024-01-03": [2],
        "slow before:2024-01-03": [1],
        "postgresql is:pr": [3],
        "postgresql is:issue": [1],
        "memcached is:page": ["docs/cache.md"],
        "slow is:open": [2],
        'slow label:"Good first issue"': [2],
        '"file system" author:octocat': [],
        "#2 postgresql": [2, 3, 1],
        "#2": [2],
        "#2 is:closed": [],
        'label:"good first issue"': [2],
        "is:pr author:hubot": [3],
        "author:octocat": [2, 1],
    }
    assert {text: ids(text) for text in expected} == expected


@pytest.mark.parametrize(
    ("text", "filters", "found"),
    [
        ("slow", {"state": "closed"}, [1]),
        ("slow is:open", {"labels": ("Backend",)}, []),
        ("slow is:open", {"state": "closed"}, [2, 1]),
        ("memcached", {"state": "open"}, [2]),
        ("sessions", {"kind": "pull"}, [3]),
        ("sessions", {"opened_by": "HUBOT"}, [3]),
        ("slow", {"changed_since": at(2)}, [2]),
        ("#2", {"state": "closed"}, []),
    ],
)
def test_filters_of_the_command_line_hold_like_qualifiers(
    text: str, filters: dict[str, Any], found: list[CardId]
) -> None:
    """A page has no state, so it is neither open nor closed."""
    assert [hit.card.id for hit in search(text, **filters).hits] == found


def test_a_thread_with_the_words_in_its_title_comes_first() -> None:
    assert ids("session store postgresql")[0] == 1
    assert ids("postgresql")[0] == 3


def test_a_passage_is_shown_with_its_author() -> None:
    cases = [
        ("machine", 1, ("octocat", "NONE"), "Files are slow on my machine.", 11),
        ("postgresql sessions", 3, ("hubot", "NONE"), "Closes the question of sessions.", None),
        ('"file system"', 1, ("hubot", "MEMBER"), "The file system is out of the question.", 12),
        (
            "postgresql role:maintainer",
            1,
            ("hubot", "MEMBER"),
            "We use PostgreSQL. The file system is out of the question.",
            12,
        ),
    ]
    for text, key, author, passage, comment_id in cases:
        actual = search(text).passages[key]
        assert ((actual.author, actual.role), actual.text, actual.comment_id) == (author, passage, comment_id), text


def test_a_hit_by_title_alone_has_no_passage() -> None:
    assert search("thumbnails").passages.keys() == {"docs/cache.md"}
    assert 3 not in search("use postgresql is:pr").passages


def test_a_passage_without_records_has_author_and_time_but_no_text() -> None:
    request = WordSearch("machine", search_query("machine", NOW))
    (passage,) = search_memory(request, CARDS).passages.values()
    assert (passage.author, passage.at, passage.text) == ("octocat", at(1.1), "")


def test_a_deleted_message_is_not_mistaken_for_another() -> None:
    changed = InMemoryCards.of([replace(STORE, comments=STORE.comments[1:])])
    request = WordSearch("machine", search_query("machine", NOW))
    (passage,) = search_memory(request, CARDS, changed.read).passages.values()
    assert (passage.author, passage.text) == ("octocat", "")


def test_a_smart_search_understands_the_same_query_language() -> None:
    cases = [("machine", [1]), ("slow author:octocat", [1]), ('"file system"', [1]), ("#2", [2]), ("is:pr", [3])]
    for text, expected in cases:
        request = WorkRequest(Worktree(), NOW, text, query=search_query(text, NOW), is_search=True)
        assert [hit.card.id for hit in find_for_work(request, CARDS, CARDS.read).threads] == expected, text


def test_a_smart_search_shows_passages() -> None:
    answer = find_for_work(
        WorkRequest(Worktree(), NOW, "machine", query=search_query("machine", NOW), is_search=True), CARDS, CARDS.read
    )
    assert answer.passages[1].text == "Files are slow on my machine."


# -- the order -----------------------------------------------------------------------------------------------------


def hit(key: CardId, score: float, part: float, position: int = 1) -> MessageHit:
    return MessageHit(key, position, "octocat", "", None, score, part, ("x",))


def test_all_words_in_one_message_rank_above_most_of_them_in_a_title() -> None:
    about = {1: ThreadEvidence(10.0, 0.6, ("x",))}
    assert [key for key, _ in rank_by_evidence(about, [hit(2, 8.0, 1.0)])] == [2, 1]


def test_words_in_title_and_opening_text_rank_above_a_message() -> None:
    about = {1: ThreadEvidence(10.0, 1.0, ("x",))}
    assert [key for key, _ in rank_by_evidence(about, [hit(2, 10.0, 1.0), hit(1, 10.0, 1.0, 0)])] == [1, 2]


def test_the_message_with_most_of_the_words_represents_its_thread() -> None:
    ((_, best),) = rank_by_evidence({}, [hit(1, 9.0, 0.5, 1), hit(1, 8.0, 1.0, 2)])
    assert best.message == hit(1, 8.0, 1.0, 2)


EVIDENCE = st.tuples(st.integers(1, 5), st.floats(0, 50), st.floats(0, 1))


@given(st.lists(EVIDENCE, max_size=8), st.lists(EVIDENCE, max_size=8))
def test_more_evidence_never_lowers_a_thread(
    title_evidence: list[tuple[int, float, float]], messages: list[tuple[int, float, float]]
) -> None:
    evidence = {key: ThreadEvidence(score, part, ()) for key, score, part in title_evidence}
    hits = [hit(*item) for item in messages]
    scores_before = {key: item.score for key, item in rank_by_evidence(evidence, hits[1:])}
    ranked = rank_by_evidence(evidence, hits)
    assert {key for key, _ in ranked} == {*evidence, *(item.thread for item in hits)}
    assert all(item.score >= scores_before.get(key, 0.0) for key, item in ranked)
    assert ranked == sorted(ranked, key=lambda pair: rank_key(pair[1].score))
