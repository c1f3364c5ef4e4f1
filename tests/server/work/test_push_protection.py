"""A server whose git refuses pushes: for a secret in somebody's issue, and for a rule."""

import logging

import pytest

from bot.domain.thread import Thread
from bot.github.events import Event
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from tests.acceptance.test_push_protection import HOOK, UNKNOWN
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server.harness import HISTORY_AGE, ServerHarness
from tests.server.work.test_reconcile import reading_progress, store_half_rebuild

pytestmark = pytest.mark.slow
RULES = "https://github.com/octo-org/app/rules?ref=refs%2Fheads%2Fprecedent"
UNBLOCK = "https://github.com/octo-org/app/security/secret-scanning/unblock-secret/2abc"
REFUSAL = """#!/bin/sh
cat >&2 <<END
error: GH013: Repository rule violations found for refs/heads/precedent.
Review all repository rules at {}

- {}
END
exit 1
"""


def add_hook(harness: ServerHarness, project: EventfulProject, text: str) -> None:
    hook = harness.git.folder / f"{project.repo.full_name}.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(text)
    hook.chmod(0o755)


def titles(harness: ServerHarness, project: EventfulProject, *numbers: int) -> list[str]:
    with BranchStore(str(harness.git.folder / f"{project.repo.full_name}.git"), "precedent", None) as store:
        records = Memory(store, repo=project.repo.full_name).open(numbers).records(numbers)
    return [record.title for record in records.values() if isinstance(record, Thread)]


@pytest.mark.parametrize("reading", ["the first one", "of an event", "of a rebuild"])
def test_a_secret_of_an_unknown_shape_costs_only_the_text_of_its_issue(
    harness: ServerHarness, project: EventfulProject, caplog: pytest.LogCaptureFixture, reading: str
) -> None:
    add_hook(harness, project, HOOK)
    if reading != "the first one":
        harness.ask(project)
        harness.settle()
    past = from_epoch(harness.github.clock.epoch - HISTORY_AGE) if reading == "of a rebuild" else None
    leak = project.open_issue("hubot", f"It fails with {UNKNOWN}", "As in #1.", at=past)
    with caplog.at_level(logging.INFO):
        if reading == "of a rebuild":
            store_half_rebuild(harness, project)
            harness.deliver_events(project, Event("catch-up"))
        else:
            harness.deliver_opened(project, leak)
        harness.settle()
    number = harness.ask(project)
    harness.settle()
    assert {state for state, _ in harness.states(harness.repository(project))} == {"done"}
    assert [bool(title) for title in titles(harness, project, 1, leak, number)] == [True, False, True]
    assert harness.comments(project, number)
    assert reading_progress(harness, project) is None
    note = f"#{leak} is kept without its text: the server takes something in it for a secret"
    assert note in [line for run in harness.runs() for line in run.notes]
    assert note in caplog.text


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("Commits must have verified signatures.", ("must have verified signatures", "let this token's App bypass it")),
        (f"Push cannot contain secrets\n  path: somewhere:1\n  {UNBLOCK}", (UNBLOCK, "/precedent forget")),
    ],
)
def test_a_rule_is_told_whole_after_one_push_and_work_goes_on_once_it_is_lifted(
    harness: ServerHarness, project: EventfulProject, rule: str, told: tuple[str, str]
) -> None:
    add_hook(harness, project, REFUSAL.format(RULES, rule))
    number = harness.ask(project)
    harness.settle()
    row = harness.row(project, number)
    assert (row.state, harness.git.pushes) == ("dead", 1)
    assert [part for part in (RULES, *told) if part not in row.reason] == []
    add_hook(harness, project, "#!/bin/sh\n")
    other = harness.ask(project)
    harness.settle()
    assert harness.row(project, other).state == "done"
    assert titles(harness, project, number) == ["Which session store?"]
