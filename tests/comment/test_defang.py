"""Foreign text stays text: whatever a stranger writes, our comment keeps its shape and touches nobody."""

import re
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.comment.clean_text import truncate, visible_text
from bot.comment.defang import ZERO_WIDTH_SPACE, block, code_span, hazards, inline, link, prose
from tests.comment.detector import report, visible, walk
from tests.comment.payloads import PAYLOADS
from tests.examples import examples, share
from tests.reading.linear_time import assert_linear_time
from tests.threats.corpus import DEFINITIONS

ADDRESS = "https://redirect.github.com/octo/hub/issues/7"

SYNTAX = "`*_[]()<>\\$|#@:-+=~!&;^1a \n"
PIECES = st.sampled_from([*PAYLOADS, *SYNTAX, "\n\n", "word", "#1", "@a"])
HOSTILE = st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=60) | st.text(SYNTAX, max_size=40)


def test_no_text_defines_anything_wherever_it_is_placed() -> None:
    cases = ["", "- ", "1. ", "> ", "- > ", "| a |\n|---|\n| ", "   ", "word\n", "# "]
    for before in cases:
        expected = report(f"{before}[words]({ADDRESS}) and words")
        for text, words in product(DEFINITIONS, ("and {inline}", "{prose}")):
            shown = f"{before}{link(text, ADDRESS)} {words.format(inline=inline(text, 99), prose=prose(text, 99))}"
            findings = report(f"{shown}\n\n[x] and [^x] and [^1]")
            assert [tag for tag in findings.tags if tag in expected.tags][: len(expected.tags)] == expected.tags, ascii(
                text
            )
            assert findings.links == [ADDRESS], ascii(text)
            assert not any("sup" in tag or "section" in tag for tag in findings.tags), ascii(text)


def comment(title: str, quote: str, words: str) -> str:
    return f"""<!-- marker -->
**Seen before**

- {link(title, ADDRESS)} · **fixed**
  “{inline(quote, 200)}” (maintainer)
  <details><summary>How {inline(words, 80)} went</summary>

  end

  </details>

{inline(words, 200) or "nothing"}

so
{inline(quote, 200) or "nothing"}

<sub>footer</sub>
"""


def transcript(text: str, prefix: str = "") -> str:
    body = "\n".join(f"{prefix}{line}".rstrip() for line in block(text, 2000).split("\n"))
    return f"""<!-- marker -->

- item

<details><summary>How it went</summary>

{body}

</details>

<sub>footer</sub>
"""


def frame_of(markdown: str) -> list[str]:
    """The elements of a comment that are not part of its transcript."""
    tags = [tag.replace("/blockquote", "") for tag in report(markdown).tags if not tag.endswith("blockquote")]
    return [tag for tag in tags if tag not in INSIDE]


PLAIN = report(comment("title", "quote", "words"))
FRAME = ["!--", "ul", "ul/li", "details", "details/summary", "p", "p/sub"]
INSIDE = {"details/p", "details/p/br", "details/pre", "details/pre/code"}


def has_no_effect(markdown: str) -> bool:
    findings = report(markdown)
    reached = (findings.mentions, findings.references, findings.images, findings.formulas, findings.shortcodes)
    return reached == ([], [], [], [], []) and set(findings.links) <= {ADDRESS}


def test_the_detector_sees_what_an_unescaped_comment_would_do() -> None:
    text = "@octocat #1 octo/hub#2 GH-3 deadbeef1 [x](u) https://evil.example ![](i) $x$ :tada: <h1>x"
    findings = report(text)
    assert findings.mentions == ["octocat"]
    assert findings.references == ["#1", "octo/hub#2", "GH-3", "deadbeef1"]
    assert findings.links == ["u", "https://evil.example"]
    assert (findings.images, findings.shortcodes) == (["i"], [":tada:"])
    assert findings.tags == ["p", "p/a", "p/a", "p/img src=i alt=", "p/span data-math-style=inline", "p/h1"]
    assert walk("<p>$x$</p>").formulas == ["$x$"]
    assert report("`@octocat #1` <code>@octocat</code> \\@hubot").mentions == ["hubot"]


