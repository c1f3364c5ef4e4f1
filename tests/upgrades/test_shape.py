"""Nobody changes the shape of the branch without deciding what that means for the programs that read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.memory.manifest import FORMAT, FORMATS, ForeignFormat, check_format
from tests.upgrades import complete_branch, shape
from tests.upgrades.save_branch import BRANCHES, LARGEST, ROOT, play_story

WHAT_TO_DO = """\
What is written to the branch has another shape than tests/upgrades/shape.json:
{differences}
Does an older program that reads it lose something, or take it for something else? Then raise the format: add a line to
FORMATS in bot/memory/manifest.py, and have what reads the older one make it the newer one. Else nothing is to be
raised: an older program drops what it does not know, and this one reads the absent as nothing. In both cases note the
shape anew (python -m tests.upgrades.save_branch --shape), say it in docs/upgrades.md, and see that
tests/upgrades/test_branches.py passes."""


def compare(actual: Mapping[str, list[str]], noted: Mapping[str, list[str]]) -> None:
    lines = [
        f"  {sign} {kind} {path}"
        for sign, mine, other in (("+", actual, noted), ("-", noted, actual))
        for kind in sorted(mine)
        for path in sorted(set(mine[kind]) - set(other.get(kind, ()))) or ([] if kind in other else ["(the file)"])
    ]
    if lines:
        pytest.fail(WHAT_TO_DO.format(differences="\n".join(lines)), pytrace=False)


def test_the_written_branch_has_the_noted_shape(tmp_path: Path) -> None:
    noted = shape.noted()
    assert complete_branch.unset_fields() == [], "give it a value in tests/upgrades/complete_branch.py"
    compare(shape.of_files(complete_branch.files(tmp_path / "store")), noted["all"])
    assert noted["format"] == FORMAT, "note the shape of this format: python -m tests.upgrades.save_branch --shape"


@pytest.mark.slow
def test_the_branch_of_the_story_has_the_noted_shape(tmp_path: Path) -> None:
    play_story(ROOT, tmp_path)
    compare(shape.of_bundle(tmp_path / "branch.bundle"), shape.noted()["story"])
    assert (tmp_path / "branch.bundle").stat().st_size < LARGEST
    assert (tmp_path / "forge.json").stat().st_size


def test_a_difference_is_reported_with_instructions() -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        compare({"a.json": ["id: number"], "new.json": []}, {"a.json": ["id: str"], "old.json": []})
    message = str(caught.value)
    assert "  + a.json id: number\n  + new.json (the file)\n  - a.json id: str\n  - old.json (the file)\n" in message
    assert "raise the format" in message


def test_each_kept_branch_is_small_and_has_its_forge() -> None:
    bundles = sorted(BRANCHES.glob("*.bundle"))
    assert len(bundles) >= 4
    assert all(bundle.stat().st_size < LARGEST for bundle in bundles)
    assert all((BRANCHES / f"{bundle.stem}.forge.json.gz").is_file() for bundle in bundles)
    readme = (BRANCHES / "README.md").read_text(encoding="utf-8")
    assert [bundle.stem for bundle in bundles if f"| `{bundle.stem}` |" not in readme] == []


def test_the_page_about_upgrades_has_each_format_and_the_line_for_a_newer_one() -> None:
    page = (ROOT / "docs" / "upgrades.md").read_text(encoding="utf-8")
    assert [number for number in FORMATS if f"\n| {number} | " not in page] == []
    with pytest.raises(ForeignFormat) as caught:
        check_format(FORMAT + 1)
    assert f"\n{caught.value}\n" in page


TESTED = {
    "branch of one format": "upgrades/test_fleet.py test_old_and_new_runs_take_turns",
    "branch of a newer format": "upgrades/test_newer.py test_the_action_writes_nothing_and_posts_nothing",
    "layout of the search index": "upgrades/test_branches.py "
    "test_an_upgrade_loses_nothing_is_reported_in_one_line_and_happens_once",
    "comments": "upgrades/test_fleet.py test_a_run_that_loses_a_push_continues_from_what_the_other_wrote",
    "tables of a server": "server/test_rolling_update.py "
    "test_deliveries_are_done_once_while_old_and_new_processes_share_a_database",
    "additions of a later version": "upgrades/test_additions.py "
    "test_additions_of_a_later_version_stay_where_nothing_changes",
    "index of an organisation": "organisation/test_lance.py test_another_layout_is_reported_and_a_rebuild_repairs_it",
    "caches on a machine": "upgrades/test_side_by_side.py "
    "test_files_that_another_version_just_left_are_neither_used_nor_touched",
}
"""What two versions may share → its test."""


def test_everything_that_versions_share_has_its_test() -> None:
    page = (ROOT / "docs" / "upgrades.md").read_text(encoding="utf-8")
    table = page.partition("| what they share |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE) == list(TESTED)
    for file, name in map(str.split, TESTED.values()):
        assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), name
