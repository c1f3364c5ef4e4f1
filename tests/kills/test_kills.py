"""A few kills at the points that matter most, so that the kill program itself keeps working."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.examples import share
from tests.kills.__main__ import summary
from tests.kills.campaign import Baseline, measure_baseline, perform_kill
from tests.kills.gated_servers import ANSWERED, ARRIVES, Step
from tests.kills.kill_stage import KillStage
from tests.kills.points import KillResult, Point, UndisturbedRun, choose_points, place_of

SEED = 11
PUSH = "POST /octo-org/linkbarn.git/git-receive-pack"
COMMENT = "POST /repos/octo-org/linkbarn/issues/74/comments"
READ = "GET /repos/octo-org/linkbarn/issues"


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Baseline]:
    with KillStage(tmp_path_factory.mktemp("kills")) as stage:
        yield measure_baseline(stage, ["opened"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "place", "waited"),
    share(
        (
            (("", "", False), "before the first request", []),
            ((PUSH, ANSWERED, True), "between the push and the comment", ["SPEAKING"]),
            ((COMMENT, ARRIVES, False), "in the comment", []),
            ((PUSH, ARRIVES, False), "in a push", []),
            ((COMMENT, ANSWERED, True), "after the comment", []),
        ),
        5,
        first=1,
    ),
)
def test_a_killed_run_leaves_one_comment_and_a_complete_memory(
    baseline: Baseline, target: tuple[str, str, bool], place: str, waited: list[str]
) -> None:
    name, moment, soon = target
    number = baseline.undisturbed_runs["opened"].requests.index(name) + 1 if name else 0
    result = perform_kill(Point(0, "opened", number, moment, share=0.02, soon=soon), baseline)
    assert (result.faults, result.place, result.waited, result.comments) == ([], place, waited, 1)


def test_a_seed_always_gives_the_same_kills_half_of_them_spread_over_the_run() -> None:
    undisturbed_run = UndisturbedRun(2.0, (READ, PUSH, COMMENT), "", 0)
    undisturbed_runs = dict.fromkeys(("opened", "comment", "command", "first"), undisturbed_run)
    chosen = choose_points(90, SEED, undisturbed_runs)
    assert chosen == choose_points(90, SEED, undisturbed_runs) != choose_points(90, SEED + 1, undisturbed_runs)
    opened = [point.share for point in chosen if point.scenario == "opened" and not point.request]
    assert [int(share * len(opened)) for share in opened] == list(range(len(opened)))
    exact = {(point.request, point.moment) for point in chosen if point.request}
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
def test_the_place_of_a_kill_follows_from_the_requests_made_so_far(steps: list[Step], place: str) -> None:
    assert place_of(steps, UndisturbedRun(1.0, (READ, PUSH, COMMENT), "", 0)) == place


def test_a_summary_names_the_case_that_reproduces_a_violation() -> None:
    result = KillResult(Point(7, "opened"), place="in a push", faults=["at the end: two comments"])
    assert "  --seed 11 --only 7: at the end: two comments" in summary([result], SEED, 1.0)
