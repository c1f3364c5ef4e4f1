"""Our workflows and those that the pages show are what they say they are, and none of them is left unchecked."""

from __future__ import annotations

import re
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.cli.checks import github as checkup
from bot.settings.schema import INPUTS, Inputs, describe, rules
from tests.acceptance.stage import BOT, Stage
from tests.docs.pages import section
from tools.snippets import ROOT, Block, _label, blocks, main, own, pages, scripts, whole, workflows

Workflow = dict[Any, Any]
PAGE = ROOT / "docs" / "workflows.md"
SHOWN = {name: yaml.safe_load(text) for name, text in workflows().items()}
OWN = {name: yaml.safe_load(text) for name, text in own().items()}
EXAMPLES = {
    name: told
    for name, told in SHOWN.items()
    if name.startswith(("README-", "workflows-")) and told["name"] in ("Precedent", "Triage")
}
"""Those that are shown as a whole file."""

WORKFLOW_WORDS = re.compile(r"^\s*(?:- )?(?:jobs|steps|runs-on|uses):", re.MULTILINE)


def steps(told: Workflow) -> list[dict[str, Any]]:
    return [step for job in told["jobs"].values() for step in job["steps"]]


def triggers(told: Workflow) -> dict[str, Any]:
    """YAML reads the key `on` as true."""
    found: dict[str, Any] = told[True]
    return found


def page_blocks() -> list[tuple[str, Block]]:
    return [(page.name, block) for page in pages() for block in blocks(page.read_text(encoding="utf-8"))]


# -- all of them are checked ---------------------------------------------------------------------------------------


def test_workflows_are_shown_where_a_reader_looks_for_them() -> None:
    assert {name.rpartition("-")[0] for name in SHOWN} >= {"README", "getting-started", "workflows"}
    assert len([name for name in SHOWN if name.startswith("workflows-")]) >= 4


def test_no_block_that_looks_like_a_workflow_is_left_unchecked() -> None:
    forgotten = [
        (page, block.body)
        for page, block in page_blocks()
        if WORKFLOW_WORDS.search(block.body) and (block.language not in ("yaml", "yml") or whole(block.body) is None)
    ]
    assert forgotten == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_fence_of_a_page_is_seen(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    marks = re.findall(r"^[ >]*(?:```|~~~)", text, re.MULTILINE)
    assert len(marks) == 2 * len(list(blocks(text)))
    assert not re.search(
        r"^ {4,}(?:- )?(?:runs-on|uses): ",
        re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL),
        re.MULTILINE,
    )


OF_PROMETHEUS = {"rule_files", "scrape_configs"}


def test_yaml_that_is_no_workflow_is_settings_or_words_or_for_what_runs_the_server() -> None:
    sections = {each.path.partition(".")[0] for each in describe()}
    words = set(yaml.safe_load((ROOT / "templates" / "words.yml").read_text(encoding="utf-8")))
    of_chart = set(yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text(encoding="utf-8")))
    known = sections | words | of_chart | OF_PROMETHEUS
    for page, block in page_blocks():
        if block.language in ("yaml", "yml") and whole(block.body) is None:
            assert set(yaml.safe_load(block.body)) <= known, page


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
def test_a_part_is_made_whole_and_stays_what_it_is(shown: str) -> None:
    made, part = yaml.safe_load(whole(shown) or ""), yaml.safe_load(shown)
    assert {"jobs", True} <= made.keys()
    kept = {key: made[key] for key in part} if isinstance(part, dict) else steps(made)
    assert kept == part


def test_no_two_pages_write_over_each_other() -> None:
    shown = [block for _, block in page_blocks() if block.language in ("yaml", "yml") and whole(block.body)]
    assert len(shown) == len(SHOWN)
    assert len({_label(page) for page in pages()}) == len(pages())


def test_settings_are_no_workflow() -> None:
    assert whole("semantic:\n  model: /models\n") is None


def test_only_what_a_person_wrote_is_ignored_by_name(tmp_path: Path) -> None:
    ignored = [line for text in workflows().values() for line in text.splitlines() if "zizmor: ignore" in line]
    assert {line.split("#")[0].strip() for line in ignored} == {"issue_comment:"}
    assert all(line.endswith("# zizmor: ignore[dangerous-triggers]") for line in ignored)


def test_the_scripts_of_all_steps_are_written_as_the_runner_starts_them(tmp_path: Path) -> None:
    main(tmp_path)
    written = {path.name for path in (tmp_path / "scripts").iterdir()}
    expected = [script for name, text in (workflows() | own()).items() for script in scripts(name, text)]
    assert len(expected) == len(written) > 10
    assert written == set(expected)


