"""What a text asks of the bot: where a command counts, and which sentences ask for what was said before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.reading.questions import MAX_ISSUES, recall_question
from bot.reading.references import find_references
from bot.reading.requests import MAX_ARGUMENT_CHARS, Command, commands, without_commands
from tests.reading.linear_time import assert_linear_time

REPO = "octo-org/linkbarn"


def names(text: str) -> list[str]:
    return [command.name for command in commands(text, repo=REPO)]


def topic(text: str, *phrases: str) -> str | tuple[int, ...] | None:
    question = recall_question(text, phrases, repo=REPO)
    return question and (question.about or question.topic)


# -- commands ------------------------------------------------------------------------------------------------------


def test_a_command_is_read() -> None:
    cases = [
        ("/precedent search session store", Command("search", "session store")),
        ("/Precedent  SEARCH   Session `store` *now*", Command("search", "Session store now")),
        ("/precedent context #42", Command("context", about=(42,))),
        ("/precedent context 42", Command("context", about=(42,))),
        ("/precedent context GH-42, please", Command("context", about=(42,))),
        (f"/precedent context https://github.com/{REPO}/issues/42#issuecomment-1", Command("context", about=(42,))),
        (f"/precedent context {REPO}#42", Command("context", about=(42,))),
        ("/precedent wrong #4 and #5", Command("wrong", about=(4, 5))),
        ("/precedent wrong 48", Command("wrong", about=(48,))),
        ("/precedent wrong 48, 52 and 60.", Command("wrong", about=(48, 52, 60))),
        ("/precedent same 48 & 52, as of 2.3", Command("same", about=(48, 52))),
        ("/precedent different 48.2", Command("which", "different", clear=False)),
        ("/precedent same #4 and #5", Command("same", about=(4, 5))),
        ("/precedent different #4: another system", Command("different", about=(4,))),
        ("/precedent original 4", Command("original", about=(4,))),
        ("/precedent original #N", Command("which", "original", clear=False)),
        ("/precedent same as that one", Command("which", "same", clear=False)),
        ("/precedent refresh", Command("refresh")),
        ("/precedent off please", Command("off")),
        ("/precedent on.", Command("on")),
        ("/precedent help", Command("help")),
        ("/precedent", Command("help", clear=False)),
        ("/precedent sing", Command("help", clear=False)),
        ("/precedent search", Command("help", clear=False)),
        ("/precedent wrong", Command("which", "wrong", clear=False)),
        ("/precedent context", Command("help", clear=False)),
        ("/precedent context other/place#42", Command("help", clear=False)),
    ]
    for text, command in cases:
        (actual,) = commands(text, repo=REPO)
        assert (actual.name, actual.words, actual.about, actual.clear) == (
            command.name, command.words, command.about, command.clear,
        ), text  # fmt: skip


def test_a_command_counts_at_the_start_of_a_line() -> None:
    texts = [
        "Hello.\n/precedent off\nThanks.",
        "Hello.\n\n   /precedent off",
        "- a\n- b\n/precedent off",
        "Hello.\r\n/precedent off\r\nBye.",
        "/precedent off\n-- \nSent from my phone",
        "<details>\n\n/precedent off\n\n</details>",
        "> quoted\n\n/precedent off",
        "<blockquote>\n\nquoted\n\n</blockquote>\n\n/precedent off",
        "```\ncode\n```\n/precedent off",
        "> ```\n> code\n> ```\n/precedent off",
        "> > ~~~\n> > code\n> > ~~~~\n\n/precedent off",
        "- ```\n  code\n  ```\n\n/precedent off",
        "> quoted\n\n/precedent off",
        "> <!-- hidden -->\n\n/precedent off",
        "<details>\n\n> quoted\n\n</details>\n\n/precedent off",
        "<pre>code</pre>\n\n/precedent off",
        "a <code>b</code>\n/precedent off",
        "\uff0fprecedent off",
    ]
    assert [text for text in texts if names(text) != ["off"]] == []


def test_a_command_does_not_count_elsewhere() -> None:
    texts = [
        "Write /precedent off to stop it",
        "/precedents off",
        "/precedent/off",
        "/precedent-off",
        "//precedent off",
        "```\n/precedent off\n```",
        "~~~\n/precedent off",
        "    /precedent off",
        "`/precedent off`",
        "`code that\n/precedent off\ngoes on`",
        "<pre>\n/precedent off\n</pre>",
        "<code>\n\n/precedent off\n\n</code>",
        "a <code>\n/precedent off\n</code>",
        "> /precedent off",
        "> quoted\n/precedent off",
        "> > deep\n\n> /precedent off",
        "<blockquote>\n\n/precedent off\n\n</blockquote>",
        "<!--\n/precedent off\n-->",
        "a <!-- b\n/precedent off\n-->",
        "- /precedent off",
        "1. /precedent off",
        "# /precedent off",
        "**/precedent off**",
        "~~/precedent off~~",
        "\\/precedent off",
        "Hello\n\\/precedent off",
        "[/precedent off](https://example.com)",
        "| /precedent off | b |\n|---|---|",
        "> q\n>\n> ```\n/precedent off",
        "> ~~~py\n> x\n\nThanks!\n\n/precedent off",
        "> > ````\n> > ```\n/precedent off",
        "> ```\n> > ```\n/precedent off",
        "- ```\n/precedent off",
        "- <!-- hidden\n\n/precedent off",
        "> <!-- hidden\n\n/precedent off",
        "<div> <!--\n\n/precedent off\n\n-->",
        "<div title='\n\n/precedent off",
        "hidden <!--\n/precedent off",
        "> <pre>\n\n/precedent off\n\n</pre>",
        "</pre>\n<pre>\n\n/precedent off\n\n</pre>",
        "an open <code>\n\n/precedent off",
        "</code> an open <code>\n\n/precedent off",
        "> an open <code>\n\n/precedent off",
        "> </blockquote>\n\n> /precedent off",
        "> </blockquote>\n> /precedent off",
        "> > deep\n    ```\n/precedent off",
        "> quoted\n</code>\n\n   ```\n/precedent off",
        "> quoted\n</code>\n\n/precedent off",
        "a\n    /precedent off",
        "a\n\t/precedent off",
        "```\n\uff40\uff40\uff40\n/precedent off",
        "<!--\n\uff0d\uff0d\uff1e\n/precedent off",
    ]
    for text in texts:
        assert names(text) == [], text
        assert without_commands(text) == text, text


def test_at_most_three_commands_are_read_and_each_only_once() -> None:
    lines = [f"/precedent {words}" for words in ("sing", "off", "dance", "off", "on", "help")]
    assert names("\n".join(lines)) == ["help", "off", "on"]


def test_arguments_are_bounded() -> None:
    (command,) = commands(f"/precedent search {'a' * 5_000}")
    assert len(command.words) == MAX_ARGUMENT_CHARS
    (command,) = commands("/precedent wrong " + " ".join(f"#{number}" for number in range(1, 50)))
    assert command.about == tuple(range(1, MAX_ISSUES + 1))


# -- what is left of the text --------------------------------------------------------------------------------------


def test_numbers_in_a_command_are_no_references_of_the_thread() -> None:
    expected = {
        "See #1.\n/precedent wrong #2\nAnd #3.": [1, 3],
        "/precedent context #2": [],
        "- a\n/precedent context #2\n\n    code\n": [],
        "Like `x\n/precedent wrong #2` but #3": [3],
        "> /precedent wrong #2": [2],
        "Hello #2": [2],
    }
    assert {
        text: [reference.number for reference in find_references(without_commands(text), repo=REPO)]
        for text in expected
    } == expected


@given(st.lists(st.sampled_from(["/precedent wrong #2", "See #1", "> q", "```", "- a", "", "    x", "<!--", "-->"])))
def test_every_other_line_stays_in_its_place(lines: list[str]) -> None:
    left = without_commands("\n".join(lines)).split("\n")
    assert [new if old != "/precedent wrong #2" else "" for old, new in zip(lines or [""], left, strict=True)] == [
        old if old != "/precedent wrong #2" else "" for old in lines or [""]
    ]


# -- questions -----------------------------------------------------------------------------------------------------


def test_a_question_is_distinguished_from_a_statement() -> None:
    expected = {
        "What database did we choose in #42?": (42,),
        "what did we decide about caching?": "caching",
        "What did we decide on the retry budget": "the retry budget",
        "Remember what we decided in #42": (42,),
        "Can you remember what we agreed on for uploads, please?": "uploads",
        "@precedent remind me what we decided about logging!": "logging",
        "Didn't we discuss this before?": "",
        "didn’t we already discuss rate limits?": "rate limits",
        "Didnt we discuss rate limits already?": "rate limits",
        "Did we not discuss rate limits last year?": "rate limits",
        "Haven't we discussed “rate limits” before?": "rate limits",
        "Search all past conversations for mentions of authentication": "authentication",
        "search our earlier discussions for anything about `auth`.": "auth",
        "So, why did we choose Redis?": "Redis",
        "Before I start: what was the conclusion on colours?": "colours",
        "What was decided about GH-7 and #8?": (7, 8),
        "Which library did we pick for dates? And why?": "library dates",
        "Some words first.\nWhat did we decide about caching?\nMore words.": "caching",
        "I remember what we decided in #42.": None,
        "What we decided in #42 was wrong.": None,
        'She asked: "what did we decide about caching?"': None,
        "> What did we decide about caching?": None,
        "```\nWhat did we decide about caching?\n```": None,
        "`what did we decide about caching`?": None,
        "<!-- What did we decide about caching? -->": None,
        "## What did we decide about caching?": None,
        "Nobody knows what did we decide about caching": None,
        "Please search existing issues for duplicates.": None,
        "What did you decide?": None,
        "We did decide about it.": None,
        "": None,
    }
    assert {text: topic(text) for text in expected} == expected


def test_a_question_asks_for_a_decision_or_a_conversation() -> None:
    for text, decides in (("What did we decide about caching?", True), ("Didn't we discuss caching?", False)):
        question = recall_question(text)
        assert question is not None
        assert (question.decides, question.asked) == (decides, text)


def test_phrases_of_the_settings_are_questions_too() -> None:
    cases = [
        ("any news on {topic}", "Any news on caching?", "caching"),
        ("was haben wir zu {topic} gesagt", "Was haben wir zu Zwischenspeichern gesagt?", "Zwischenspeichern"),
        ("who * owns/keeps {topic}", "Who on earth keeps the printers?", "the printers"),
        ("who * owns/keeps {topic}", "Who of you all out there keeps the printers?", None),
        ("what about {topic}", "What about #3?", (3,)),
        ("what about {topic}", "what about", None),
        ("any news on {topic}", "What did we decide about caching?", "caching"),
        ("我们 之前 对 {topic} 做了什么 决定", "我们之前对缓存做了什么决定？", "缓存"),
        ("我们 之前/以前 对 {topic} 做了什么 * 决定", "你好。我们以前对缓存做了什么样的决定？", "缓存"),
        ("以前 {topic} を検討しましたか", "以前、キャッシュを検討しましたか？", "キャッシュ"),
        ("qué decidimos sobre {topic}", "¿Qué decidimos sobre la caché?", "la caché"),
        ("{topic} kam schon zur Sprache", "Der Zwischenspeicher kam schon zur Sprache?", "Der Zwischenspeicher"),
        ("qué decidimos sobre {topic}", "Hola, ¿qué decidimos sobre la caché?", "la caché"),
    ]
    assert [phrase for phrase, text, expected in cases if topic(text, phrase) != expected] == []


# -- hostile text --------------------------------------------------------------------------------------------------


def test_a_command_in_a_table_counts_only_in_the_first_cell_of_a_row() -> None:
    assert names("/precedent help | /precedent off\n--- | ---\n/precedent on | /precedent refresh") == ["help", "on"]


def test_hostile_text_is_read_in_linear_time() -> None:
    pieces = [*"[*>`", "/precedent ", "/precedent\n", "/precedent wrong 1, ", "\0\ud800/precedent off",
              "what did we decide about ", "<!--", "a, "]  # fmt: skip
    assert_linear_time(lambda text: commands(text, repo=REPO), *pieces)
    assert_linear_time(without_commands, *pieces)
    assert_linear_time(lambda text: recall_question(text, repo=REPO), *pieces)


@given(st.text(), st.sampled_from(["", "/precedent ", "\n/precedent search ", "what did we decide about "]))
def test_any_text_gives_bounded_results(text: str, before: str) -> None:
    full_text = before + text
    assert len(commands(full_text, repo=REPO)) <= 3
    assert isinstance(without_commands(full_text), str)
    question = recall_question(full_text, repo=REPO)
    assert question is None or len(question.topic) <= MAX_ARGUMENT_CHARS
