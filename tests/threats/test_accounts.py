"""An account has the rights that GitHub reports at that moment, and no setting is an address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.settings.schema import SettingsError, describe
from bot.settings.yaml_file import load_settings
from tests.acceptance.stage import Stage, with_mentions

INSIDE = "http://169.254.169.254/latest/meta-data"
HARMLESS = {"ignore.labels", "pages.docs", "sources.sessions"}
"""Settings that are only compared with labels and file paths; nothing they name is opened."""


def test_no_setting_names_a_host() -> None:
    accepted = set()
    for each in describe():
        if each.default is None or isinstance(each.default, bool | int | float):
            continue
        section, _, name = each.path.rpartition(".")
        for value in (INSIDE, f"[{INSIDE}]", "169.254.169.254", "[169.254.169.254]"):
            lines = "".join(f"{'  ' * at}{part}:\n" for at, part in enumerate(section.split(".") if section else ()))
            text = f"{lines}{'  ' * bool(section)}{name}: {value}\n"
            try:
                load_settings(text.encode(), "x.yml")
            except SettingsError:
                continue
            accepted.add((each.path, "//" in value))
    assert {path for path, is_address in accepted if is_address} <= HARMLESS


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as stage:
        github = stage.github
        github.set_permission("octocat", "write")
        github.open_issue(
            "hubot", "Where should sessions live?", "We decided to go with PostgreSQL.", at="2025-07-15T10:00:00Z"
        )
        github.close(1, "octocat")
        with_mentions(stage)
        github.open_issue("monalisa", "Everybody is logged out", "As in #1, but worse.")
        assert stage.act("issues", "opened", 2) == 0
        assert len(stage.comments(2)) == 1
        yield stage


def answer_after_comment(stage: Stage, login: str, text: str) -> str:
    """Our comment on issue 2 after ``login`` has written ``text``."""
    stage.github.clock.advance(30)
    comment = stage.github.comment(2, login, text)
    stage.github.clock.advance(30)
    assert stage.act("issue_comment", "created", 2, comment) == 0
    return stage.comments(2)[0]


@pytest.mark.slow
def test_a_renamed_account_keeps_its_rights_and_leaves_none_behind(stage: Stage) -> None:
    """octocat, who may write, becomes octodog; a stranger takes the old name."""
    world, roles = stage.github.world, stage.github.repo.roles
    account = world.accounts.pop("octocat")
    account.login = "octodog"
    world.accounts["octodog"] = account
    roles["octodog"] = roles.pop("octocat")
    before = stage.comments(2)[0]
    assert answer_after_comment(stage, "octocat", "/precedent off") == before
    assert answer_after_comment(stage, "octodog", "/precedent off") != before
