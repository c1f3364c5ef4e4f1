"""Which numbers of a text a person typed as references: the table of forms."""

import pytest

from bot.reading.references import find_references, find_title_references
from bot.reading.typed_numbers import without_pasted_lines
from tests.reading.linear_time import assert_linear_time

REFERENCES = """
see #3 | fixes #3 | issue #3 | PR #3 and #4 | task #3 | problem #3 | request #4 | feature #7 | bug #3 | - #12
(#12) | this blocks #12 | it causes #12 | tracks #12 | please test #12 | to test #12 I changed it
we could use #12 | the fix #12
#12 again | #12: the parser | #12 and #13 (both open) in one | #12 was closed (by mistake) in May | the crash of #4
Related to #1 and #888, see also #777. | This is #1 again | a workaround (#12)
in color, see #333 | > like #12 it fails
#123456 | ALSO SEE #12 | WIP #12 | Note: #12 | Warning: this breaks #12 | Error in #12 | It was merged in #494, I think.
"""
ORDINALS = """
step #2 | steps #1-#4 | attempt #3 worked | option #1 or #2 | question #4 | the comment #3 | bad argument #1 to 'foo'
OWASP #3 | OWASP #3 and #8 | OWASP #3, #4 and #8 | CWE #79 | test #5 failed | Test #3: parser | job #12
build #345 failed | worker #3 died | GPU #1 | #3 of 5 | the #1 reason | my #1 request | apt #4 | 12 Main St #4
"""
COLOURS = """
color: #333; | the colour #123456 | background: #222 | border: 1px solid #333; | fill="#333" | text-color is #444
"""
MACHINE_CODE = """
add x8, x8, #3 | ldr x0, [sp, #16] | stp x29, x30, [sp, #-16]! | lsl w1, w1, #2 | svc #0 | tbz w0, #3, #4
"""
PASTED = [
    "Merge #494",
    "bors: Merge pull request #494 from octocat/fix",
    "Auto merge of #494 - octocat:fix, r=hubot",
    "a1b2c3d Handle the empty case (#12)",
    "* a1b2c3d4e5 Handle the empty case (#12)",
    "2024-03-01T10:00:00Z worker took #12",
    "[2024-03-01 10:00:00] took #12",
    "10:00:00.123 retry of #12",
    "ERROR: no #12",
    "[warn] : no #12",
    "#8 0x0000558 in foo ()",
    "#0  main () at a.c:3",
    "#10 foo (a=1) at x.c:12",
    "#1 /srv/app/index.php(12): App->run()",
    "#1 [internal function]: foo()",
    "#2 {main}",
    "#0      main (file:///x.dart:3:5)",
    "#8 [2/5] RUN make",
    "#9 DONE 0.3s",
    "@@ -1,3 +1,4 @@\n-see #4\n+see #5",
]
WRITTEN = [
    "Is this #12 again?",
    "- as in #12",
    "See #12 and #13: both fail",
    "The error of #12 is back.",
    "deadbeef",
    "",
]


def forms(table: str) -> list[str]:
    return [form.strip() for line in table.strip().split("\n") for form in line.split(" | ")]


def test_what_a_person_typed_as_a_reference_is_one() -> None:
    assert [form for form in forms(REFERENCES) if not find_references(form)] == []


@pytest.mark.parametrize("table", [ORDINALS, COLOURS, MACHINE_CODE], ids=["ordinals", "colours", "machine code"])
def test_other_numbers_are_none_in_a_text_or_a_title(table: str) -> None:
    assert [form for form in forms(table) if find_references(form) or find_title_references(form)] == []


def test_a_number_after_an_ordinal_is_one_again() -> None:
    assert [each.number for each in find_references("Step #2 of #12 fails, and step #3, see #14.")] == [12, 14]
    assert [each.number for each in find_references("Test #1\n#12")] == [12]


def test_pasted_lines_are_left_out() -> None:
    assert [line for line in PASTED if without_pasted_lines(f"Before\n{line}\n") != "Before\n"] == []
    assert [line for line in PASTED if find_references(f"Before\n\n{line}\n")] == []


def test_lines_that_a_person_wrote_stay() -> None:
    assert [line for line in WRITTEN if without_pasted_lines(line) != line] == []


@pytest.mark.slow
def test_very_long_lines_are_read_in_linear_time() -> None:
    pieces = [
        "merge ",
        "[",
        "a1b2c3d ",
        "(2024-",
        "#1 ",
        "#1, ",
        "step ",
        "#8 foo (",
        "@@ -1 +1 @@\n+",
        "x0, #1, ",
        "color ",
    ]
    assert_linear_time(without_pasted_lines, *pieces)
    assert_linear_time(find_references, *(f"{piece}#2 " for piece in pieces))