def test_a_payload_in_running_text_changes_nothing_but_words() -> None:
    for payload in PAYLOADS:
        shown = comment(payload, payload, payload)
        assert has_no_effect(shown), payload
        assert report(shown).tags == PLAIN.tags, payload


def test_a_payload_in_a_transcript_stays_in_its_place() -> None:
    for prefix in ["", "  ", "> "]:
        for payload in PAYLOADS:
            shown = transcript(payload, prefix)
            assert has_no_effect(shown), payload
            assert frame_of(shown) == FRAME, payload


def test_a_payload_as_code_is_one_code_span() -> None:
    for payload in PAYLOADS:
        findings = report(f"see {code_span(payload, 200)} here")
        assert findings.tags in (["p", "p/code"], ["p"]), payload
        assert (findings.mentions, findings.references, findings.links, findings.images) == ([], [], [], []), payload


@settings(max_examples=examples(400), deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_text_changes_the_shape_of_the_comment(title: str, quote: str, words: str) -> None:
    shown = comment(title, quote, words)
    assert has_no_effect(shown)
    assert report(shown).tags == PLAIN.tags


@settings(max_examples=examples(400), deadline=None)
@given(HOSTILE, st.sampled_from(["", "  ", "> ", "  > "]))
@example("```\n@octocat\n```\n```\n</details>", "")
def test_no_transcript_leaves_its_place(text: str, prefix: str) -> None:
    shown = transcript(text, prefix)
    assert has_no_effect(shown)
    assert frame_of(shown) == FRAME


def test_a_payload_in_a_quote_is_words_or_code() -> None:
    for form in ["{0}", "`{0}`", "{0}`a`{0}", "` `{0}` `"]:
        for payload in PAYLOADS:
            findings = report(f"so “{prose(form.format(payload), 300)}” it is")
            assert (findings.mentions, findings.references, findings.links, findings.images) == ([], [], [], []), (
                payload
            )
            assert set(findings.tags) <= {"p", "p/code"}, payload


@settings(max_examples=examples(300), deadline=None)
@given(HOSTILE | st.lists(st.sampled_from(["`", "`` ", " ", *PAYLOADS]), max_size=9).map("".join))
def test_no_quote_is_more_than_words_and_code(text: str) -> None:
    findings = report(f"{prose(text, 300)} so it is")
    assert (findings.mentions, findings.references, findings.links, findings.images) == ([], [], [], [])
    assert (findings.formulas, findings.shortcodes) == ([], [])
    assert set(findings.tags) <= {"p", "p/code"}


@given(HOSTILE)
def test_a_text_without_a_hazard_goes_out_as_it_is(text: str) -> None:
    line = " ".join(visible_text(text).split())
    assert (inline(line, 500) == line) == (not list(hazards(line)))


@settings(max_examples=examples(300), deadline=None)
@given(HOSTILE, st.integers(1, 60))
def test_code_spans_contain_any_text(text: str, limit: int) -> None:
    assert report(f"see {code_span(text, limit)} here").tags in (["p", "p/code"], ["p"])


@settings(max_examples=examples(300), deadline=None)
@given(HOSTILE)
def test_raw_html_around_a_text_is_safe_without_markdown(text: str) -> None:
    assert walk(
        f"<summary>{inline(text, 200)}</summary><p>{block(f'x{text}'.split('```')[0].split('~~~')[0], 200)}</p>"
    ).tags == [
        "summary",
        "p",
    ]


@settings(max_examples=examples(300), deadline=None)
@given(HOSTILE)
def test_an_email_reply_that_quotes_the_source_pings_nobody(text: str) -> None:
    source = "\n".join([inline(text, 500), block(text, 500), code_span(text, 500), link(text, ADDRESS)])
    assert not re.search(r"(?<![A-Za-z0-9_])@[A-Za-z0-9]", source)


@settings(max_examples=examples(300), deadline=None)
@given(HOSTILE, st.integers(1, 50))
def test_truncated_text_fits_the_limit_and_inline_text_has_no_line_break(text: str, limit: int) -> None:
    assert len(truncate(visible_text(text), limit)) <= max(limit, 1)
    assert "\n" not in inline(text, limit)
    assert "\n" not in code_span(text, limit)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_readers_see_the_words_as_they_were_typed(text: str) -> None:
    assert visible(f"x {inline(text, 100)}") == " ".join(f"x {text}".split())


def test_only_what_must_be_is_escaped() -> None:
    expected = {
        "Login loops after upgrade to v2.3.0": "Login loops after upgrade to v2.3.0",
        "panic in read_line() at src/main.rs:12": "panic in read_line() at src/main.rs:12",
        r"C:\Users\octocat is not found, 3 > 2": r"C:\Users\octocat is not found, 3 > 2",
        "ping @octocat in #12": f"ping @{ZERO_WIDTH_SPACE}octocat in #{ZERO_WIDTH_SPACE}12",
        "Vec<T> & friends": "Vec&lt;T> & friends",
        "&lt;b&gt; and R&D;": "&amp;lt;b&amp;gt; and R&amp;D;",
        "Duplicate of #3": f"Duplicate{ZERO_WIDTH_SPACE} of #{ZERO_WIDTH_SPACE}3",
        "at 10:20:30 it cost 5 $ each": "at 10:20:30 it cost 5 $ each",
        "  many \n lines\t ": "many lines",
        "1. first": r"1\. first",
        "1234567. first": f"123456{ZERO_WIDTH_SPACE}7\\. first",
        "日本語 #12 の修正": f"日本語 #{ZERO_WIDTH_SPACE}12 の修正",
        "👩‍👩‍👧 and 1️⃣ and می‌خواهم": "👩‍👩‍👧 and 1️⃣ and می‌خواهم",
    }
    assert {text: inline(text, 200) for text in expected} == expected


def test_fenced_code_stays_code_and_loses_its_language() -> None:
    assert block("Try this:\n```mermaid\ngraph TD\n````\ndone", 200) == "Try this:\n\n```\ngraph TD\n```\n\ndone"


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    assert block("````\n```\nx\n```\n````", 200) == "\n````\n```\nx\n```\n````\n"


def test_a_text_cut_within_code_ends_the_code() -> None:
    assert block("```\n" + "word " * 50, 30) == "\n```\nword word word word word…\n```\n"


def test_paragraphs_stay_apart_and_lines_together() -> None:
    assert block("\n\none\ntwo\n\n\n\n> three\n", 200) == "one\ntwo\n\n&gt; three"


def test_a_cut_never_halves_what_a_reader_sees_as_one_character() -> None:
    family = "👩‍👩‍👧"
    assert truncate(f"ab{family}", 5) == "ab…"
    assert truncate("a🇩🇪🇫🇷b", 5) == "a🇩🇪…"
    assert truncate("e\u0301e\u0301e\u0301", 4) == "e\u0301…"
    assert truncate("some words here", 12) == "some words…"


def test_an_address_that_is_not_http_is_not_linked() -> None:
    urls = [
        "javascript:alert(1)",
        "//evil.example",
        "https://",
        "https://a@evil.example/",
        "data:text/html,x",
        "",
        "http://[",
        "/x",
    ]
    assert [url for url in urls if link("title", url) != "title"] == []


@given(st.text(max_size=40))
def test_no_address_ends_its_own_link(tail: str) -> None:
    findings = report(link("title", f"https://docs.example/{tail}"))
    assert findings.tags == ["p", "p/a"]


@pytest.mark.slow
def test_hostile_text_is_defanged_in_linear_time() -> None:
    units = [*"[*`_<@$\\&\u0301\u200d", "#1", "a" * 7 + " ", ":a", "~~~\n", "```\n"]
    for shown in (inline, prose, block, code_span):
        assert_linear_time(lambda text, shown=shown: shown(text, 65_536), *share(units))
