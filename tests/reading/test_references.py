"""References are found where GitHub links them, and nowhere else."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.thread import Reference
from bot.reading.references import find_references, find_title_references
from tests.examples import examples
from tests.reading.linear_time import assert_linear_time

HUB = "octo/hub"


def shorthand(references: list[Reference]) -> list[str]:
    """References in a short notation for tests: ``owner/repo#7!closes``."""
    return [
        f"{f'{r.owner}/{r.repo}' if r.owner else ''}{r.prefix or '#'}{r.number}{f'!{r.action}' if r.action else ''}"
        for r in references
    ]


def test_references_follow_githubs_grammar() -> None:
    cases = [
        # forms
        ("as in #7", "#7"),
        ("as in GH-7 and gh-8", "#7 #8"),
        ("octo/hub#7", "octo/hub#7"),
        ("mona-lisa/a.b_c-d#7", "mona-lisa/a.b_c-d#7"),
        ("https://github.com/octo/hub/issues/7", "octo/hub#7"),
        ("HTTP://www.GitHub.com/octo/hub/pull/7/files", "octo/hub#7"),
        ("<https://github.com/octo/hub/issues/7#issuecomment-1>", "octo/hub#7"),
        ("[words](https://github.com/octo/hub/issues/7)", "octo/hub#7"),
        ('<a href="https://github.com/octo/hub/pull/7">x</a>', "octo/hub#7"),
        # neighbouring characters
        ("#7, (#8) [#9]: #10.", "#7 #8 #9 #10"),
        ("a#7 _#8 9#9", ""),
        ("#7a #8_ #9é", "#9"),
        ("-#7 .#8 /#9 @#10 #11-x", "#7 #8 #9 #10 #11"),
        ("xGH-7 @GH-8 _GH-9 GH-10x", ""),
        ("**#7** *#8* ~~#9~~", "#7 #8 #9"),
        ("see&nbsp;#7 and &#35;8", "#7 #8"),
        ("fork: hubot#7", ""),
        ("a/b/c#7 /a/b#8 a//b#9", ""),
        ("-octo/hub#7 (-octo/hub#8) --octo/hub#9 .-octo/hub#10 -https://github.com/octo/hub/pull/11", "octo/hub#11"),
        ("- octo/hub#7, \u2013octo/hub#8 .octo/hub#9 a-octo/hub#10", "octo/hub#7 octo/hub#8 octo/hub#9 a-octo/hub#10"),
        ("octo-/hub#7 -/hub#8 octo/hub.git#9", ""),
        (f"{'o' * 39}/hub#7 {'o' * 40}/hub#8", f"{'o' * 39}/hub#7"),
        (f"octo/{'r' * 101}#7", ""),
        # numbers
        ("#0 #00 #07 GH-0", ""),
        ("#2147483647 #2147483648 #99999999999999999999", "#2147483647"),
        ("#\u0667 #\uff17 \uff037", ""),
        # addresses of other things
        ("https://github.com/octo/hub/issues/7x https://github.com/octo/hub/issues/", ""),
        ("https://api.github.com/octo/hub/issues/7 https://redirect.github.com/octo/hub/issues/7", ""),
        ("https://evil.example/github.com/octo/hub/issues/7", ""),
        ("https://github.com@evil.example/octo/hub/issues/7", ""),
        ("https://evil.example/#7 http://x.example/a#8", ""),
        ("https://github.com/octo/hub/commit/7 https://github.com/octo/hub/wiki/issues/7", ""),
        ("see https://github.com/octo/hub/issues/7, or (https://github.com/octo/hub/pull/8).", "octo/hub#7 octo/hub#8"),
        # where GitHub does not look
        ("`#7` ``#8 ` #9``", ""),
        ("```\n#7\n```\n\n    #8", ""),
        ("<pre>#7</pre> <code>#8</code> <!-- #9 -->", ""),
        ("[#7](https://docs.example) [x](#8)", ""),
        ("## 7", ""),
        # where GitHub looks
        ("> #7\n\n- #8\n  1. #9\n\n| #10 | x |\n|---|---|\n| y | #11 |\n\n# #12", "#7 #8 #9 #10 #11 #12"),
        ("<details><summary>#7</summary>\n\n#8\n\n</details>", "#7 #8"),
        ("text\n    #7", "#7"),
        ("\\#7", "#7"),
        # actions
        ("close #1 closes #2 closed #3", "#1!closes #2!closes #3!closes"),
        ("Fix: #1, FIXES #2; fixed:#3", "#1!closes #2!closes #3!closes"),
        ("resolve octo/hub#1 resolves GH-2", "octo/hub#1!closes #2!closes"),
        ("resolved https://github.com/octo/hub/issues/1 #2", "octo/hub#1!closes #2"),
        ("fixing #1, prefix #2, /close #3, hot-fix #4, fix for #5", "#1 #2 #3 #4 #5"),
        ("fixes #1, #2 and #3", "#1!closes #2 #3"),
        ("fixes\n\n#1", "#1"),
        ("fixes `x` #1", "#1"),
        ("**Fixes** #1", "#1!closes"),
        ("Duplicate of #1. duplicate  of: octo/hub#2", "#1!duplicate octo/hub#2!duplicate"),
        ("Duplicate of [the other](https://github.com/octo/hub/issues/1)", "octo/hub#1!duplicate"),
        ("duplicate #1, not a duplicate of #2, isn't a duplicate of #3", "#1 #2 #3"),
        # each once
        ("#1 #2 #1", "#1 #2"),
        ("#1 octo/hub#1 Octo/Hub#1", "#1 octo/hub#1"),
        ("#1, fixes #1, duplicate of #1, fixes #1", "#1!duplicate"),
        ("", ""),
    ]
    assert [text for text, expected in cases if " ".join(shorthand(find_references(text))) != expected] == []


