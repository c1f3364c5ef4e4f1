"""Which lines of a text were pasted."""

from bot.reading.markdown import without_pasted_lines
from tests.reading.linear_time import assert_linear_time

PASTED = [
    "> like #12 it fails",
    "Merge #494",
    "bors: Merge pull request #494 from octocat/fix",
    "Auto merge of #494 - octocat:fix, r=hubot",
    "a1b2c3d Handle the empty case (#12)",
    "* a1b2c3d4e5 Handle the empty case (#12)",
    "2024-03-01T10:00:00Z worker 3 took job #12",
    "[2024-03-01 10:00:00] job #12",
    "10:00:00.123 retry #12",
    "ERROR: job #12 failed",
    "[warn] : slot #12",
]
WRITTEN = [
    "Is this #12 again?",
    "- as in #12",
    "It was merged in #494, I think.",
    "See #12 and #13: both fail",
    "The error of #12 comes back.",
    "deadbeef",
    "",
]


def test_quotations_and_lines_of_logs_are_left_out() -> None:
    assert [line for line in PASTED if without_pasted_lines(f"Before\n{line}\nAfter") != "Before\nAfter"] == []


def test_lines_that_a_person_wrote_stay() -> None:
    assert [line for line in WRITTEN if without_pasted_lines(line) != line] == []


def test_a_very_long_line_is_read_in_linear_time() -> None:
    cases = [
        ("merge ", False), ("[", False), ("> ", True), ("a1b2c3d ", True), ("(2024-", False),
        ("x" * 81 + " merge #", False),
    ]  # fmt: skip
    for part, is_pasted in cases:
        text = part * 100_000
        assert without_pasted_lines(text) == ("" if is_pasted else text), part
        assert_linear_time(without_pasted_lines, part)
