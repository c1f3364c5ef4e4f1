"""Our workflows and those on the pages do what they say, and none of them is left unchecked by the linters."""

from __future__ import annotations

import re
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.cli.checks import github as checkup
from bot.settings.schema import Inputs, describe, rules
from tests.acceptance.stage import BOT, Stage
from tests.docs.pages import section
from tools.snippets import ROOT, Block, blocks, complete_workflow, main, own_workflows, pages, scripts, workflows

Workflow = dict[Any, Any]
SHOWN = {name: yaml.safe_load(text) for name, text in workflows().items()}
OWN = {name: yaml.safe_load(text) for name, text in own_workflows().items()}
EXAMPLES = {
    name: workflow
    for name, workflow in SHOWN.items()
    if name.startswith(("README-", "workflows-")) and workflow["name"] in ("Precedent", "Triage")
}
"""Those that are shown as complete files."""

WORKFLOW_WORDS = re.compile(r"^\s*(?:- )?(?:jobs|steps|runs-on|uses):", re.MULTILINE)
UPLOAD = re.compile(r"actions/upload-artifact@[0-9a-f]{40}")
"""GitHub's own action, which gets no token, pinned to a commit."""

OF_PROMETHEUS = {"rule_files", "scrape_configs"}


def steps(workflow: Workflow) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def triggers(workflow: Workflow) -> dict[str, Any]:
    """The triggers of a workflow; YAML reads the key `on` as true."""
    found: dict[str, Any] = workflow[True]
    return found


def page_blocks() -> list[tuple[str, Block]]:
    return [(page.name, block) for page in pages() for block in blocks(page.read_text(encoding="utf-8"))]


# -- all of them are checked ---------------------------------------------------------------------------------------


def test_every_workflow_on_a_page_is_among_those_that_the_linters_get(tmp_path: Path) -> None:
    """And YAML that is none has only known keys."""
    sections = {each.path.partition(".")[0] for each in describe()}
    files = ("templates/words.yml", "deploy/chart/values.yaml")
    of_files = {key for file in files for key in yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))}
    shown = 0
    for page, block in page_blocks():
        is_yaml = block.language in ("yaml", "yml")
        if is_yaml and complete_workflow(block.body) is not None:
            shown += 1
        else:
            assert not WORKFLOW_WORDS.search(block.body), page
            assert not is_yaml or set(yaml.safe_load(block.body)) <= sections | of_files | OF_PROMETHEUS, page
    assert shown == len(SHOWN)
    assert {name.rpartition("-")[0] for name in SHOWN} >= {"README", "digest", "workflows"}
    main(tmp_path)
    expected = {script for name, text in (workflows() | own_workflows()).items() for script in scripts(name, text)}
    assert {path.name for path in (tmp_path / "scripts").iterdir()} == expected


def test_every_fenced_block_of_a_page_is_found() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        assert len(re.findall(r"^[ >]*(?:```|~~~)", text, re.MULTILINE)) == 2 * len(list(blocks(text))), page.name
        unfenced = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"^ {4,}(?:- )?(?:runs-on|uses): ", unfenced, re.MULTILINE), page.name


@pytest.mark.parametrize(
    "shown",
    [
        "on:\n  push:\njobs:\n  one:\n    steps: []\n",
        "jobs:\n  one:\n    steps: []\n",
        "permissions: {}\njobs:\n  one:\n    steps: []\n",
        "- uses: a/b@c\n  with:\n    d: e\n",
        "on:\n  gollum:\n",
    ],
)
def test_a_fragment_is_completed_into_a_workflow_and_kept_as_it_is(shown: str) -> None:
    completed, part = yaml.safe_load(complete_workflow(shown) or ""), yaml.safe_load(shown)
    assert {"jobs", True} <= completed.keys()
    kept_part = {key: completed[key] for key in part} if isinstance(part, dict) else steps(completed)
    assert kept_part == part


def test_only_the_trigger_issue_comment_is_exempt_from_zizmor() -> None:
    ignored = [line for text in workflows().values() for line in text.splitlines() if "zizmor: ignore" in line]
    form = re.compile(r" +issue_comment:( \{.*\})? # zizmor: ignore\[dangerous-triggers\]")
    assert ignored
    assert [line for line in ignored if not form.fullmatch(line)] == []


# -- what each of them says ----------------------------------------------------------------------------------------


