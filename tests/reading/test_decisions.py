"""Which sentences of a thread state a decision, by who says them and how."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.decisions import recall
from bot.domain.thread import Message, Thread
from bot.reading.endings.decisions import decisions
from tests.reading.linear_time import assert_linear_time

OPENED = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
PIECES = ["we", "i", "they", "decided", "agreed", "to", "on", "if", "not", "closing", "as", "won't", "fix", "use", "it"]
PIECES += [".", "?", ",", ":", ";", "-", "\n", ">", "`", "Decision:", "consensus is that"]


def message(text: str, author: str = "hubot", role: str = "NONE", hours: int = 1, number: int | None = None) -> Message:
    return Message(author, role, OPENED + timedelta(hours=hours), text, id=number)


def thread(body: str = "It loops.", *comments: Message, role: str = "NONE", closed_by: str | None = None) -> Thread:
    closed_at = OPENED + timedelta(hours=max((hour_of(each) for each in comments), default=0)) if closed_by else None
    state = "closed" if closed_by else "open"
    return Thread(
        id=42,
        title="We decided to use PostgreSQL",
        body=body,
        author="octocat",
        role=role,
        created_at=OPENED,
        state=state,
        closed_at=closed_at,
        closed_by=closed_by,
        comments=comments,
    )


def hour_of(comment: Message) -> int:
    return int((comment.created_at - OPENED) / timedelta(hours=1))


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def decision_texts(issue: Thread) -> list[str]:
    return [decision.text for decision in decisions(issue)]


# Phrases


def test_a_maintainers_decision_is_kept_verbatim_with_its_author_time_and_comment() -> None:
    sentences = [
        "We decided to use PostgreSQL.",
        "In today's meeting we have decided to drop Redis.",
        "The conclusion is that the cookie stays.",
        "Agreed on dropping Redis.",
        "We all agreed on PostgreSQL.",
        "We chose the second option.",
        "Going with PostgreSQL for sessions.",
        "We're going with PostgreSQL.",
        "The team settled on PostgreSQL.",
        "There is consensus on the second option.",
        "Discussed on the list; consensus is that the cookie stays.",
        "We will not support Redis.",
        "This is a won't fix.",
        "WONTFIX (nobody runs it)",
        "Closing as wontfix.",
        "Option two was selected in the meeting.",
        "It was agreed that the cookie stays.",
        "Discussed at the interim; agreed to drop it.",
        "The proposal was rejected.",
        "Resolution: keep the cookie.",
        "Decision: PostgreSQL",
        "We go with PostgreSQL; Redis lost sessions on restart.",
        "Let's go with option B.",
        "We'll use Redis for the cache.",
        "I've decided to keep the cookie.",
        "Closing because the cookie has to outlive the session.",
        "@monalisa and I agreed to drop Redis.",
    ]
    for sentence in sentences:
        (decision,) = decisions(
            thread("It loops.", message("Hm."), message(f"Thanks.\n\n{sentence}\n\nBye.", "monalisa", "OWNER", 5, 77))
        )
        assert decision.text == sentence, sentence
        assert (decision.author, decision.role, decision.at) == ("monalisa", "OWNER", OPENED + timedelta(hours=5)), (
            sentence
        )
        assert (decision.comment, decision.comment_id) == (1, 77), sentence


def test_quotes_code_and_struck_out_text_state_no_decision() -> None:
    texts = [
        "> We decided to use PostgreSQL.",
        "```\nwe decided to use PostgreSQL\n```",
        "~~We decided to use PostgreSQL.~~",
        "<!-- We decided to use PostgreSQL. -->",
        "# We decided to use PostgreSQL",
    ]
    assert [text for text in texts if decisions(thread("It loops.", message(text, role="OWNER"))) != ()] == []


def test_questions_conditions_proposals_and_denials_state_no_decision() -> None:
    sentences = [
        "Have we decided to use PostgreSQL?",
        "We decided to use PostgreSQL, right?",
        "If we decided to use PostgreSQL, all would be well.",
        "Once we have agreed on PostgreSQL, I can start.",
        "Unless we chose PostgreSQL, it is lost.",
        "There is no consensus on that.",
        "We haven't decided on that.",
        "We still have to decide on that.",
        "We need consensus on that.",
        "I don't remember what we decided on.",
        "This is not the scope we agreed to.",
        "I propose we go with PostgreSQL.",
        "Should we go with PostgreSQL?",
        "We should go with PostgreSQL.",
        "I'd go with PostgreSQL.",
        "Maybe we will not support Redis.",
        "I hope we agreed on that.",
        "I would make this a wontfix.",
        "I was going to close this because the cookie is gone.",
        "We decided to:",
    ]
    assert [
        sentence for sentence in sentences if decisions(thread("It loops.", message(sentence, role="OWNER"))) != ()
    ] == []


def test_choices_of_programs_and_other_people_are_no_decisions() -> None:
    sentences = [
        "The client has agreed to receive it.",
        "Both endpoints have agreed on the version.",
        "The server chose TLS.",
        "The compiler then decided to inline it.",
        "Users have settled on the old version.",
        "They decided to drop it.",
        "You decided to use PostgreSQL.",
        "The select statement picks a row.",
        "The resolution is not high enough.",
        "Resolution: 1920x1080",
        "Decision: `",
        "No option was selected.",
    ]
    assert [
        sentence for sentence in sentences if decisions(thread("It loops.", message(sentence, role="OWNER"))) != ()
    ] == []


def test_attempts_and_mere_closings_are_no_decisions() -> None:
    sentences = [
        "I decided to try the nightly.",
        "I've decided to run it again.",
        "It failed twice, but then decided to try again.",
        "Decided to try the nightly.",
        "Closing as fixed.",
        "Closing because this works now.",
        "Closing as a duplicate.",
        "Closing in favor of #12.",
        "Closing due to inactivity.",
        "#12 was closed as wontfix.",
    ]
    assert [
        sentence for sentence in sentences if decisions(thread("It loops.", message(sentence, role="OWNER"))) != ()
    ] == []


def test_a_decision_label_may_have_markup() -> None:
    assert decision_texts(thread("x", message("**Decision:** PostgreSQL", role="OWNER"))) == ["Decision: PostgreSQL"]


# Who decides, and where


def test_anybody_may_report_what_a_group_decided() -> None:
    assert [
        role
        for role in ["NONE", "CONTRIBUTOR", "OWNER"]
        if decision_texts(thread("x", message("We decided to use PostgreSQL.", role=role)))
        != ["We decided to use PostgreSQL."]
    ] == []


def test_only_contributors_and_members_speak_for_the_project() -> None:
    expected = {
        "NONE": False,
        "CONTRIBUTOR": True,
        "MEMBER": True,
    }
    assert {
        role: bool(decisions(thread("x", message("We won't support Redis.", role=role)))) for role in expected
    } == expected


def test_the_choice_of_one_person_counts_only_from_a_maintainer() -> None:
    cases = [("NONE", False), ("CONTRIBUTOR", False), ("COLLABORATOR", True)]
    for role, counts in cases:
        assert bool(decisions(thread("x", message("I decided to drop Redis.", role=role)))) is counts, role
        assert bool(decisions(thread("x", message("We'll use Redis for the cache.", role=role)))) is counts, role


def test_whoever_closes_somebody_elses_thread_may_decide_in_any_role() -> None:
    issue = thread(
        "x",
        message("We'll use Redis for the cache.", "monalisa"),
        message("Closing.", "monalisa"),
        closed_by="monalisa",
    )
    assert decision_texts(issue) == ["We'll use Redis for the cache."]


def test_the_author_of_a_thread_may_only_report_decisions() -> None:
    assert decisions(thread("We won't support Redis.")) == ()
    (decision,) = decisions(thread("We decided to use PostgreSQL."))
    assert (decision.author, decision.comment, decision.comment_id) == ("octocat", None, None)
    assert decisions(thread("We won't support Redis.", role="CONTRIBUTOR")) == ()
    assert decision_texts(thread("We won't support Redis.", role="OWNER")) == ["We won't support Redis."]
    assert decisions(thread("Let's go with Redis.", role="OWNER")) == ()


def test_a_ruling_counts_only_if_the_closer_ends_the_thread_with_it() -> None:
    ruling = "This is working as intended."
    last = message(ruling, "monalisa", "CONTRIBUTOR", 5)
    assert decision_texts(thread("x", last, closed_by="monalisa")) == [ruling]
    assert decisions(thread("x", last)) == ()
    assert decisions(thread("x", last, closed_by="hubot")) == ()
    assert decisions(thread("x", last, message("Fixed.", "hubot", "MEMBER", 9), closed_by="hubot")) == ()
    assert decisions(thread("x", last, closed_by="octocat")) == ()
    assert decisions(thread("x", message(ruling, "octocat", "NONE", 5), closed_by="octocat")) == ()


def test_a_ruling_long_before_the_closing_or_in_a_long_comment_is_an_explanation() -> None:
    ruling = "An RFC is required for that."
    early = message(ruling, "monalisa", "MEMBER", 1)
    late = replace(thread("x", early, closed_by="monalisa"), closed_at=OPENED + timedelta(days=3))
    assert decisions(late) == ()
    long = message(f"{ruling} One. Two. Three. Four.", "monalisa", "MEMBER", 1)
    assert decisions(thread("x", long, closed_by="monalisa")) == ()


def test_titles_and_bots_state_no_decision() -> None:
    bot = replace(message("We decided to use PostgreSQL.", role="MEMBER"), is_bot=True)
    assert decisions(thread("It loops.", bot)) == ()


# Which decisions are kept


def test_maintainers_and_later_decisions_are_kept_in_order_of_time() -> None:
    comments = [
        message("We decided to wait.", hours=1),
        message("We decided to use Redis.", "monalisa", "MEMBER", 2),
        message("We decided to go home.", hours=3),
        message("We decided to use files.", hours=4),
    ]
    assert decision_texts(thread("x", *comments)) == [
        "We decided to use Redis.",
        "We decided to go home.",
        "We decided to use files.",
    ]


def test_decisions_take_precedence_over_rulings() -> None:
    decided = [message(f"We decided on plan {number}.", "hubot", "MEMBER", number) for number in (1, 2, 3)]
    last = message("Anything else is out of scope.", "monalisa", "MEMBER", 4)
    assert decision_texts(thread("x", *decided, last, closed_by="monalisa")) == [each.text for each in decided]


def test_a_repeated_decision_is_kept_once_where_it_was_first_stated() -> None:
    issue = thread("x", message("Wontfix.", "monalisa", "MEMBER", 1), message("Wontfix.", "hubot", "MEMBER", 2))
    assert [(decision.author, decision.comment) for decision in decisions(issue)] == [("monalisa", 0)]


def test_a_long_sentence_is_cut_and_an_endless_one_is_no_decision() -> None:
    (decision,) = decisions(thread("We decided to use " + "very " * 60 + "old files."))
    assert len(decision.text) == 240
    assert decision.text.endswith("…")
    assert decisions(thread("We decided to use " + "very " * 200 + "old files.")) == ()


# Any text


@given(st.lists(st.sampled_from(PIECES)))
def test_every_decision_is_a_piece_of_the_comment(pieces: list[str]) -> None:
    text = " ".join(pieces)
    for decision in decisions(thread("x", message(text, "monalisa", "OWNER"), closed_by="monalisa")):
        assert letters(decision.text) in letters(text)


def test_hostile_threads_are_read_in_linear_time() -> None:
    pieces = [*"[*>`\0\u202e\ud800", "we decided to ", "closing as ", "discussed ", "to be ", "we really ", "so, "]
    assert_linear_time(
        lambda text: decisions(thread(text, message(text, "monalisa", "OWNER"), closed_by="monalisa")), *pieces
    )


@pytest.mark.shared
def test_most_labelled_decisions_are_found(shared: Path) -> None:
    found, total = recall(shared)
    assert total == 20
    assert found / total >= 0.7
