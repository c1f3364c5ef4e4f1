"""Which sentences of a comment are quoted: the remedy before the conclusion, and never small talk."""

import pytest

from bot.reading.endings.quote import MAX_QUOTE_CHARS, quote_of, says_something
from bot.reading.markdown import sentences

LONG = "The " + "very " * 70 + "long story was fixed."


def quote(text: str, stated: int | None = None, *, is_late: bool = False) -> str:
    return quote_of(tuple(sentences(text)), stated, is_late=is_late)


def test_small_talk_is_not_quoted() -> None:
    texts = [
        "Closing.",
        "Closing for now. Feel free to open a new issue.",
        "I'm going to close this issue. Please reopen if it is back.",
        "This can be closed now.",
        "I think it's OK to close the question.",
        "Thanks!",
        "Thank you very much for the detailed report.",
        "cc @octocat",
        "@octocat Mind testing the latest v0.20.1?",
        "Could you try again with the newest one? Any news?",
        "Agreed",
        "No objection, let's close.",
        "I can reproduce it:",
        "Good catch!",
        "Hope this helps.",
        "Discussed on the call.",
        "Nominating.",
        "Spring cleaning.",
        "",
    ]
    assert [text for text in texts if quote(text) != ""] == []


def test_the_sentence_that_helps_is_quoted() -> None:
    cases = [
        ("Thanks for the report. The cookie was never sent.", "The cookie was never sent."),
        ("Let's keep the button then. Closing.", "Let's keep the button then."),
        ("We will not add this. Closing for now.", "We will not add this."),
        ("I see. Set `debug` to false in the settings.", "Set `debug` to false in the settings."),
        ("The cookie path changed. Clear it or upgrade.", "The cookie path changed. Clear it or upgrade."),
        ("What did you expect? We decided to keep the old name.", "We decided to keep the old name."),
        ("@octocat You need to pass the flag twice.", "You need to pass the flag twice."),
        ("@octocat the token is registered, so it works.", "the token is registered, so it works."),
        ("@octocat @hubot this was fixed by the new parser.", "this was fixed by the new parser."),
        ("@octocat has done some work on it, so it works.", "@octocat has done some work on it, so it works."),
        ("I looked at it for a while. Closing because nobody needs it.", None),
        ("That server is down. It is a bug in the driver, though.", None),
        ("Closing as we have no way to support this.", None),
        ("Fixed by #57. If you cannot upgrade yet, delete the cookie in the browser.", None),
        (
            "Nobody needs it, so we dropped it. If you do, please open a new issue.",
            "Nobody needs it, so we dropped it.",
        ),
        ("クッキーを削除してください。", None),
    ]
    assert [text for text, expected in cases if quote(text) != (text if expected is None else expected)] == []


def test_the_sentence_that_states_the_ending_comes_first_unless_it_only_closes() -> None:
    text = "I had a look. Fixed by #57. You can clear the cache."
    assert quote(text, 1) == "Fixed by #57. You can clear the cache."
    refused = "Nobody would use such a field, so we won't add it. Propose closing with no action."
    assert quote(refused, 1) == "Nobody would use such a field, so we won't add it. Propose closing with no action."
    assert quote("The group decided against it in May. Closing with no action.", 1).startswith("The group decided")


def test_a_quote_is_whole_sentences_within_the_limit() -> None:
    assert quote(f"The name changed. {LONG}") == "The name changed."
    assert quote(LONG).endswith("…")
    assert MAX_QUOTE_CHARS - 10 < len(quote(LONG)) <= MAX_QUOTE_CHARS
    pair = "It was fixed " + "a" * 120 + ". You can use " + "b" * 120 + "."
    assert quote(pair) == pair


def test_a_comment_long_before_the_closing_has_to_say_more() -> None:
    assert quote("The parser reads the file twice.", is_late=True) == ""
    assert quote("Use the newer parser.", is_late=True) == "Use the newer parser."


@pytest.mark.parametrize(
    ("sentence", "is_informative"),
    [("Fixed.", False), ("This is done now.", False), ("Closing as completed.", False), ("", False),
     ("Done in #57.", True), ("Fixed in v2.3.", True), ("The path is fixed.", True)],
)  # fmt: skip
def test_a_quote_that_repeats_the_kind_says_nothing(sentence: str, *, is_informative: bool) -> None:
    assert says_something(sentence) is is_informative


@pytest.mark.parametrize(
    ("sentence", "is_informative"),
    [("Fixed by #57.", False), ("Closing in favor of #57", False), ("(closing as duplicate of #57 )", False),
     ("Dupe of https://github.com/octo-org/demo/issues/57.", False), ("#57 fixed this.", False),
     ("Fixed in 0a1b2c3d4e5f.", False), ("Fixed by #58.", True), ("Fixed in v57.", True), ("Fixed in 57 places.", True),
     ("Fixed by #57. Clear the cache.", True), ("Fixed by the new parser in #57.", True)],
)  # fmt: skip
def test_a_quote_that_names_only_what_is_told_next_to_it_says_nothing(sentence: str, *, is_informative: bool) -> None:
    assert says_something(sentence, ("#57", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567")) is is_informative


def test_words_that_go_on_with_something_are_not_quoted_at_the_closing() -> None:
    assert quote("And the second file should keep its name.") == ""
    assert quote("And the second file should keep its name.", 0) == "And the second file should keep its name."
    assert quote("But #57 keeps the name of the second file.") == "But #57 keeps the name of the second file."
    assert quote("It keeps its name now.") == "It keeps its name now."


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("已在开发分支修复这个问题，例子如下：", "已在开发分支修复这个问题"),
        ("这个选项确实去掉了，", "这个选项确实去掉了"),
        ("我们换个写法，就能正常刷新界面了：", ""),
    ],
)
def test_a_quote_in_chinese_ends_with_a_whole_clause(sentence: str, quote: str) -> None:
    assert quote_of((sentence,), None) == quote
