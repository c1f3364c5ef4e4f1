"""A run starts git and nothing else, and no program gets text that somebody wrote."""

from pathlib import Path

import pytest

from tests.container.engine import Engine
from tests.container.program_recorder import PYTHON, REAL, Recorder
from tests.container.runner import Runner
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

pytestmark = pytest.mark.container

CANARY = "kanarienvogel"
COMMAND = f"touch /github/workspace/{CANARY}"
HOSTILE = (
    *(
        f"$({COMMAND})",
        f"`{COMMAND}`",
        f"; {COMMAND} ;",
        f"&& {COMMAND}",
        f"| {COMMAND}",
        f"'; {COMMAND}; '",
        f'"; {COMMAND}; "',
        f"> /tmp/{CANARY}",
    ),
    *(
        f"${{IFS}}{CANARY}",
        f"--upload-pack={COMMAND}",
        f"-c core.sshCommand={COMMAND}",
        f"ext::sh -c {COMMAND}",
        f"\\\n{COMMAND}\n",
    ),
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
    result = engine.run("-I", "-c", script, options=[*python, *recorder.options])
    assert result.code == 0, result.output
    started = recorder.started_programs()
    assert [each.program for each in started] == ["python", "sh", *(Path(program).name for program in programs)]
    assert CANARY in started[1].text


def test_a_run_starts_no_shell_and_passes_no_text_that_somebody_wrote_to_a_program(
    runner: Runner, recorder: Recorder
) -> None:
    with FakeGitHub() as github, GitServer(runner.folder / "git") as server:
        server.create("octocat/hello-world")
        first = github.open_issue("hubot", f"Session lost behind a proxy {HOSTILE[0]}", "\n".join(HOSTILE))
        github.comment(first, "octocat", f"Fixed in v2.3.0 {HOSTILE[1]}")
        github.close(first, "hubot")
        title = f"Login loops {' '.join(HOSTILE)}".replace("\n", " ")[:250]
        number = github.open_issue("octocat", title, f"It is #{first}.\n" + "\n".join(HOSTILE))
        comments = (f"See #{first} {HOSTILE[2]}", f"/precedent search {' '.join(HOSTILE[:6])}")
        events: list[tuple[str, str, int | None]] = [("issues", "opened", None)]
        events += [("issue_comment", "created", github.comment(number, "octocat", text)) for text in comments]
        runner.connect(github, server)
        for event, action, comment in events:
            github.write_event(runner.folder / "workflow/event.json", event, action, number, comment)
            result = runner.run(event, "--network", "host", *recorder.options)
            assert result.code == 0, result.output
        assert github.comments_by("github-actions[bot]", number)
        assert server.pushes >= 1
        assert github.violations == []
    started = recorder.started_programs()
    assert {each.program for each in started} == {"python", "git", "git-remote-http"}
    assert sum(each.program == "python" for each in started) == len(events), "Python starts no other Python"
    assert [each.words for each in started if CANARY in each.text or "touch" in each.text] == []
    assert not list(runner.folder.rglob(f"*{CANARY}*"))
