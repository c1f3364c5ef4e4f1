"""What a run starts: git, and nothing that was given what somebody wrote."""

from pathlib import Path

import pytest

from tests.container.engine import Engine
from tests.container.recorded import PYTHON, REAL, Recorder
from tests.container.runner import Runner
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

pytestmark = pytest.mark.container

CANARY = "kanarienvogel"
DO = f"touch /github/workspace/{CANARY}"
HOSTILE = (
    *(f"$({DO})", f"`{DO}`", f"; {DO} ;", f"&& {DO}", f"| {DO}", f"'; {DO}; '", f'"; {DO}; "', f"> /tmp/{CANARY}"),
    *(f"${{IFS}}{CANARY}", f"--upload-pack={DO}", f"-c core.sshCommand={DO}", f"ext::sh -c {DO}", f"\\\n{DO}\n"),
)


@pytest.fixture
def recorder(engine: Engine, tmp_path: Path) -> Recorder:
    (tmp_path / "recorded").mkdir()
    return Recorder(engine, tmp_path / "recorded")


def test_the_recorder_sees_a_shell_and_every_other_program_of_the_image(engine: Engine, recorder: Recorder) -> None:
    assert {"/usr/bin/dash", *REAL, *PYTHON} < set(recorder.programs)
    programs = [program for program in recorder.programs if program not in PYTHON]
    shell = f"import os, subprocess\nos.system('echo {CANARY}')\n"
    script = shell + f"for name in {programs}: subprocess.run([name, '--version'])"
    python = ["--entrypoint", "/opt/precedent/bin/python", "--network", "none"]
    ended = engine.run("-I", "-c", script, options=[*python, *recorder.options])
    assert ended.code == 0, ended.said
    found = recorder.started()
    assert [each.program for each in found] == ["python", "sh", *(Path(program).name for program in programs)]
    assert CANARY in found[1].text


def test_no_shell_is_started_and_no_program_is_given_what_somebody_wrote(runner: Runner, recorder: Recorder) -> None:
    with FakeGitHub() as github, GitServer(runner.folder / "git") as server:
        server.create("octocat/hello-world")
        first = github.open_issue("hubot", f"Session lost behind a proxy {HOSTILE[0]}", "\n".join(HOSTILE))
        github.comment(first, "octocat", f"Fixed in v2.3.0 {HOSTILE[1]}")
        github.close(first, "hubot")
        title = f"Login loops {' '.join(HOSTILE)}".replace("\n", " ")[:250]
        number = github.open_issue("octocat", title, f"It is #{first}.\n" + "\n".join(HOSTILE))
        said = (f"See #{first} {HOSTILE[2]}", f"/precedent search {' '.join(HOSTILE[:6])}")
        events: list[tuple[str, str, int | None]] = [("issues", "opened", None)]
        events += [("issue_comment", "created", github.comment(number, "octocat", text)) for text in said]
        runner.talk_to(github, server)
        for event, action, comment in events:
            github.write_event(runner.folder / "workflow/event.json", event, action, number, comment)
            ended = runner.run(event, "--network", "host", *recorder.options)
            assert ended.code == 0, ended.said
        assert github.comments_by("github-actions[bot]", number)
        assert server.pushes >= 1
        assert github.violations == []
    found = recorder.started()
    assert {each.program for each in found} == {"python", "git", "git-remote-http"}
    assert sum(each.program == "python" for each in found) == len(events), "Python starts no other Python"
    assert [each.words for each in found if CANARY in each.text or "touch" in each.text] == []
    assert not list(runner.folder.rglob(f"*{CANARY}*"))
