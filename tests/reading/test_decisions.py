"""Which sentences of a thread state a decision, by who says them and how."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.decisions import recall
from bot.domain.thread import Kind, Message, Thread
from bot.reading.digest import digest
from bot.reading.endings.decisions import decisions
from tests.reading.linear_time import assert_linear_time
from tests.reading.samples import OPENED, message

CLOSED = OPENED + timedelta(days=1)
PIECES = ["we", "i", "they", "decided", "agreed", "to", "on", "if", "not", "closing", "as", "won't", "fix", "use", "it"]
PIECES += [".", "?", ",", ":", ";", "-", "\n", ">", "`", "Decision:", "consensus is that"]


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


STATEMENTS = [
    "We decided to delete PostgreSQL.",
    "We won't support Redis.",
    "We go with PostgreSQL.",
    "The consensus is that the cookie stays.",
    "Resolution: keep the cookie.",
    "wontfix",
    "Let's go with option B.",
    "We'll use Redis for the cache.",
    "I've decided to drop the cookie.",
    "It was agreed in the meeting that the cookie stays.",
    "We have decided to drop Redis.",
    "We agreed on PostgreSQL.",
    "The team settled on PostgreSQL.",
    "The team decided against Redis.",
    "We chose the second option.",
    "We picked PostgreSQL.",
    "We will not support Redis.",
    "We're going with PostgreSQL.",
    "Going with PostgreSQL for sessions.",
    "There is consensus on the second option.",
    "The conclusion is that the cookie stays.",
    "Decision: PostgreSQL",
    "**Decision:** no Redis",
    "Agreed on dropping Redis.",
    "Everyone agreed to drop Redis.",
    "In today's meeting we have decided to drop Redis.",
    "Discussed at the interim; agreed to drop it.",
    "The proposal was rejected.",
    "Option two was selected in the meeting.",
    "This is a won't fix.",
    "Closing as wontfix.",
    "Closing because the cookie has to outlive the session.",
    "We go with PostgreSQL; Redis lost sessions on restart.",
    "We should use PostgreSQL for the session store.",
    "I propose that we use PostgreSQL.",
    "Let's use PostgreSQL for sessions.",
    "The maintainers decided to drop Redis.",
    "It has been decided that Redis goes.",
    "@octocat and I agreed to drop Redis.",
    "As the maintainer, I've decided to drop Redis.",
]


@pytest.mark.parametrize("role", ["NONE", "FIRST_TIME_CONTRIBUTOR", "CONTRIBUTOR", "MANNEQUIN"])
def test_what_a_bystander_says_is_no_decision(role: str) -> None:
    for text in STATEMENTS:
        for issue in (
            thread(text, role=role),
            thread("x", message(text, role=role)),
            thread("x", message(text, role=role), message("Closing.", "monalisa", "MEMBER"), closed_by="monalisa"),
            thread("x", message(text, "octocat", role), closed_by="octocat"),
        ):
            assert decisions(issue) == (), text


def test_what_maintainers_say_is_a_decision_whatever_others_said_later() -> None:
    words = "We decided to use PostgreSQL."
    for role in ("OWNER", "MEMBER", "COLLABORATOR"):
        issue = thread("x", message(words, "monalisa", role), message("We decided to delete PostgreSQL.", hours=9))
        assert decision_texts(issue) == [words]
    for text in ("Did we decide to use PostgreSQL?", "If we decided to use PostgreSQL, it would be slow."):
        assert decisions(thread("x", message(text, "monalisa", "OWNER"))) == ()


def test_the_author_of_a_merged_change_speaks_for_it() -> None:
    words = "We decided to use PostgreSQL."
    pull = replace(thread(words, message("We won't support Redis.", "octocat")), kind=Kind.PULL)
    assert decisions(pull) == ()
    merged = replace(pull, state="closed", closed_at=CLOSED, closed_by="monalisa", merged_at=CLOSED)
    assert decision_texts(merged) == [words, "We won't support Redis."]
    assert decisions(replace(merged, comments=(message(words),), body="x")) == ()


def test_the_author_of_an_issue_decides_if_a_maintainer_agreed_and_closed_it_as_completed() -> None:
    words = "We decided to use PostgreSQL."
    agreed = message("Sounds good, go ahead.", "monalisa", "MEMBER", 5)
    issue = thread(words, agreed, closed_by="monalisa")
    assert decision_texts(issue) == [words]
    for other in (
        thread(words, closed_by="monalisa"),
        thread(words, replace(agreed, role="NONE"), closed_by="monalisa"),
        thread(words, replace(agreed, text="Does that sound good?"), closed_by="monalisa"),
        thread(words, agreed, closed_by="octocat"),
        replace(issue, state_reason="not_planned"),
        thread("x", message(words), agreed, closed_by="monalisa"),
    ):
        assert decisions(other) == ()


def test_without_roles_whoever_closed_the_thread_or_was_assigned_decides() -> None:
    words = "We decided to use PostgreSQL."
    said = message(words, "monalisa", "")
    assert decisions(thread("x", said)) == decisions(thread("x", said, closed_by="hubot")) == ()
    assert decision_texts(thread("x", said, closed_by="monalisa")) == [words]
    assert decision_texts(replace(thread("x", said), assignees=("monalisa",))) == [words]


def test_accounts_named_in_the_settings_decide_even_bots() -> None:
    words = "We decided to use PostgreSQL."
    agent = replace(message(words, "agent[bot]"), is_bot=True)
    assert decisions(thread("x", agent)) == ()
    assert decision_texts(replace(thread("x", agent), deciders=("agent[bot]",))) == [words]


def test_in_a_session_both_the_person_and_the_agent_decide() -> None:
    person, agent = message("We decided to use PostgreSQL."), message("Decision: no Redis", "assistant", hours=2)
    session = replace(thread("x", person, replace(agent, is_bot=True)), kind=Kind.SESSION)
    assert [(each.author, each.text) for each in decisions(session)] == [
        ("hubot", "We decided to use PostgreSQL."),
        ("assistant", "Decision: no Redis"),
    ]


def test_a_maintainers_proposal_counts_once_the_thread_is_closed_as_completed() -> None:
    words = "We should use PostgreSQL for the session store."
    proposed = message(words, "monalisa", "MEMBER")
    issue = thread("x", proposed, message("Done in #17.", "monalisa", "MEMBER", 5), closed_by="monalisa")
    (decision,) = digest(issue).decisions
    assert (decision.text, decision.is_proposal, decision.done_in) == (words, True, "#17")
    for other in (
        thread("x", proposed),
        replace(issue, state_reason="not_planned"),
        thread("x", replace(proposed, role="NONE"), closed_by="hubot"),
        thread("x", replace(proposed, text="Should we use PostgreSQL for the session store?"), closed_by="monalisa"),
        thread("x", replace(proposed, text="We should not use PostgreSQL for that."), closed_by="monalisa"),
    ):
        assert [each for each in decisions(other) if each.is_proposal] == []
    decided = thread("x", proposed, message("We decided to use files.", "monalisa", "MEMBER"), closed_by="monalisa")
    assert decision_texts(decided) == ["We decided to use files."], "a decision needs no proposal beside it"


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


def test_an_opening_text_may_only_report_decisions() -> None:
    (decision,) = decisions(thread("We decided to use PostgreSQL.", role="OWNER"))
    assert (decision.author, decision.comment, decision.comment_id) == ("octocat", None, None)
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
        message("We decided to wait.", "monalisa", "MEMBER", hours=1),
        message("We decided to use Redis.", "monalisa", "MEMBER", 2),
        message("We decided to go home.", "monalisa", "MEMBER", hours=3),
        message("We decided to use files.", "monalisa", "MEMBER", hours=4),
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
    (decision,) = decisions(thread("We decided to use " + "very " * 60 + "old files.", role="OWNER"))
    assert len(decision.text) == 240
    assert decision.text.endswith("…")
    assert decisions(thread("We decided to use " + "very " * 200 + "old files.", role="OWNER")) == ()


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
    assert found / total >= 0.5, "a third of them was said by people who do not decide there"
