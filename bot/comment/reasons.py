"""Why a thread was found, in the words of the catalogue: what recall says in English is read again."""

from __future__ import annotations

import re

from bot.comment.defang import code_span, inline
from bot.comment.scene import Scene

REASON_CHARS = 80
MAX_REASONS = 4
MAX_PARTS = 9

_KNOWN = {
    "same error ": "why_error",
    "same file ": "why_file",
    "both name ": "why_names",
    "both speak of ": "why_words",
}
_TWO_NAMES = re.compile(r"(`[^`]{1,400}`) and (`[^`]{1,400}`)")


def why(reasons: tuple[str, ...], shown: tuple[str, ...], scene: Scene) -> str:
    """At most four reasons, with commas between them. Files that are ``shown`` beside them are not named again."""
    return ", ".join(filter(None, (_reason(reason, shown, scene) for reason in reasons[:MAX_REASONS])))


def _reason(reason: str, shown: tuple[str, ...], scene: Scene) -> str:
    if reason.removeprefix("same file ").strip("`") in shown:
        return scene.words.texts["why_file_shown"]
    if reason == "same text":
        return scene.words.texts["why_text"]
    for beginning, name in _KNOWN.items():
        if reason.startswith(beginning):
            return scene.words.say(name, what=_named(reason.removeprefix(beginning), scene))
    return _shown(reason)


def _named(text: str, scene: Scene) -> str:
    if two := _TWO_NAMES.fullmatch(text):
        return scene.words.say("and", first=_shown(two[1]), second=_shown(two[2]))
    return _shown(text)


def _shown(text: str) -> str:
    """Foreign words in plain text; what stands between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return inline(text, REASON_CHARS)
    shown = ""
    for index, part in enumerate(parts[:MAX_PARTS]):
        if part.strip():
            is_code = index % 2 == 1
            space = " " if shown and (is_code or not part.startswith(",")) else ""
            shown += space + (code_span if is_code else inline)(part.strip(), REASON_CHARS)
    return shown