def test_the_issue_itself_is_left_out_however_it_is_written() -> None:
    texts = [
        "#7",
        "GH-7",
        "octo/hub#7",
        "OCTO/Hub#7",
        "https://github.com/octo/HUB/issues/7#issuecomment-5",
        "duplicate of #7",
    ]
    for text in texts:
        assert find_references(f"{text} and #8", repo=HUB, number=7) == [Reference(8)], text
        assert find_title_references(f"{text} and #8", repo=HUB, number=7) == [Reference(8)], text


def test_references_to_this_repository_have_no_owner_when_it_is_known() -> None:
    text = "octo/hub#1, https://github.com/octo/hub/pull/2, octo/hub2#3, #1"
    assert shorthand(find_references(text, repo=HUB)) == ["#1", "#2", "octo/hub2#3"]


def test_the_same_number_elsewhere_is_not_the_issue_itself() -> None:
    assert shorthand(find_references("octo/other#7 JIRA-7", repo=HUB, number=7, autolinks=["JIRA-"])) == [
        "octo/other#7",
        "JIRA-7",
    ]


def test_other_hosts_count_only_when_they_are_named() -> None:
    text = "https://code.example:8443/octo/hub/issues/1 https://github.com/octo/hub/issues/2"
    assert shorthand(find_references(text)) == ["octo/hub#2"]
    assert shorthand(find_references(text, hosts=("Code.example:8443",))) == ["octo/hub#1"]
    assert find_references(text, hosts=()) == []


def test_configured_prefixes_are_external_references() -> None:
    references = find_references("fixes JIRA-5, xJIRA-6, a/JIRA-7, a.b-8, `JIRA-9`", autolinks=["JIRA-", "a.b-", ""])
    assert references[0] == Reference(5, action="closes", kind="external", prefix="JIRA-")
    assert shorthand(references) == ["JIRA-5!closes", "a.b-8"]


def test_a_title_is_not_markdown() -> None:
    assert shorthand(find_title_references("`#1` fixes #2 <b>#3 https://evil.example/#4")) == ["#1", "#2!closes", "#3"]


@pytest.mark.shared
def test_all_unambiguous_shared_cases_are_read_as_labelled(shared: Path) -> None:
    cases = [json.loads(line) for line in (shared / "reference_cases.jsonl").read_text("utf-8").splitlines()]
    doubtful = []
    for case in cases:
        actual = [
            _row(r) for r in find_references(case["text"], autolinks=case.get("context", {}).get("autolinks", []))
        ]
        if case.get("ambiguous"):
            doubtful.append(f"{case['id']}: {'alike' if actual == case['refs'] else actual}")
        else:
            assert actual == case["refs"], case["id"]
    print("\n".join(doubtful))


def _row(reference: Reference) -> dict[str, object]:
    row: dict[str, object] = {
        "owner": reference.owner,
        "repo": reference.repo,
        "number": reference.number,
        "action": reference.action,
    }
    return row | ({"kind": reference.kind, "prefix": reference.prefix} if reference.kind else {})


PIECES = st.sampled_from([
    "#1", "#", "GH-2", "octo/hub#3", "/", "@", "fixes ", "duplicate of ", "`", "[", "](", ")", "<", ">", "<!--", "-->",
    "https://github.com/octo/hub/issues/4", "www.", "\\", "&#35;5", "*", "_", "\0", "\ud800", "1" * 20, " ", "a",
    "\n", "|",
])  # fmt: skip


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(PIECES, max_size=10).map("".join) | st.text(max_size=60))
def test_any_text_gives_well_formed_references(text: str) -> None:
    for references in (find_references(text, repo=HUB, number=1), find_title_references(text, repo=HUB, number=1)):
        keys = [(str(r.owner).lower(), str(r.repo).lower(), r.number) for r in references]
        assert len(set(keys)) == len(keys)
        assert all(0 < r.number < 2**31 and (r.owner is None) == (r.repo is None) for r in references)
        assert not any(r.number == 1 and r.owner is None for r in references)


@settings(max_examples=examples(200), deadline=None)
@given(st.text("abc .,()*_>-\n", max_size=30), st.integers(1, 2**31 - 1), st.text(" .,()", min_size=1, max_size=3))
def test_a_number_after_a_space_is_found_in_any_prose(before: str, number: int, after: str) -> None:
    assert number in [r.number for r in find_references(f"x {before.strip()} #{number}{after}")]


UNITS = [
    "#1", "#1 ", "a/a#1 ", "a/", "a-", "GH-1 ", "9", "#9", "fix ", "duplicate of ", "not a ", "/issues/",
    "`#1", "&#35;1",
    "github.com/a/a/issues/", "https://github.com/a/a/issues/1 ", "[#1](", "<a href=#1>", "\\#1", "A-1", "http://",
]  # fmt: skip


@pytest.mark.slow
def test_hostile_text_takes_linear_time() -> None:
    assert_linear_time(lambda text: find_references(f"{text} #1", repo="a/a", autolinks=["A-"]), *UNITS)
    assert_linear_time(lambda text: find_title_references(f"{text} #1", repo="a/a"), *UNITS)


def test_the_build_number_of_a_kernel_is_no_reference() -> None:
    for line in (
        "Linux host 3.11.6-200.fc19 #1 SMP Wed",
        "3.8.0-25-generic #37-Ubuntu SMP",
        "(#4 SMP PREEMPT)",
        "#9 PREEMPT",
    ):
        assert find_references(line) == [], line
    assert [reference.number for reference in find_references("See #1: SMP. And #2, SMP, and #3 and SMP")] == [1, 2, 3]
