"""A comment on a page looks as on GitHub, and nothing in it becomes HTML but what we write."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.comment.shown import shown_html
from tests.comment.detector import to_html, walk
from tests.examples import examples
from tests.threats.published_places import answered, conversation_by

SNAPSHOTS = sorted(Path(__file__).parent.glob("snapshots/*.md"))
OURS = {"a", "blockquote", "br", "code", "del", "details", "em", "hr", "li", "ol", "p", "pre", "span", "strong", "sub"}
OURS |= {"summary", "table", "tbody", "td", "th", "thead", "tr", "ul"}
ATTRIBUTES = {("a", "href"), ("a", "rel"), ("ol", "start"), ("p", "class")}
VOID = {"br", "hr"}
HOSTILE = [
    "<script>alert(1)</script>",
    "</details></article><h1>not the page's heading</h1>",
    "<details open ontoggle=alert(1)><summary onclick=x>s</summary></details>",
    "<DETAILS><sub class=x>s</SUB>",
    "</sub></sub><sub><sub>",
    "a\n\n</details>\n\n</summary>\n\n<details>\n\n> <details><summary>x\n\n- </details>",
    "<summary>alone</summary>\n\n<details><summary><details><sub><summary>",
    "<img src=x onerror=alert(1)> ![tracker](https://evil.example/pixel.png)",
    "[x](javascript:alert(1)) [y](data:text/html,<script>) [z](vbscript:x) <javascript:alert(1)> [w](//evil.example)",
    "[x][y] [![i](https://evil.example/i)](ftp://evil.example)\n\n[y]: javascript:alert(1) '\"onclick=\"x'",
    '[x](https://example.org/"onclick="alert(1)\' "title")',
    "<!-- a --><script>b</script><!-- c\n\nd --> <!--> e",
    '```"><script>\n</code></pre><script>alert(1)</script>\n```',
    "&lt;script&gt; &#60;b&#62; &amp;lt;",
    "<sub>\n&lt;img src=x&gt; &#x3c;i>\n</sub>",
    "| a | <b> |\n|:-:|---|\n| `<i>` | </table> |",
    "\0\ud800",
]


class Inspector(HTMLParser):
    """Collects elements and text; each element must be allowed, and closed where it should be."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[dict[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in OURS
        assert {(tag, name) for name, _ in attrs} <= ATTRIBUTES
        self.tags.append(tag)
        self.links += [dict(attrs)] * (tag == "a")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_harmless(markdown: str) -> None:
    for link in Inspector(shown_html(markdown)).links:
        assert str(link["href"]).lower().startswith(("http://", "https://"))
        assert link["rel"] == "noopener noreferrer nofollow"


@pytest.mark.parametrize("file", SNAPSHOTS, ids=lambda file: file.stem)
def test_a_comment_has_the_elements_and_words_that_github_shows(file: Path) -> None:
    markdown = file.read_text(encoding="utf-8")
    ours, githubs = walk(shown_html(markdown)), walk(to_html(markdown))
    tags = [tag.partition(" rel=")[0] for tag in ours.tags]
    assert tags == [tag for tag in githubs.tags if tag != "!--"]
    assert ours.text.split() == githubs.text.split()
    assert ours.links == githubs.links


def test_our_footer_and_what_is_folded_are_elements_and_the_marker_is_gone() -> None:
    item = "- a\n  <details><summary>Show</summary>\n\n  > x\n\n  </details>\n"
    markdown = f"<!-- precedent:v1 id=action -->\n\n**Seen before**\n\n{item}\n<sub>A bot.</sub>\n"
    html = "".join(shown_html(markdown).splitlines())
    assert html == (
        "<p><strong>Seen before</strong></p><ul><li><p>a</p><details><summary>Show</summary>"
        "<blockquote><p>x</p></blockquote></details></li></ul><p><sub>A bot.</sub></p>"
    )


def test_headings_stay_out_of_the_outline_of_the_page() -> None:
    assert shown_html("# One *big*\n\nTwo\n---\n") == (
        '<p class="heading">One <em>big</em></p>\n<p class="heading">Two</p>\n'
    )


def test_an_image_is_its_description_and_a_link_to_elsewhere_its_words() -> None:
    markdown = "![a <b>](https://evil.example/x.png) [one](javascript:alert`1`) [two](mailto:a@example.org) [three](#x)"
    assert shown_html(markdown) == "<p>a &lt;b&gt; one two three</p>\n".replace(
        "one", "[one](javascript:alert<code>1</code>)"
    )


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_raw_markdown_of_a_stranger_becomes_no_element_but_ours(text: str) -> None:
    for markdown in (
        text,
        f"- x\n  {text}\n\n<sub>y</sub>",
        f"<details><summary>{text}</summary>\n\n{text}\n\n</details>",
    ):
        assert_harmless(markdown)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([*HOSTILE, "\n", "\n\n", "> ", "- ", "<sub>", "</details>", "`"]), st.text(max_size=8)
        ),
        max_size=10,
    ).map("".join)
)
def test_no_mixture_is_harmful(markdown: str) -> None:
    assert_harmless(markdown)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_hostile_title_or_quotation_in_a_comment_is_words(text: str) -> None:
    """Elements are those of a harmless comment, and the words are there as they were written."""
    usual = Inspector(shown_html(answered(title="words"))).tags
    assert Inspector(shown_html(answered(title=text))).tags == usual
    quoted = Inspector(shown_html(answered(conversation=conversation_by("<script>alert(1)</script> </details>"))))
    assert "<script>alert(1)</script> </details>" in quoted.text


def test_a_title_of_brackets_takes_no_link_away() -> None:
    html = shown_html(answered(title="[" * 100))
    assert f">{'[' * 100}</a>" in html


@pytest.mark.parametrize("unit", ["[", "*", "`", "<!--", "<details>", "<sub>", "- ", "> ", "&#60;", "</sub>", "\\\\["])
def test_a_text_of_the_maximum_length_takes_seconds_at_most(unit: str) -> None:
    started = time.monotonic()
    Inspector(shown_html((unit * 65_536)[:65_536]))
    assert time.monotonic() - started < 10
