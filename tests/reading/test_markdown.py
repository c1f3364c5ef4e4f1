"""Markdown is read as GitHub shows it, in a time that grows with its length, and never fails."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reading import html, markdown
from bot.reading.html import TextRun
from bot.reading.markdown import MAX_CELLS, MAX_CHARS, first_paragraph, paragraphs, read, sentences
from tests.examples import examples
from tests.reading.linear_time import assert_linear_time, too_slow

REPORT = """\
### Steps to reproduce

Run `store --reset` and **wait** for it,
then look at https://docs.example/a_b.

- [ ] restart
- call <b>me</b> <!-- not this -->

> we *saw* this
> ```
> quoted code
> ```

```py
print(1)
```

    indented

| Version | 2.3 |
|---------|-----|
| OS      | any |

<details><summary>Log</summary>

inside

<pre>
raw  code
</pre>
</details>

[here](https://a.example) <a href="https://b.example">there</a> ![alt](https://c.example/i.png)
"""


def test_prose_is_what_a_reader_sees_outside_quotes_code_and_headings() -> None:
    assert read(REPORT).prose == (
        "Run store --reset and wait for it,\nthen look at https://docs.example/a_b.",
        "[ ] restart",
        "call me",
        "Version | 2.3",
        "OS | any",
        "Log",
        "inside",
        "here there",
    )


def test_code_and_quotes_are_kept_apart() -> None:
    document = read(REPORT)
    assert document.code == ("print(1)", "indented", "raw  code")
    assert document.inline_code == ("store --reset",)
    assert document.quotes == ("we saw this\n\nquoted code",)


def test_runs_are_the_text_nodes_and_link_targets_of_the_page() -> None:
    cases = [
        ("a **b** c", ["a", "b", "c"]),
        ("a <!-- x --> b", ["a", "b"]),
        ("a `x` b", ["a", "-", "b"]),
        ("<code>x</code> b", ["b"]),
        ("a [x](u) b", ["a", ">u", "b"]),
        ("a\\#b &amp; c", ["a#b & c"]),
        ("see https://a.example/x_y).", ["see", ">https://a.example/x_y", ")."]),
        ("(www.a.example/(b))", ["(", ">www.a.example/(b)", ")"]),
        ("<!--\nx\n--> after", ["after"]),
        ("<pre>\nx\n</pre>", []),
        ("<script>x</script>", ["<script>x</script>"]),
        ("one\n\ntwo", ["one", "-", "two"]),
    ]
    for text, runs in cases:
        marks = {"text": "", "link": ">", "gap": "-"}
        shown = [f"{marks[run.kind]}{run.value}".strip() for run in read(text).runs]
        assert [run for run in shown if run] in (runs, [*runs, "-"]), text


def test_an_alert_is_prose_and_a_quote_is_not() -> None:
    document = read("> [!IMPORTANT]\n> We decided to keep it.\n\n> quoted")
    assert (document.prose, document.quotes) == (("We decided to keep it.",), ("quoted",))


def test_nested_quotes_are_one_quote() -> None:
    assert read("> a\n>> b\n\nmine").quotes == ("a\n\nb",)


def test_a_paragraph_that_was_underlined_by_accident_is_prose() -> None:
    assert read("It fails.\nIt fails again.\n---").prose == ("It fails.\nIt fails again.",)
    assert read("Summary\n---\ntext").prose == ("text",)


def test_the_first_paragraph_is_prose() -> None:
    assert first_paragraph("# Title\n\n> quoted\n\n```\ncode\n```\n\nHello there.\n\nMore.") == "Hello there."
    assert first_paragraph("```\ncode\n```") == ""


def test_unclosed_elements_end_with_the_text() -> None:
    assert read("a <code>b").runs == (TextRun("text", "a "), TextRun("gap", ""))
    assert read("<blockquote>\n\na").quotes == ("a",)
    assert read("<pre>\na").code == ("a",)
    assert read("<pre>\n<b>a</b> b\n</pre>").code == ("a b",), "only its own tag ends it"


def test_broken_characters_are_replaced_and_long_texts_are_cut() -> None:
    assert read("a\0b\ud83d").prose == ("a\ufffdb\ufffd",)
    assert read("a\r\nb\rc").prose == ("a\nb\nc",)
    assert len(read("x" * (MAX_CHARS + 9)).prose[0]) == MAX_CHARS


def test_a_document_is_read_once() -> None:
    document = read("some *text*")
    assert document is read("some *text*")
    assert document._parts is document._parts


def test_sentences_end_where_a_reader_ends_them() -> None:
    expected = {
        "We use v2.3.0. It works.": ["We use v2.3.0.", "It works."],
        "See e.g. foo.py, i.e. that one. Ok": ["See e.g. foo.py, i.e. that one.", "Ok"],
        "Why? because!": ["Why?", "because!"],
        "It waits... and waits. Then... It ends.": ["It waits... and waits.", "Then...", "It ends."],
        '"Stop!" it said. (Really.) Yes.': ['"Stop!" it said.', "(Really.)", "Yes."],
        "J. Random wrote it. So did I. Done": ["J. Random wrote it.", "So did I.", "Done"],
        "1. first thing. 2nd thing": ["1. first thing.", "2nd thing"],
        "We chose No. 5. Is it no. Yes.": ["We chose No. 5.", "Is it no.", "Yes."],
        "Logs, traces, etc. are fine. Logs etc. We agreed.": [
            "Logs, traces, etc. are fine.",
            "Logs etc.",
            "We agreed.",
        ],
        "我们决定了。好的！走吧": ["我们决定了。", "好的！", "走吧"],
        "a\nb.\n\n c": ["a b.", "c"],
        "": [],
        "...": ["..."],
    }
    assert {text: sentences(text) for text in expected} == expected


@given(st.text("ab .!?\n\"')。e.g", max_size=60))
def test_sentences_lose_no_words(text: str) -> None:
    assert "".join(sentences(text)).replace(" ", "") == re.sub(r"\s", "", text)


MARKDOWN = st.text("`*_[]()<>\\|#-+=~!&;:/1a \n\t", max_size=80) | st.text(max_size=80)


@settings(max_examples=examples(400), deadline=None)
@given(MARKDOWN)
def test_no_text_makes_reading_fail(text: str) -> None:
    document = read(text)
    shown = [*document.prose, *document.code, *document.quotes, *document.inline_code]
    assert all(part.strip("\n") for part in shown)
    assert "\0" not in "".join(shown)


@settings(max_examples=examples(400), deadline=None)
@given(st.text("ab .,#1_:|[]&()!\n-", max_size=60))
def test_the_shortcut_for_plain_text_agrees_with_the_parser(text: str) -> None:
    if not markdown._MARKUP.search(text):
        plain, parsed = markdown._read_plain(text), markdown._read_markup(text)
        assert (plain.prose, plain.runs) == (parsed.prose, parsed.runs)
        assert [run for run in plain.runs if run.kind != "gap"] == [run for run in parsed.runs if run.kind != "gap"]


@given(st.text("<>/!-?a b='\"&#;x1[]CDATA", max_size=60))
def test_raw_html_is_cut_without_failing_and_without_losing_text(text: str) -> None:
    parts = list(html.pieces(text))
    before, _, _ = text.partition("<")
    if before and "&" not in before:
        assert parts[0] == html.Piece("text", before)


def test_tags_keep_their_targets_and_entities_are_decoded() -> None:
    assert list(html.pieces("<a class='x' HREF=\"https://a.example?b&amp;c\">&lt;x</A ><br/>")) == [
        html.Piece("open", "a", "https://a.example?b&c"),
        html.Piece("text", "<x"),
        html.Piece("close", "a"),
        html.Piece("open", "br"),
    ]


SHORT_ROWS = "|a" * 256 + "\n" + "|-" * 256 + "\n" + "b\n" * 256

UNITS = [
    "[", "*", "`", ">", "!", "![", "\\!", "_", "<", "(", "- ", "| ", "> - ", "1. ", "[a](", "[](<", "*a_ ",
    "**a ", "<a ",
    "a<!--", "a<![CDATA[", "<a b='", "&#", "|-|-\n", "|a\n|-\n", " - a\n", "</b>\n\n", "http://a ", "www.)",
    "~~a", "[[a]",
    "<code>", "<pre>", "<blockquote>", "<br>", "\\\n",
    "```\n", "``a` ", "*a**a", ". ", "e.g. ", "#1 ", "a\n", "\t",
]  # fmt: skip


@pytest.mark.night
@pytest.mark.slow
def test_repeated_markup_is_read_in_linear_time() -> None:
    def read_sentences(text: str) -> None:
        for paragraph in read(f"x {text}").prose:
            sentences(paragraph)

    assert_linear_time(read_sentences, *UNITS)
    assert not too_slow(read_sentences, lambda length: (f"{SHORT_ROWS}\n" * 99)[:length], (8_192, 65_536))


def test_brackets_that_are_never_closed_are_text() -> None:
    (paragraph,) = paragraphs("![" * 40 + "[a](b)")
    assert paragraph.shown == ("![" * 40 + "[a](b)",)


def test_cells_that_rows_lack_count_against_the_limit_of_a_text() -> None:
    tokens = markdown._PARSER.parse(f"{SHORT_ROWS}\n" * 3 + "The end.", {"cells": 2_000})
    assert 256 < sum(token.type in ("th_open", "td_open") for token in tokens) <= 2_000
    assert tokens[-2].content == "The end."


@pytest.mark.slow
def test_short_rows_of_wide_tables_are_filled_up_to_a_limit_and_the_rest_is_read() -> None:
    text = f"{SHORT_ROWS}\n" * 40 + "The end."
    assert sum(token.type in ("th_open", "td_open") for token in markdown._PARSER.parse(text)) <= MAX_CELLS
    assert read(text).prose[-1] == "The end."


@pytest.mark.slow
def test_a_long_table_with_full_rows_is_read_to_its_end() -> None:
    text = "a|b\n-|-\n" + "1|2\n" * (MAX_CHARS // 4 - 3) + "3|4"
    assert read(text).prose[0] == "a | b"
    assert read(text).prose[-1] == "3 | 4"


def test_only_the_first_cell_of_a_row_begins_a_line() -> None:
    assert [part.shown for part in paragraphs("a|b\n-|-\nc|d\n\ne")] == [("a",), ("c",), ("e",)]