def test_a_workflow_on_a_page_asks_only_for_allowed_permissions() -> None:
    allowed = {"contents": {"read", "write"}, "issues": {"read", "write"}, "actions": {"read"}, "discussions": {"read"}}
    for name, workflow in SHOWN.items():
        for job in workflow["jobs"].values():
            assert [key for key, level in job["permissions"].items() if level not in allowed.get(key, ())] == [], name


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_queues_its_runs_and_where_it_may_write_only_runs_the_action_and_keeps_its_report(name: str) -> None:
    queue = EXAMPLES[name]["concurrency"]
    group = "triage" if EXAMPLES[name]["name"] == "Triage" else "precedent"
    assert (queue["group"], queue["cancel-in-progress"]) == (group, False)
    for job in EXAMPLES[name]["jobs"].values():
        if "write" in job["permissions"].values():
            others = [step["uses"] for step in job["steps"] if "/precedent@" not in step["uses"]]
            assert [used for used in others if not UPLOAD.fullmatch(used)] == []


def test_no_page_expands_event_data_that_a_stranger_wrote() -> None:
    assert [page.name for page in pages() if "${{ github.event" in page.read_text(encoding="utf-8")] == []


def test_only_the_examples_for_github_com_have_the_longer_queue() -> None:
    page = (ROOT / "docs" / "workflows.md").read_text(encoding="utf-8")
    for part in re.split(r"^## ", page, flags=re.MULTILINE):
        for block in blocks(part):
            if block.language == "yaml" and "\njobs:" in block.body:
                queue = yaml.safe_load(block.body)["concurrency"].get("queue")
                introduction = part.partition("```yaml")[0]
                assert queue == ("max" if re.search(r"For\s+github\.com[.:]", introduction) else None), part[:40]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if EXAMPLES[name]["name"] == "Precedent"])
def test_the_doctor_finds_only_the_placeholder_in_an_example(name: str) -> None:
    action_steps, wrong = checkup.find_workflows({name: workflows()[name].encode()}, is_ours=False)
    assert wrong == []
    is_shadow = any(step.inputs.get("mode") == "summary" for step in action_steps)
    problems = {each.says for each in checkup.check_workflow(action_steps, comments=not is_shadow) if each.is_problem}
    other_problems = {each for each in problems if "OWNER is the README's placeholder" not in each}
    is_smallest = "schedule" not in triggers(EXAMPLES[name])
    assert other_problems == (
        {f"{name} has no schedule: what a lost run missed waits for the next event"} if is_smallest else set()
    )


def test_the_whole_workflow_matches_the_one_of_this_repository() -> None:
    shown, ours = SHOWN["workflows-1.yml"], OWN["precedent.yml"]
    assert {**shown["concurrency"], "queue": "max"} == ours["concurrency"]
    assert [job["permissions"] for job in ours["jobs"].values()] == [
        {"contents": "write", "issues": "write", "discussions": "read"}
    ]
    assert set(triggers(shown)["issues"]["types"]) <= set(triggers(ours)["issues"]["types"])
    assert triggers(shown)["issue_comment"] == triggers(ours)["issue_comment"]
    options = [choice for choice in rules(Inputs)["run"][0].choices if choice]
    assert triggers(shown)["workflow_dispatch"]["inputs"]["run"]["options"] == options
    assert triggers(ours)["workflow_dispatch"]["inputs"]["mode"]["options"] == options


@pytest.mark.parametrize("name", [name for name in EXAMPLES if "workflow_dispatch" in EXAMPLES[name][True]])
def test_the_inputs_of_a_manual_run_reach_the_action(name: str) -> None:
    inputs = triggers(EXAMPLES[name])["workflow_dispatch"]["inputs"]
    step = steps(EXAMPLES[name])[0]
    assert inputs.keys() >= {"run", "issue"}
    assert inputs.get("dry-run", {"type": "boolean"})["type"] == "boolean"
    assert {key: step["with"][key] for key in inputs} == {key: f"${{{{ inputs.{key} }}}}" for key in inputs}


# -- with the rights that they name --------------------------------------------------------------------------------


def job_of(name: str, job: str) -> dict[str, Any]:
    (found,) = (
        workflow["jobs"][job] for workflow in EXAMPLES.values() if workflow["jobs"].get(job, {}).get("name") == name
    )
    return dict(found)


def run_as(stage: Stage, job: dict[str, Any], number: int) -> int:
    """Run the job's step of our Action on a new issue, with a token that has only the job's permissions."""
    permissions = {"metadata": "read", **job["permissions"]}
    token = f"token-{len(stage.git.tokens)}"
    stage.github.add_token(token, BOT, permissions)
    stage.git.tokens[token] = permissions["contents"]
    action_inputs = next(step.get("with", {}) for step in job["steps"] if "/precedent" in step["uses"])
    inputs = {name: str(value).lower() for name, value in action_inputs.items() if "${{" not in str(value)}
    stage.github.clock.advance(20)
    stage.github.mark()
    return stage.act("issues", "opened", number, inputs={**inputs, "token": token})


