"""Nobody changes what is written to the branch without saying what that means for those who read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.memory.manifest import FORMAT, FORMATS, ForeignFormat, check_format
from tests.upgrades import full, shape
from tests.upgrades.make import BRANCHES, LARGEST, ROOT, made

WHAT_TO_DO = """\
What is written to the branch has another shape than tests/upgrades/shape.json:
{differences}
Does an older program that reads it lose something, or take it for something else? Then raise the format: add a line to
FORMATS in bot/memory/manifest.py, and have what reads the older one make it the newer one. Else nothing is to be
raised: an older program drops what it does not know, and this one reads the absent as nothing. In both cases note the
shape anew (python -m tests.upgrades.make --shape), say it in docs/upgrades.md, and see that
tests/upgrades/test_branches.py passes."""


def compare(found: Mapping[str, list[str]], noted: Mapping[str, list[str]]) -> None:
    lines = [
        f"  {sign} {kind} {path}"
        for sign, here, there in (("+", found, noted), ("-", noted, found))
        for kind in sorted(here)
        for path in sorted(set(here[kind]) - set(there.get(kind, ()))) or ([] if kind in there else ["(the file)"])
    ]
    if lines:
        pytest.fail(WHAT_TO_DO.format(differences="\n".join(lines)), pytrace=False)


def test_what_is_written_has_the_shape_that_was_noted(tmp_path: Path) -> None:
    noted = shape.noted()
    assert full.unset() == [], "give it a value in tests/upgrades/full.py"
    compare(shape.of_files(full.files(tmp_path / "store")), noted["all"])
    assert noted["format"] == FORMAT, "note the shape of this format: python -m tests.upgrades.make --shape"


@pytest.mark.slow
def test_the_story_is_written_in_the_shape_that_was_noted(tmp_path: Path) -> None:
    made(ROOT, tmp_path)
    compare(shape.of_bundle(tmp_path / "branch.bundle"), shape.noted()["story"])
    assert (tmp_path / "branch.bundle").stat().st_size < LARGEST
    assert (tmp_path / "forge.json").stat().st_size


def test_a_difference_is_told_with_what_is_to_be_done() -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        compare({"a.json": ["id: number"], "new.json": []}, {"a.json": ["id: str"], "old.json": []})
    told = str(caught.value)
    assert "  + a.json id: number\n  + new.json (the file)\n  - a.json id: str\n  - old.json (the file)\n" in told
    assert "raise the format" in told


def test_each_branch_that_is_kept_is_small_and_has_its_forge() -> None:
    bundles = sorted(BRANCHES.glob("*.bundle"))
    assert len(bundles) >= 4
    assert all(bundle.stat().st_size < LARGEST for bundle in bundles)
    assert all((BRANCHES / f"{bundle.stem}.forge.json.gz").is_file() for bundle in bundles)
    told = (BRANCHES / "README.md").read_text(encoding="utf-8")
    assert [bundle.stem for bundle in bundles if f"| `{bundle.stem}` |" not in told] == []


def test_the_page_about_upgrades_has_each_format_and_the_line_for_a_newer_one() -> None:
    page = (ROOT / "docs" / "upgrades.md").read_text(encoding="utf-8")
    assert [number for number in FORMATS if f"\n| {number} | " not in page] == []
    with pytest.raises(ForeignFormat) as caught:
        check_format(FORMAT + 1)
    assert f"\n{caught.value}\n" in page


TESTED = {
    "branch of one format": "upgrades/test_fleet.py test_old_and_new_runs_take_turns",
    "branch of a newer format": "upgrades/test_newer.py test_the_action_writes_nothing_and_says_nothing",
    "layout of the search index": "upgrades/test_branches.py "
    "test_an_upgrade_loses_nothing_is_told_in_one_line_and_is_made_once",
    "comments": "upgrades/test_fleet.py test_who_loses_a_push_goes_on_from_what_the_other_wrote",
    "tables of a server": "server/test_rolling_update.py "
    "test_deliveries_are_done_once_while_old_and_new_processes_share_a_database",
    "additions of a later version": "upgrades/test_additions.py "
    "test_what_a_later_version_added_stays_where_nothing_changes",
    "index of an organisation": "organisation/test_lance.py test_another_layout_is_told_and_a_rebuild_heals_it",
    "caches on a machine": "upgrades/test_side_by_side.py "
    "test_what_another_version_left_a_moment_ago_is_neither_used_nor_touched",
}
"""What two versions may share → the test of it."""


def test_each_row_of_what_old_and_new_versions_share_has_its_test() -> None:
    page = (ROOT / "docs" / "upgrades.md").read_text(encoding="utf-8")
    table = page.partition("| what they share |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE) == list(TESTED)
    for place, name in map(str.split, TESTED.values()):
        assert f"\ndef {name}(" in (ROOT / "tests" / place).read_text(encoding="utf-8"), name
