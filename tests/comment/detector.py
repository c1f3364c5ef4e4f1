"""What GitHub would make of a comment: found on the rendered page by a parser and rules that the product does not use.

GitHub makes mentions, references, emoji and formulas from text nodes of the page, whatever escapes the source had, and
never in ``pre``, ``code`` or ``a``. The patterns here are wider than GitHub's: they also report what it
would look up and not find.
"""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import comrak

MENTION = re.compile(r"(?<![A-Za-z0-9_])@([A-Za-z0-9][A-Za-z0-9-]*)")
REFERENCES = (
    re.compile(r"(?:[A-Za-z0-9-]{1,100}/)?[\w.-]{0,100}#[0-9]+", re.ASCII),
    re.compile(r"\b(?:GH|GHSA|CVE)-[0-9A-Za-z]+", re.ASCII | re.IGNORECASE),
    re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{7,40}(?![0-9A-Za-z])", re.ASCII | re.IGNORECASE),
    re.compile(r"[\w.-]{1,100}/(?:issues|pull|commit|discussions)/[0-9a-f]+", re.ASCII | re.IGNORECASE),
)
ADDRESS = re.compile(
    r"https?://|ftp://|\bwww\.[a-z0-9]|[a-z0-9._-]{1,100}@[a-z0-9-]{1,100}\.[a-z]", re.ASCII | re.IGNORECASE
)
FORMULA = re.compile(r"\$\S[^$]*?(?<=\S)\$", re.DOTALL)
SHORTCODE = re.compile(r":(?:\+1|-1|100|[a-z][a-z0-9_+-]{0,99}):", re.IGNORECASE | re.ASCII)
"""The longest names of emoji that GitHub lists have about 45 characters."""
OPAQUE = {"a", "code", "pre", "style", "script", "tt"}
VOID = {"br", "hr", "img", "input", "wbr"}


@dataclass(frozen=True)
class Findings:
    """The contents of a comment. ``tags`` are the elements in order, each as its path (``ul/li/a``) and attributes."""

    mentions: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    formulas: list[str] = field(default_factory=list)
    shortcodes: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    text: str = ""


def to_html(markdown: str) -> str:
    """The comment as HTML, with the extensions that GitHub has and line breaks as in comments."""
    extensions = comrak.ExtensionOptions()
    for name in ("table", "strikethrough", "autolink", "tasklist", "footnotes", "alerts", "math_code", "math_dollars"):
        setattr(extensions, name, True)
    extensions.tagfilter = True
    extensions.description_lists = True
    options = comrak.RenderOptions()
    options.unsafe_ = True
    options.hardbreaks = True
    return comrak.render_markdown(markdown, extension_options=extensions, render_options=options)


def report(markdown: str) -> Findings:
    """Everything in a comment that has an effect outside it, and its structure."""
    return walk(to_html(markdown))


def walk(source: str) -> Findings:
    """The same for a rendered page."""
    walker = _Walker()
    walker.feed(source)
    walker.close()
    walker.end_text()
    return walker.findings()


class _Walker(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self._node = ""
        self._found = Findings()
        self._text: list[str] = []

    def findings(self) -> Findings:
        return Findings(**{**vars(self._found), "text": "".join(self._text)})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.end_text()
        attributes = dict(attrs)
        if tag == "span" and not attributes:
            # The documented shield of a dollar sign: it splits the text and draws nothing.
            return
        if tag == "a" and attributes.get("href"):
            self._found.links.append(attributes["href"] or "")
        if tag == "img":
            self._found.images.append(attributes.get("src") or "")
        shown = "".join(f" {name}={value}" for name, value in attrs if name != "href")
        self._found.tags.append("/".join([*self._open, tag]) + shown)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.end_text()
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._node += data

    def handle_comment(self, data: str) -> None:
        self.end_text()
        self._found.tags.append("/".join([*self._open, "!--"]))

    def end_text(self) -> None:
        """Examines the text node that ends here."""
        node, self._node = self._node, ""
        self._text.append(node)
        if OPAQUE & set(self._open):
            return
        self._found.mentions.extend(MENTION.findall(node))
        for pattern in REFERENCES:
            self._found.references.extend(pattern.findall(node))
        self._found.links.extend(ADDRESS.findall(node))
        self._found.formulas.extend(FORMULA.findall(node))
        self._found.shortcodes.extend(SHORTCODE.findall(node))


def visible(markdown: str) -> str:
    """The words that a reader sees, without our invisible characters, with white space collapsed."""
    return " ".join(report(markdown).text.replace("\u200b", "").split())
