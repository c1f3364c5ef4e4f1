"""A few kills at the points that matter most, so that the kill program itself keeps working."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.examples import share
from tests.kills.campaign import Baseline, measure_baseline, perform_kill
from tests.kills.gated_servers import ANSWERED, ARRIVES
from tests.kills.kill_stage import KillStage
from tests.kills.points import Point

PUSH = "POST /octo-org/linkbarn.git/git-receive-pack"
COMMENT = "POST /repos/octo-org/linkbarn/issues/74/comments"


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
