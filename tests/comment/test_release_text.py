"""What a reporter reads about a release, whatever its tag and text are."""

from __future__ import annotations

import re

from bot.comment.links import CommentLinks
from bot.comment.outcome_text import ReleaseFacts
from bot.comment.render import Renderer
from bot.domain.post import notice_slot
from tests.comment.contexts import GITHUB, NOW
from tests.comment.detector import report
from tests.comment.payloads import PAYLOADS

SLOT = notice_slot("#57")


def notice(facts: ReleaseFacts, links: CommentLinks = GITHUB, **texts: str) -> str:
    overrides = {"words.yml": "".join(f'{name}: "{text}"\n' for name, text in texts.items())} if texts else None
    rendered = Renderer(overrides=overrides, links=links).notice(facts, slot=SLOT, now=NOW)
    assert rendered.problem is None
    return rendered.text


def test_a_notice_names_the_release_the_original_and_the_upgrade_note() -> None:
    text = notice(ReleaseFacts("v2.3.0-rc.1", is_early=True, original=12, upgrade_note='Run "migrate" first.'))
    home = "https://redirect.github.com/octo-org/hello-world"
    assert text == (
        f"<!-- precedent:v1 id=action {SLOT.replace(':', '=')} -->\n\n"
        f"This was closed as a duplicate of [issue 12]({home}/issues/12), which is fixed."
        f" Released in the pre-release [v2.3.0-rc.1]({home}/releases/tag/v2.3.0-rc.1).\n\n"
        "Upgrade note: “Run 'migrate' first.”\n\n"
        "<sub>Precedent, a bot, wrote this. To silence it here, comment `/precedent off`</sub>\n"
    )


def test_a_notice_names_no_commands_where_they_are_off() -> None:
    rendered = Renderer(links=GITHUB, commands=False).notice(ReleaseFacts("v2.3.0"), slot=SLOT, now=NOW)
    assert rendered.text.endswith("<sub>Precedent, a bot, wrote this.</sub>\n")


def test_a_repository_may_use_its_own_words_for_a_notice() -> None:
    text = notice(ReleaseFacts("v2.3.0"), notice_released="Behoben ab {release}.")
    assert "Behoben ab [v2.3.0](" in text


def test_neither_a_tag_nor_a_release_text_does_more_than_show_words() -> None:
    for payload in PAYLOADS:
        text = notice(ReleaseFacts(payload, original=12, upgrade_note=payload))
        assert text.startswith("<!-- precedent:v1 id=action notice="), payload
        findings = report(text)
        assert (findings.mentions, findings.references, findings.images, findings.shortcodes) == ([], [], [], []), (
            payload
        )
        assert all(
            address.startswith("https://redirect.github.com/octo-org/hello-world/") for address in findings.links
        ), payload
        assert not re.search(
            r"^\W*(?:duplicate of|fix(?:es)?|closes?)\b", text.partition("\n")[2], re.IGNORECASE | re.MULTILINE
        ), payload