# -- what each of them says ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHOWN)
def test_each_permission_is_one_that_it_needs(name: str) -> None:
    allowed = {"contents": ("read", "write"), "issues": ("read", "write"), "actions": ("read",)}
    allowed["discussions"] = ("read",)
    for job in SHOWN[name]["jobs"].values():
        for permission, level in job["permissions"].items():
            assert level in allowed[permission]


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_runs_beside_the_action_has_no_right_to_write(name: str) -> None:
    for job in EXAMPLES[name]["jobs"].values():
        if "write" in job["permissions"].values():
            assert [step for step in job["steps"] if "precedent" not in step.get("uses", "")] == []


@pytest.mark.parametrize("name", SHOWN)
def test_a_workflow_gives_the_action_only_inputs_that_it_has(name: str) -> None:
    found = [step for step in steps(SHOWN[name]) if "/precedent" in step.get("uses", "")]
    assert found or name.startswith("pages-")
    for step in found:
        assert set(step.get("with", {})) <= set(INPUTS)
    assert all("${{" not in step.get("run", "") for step in steps(SHOWN[name]))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_page_expands_what_a_stranger_wrote(page: Path) -> None:
    assert "${{ github.event" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_runs_stand_in_one_queue_and_none_is_cut_short(name: str) -> None:
    group = EXAMPLES[name]["concurrency"]
    assert group["cancel-in-progress"] is False
    assert group["group"] == ("triage" if EXAMPLES[name]["name"] == "Triage" else "precedent")


def test_the_examples_for_github_com_have_the_longer_queue_and_no_other() -> None:
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE):
        for block in blocks(part):
            if block.language == "yaml" and "\njobs:" in block.body:
                queue = yaml.safe_load(block.body)["concurrency"].get("queue")
                said = part.partition("```yaml")[0]
                assert queue == ("max" if re.search(r"For\s+github\.com[.:]", said) else None), part[:40]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if EXAMPLES[name]["name"] == "Precedent"])
def test_the_doctor_finds_nothing_in_an_example_but_the_placeholder(name: str) -> None:
    found, wrong = checkup.find_workflows({name: workflows()[name].encode()}, is_ours=False)
    assert wrong == []
    is_shadow = any(step.inputs.get("mode") == "summary" for step in found)
    said = {each.says for each in checkup.check_workflow(found, comments=not is_shadow) if each.is_problem}
    left = {each for each in said if "OWNER is the README's placeholder" not in each}
    is_smallest = "schedule" not in triggers(EXAMPLES[name])
    assert left == (
        {f"{name} has no schedule: what a lost run missed waits for the next event"} if is_smallest else set()
    )


def test_the_workflow_of_the_readme_does_what_the_one_of_this_repository_does() -> None:
    shown, ours = SHOWN["README-1.yml"], OWN["precedent.yml"]
    assert {**shown["concurrency"], "queue": "max"} == ours["concurrency"]
    assert set(triggers(shown)["issues"]["types"]) <= set(triggers(ours)["issues"]["types"])
    assert triggers(shown)["issue_comment"] == triggers(ours)["issue_comment"]
    options = [choice for choice in rules(Inputs)["run"][0].choices if choice]
    assert triggers(shown)["workflow_dispatch"]["inputs"]["run"]["options"] == options
    assert triggers(ours)["workflow_dispatch"]["inputs"]["mode"]["options"] == options


@pytest.mark.parametrize("name", [name for name in EXAMPLES if "workflow_dispatch" in EXAMPLES[name][True]])
def test_what_is_asked_of_who_starts_a_run_by_hand_reaches_the_action(name: str) -> None:
    asked = triggers(EXAMPLES[name])["workflow_dispatch"]["inputs"]
    (step,) = steps(EXAMPLES[name])
    assert asked.keys() >= {"run", "issue"}
    assert asked.get("dry-run", {"type": "boolean"})["type"] == "boolean"
    assert {one: step["with"][one] for one in asked} == {one: f"${{{{ inputs.{one} }}}}" for one in asked}


# -- with the rights that they name --------------------------------------------------------------------------------


def job_of(name: str, job: str) -> dict[str, Any]:
    (found,) = (told["jobs"][job] for told in EXAMPLES.values() if told["jobs"].get(job, {}).get("name") == name)
    return dict(found)


