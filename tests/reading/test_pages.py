"""Pages split into sections, with the anchors that GitHub gives them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reading.pages import (
    MAX_EXCERPT_CHARS,
    MAX_SECTIONS,
    MarkdownSection,
    anchor_of,
    first_sentences,
    page_title,
    sections,
)
from tests.reading.linear_time import assert_linear_time

PAGE = """\
A word before.

# Set it *up*

First. Second!

## On `Linux` ##

```sh
# not a heading
make install
```

Underlined
----------

- ## in a list
> ## in a quote
<h2>in HTML</h2>

    # in code
"""


def test_a_page_is_split_at_its_headings() -> None:
    assert [(part.path, part.anchor) for part in sections(PAGE)] == [
        ((), ""),
        (("Set it up",), "set-it-up"),
        (("Set it up", "On Linux"), "on-linux"),
        (("Set it up", "Underlined"), "underlined"),
    ]
    assert [part.text.split("\n")[0] for part in sections(PAGE)] == [
        "A word before.",
        "First. Second!",
        "```sh",
        "- ## in a list",
    ]


def test_a_section_does_not_hold_its_subsections() -> None:
    assert [part.text for part in sections("# A\na\n## B\nb\n### C\nc\n## D\n")] == ["a", "b", "c", ""]
    assert sections("# A\n### C\n## D\n")[-1].path == ("A", "D")


def test_anchors_are_those_of_github() -> None:
    expected = {
        "Getting started": "getting-started",
        "What's new?": "whats-new",
        "C++ & C#": "c--c",
        "`foo_bar` - baz": "foo_bar---baz",
        "v2.3.0 (2026-05-14)": "v230-2026-05-14",
        ":rocket: Go": "rocket-go",
        "\U0001f680 Go": "-go",
        "\u26a0\ufe0f Warning": "\ufe0f-warning",
        "Профили пользователей": "профили-пользователей",
        "设置 API": "设置-api",
        "Ünïcode": "ünïcode",
        "a/b/c": "abc",
        "!?": "",
    }
    assert {heading: anchor_of(heading) for heading in expected} == expected


def test_repeated_anchors_get_a_number() -> None:
    text = "# Fix\n# Fix\n# Fix 1\n# Fix\n# Fix 1\n"
    assert [part.anchor for part in sections(text)] == ["fix", "fix-1", "fix-1-1", "fix-2", "fix-1-2"]
    assert [part.anchor for part in sections("# Fix 1\n# Fix\n# Fix\n")] == ["fix-1", "fix", "fix-2"]


def test_invisible_parts_of_a_heading_do_not_count() -> None:
    (part,) = sections("# ![logo](x.png) [Hello](https://example.com) <b>you</b> <!-- c -->\nx\n")
    assert (part.path, part.anchor) == (("Hello you",), "hello-you")


def test_a_page_is_named_by_its_first_heading_or_its_front_matter() -> None:
    expected = {
        "# Hello *you*\n": "Hello you",
        "Words.\n\nHello\n=====\n": "Hello",
        "## Second\n\n# First\n": "",
        '---\nlayout: x\ntitle: "Named"\n---\n\nWords.\n': "Named",
        "---\ntitle: Named\n---\n# Headed\n": "Headed",
        "no heading": "",
        "": "",
    }
    assert {text: page_title(text) for text in expected} == expected


def test_front_matter_is_no_section() -> None:
    assert sections("---\ntitle: Named\n---\n\nWords.\n") == (MarkdownSection((), "", "Words."),)
    assert [part.path for part in sections("Words.\n\n---\ntitle: Named\n---\n")] == [(), ("title: Named",)]


def test_an_excerpt_is_made_of_whole_sentences() -> None:
    expected = {
        "One. Two.\n\nThree.": "One. Two. Three.",
        "```\nmake   install\n```": "make install",
        "| a | b |\n|---|---|\n| 1 | 2 |\n\nWords below.": "Words below.",
        "> quoted": "",
        "x" * 300: "x" * (MAX_EXCERPT_CHARS - 1) + "…",
        f"Short. {'word ' * 100}.": "Short.",
        "": "",
    }
    assert {text: first_sentences(MarkdownSection((), "", text)) for text in expected} == expected


HOSTILE = ["[", "*", ">", "#", "`", "- ", "# \n", "---\n", "a\n=\n", "<![CDATA[", "---\na:\n", "\0\ud800", "\u202e# \n"]


@pytest.mark.slow
def test_hostile_pages_are_read_in_linear_time_with_bounded_results() -> None:
    def read(text: str) -> None:
        parts = sections(text)
        for part in parts:
            first_sentences(part)
        assert len(parts) <= MAX_SECTIONS + 1

    assert_linear_time(read, *HOSTILE)


@given(st.lists(st.sampled_from(["# A", "## B", "B\n---", "words.", "```", "> # q", "", "---", "a: b", "\r"])))
def test_no_text_of_a_page_is_lost_or_repeated(lines: list[str]) -> None:
    parts = sections("\n".join(["start", *lines]))
    texts = [" ".join([part.text, *part.path[-1:]]) for part in parts]
    assert sum(text.count("words.") for text in texts) == lines.count("words.")
    anchors = [part.anchor for part in parts if part.path]
    assert len(set(anchors)) == len(anchors)
