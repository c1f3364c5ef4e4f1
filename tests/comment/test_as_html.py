"""A comment as HTML: what it says is there, and nothing in it has any power."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.comment.as_html import as_html
from tests.comment.payloads import PAYLOADS

HOME = "https://github.com/octocat/hello-world"
HARMLESS = {
    *("p", "blockquote", "ul", "ol", "li", "em", "strong", "s", "table", "thead", "tbody", "tr", "th", "td"),
    *("pre", "code", "br", "hr", "a", "details", "summary", "sub", "span"),
}
PIECES = st.sampled_from(
    [*PAYLOADS, "</details>", "<details>", "<summary>", "- ", "> ", "\n\n", "  ", "```\n", f"[x]({HOME}/issues/1)"]
)


class Seen(HTMLParser):
    """What a browser would make of it: tags, addresses, text, and which elements are still open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str | None] = []
        self.other: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name == "href"]
        self.other += [f"{tag} {name}" for name, _ in attrs if (tag, name) != ("a", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.other.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.other.append(decl)

    unknown_decl = handle_pi = handle_decl


def harmless(html: str) -> None:
    seen = Seen(html)
    assert seen.tags <= HARMLESS
    assert seen.other == []
    assert [link for link in seen.links if not (link or "").startswith(f"{HOME}/")] == []


@pytest.mark.parametrize("text", PAYLOADS)
def test_nothing_that_a_stranger_writes_has_power(text: str) -> None:
    harmless(as_html(text, HOME))


@given(st.lists(PIECES | st.text(max_size=20), max_size=12).map("".join))
def test_nothing_of_many_pieces_has_power_and_what_is_folded_ends(text: str) -> None:
    html = as_html(text, HOME)
    harmless(html)
    for tag in ("details", "summary", "sub", "span", "a"):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>")


def test_a_comment_is_shown_as_github_would() -> None:
    text = f"""<!-- precedent:v1 id=action -->

**Seen before**

- [A crash]({HOME}/issues/4) · **fixed** by [that]({HOME}/commit/0dae0c9c26158d5678a12bf46bddd4515070a7ae)
  `a<b.py` costs <span>&#36;</span>5
  <details><summary>How it went</summary>

  > hubot:
  > ```
  > a < b
  > ```

  </details>

<sub>Precedent</sub>
"""
    commit = f"{HOME}/commit/0dae0c9c26158d5678a12bf46bddd4515070a7ae"
    assert as_html(text, HOME).replace("\n", "") == (
        "<p><strong>Seen before</strong></p><ul><li><p>"
        f'<a href="{HOME}/issues/4">A crash</a> · <strong>fixed</strong> by <a href="{commit}">that</a><br>'
        "<code>a&lt;b.py</code> costs <span>$</span>5</p><details><summary>How it went</summary>"
        "<blockquote><p>hubot:</p><pre><code>a &lt; b</code></pre></blockquote></details></li></ul>"
        "<p><sub>Precedent</sub></p>"
    )


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example",
        f"{HOME}.evil.example/issues/1",
        f"{HOME}/../../evil/repo/issues/1",
        f"{HOME}/issues/1/../../../evil",
        f"{HOME}/settings",
        f"{HOME}/releases/tag/v1?x=1",
        "javascript:alert(1)",
        "//evil.example/issues/1",
    ],
)
def test_a_link_that_leads_elsewhere_is_text(address: str) -> None:
    html = as_html(f"[click]({address})", HOME)
    assert Seen(html).links == []
    assert "click" in html


@pytest.mark.parametrize(
    "path", ["issues/1", "pull/2", "issues/3#issuecomment-4", "commit/abcdef1", "releases/tag/v1.0"]
)
def test_a_link_into_the_repository_leads_there(path: str) -> None:
    assert Seen(as_html(f"[here]({HOME}/{path})", HOME)).links == [f"{HOME}/{path}"]
