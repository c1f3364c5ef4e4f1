"""A handful of kills, so that the program itself stays right: each at a point where it matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples import share
from tests.kills.__main__ import summary
from tests.kills.campaign import Grounds, measure, strike_one
from tests.kills.points import Hit, Length, Point, place_of, points
from tests.kills.repository import prepare
from tests.kills.watched import ANSWERED, ARRIVES, Step

SEED = 11
PUSH = "POST /octo-org/linkbarn.git/git-receive-pack"
COMMENT = "POST /repos/octo-org/linkbarn/issues/74/comments"
READ = "GET /repos/octo-org/linkbarn/issues"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


@pytest.fixture(scope="module")
def grounds(folder: Path) -> Grounds:
    return measure(prepare(folder / "prepared"), folder, ["opened"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "place", "waited"),
    share(
        (
            (("", "", False), "before the first request", []),
            ((PUSH, ANSWERED, True), "between the push and the comment", ["SPEAKING"]),
            ((COMMENT, ARRIVES, False), "in the comment", []),
            ((PUSH, ARRIVES, False), "in a push", []),
            ((COMMENT, ANSWERED, True), "after the comment", []),
        ),
        2,
    ),
)
def test_a_killed_run_leaves_one_comment_and_a_whole_memory(
    grounds: Grounds, folder: Path, at: tuple[str, str, bool], place: str, waited: list[str]
) -> None:
    name, moment, soon = at
    number = grounds.lengths["opened"].requests.index(name) + 1 if name else 0
    hit = strike_one(Point(0, "opened", number, moment, share=0.02, soon=soon), grounds, folder)
    assert (hit.faults, hit.place, hit.waited, hit.comments) == ([], place, waited, 1)


def test_the_same_seed_gives_the_same_kills_and_half_of_them_are_spread_over_a_run() -> None:
    length = Length(2.0, (READ, PUSH, COMMENT), "", 0)
    lengths = dict.fromkeys(("opened", "comment", "command", "first"), length)
    found = points(90, SEED, lengths)
    assert found == points(90, SEED, lengths) != points(90, SEED + 1, lengths)
    opened = [point.share for point in found if point.scenario == "opened" and not point.request]
    assert [int(share * len(opened)) for share in opened] == list(range(len(opened)))
    exact = {(point.request, point.moment) for point in found if point.request}
    assert exact == {(number, moment) for number in (1, 2, 3) for moment in (ARRIVES, ANSWERED, "")}


@pytest.mark.parametrize(
    ("steps", "place"),
    [
        ([], "before the first request"),
        ([Step(READ, True)], "before the push"),
        ([Step(READ, True), Step(PUSH)], "in a push"),
        ([Step(READ, True), Step(PUSH, True)], "between the push and the comment"),
        ([Step(PUSH, True), Step(COMMENT)], "in the comment"),
        ([Step(PUSH, True), Step(COMMENT, True), Step(READ)], "after the comment"),
    ],
)
def test_the_place_of_a_kill_is_told_by_what_was_asked(steps: list[Step], place: str) -> None:
    assert place_of(steps, Length(1.0, (READ, PUSH, COMMENT), "", 0)) == place


def test_a_summary_names_the_case_that_brings_a_violation_back() -> None:
    hit = Hit(Point(7, "opened"), place="in a push", faults=["at the end: two comments"])
    assert "  --seed 11 --only 7: at the end: two comments" in summary([hit], SEED, 1.0)
