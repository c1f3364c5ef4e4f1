"""The preview shows what GitHub would show, and nothing that GitHub would remove."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tools.preview import PageComment, body, page

WHEN = datetime(2026, 11, 3, 19, 12, tzinfo=UTC)

HOSTILE = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=https://evil.example/x.js></SCRIPT>",
    "<iframe src='https://evil.example'></iframe>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><script>alert(2)</script></svg>",
    "<a href='javascript:alert(1)' onclick='alert(2)'>x</a>",
    "[x](javascript:alert(1)) [y](data:text/html,<script>) [z](vbscript:x)",
    "<math><mtext><style><img src onerror=alert(1)></style></mtext></math>",
    "![tracker](https://evil.example/pixel.png)",
    "<picture><source srcset='https://evil.example/a.png'><img src='https://evil.example/b.png'></picture>",
    "<video src='https://evil.example/v.mp4' autoplay></video><audio src=//evil.example/a></audio>",
    "<link rel=stylesheet href=https://evil.example/x.css><meta http-equiv=refresh content='0;https://evil.example'>",
    "<div style='background:url(https://evil.example/x)'>x</div><style>@import 'https://evil.example/x.css'</style>",
    "<form action=//evil.example><button formaction=//evil.example>x</button><input type=image src=x></form>",
    "<base href=https://evil.example><object data=https://evil.example></object><embed src=https://evil.example>",
    "</div></article></main><h1 id=post-0>not the page's heading</h1><body onload=alert(1)>",
    "<!-- --><noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "```\n</code></pre><script>alert(1)</script>\n```",
    '> [!NOTE]\n> <details ontoggle=alert(1) open><summary onclick="x">s</summary></details>',
]


class Inspector(HTMLParser):
    """Collects every start tag with its attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


FETCHING = {"src", "srcset", "style", "data", "action", "formaction", "poster", "background", "ping", "xlink:href"}
ACTIVE = {"script", "iframe", "object", "embed", "form", "base", "link", "video", "audio", "source", "button"}


def assert_harmless(html: str) -> None:
    for tag, attributes in Inspector(html).tags:
        assert tag not in ACTIVE
        assert not [name for name in attributes if name.startswith("on") or name in FETCHING], (tag, attributes)
        assert "href" not in attributes or tag == "a"
        scheme, colon, _ = (attributes.get("href") or "").partition(":")
        assert not colon or scheme in {"http", "https", "mailto"} or "/" in scheme or "#" in scheme, attributes


@pytest.mark.slow
def test_a_page_with_hostile_text_everywhere_loads_nothing() -> None:
    posts = [PageComment(text, text, WHEN, is_bot=bool(number % 2)) for number, text in enumerate(HOSTILE)]
    for title in HOSTILE:
        html = page(posts, title, 74)
        assert_harmless(html)
        inspector = Inspector(html)
        assert len(inspector.named("article")) == len(posts)
        assert [attributes.get("id") for _, attributes in inspector.tags].count("post-0") == 1
        policies = [meta["content"] for meta in inspector.named("meta") if "http-equiv" in meta]
        assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


FRAGMENTS = st.sampled_from(
    [*HOSTILE, "[", "](", "<", ">", "> ", "`", "```\n", "*", "|", "\n", "\0", "\ud800", "@a", "#1", "&#", "%"]
)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=8)), max_size=12).map("".join))
def test_no_combination_of_fragments_is_harmful(markdown: str) -> None:
    assert_harmless(body(markdown))


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("unit", ["[", "*", "`", "<div>", "- ", "@a ", "#1 ", "\ud800", "&"])
def test_a_text_of_the_maximum_length_is_shown(unit: str) -> None:
    assert body((unit * 65536)[:65536])


def test_references_and_mentions_are_linked_as_github_does() -> None:
    html = body("see #14, not `#15` nor [#16](https://example.org) nor a#17; thanks @monalisa, not me@example.org")
    targets = [link["href"] for link in Inspector(html).named("a")]
    assert targets == [
        "https://github.com/octo-org/linkbarn/issues/14",
        "https://example.org",
        "https://github.com/monalisa",
    ]


@pytest.mark.slow
def test_the_page_names_who_wrote_what() -> None:
    posts = [
        PageComment("sample-reporter", "It broke.", WHEN),
        PageComment("github-actions", "Seen before.", WHEN, is_bot=True),
        PageComment("sample-reporter", "Thanks.", WHEN),
    ]
    text = " ".join(Inspector(page(posts, "Sign-in <b>form</b>", 74)).text.split())
    assert "Sign-in <b>form</b> #74 Open" in text
    assert "sample-reporter opened Nov 3, 2026" in text
    assert "github-actions bot commented Nov 3, 2026" in text
    assert "sample-reporter Author commented Nov 3, 2026" in text
