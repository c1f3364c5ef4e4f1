"""Which decisions a later statement in the thread takes back, by what it says and by who says it."""

from dataclasses import replace

from bot.domain.thread import Kind, Message, Thread
from bot.reading.endings.decisions import decisions
from bot.reading.endings.supersession import takebacks
from tests.reading.linear_time import assert_linear_time
from tests.reading.samples import message
from tests.reading.test_decisions import thread

REDIS = message("We decided to use Redis.", "hubot", "MEMBER", 1, 11)


def thread_after(text: str, *earlier: Message, role: str = "OWNER") -> Thread:
    """A thread in which ``text`` follows the decision for Redis and the ``earlier`` messages."""
    return replace(
        thread("It loops.", REDIS, *earlier, message(text, "monalisa", role, 9, 99)), title="Sessions get lost"
    )


def successors(issue: Thread) -> dict[str, str]:
    return {each.text: each.superseded_by for each in decisions(issue)}


def redis_successor(issue: Thread) -> str:
    return successors(issue)["We decided to use Redis."]


def test_a_superseded_decision_names_what_supersedes_it() -> None:
    expected = {
        "Superseded by #51.": "#51",
        "This decision was superseded by #51.": "#51",
        "The decision on Redis is superseded by #51.": "#51",
        "#51 supersedes this.": "#51",
        "Reverted in #60.": "#60",
        "We changed our mind.": "#issuecomment-99",
        "We changed our mind, going with PostgreSQL.": "#issuecomment-99",
        "We've since changed our minds about Redis.": "#issuecomment-99",
        "We are no longer going with Redis.": "#issuecomment-99",
        "Instead of Redis we now use PostgreSQL.": "#issuecomment-99",
        "We no longer use Redis.": "#issuecomment-99",
        "The earlier decision no longer holds.": "#issuecomment-99",
        "Scrap that. We'll use PostgreSQL.": "#issuecomment-99",
        "I changed my mind: let's go with PostgreSQL.": "#issuecomment-99",
    }
    assert {text: redis_successor(thread_after(text)) for text in expected} == expected


def test_statements_that_take_back_nothing_or_something_else_supersede_nothing() -> None:
    texts = [
        "We decided to use PostgreSQL for the queue.",
        "Is this superseded by #51?",
        "If this is superseded by #51, close it.",
        "Not superseded by #51.",
        "The first part can be considered superseded by #51.",
        "Superseded by octo/other#51.",
        "Superseded by #42.",
        "Superseded by #0.",
        "> Superseded by #51.",
        "We reverted the tests in #60.",
        "We changed our mind about the logo.",
        "We have not changed our mind.",
        "We are no longer going with Memcached.",
        "We no longer use Redis for tokens.",
        "Instead of Memcached we now use Redis.",
        "Scrap that, I misread the log.",
        "I changed my mind.",
        "On second thought, the cache is fine.",
        "Superseded by #51, but only on Windows.",
        "Reverted in #60, relanded in #61.",
        "Users say we changed our mind.",
        "We are no longer using Redis in the tests.",
    ]
    assert [text for text in texts if redis_successor(thread_after(text)) != ""] == []


def test_only_people_with_as_much_authority_can_take_a_decision_back() -> None:
    text = "We changed our mind."
    assert [redis_successor(thread_after(text, role=role)) for role in ("NONE", "CONTRIBUTOR")] == ["", ""]
    assert [redis_successor(thread_after(text, role=role)) for role in ("COLLABORATOR", "OWNER")] == [
        "#issuecomment-99"
    ] * 2
    bot = replace(thread_after(text).comments[-1], is_bot=True)
    assert redis_successor(thread("It loops.", REDIS, bot)) == ""


def test_an_edit_that_removes_the_words_restores_the_decision() -> None:
    assert redis_successor(thread_after("Superseded by #51.")) == "#51"
    assert redis_successor(thread_after("See also #51.")) == ""
    assert redis_successor(thread_after("~~Superseded by #51.~~")) == ""


def test_only_the_named_decision_of_several_is_taken_back() -> None:
    queue = message("We decided to use Kafka.", "hubot", "MEMBER", 2, 12)
    for text, taken in (
        ("We changed our mind.", []),
        ("Reverted in #60.", []),
        ("We changed our mind about Kafka.", ["Kafka"]),
        ("We are no longer going with Redis.", ["Redis"]),
        ("Superseded by #51.", ["Redis", "Kafka"]),
    ):
        by_decision = successors(thread_after(text, queue))
        assert [name for name in ("Redis", "Kafka") if by_decision[f"We decided to use {name}."]] == taken


def test_the_title_says_what_the_only_decision_is_about() -> None:
    issue = replace(thread_after("We changed our mind about the lost sessions."), title="Sessions get lost")
    assert redis_successor(issue) == "#issuecomment-99"
    queue = message("We decided to use Kafka.", "hubot", "MEMBER", 2, 12)
    two = replace(thread_after("We changed our mind about the lost sessions.", queue), title="Sessions get lost")
    assert set(successors(two).values()) == {""}


def test_giving_something_up_does_not_take_back_the_decision_to_do_so() -> None:
    dropped = message("We decided to drop Redis.", "hubot", "MEMBER", 1, 11)
    later = message("We are no longer using Redis.", "monalisa", "OWNER", 2, 12)
    assert successors(thread("It loops.", dropped, later)) == {"We decided to drop Redis.": ""}


def test_a_superseded_pull_request_keeps_its_decisions() -> None:
    assert redis_successor(replace(thread_after("Superseded by #51."), kind=Kind.PULL)) == ""
    assert (
        redis_successor(replace(thread_after("The decision on Redis is superseded by #51."), kind=Kind.PULL)) == "#51"
    )


def test_a_decision_that_is_made_again_is_valid() -> None:
    again = message("We decided to use Redis.", "octocat", "OWNER", 12, 101)
    issue = thread_after("We changed our mind.")
    (decision,) = decisions(replace(issue, comments=(*issue.comments, again)))
    assert (decision.comment_id, decision.superseded_by) == (101, "")


def test_an_earlier_statement_does_not_affect_a_decision() -> None:
    assert redis_successor(thread("It loops.", message("We changed our mind.", "monalisa", "OWNER", 0, 9), REDIS)) == ""


def test_a_comment_without_an_id_is_named_by_its_thread() -> None:
    issue = thread_after("We changed our mind.")
    assert redis_successor(replace(issue, comments=(REDIS, replace(issue.comments[1], id=None)))) == "#42"


def test_valid_decisions_are_kept_before_superseded_ones() -> None:
    more = [message(f"We decided on plan {name}.", "hubot", "MEMBER", 2) for name in ("Kafka", "Solr", "Lucene")]
    assert list(successors(thread_after("We changed our mind about Redis.", *more))) == [each.text for each in more]


def test_hostile_text_takes_linear_time() -> None:
    pieces = [
        "we changed our mind about ",
        "superseded by ",
        "instead of a b c ",
        "the decision on ",
        "#51, ",
        "scrap ",
    ]
    assert_linear_time(lambda text: list(takebacks(text, 42, decides=True)), *pieces)


def test_a_thread_with_hundreds_of_decisions_and_takebacks_is_read_in_linear_time() -> None:
    def read(text: str) -> None:
        plans = range(len(text) // 32)
        decided = message(" ".join(f"We decided to use plan{n}." for n in plans), "hubot", "MEMBER", 1)
        taken = message(" ".join(f"We changed our mind about plan{n}." for n in plans), "monalisa", "OWNER", 2)
        decisions(thread("x", decided, taken))

    assert_linear_time(read, "x")