def run_as(stage: Stage, job: dict[str, Any], number: int) -> int:
    """Run the job's one step of ours on a new issue, with a token that may do what the job says and no more."""
    permissions = {"metadata": "read", **job["permissions"]}
    token = f"token-{len(stage.git.tokens)}"
    stage.github.add_token(token, BOT, permissions)
    stage.git.tokens[token] = permissions["contents"]
    given = next(step.get("with", {}) for step in job["steps"] if "/precedent" in step["uses"])
    inputs = {one: str(value).lower() for one, value in given.items() if "${{" not in str(value)}
    stage.github.clock.advance(20)
    stage.github.mark()
    return stage.act("issues", "opened", number, inputs={**inputs, "token": token})


def branches(stage: Stage) -> str:
    command = ["git", "-C", str(stage.bare), "for-each-ref", "--format=%(refname:short) %(objectname)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_of_two_jobs_the_one_that_finds_reads_only_and_tells_whether_the_other_is_to_start(stage: Stage) -> None:
    find, post = job_of("Look, and write nothing", "find"), job_of("Remember and answer", "post")
    assert run_as(stage, post, stage.github.open_issue("monalisa", "The first", "It is here.")) == 0
    plain = stage.github.open_issue("monalisa", "Zebra crossing", "Nobody has ever seen one.")
    before = branches(stage)
    assert run_as(stage, find, plain) == 0
    assert (stage.outputs()["context"], stage.outputs()["would-speak"]) == ("", "false")
    number = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    assert run_as(stage, find, number) == 0
    told = stage.outputs()
    assert (told["would-speak"], told["spoke"], told["matches"]) == ("true", "false", "[]")
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
def test_shadow_mode_remembers_and_needs_no_right_to_write_issues(stage: Stage) -> None:
    shadow = deepcopy(SHOWN["README-1.yml"]["jobs"]["remember"])
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


def test_what_a_release_pushes_is_what_it_tested_and_nothing_that_writes_runs_the_tests() -> None:
    jobs = OWN["release.yml"]["jobs"]
    build = next(step["with"] for step in jobs["build"]["steps"] if step.get("uses", "").startswith("docker/build"))
    assert "push-by-digest=true" in build["outputs"]
    assert "tags" not in build
    assert jobs["build"]["strategy"]["matrix"] == jobs["test"]["strategy"]["matrix"]
    assert set(jobs["test"]["permissions"].values()) == {"read"}
    tested = next(step["env"] for step in jobs["test"]["steps"] if "PRECEDENT_TEST_IMAGE" in step.get("env", {}))
    assert tested["PRECEDENT_TEST_IMAGE"] == "${{ needs.check.outputs.image }}@${{ env.DIGEST }}"
    index = next(step for step in jobs["publish"]["steps"] if step.get("id") == "index")
    names = {"AMD64": "amd64-0", "ARM64": "arm64-0", "SEMANTIC_AMD64": "amd64-1", "SEMANTIC_ARM64": "arm64-1"}
    built = {name: f"${{{{ needs.build.outputs.{output} }}}}" for name, output in names.items()}
    assert {name: index["env"][name] for name in names} == built
    assert set(jobs["build"]["outputs"]) == set(names.values())
    assert build["build-args"] == "SEMANTIC=${{ matrix.semantic }}"
    assert "imagetools create" in index["run"]


def test_the_tag_that_most_users_name_moves_last() -> None:
    jobs = OWN["release.yml"]["jobs"]
    order = {name: job.get("needs", []) for name, job in jobs.items()}
    assert order["test"] == ["check", "build"]
    assert order["publish"] == ["check", "build", "test"]
    assert order["tag"] == ["check", "publish"]
    assert order["smoke"] == ["check", "tag"]
    assert order["finish"] == ["check", "publish", "smoke"]
    said = [step.get("run", "") for step in jobs["finish"]["steps"]]
    assert "gh release create" in said[1]
    assert "tools.release move" in said[2]
    assert [
        name for name, job in jobs.items() for step in job["steps"] if "tools.release move" in step.get("run", "")
    ] == ["finish"]


def test_who_may_write_in_a_release_waits_for_its_environment_and_can_write_one_thing() -> None:
    jobs = OWN["release.yml"]["jobs"]
    writers = {
        name: {one for one, level in job["permissions"].items() if level == "write"} for name, job in jobs.items()
    }
    assert {name: what for name, what in writers.items() if what} == {
        "build": {"packages"},
        "publish": {"packages", "id-token", "attestations"},
        "tag": {"contents"},
        "finish": {"contents"},
    }
    assert {name for name, job in jobs.items() if job.get("environment") == "release"} == {"publish", "tag", "finish"}
