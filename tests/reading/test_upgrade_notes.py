"""What a release says about upgrading is found by its heading."""

from __future__ import annotations

from bot.reading.pages import upgrade_note
from tests.reading.linear_time import assert_linear_time


def test_the_section_about_upgrading_is_quoted() -> None:
    headings = [
        "## Upgrading",
        "### Upgrade notes",
        "# ⚠️ BREAKING CHANGES",
        "Migration guide\n---",
        "## How to migrate",
        "## Breaking",
    ]
    for heading in headings:
        body = (
            f"Faster than ever.\n\n{heading}\n\nDelete the old files. Then start again.\n\n## Fixes\n\n- The clock.\n"
        )
        assert upgrade_note(body) == "Delete the old files. Then start again.", heading


def test_without_such_a_section_nothing_is_quoted() -> None:
    bodies = [
        "",
        "Upgrading is easy.",
        "## Fixes\n\n- A breaking change was undone.",
        "```\n## Upgrading\n\nDelete the old files.\n```",
        "> ## Upgrading\n> Delete the old files.",
        "## Upgrading\n\n## Fixes\n\nThe clock.",
        "## Unbreakable\n\nAs before.",
        "## Breaking changes\n\nNone.",
        "## Breaking changes\n\n- _None_",
        "## Breaking changes\n\nN/A",
        "## Breaking changes\n\nn/a.",
        "## Migrations\n\nNo migrations in this release.",
        "## Upgrading\n\nNothing to do.",
        "## Upgrading\n\nNot needed.",
        "## No breaking changes\n\nThe clock is right again.",
        "## 🎉 No breaking changes\n\nThe clock is right again.",
    ]
    assert [body for body in bodies if upgrade_note(body) != ""] == []


def test_words_that_only_begin_like_none_are_quoted() -> None:
    texts = ["Note the new file.", "No longer runs on Node 16.", "None of the old keys work."]
    assert [text for text in texts if upgrade_note(f"## Upgrading\n\n{text}") != text] == []


def test_after_a_section_that_says_none_the_next_one_is_quoted() -> None:
    assert upgrade_note("## Breaking changes\n\nNone.\n\n## Upgrading\n\nStart again.") == "Start again."


def test_finding_an_upgrade_note_takes_linear_time() -> None:
    pieces = ["## Upgrading\n", "# break", "breaking ", "#", "\n> ## Upgrade\n", "upgrad"]
    assert_linear_time(upgrade_note, *pieces)