def branches(stage: Stage) -> str:
    command = ["git", "-C", str(stage.bare), "for-each-ref", "--format=%(refname:short) %(objectname)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_find_job_only_reads_and_decides_whether_the_post_job_starts(stage: Stage) -> None:
    find, post = job_of("Look, and write nothing", "find"), job_of("Remember and answer", "post")
    assert run_as(stage, post, stage.github.open_issue("monalisa", "The first", "It is here.")) == 0
    plain = stage.github.open_issue("monalisa", "Zebra crossing", "Nobody has ever seen one.")
    before = branches(stage)
    assert run_as(stage, find, plain) == 0
    assert (stage.outputs()["context"], stage.outputs()["would-speak"]) == ("", "false")
    number = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    assert run_as(stage, find, number) == 0
    outputs = stage.outputs()
    assert (outputs["would-speak"], outputs["spoke"], outputs["matches"]) == ("true", "false", "[]")
    assert stage.github.writes == 0
    assert branches(stage) == before
    assert stage.comments(number) == []
    assert run_as(stage, post, number) == 0
    assert (stage.outputs()["spoke"], stage.outputs()["would-speak"]) == ("true", "false")
    assert len(stage.comments(number)) == 1
    assert run_as(stage, find, number) == 0
    assert stage.outputs()["would-speak"] == "false", "it stands there already"
    assert find["outputs"] == {"would-speak": "${{ steps.look.outputs.would-speak }}"}
    assert "needs.find.result != 'success' || needs.find.outputs.would-speak == 'true'" in post["if"]
    assert branches(stage) != before


@pytest.mark.slow
def test_shadow_mode_updates_memory_without_permission_to_write_issues(stage: Stage) -> None:
    shadow = deepcopy(SHOWN["workflows-1.yml"]["jobs"]["remember"])
    assert "write `issues: read` instead of `issues: write`" in " ".join(
        section("docs/workflows.md", "Shadow mode").split()
    )
    shadow["permissions"]["issues"] = "read"
    number = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    stage.github.comment(number, "octocat", "/precedent search sessions")
    assert run_as(stage, shadow, number) == 0
    assert stage.comments(number) == []
    assert "Where should sessions live?" in stage.summary.read_text(encoding="utf-8")
    assert "precedent " in branches(stage)


# -- a release -----------------------------------------------------------------------------------------------------


def test_a_release_publishes_what_it_tested_and_only_some_of_its_jobs_can_write() -> None:
    """Its tests cannot, and the major tag moves last."""
    jobs = OWN["release.yml"]["jobs"]
    assert {name: job.get("needs", []) for name, job in jobs.items() if name not in ("check", "build")} == {
        "test": ["check", "build"],
        "publish": ["check", "build", "test"],
        "tag": ["check", "publish"],
        "smoke": ["check", "tag"],
        "finish": ["check", "publish", "smoke"],
    }
    movers = [(name, step) for name, job in jobs.items() for step in job["steps"] if "release move" in str(step)]
    assert [(name, step["run"]) for name, step in movers] == [("finish", jobs["finish"]["steps"][-1]["run"])]
    levels = {name: {key for key, level in job["permissions"].items() if level != "read"} for name, job in jobs.items()}
    assert {name: permissions for name, permissions in levels.items() if permissions} == {
        "build": {"packages"},
        "publish": {"packages", "id-token", "attestations"},
        "tag": {"contents"},
        "finish": {"contents"},
    }
    assert {name for name, job in jobs.items() if job.get("environment") == "release"} == {"publish", "tag", "finish"}
    assert jobs["build"]["strategy"]["matrix"] == jobs["test"]["strategy"]["matrix"]
    build = next(step["with"] for step in jobs["build"]["steps"] if step.get("uses", "").startswith("docker/build"))
    assert ("push-by-digest=true" in build["outputs"], "tags" in build) == (True, False)
    tested = next(step["env"] for step in jobs["test"]["steps"] if "PRECEDENT_TEST_IMAGE" in step.get("env", {}))
    assert tested["PRECEDENT_TEST_IMAGE"] == "${{ needs.check.outputs.image }}@${{ env.DIGEST }}"
    index = next(step for step in jobs["publish"]["steps"] if step.get("id") == "index")
    for name, output in zip(("AMD64", "ARM64"), ("amd64", "arm64"), strict=True):
        assert index["env"][name] == f"${{{{ needs.build.outputs.{output} }}}}"
    assert "build-args" not in build
