"""A comment and a reply in each language, kept as text to be read by people who speak it."""

import os
from pathlib import Path
from typing import get_args

import pytest

from bot.comment.render import Renderer
from bot.domain.answer import Context
from bot.pipeline.commands import sentence
from bot.settings.schema import Language
from tests.comment.contexts import GITHUB, NOW
from tests.comment.gallery import GALLERY

SNAPSHOTS = Path(__file__).parent / "snapshots" / "languages"
SHOWN = ("fixed-in-a-release", "possibly-back", "reopened", "open-pull-request", "decision", "pull-requests")
REPLIES = ("help_writers", "ask", "limited", "refused", "others_left")


def text_in(language: str) -> str:
    renderer = Renderer(links=GITHUB, language=language)
    comments = [renderer.render(GALLERY[name].context, thread_id=1, now=NOW, searched=1_204).text for name in SHOWN]
    answer = "\n\n".join(sentence(name, None, renderer.words, 20) for name in REPLIES)
    reply = renderer.reply(Context(), asked="…", reply_to=1, now=NOW, searched=21, answer=answer).text
    return "\n".join([*comments, reply])


@pytest.mark.parametrize("language", [language for language in get_args(Language) if language != "auto"])
def test_the_comments_are_the_ones_in_the_snapshot(language: str) -> None:
    text, snapshot = text_in(language), SNAPSHOTS / f"{language}.md"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
