"""Which sentences ask about past conversations, and which only sound like it, with the default phrases."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.reading.requests import recall_question
from bot.settings.schema import RECALL_PHRASES
from tests.reading.linear_time import assert_linear_time

QUESTIONS = [
    ("Remember when we discussed caching?", "caching"),
    ("remember when we talked about rate limits", "rate limits"),
    ("Does anyone remember why we chose Redis?", "Redis"),
    ("We talked about this before", ""),
    ("We talked about this before, didn't we?", ""),
    ("I think we discussed this before, but I can't find where.", ""),
    ("We decided to replace :host with :authority, right?", "replace :host with :authority"),
    ("Didn't we decide to use Postgres?", "use Postgres"),
    ("Did we ever settle on a retry budget?", "a retry budget"),
    ("Haven't we already decided on tabs?", "tabs"),
    ("What was the reason for dropping Windows support?", "dropping Windows support"),
    ("What's the rationale behind the two-phase import?", "the two-phase import"),
    ("What made us switch to Bazel?", "Bazel"),
    ("Why did we choose SQLite over Postgres?", "SQLite over Postgres"),
    ("How did we end up using two parsers?", "two parsers"),
    ("Has this ever come up here before?", ""),
    ("Has the idea of a plugin API come up before?", "the idea of a plugin API"),
    ("Has anyone brought this up before?", ""),
    ("Has it been decided to move to nominal for everything?", "move to nominal for everything"),
    ("Is there a previous discussion about this?", ""),
    ("Do we have any decision on the minimum Node version?", "the minimum Node version"),
    ("Summarize what we decided about caching.", "caching"),
    ("Can someone please summarise what we agreed on for uploads?", "uploads"),
    ("Where did we discuss the token format?", "the token format"),
    ("In which issue did we discuss sharding?", "sharding"),
    ("When did we decide to move to TypeScript?", "move to TypeScript"),
    ("Find earlier discussions about rate limiting.", "rate limiting"),
    ("I forget, did we decide that closures are boxed?", "that closures are boxed"),
    ("Sorry to ask, but what did we decide about caching?", "caching"),
    ("@octocat could you remind me what we said about semver?", "semver"),
]

LOOKALIKES = [
    "I remember when we discussed caching.",
    "Remember when installing to set the prefix.",
    "Remember when we decided to rewrite everything in a weekend? Good times.",
    "Remember what we said about force pushes!",
    "As we discussed before, this needs a flag.",
    "We talked about this before, see #12.",
    "We talked about this before. The answer is still no.",
    "We discussed this in the meeting and will go with option B.",
    "We discussed this before and I still disagree, could you explain?",
    "Didn't we discuss this before? See #12.",
    "Has this come up before in Python 2?",
    "Has this come up before or after the upgrade?",
    "Has this been discussed with legal?",
    "Was the exception raised before?",
    "Why did we ever choose YAML?!",
    "Why on earth did we choose YAML?",
    "Why did we choose Redis? Because it was fast.",
    "Why did we choose Redis is beyond me.",
    "What was the reason for the crash?",
    "What was the reason for closing this?",
    "What is the outcome of calling free twice?",
    "He asked: why did we choose Redis?",
    "If somebody asks, what did we decide about caching, send them here.",
    "The FAQ should answer: why did we choose Redis?",
    'She asked "has this come up before?"',
    'The label "Hey, did we decide to use Redis?" is too long.',
    "In the log: “so, why did we choose Redis?”",
    "`Has this come up before?`",
    "> Has this come up before?",
    "Please search previous discussions for duplicates before opening an issue.",
    "To summarize what we decided about caching: nothing.",
    "Please summarize what we decided in the PR description.",
    "What was the reason for the 500 response?",
    "Did the login prompt come up?",
    "When did we decide that bugs are features? 😄",
    "How did we end up with a negative length?",
    "Did we choose the right overload here?",
    "Didn't we all agree to be nice?",
]


def test_a_question_about_the_past_is_recognised() -> None:
    for text, topic in QUESTIONS:
        question = recall_question(text, RECALL_PHRASES)
        assert question is not None, text
        assert question.topic == topic, text


def test_a_sentence_that_only_sounds_like_a_question_is_none() -> None:
    assert [text for text in LOOKALIKES if recall_question(text, RECALL_PHRASES) is not None] == []


_FRAMES = ["`{}`", "> {}", "> > {}", "```\n{}\n```", "~~~text\n{}\n~~~", "    {}", '"{}"', "“{}”", "<pre>\n{}\n</pre>"]
_FRAMES += ["<!-- {} -->", "<blockquote>\n\n{}\n\n</blockquote>", "# {}", "Somebody asked: {}"]


@given(
    st.sampled_from([text for text, _ in QUESTIONS if " forget" not in text and "Sorry" not in text]),
    st.sampled_from(_FRAMES),
    st.sampled_from(["", "Thanks for the report.\n\n", "It fails.\n\n"]),
)
def test_a_question_in_code_or_quotes_does_not_count(question: str, frame: str, before: str) -> None:
    assert recall_question(before + frame.format(question), RECALL_PHRASES) is None


def test_a_long_text_is_read_in_linear_time() -> None:
    parts = [
        "we discussed ", "has this come up ", "has been, ", "remember when we, ", "was it * been ", "i think we ",
        "what was the reason for ", "but i can't find ", "before already ", "in the a b ", "discussed before, right ",
    ]  # fmt: skip
    assert_linear_time(lambda text: recall_question(text, RECALL_PHRASES), *parts, *(f"{part}? " for part in parts))
