"""What the words about one hit depend on beside the hit, and the phrases that every part of a comment is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.answer import Match, Mention
from bot.comment.defang import code_span, inline, link, prose
from bot.comment.links import Links
from bot.comment.wording import PLACEHOLDER, Words
from bot.model import Kind, ThreadId

TITLE_CHARS = 120
QUOTE_CHARS = 280
NAME_CHARS = 40
PATH_CHARS = 80
DAY_CHARS = 200

Hit = Mention | Match


@dataclass(frozen=True, slots=True)
class Scene:
    """Addresses, the day, titles of other threads (raw), and the words. Every method gives harmless Markdown."""

    links: Links
    now: datetime
    titles: Mapping[ThreadId, str]
    words: Words

    def day(self, moment: datetime) -> str:
        """A calendar day in UTC."""
        return inline(self.words.day(moment), DAY_CHARS)

    def linked(self, text: str, address: str) -> str:
        """A stranger's title with a link; without one where there is no address."""
        return link(text if inline(text, TITLE_CHARS) else self.words.texts["no_title"], address, TITLE_CHARS)

    def name(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """``issue 12``, without a link."""
        return inline(self.words.numbered(thread, kind), TITLE_CHARS)

    def thread(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """The title, linked; where no link can be had, the title and the id."""
        title = self.titles.get(thread, "").strip()
        address = self.links.thread(thread, kind)
        if not title:
            return self.numbered(thread, kind)
        return self.linked(title, address) if address else f"{self.linked(title, '')} ({self.name(thread, kind)})"

    def numbered(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """``issue 12``, linked."""
        return self.linked(self.words.numbered(thread, kind), self.links.thread(thread, kind))

    def quote(self, text: str) -> str:
        """What somebody wrote, on one line in quotation marks; nothing for nothing.

        Marks like those around it become single ones in it, so that no text ends its own quotation and names a speaker.
        """
        marks = PLACEHOLDER.sub("", self.words.texts["quote"]).split()
        shown = prose(text.translate(dict.fromkeys(map(ord, "".join(marks)), "'")), QUOTE_CHARS)
        return self.words.say("quote", text=shown) if shown else ""

    def said(self, author: str | None, role: str | None, at: datetime | None, address: str) -> str:
        """`` (maintainer, 3 May 2025)``, linked to the comment; nothing where not even the author is known."""
        if author is None and role is None:
            return ""
        who = self.words.speaker(author, role)[:NAME_CHARS]
        return f" ({self.linked(self._signed(who, at), address)})"

    def _signed(self, who: str, at: datetime | None) -> str:
        return self.words.say("who_when", who=who, day=self.words.day(at)) if at else who

    def files(self, paths: tuple[str, ...]) -> str:
        """Paths as code, with commas between them."""
        return ", ".join(filter(None, (code_span(path, PATH_CHARS) for path in paths)))
