"""Releases in a real repository: what is tagged, what is moved, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from bot import __version__
from tests.docs.pages import FENCE, section
from tools import release
from tools.address import WORKFLOW

ROOT = Path(__file__).resolve().parents[1]
ONE, OTHER, THIRD, FOURTH = (f"sha256:{digit * 64}" for digit in "1234")
IMAGE = "registry.example.org/octocat/precedent"
CHECK = ("--registry", "registry.example.org", "--repository", "OctoCat/Precedent", "--ref", "refs/heads/main")
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=octocat", "-c", "user.email=octocat@example.org", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def checkout(remote: Path, folder: Path) -> Path:
    """A checkout as the runner has it: one commit and no tags."""
    git(remote, "clone", "--quiet", "--depth=1", "--no-tags", "--branch=main", f"file://{remote}", str(folder))
    return folder


def develop(folder: Path, version: str) -> None:
    """Push a commit to main that is ready to be released as this version."""
    (folder / "bot" / "__init__.py").write_text(f'"""The bot."""\n\n__version__ = "{version}"\n', encoding="utf-8")
    with (folder / "CHANGELOG.md").open("a", encoding="utf-8") as changelog:
        changelog.write(f"\n## {version} (2026-12-01)\n\nWhat is new in {version}.\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", f"Ready for {version}")
    git(folder, "push", "--quiet", "origin", "HEAD:main")


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `remote` copies."""
    folder = tmp_path_factory.mktemp("released")
    bare, work = folder / "remote.git", folder / "work"
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(folder, "clone", "--quiet", str(bare), str(work))
    git(work, "remote", "set-url", "origin", "../remote.git")
    for name in ("bot", "tools", "templates"):
        (work / name).mkdir()
    shutil.copy(ROOT / "tools" / "release.py", work / "tools")
    shutil.copy(ROOT / "tools" / "address.py", work / "tools")
    (work / WORKFLOW).write_text("      - uses: octocat/precedent@v1\n", encoding="utf-8")
    (work / "action.yml").write_text(ACTION, encoding="utf-8")
    (work / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\nSoon.\n", encoding="utf-8")
    develop(work, "1.2.3")
    return folder


@pytest.fixture
def remote(repositories: Path, tmp_path: Path) -> Path:
    """A bare repository with one commit on main, of version 1.2.3; `work` next to it is a clone."""
    shutil.copytree(repositories, tmp_path, dirs_exist_ok=True)
    return tmp_path / "remote.git"


@pytest.fixture
def runner(remote: Path, tmp_path: Path) -> Path:
    """The checkout in which the release runs."""
    return checkout(remote, tmp_path / "runner")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs one part of a release as the workflow does; returns its exit code and output."""

    def run_release(folder: Path, *words: str) -> tuple[int, str]:
        code = release.main(list(words), folder)
        output = capsys.readouterr()
        return code, output.out + output.err

    return run_release


Run = Callable[..., tuple[int, str]]


def tag(run: Run, folder: Path, version: str = "1.2.3", digest: str = ONE) -> tuple[int, str]:
    return run(folder, "tag", "--version", version, "--image", IMAGE, "--digest", digest)


def move(run: Run, folder: Path, version: str = "1.2.3", digest: str = ONE) -> tuple[int, str]:
    return run(folder, "move", "--version", version, "--image", IMAGE, "--digest", digest)


def refs(remote: Path) -> dict[str, str]:
    rows = [row.split() for row in git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()]
    return dict(map(tuple, rows))


def test_a_release_tags_main_with_one_changed_line_and_moves_the_major_tag_last(
    remote: Path, runner: Path, run: Run
) -> None:
    before = refs(remote)
    code, output = run(runner, "check", "--version", "1.2.3", *CHECK)
    assert (code, output) == (0, f"image={IMAGE}\ntag=v1.2.3\ndigest=\n")
    assert run(runner, "notes", "--version", "1.2.3") == (0, "What is new in 1.2.3.\n")
    assert tag(run, runner)[0] == 0
    assert refs(remote).keys() == {"refs/heads/main", "refs/tags/v1.2.3"}
    assert move(run, runner) == (0, "v1 is at v1.2.3 now\n")
    after = refs(remote)
    assert after["refs/heads/main"] == before["refs/heads/main"] == git(remote, "rev-parse", "v1.2.3^")
    assert after["refs/tags/v1"] == after["refs/tags/v1.2.3"]
    assert git(remote, "diff", "--name-only", "main", "v1.2.3").splitlines() == ["action.yml"]
    changed = git(remote, "diff", "--unified=0", "main", "v1.2.3").splitlines()[-2:]
    assert changed == ["-  image: Dockerfile", f"+  image: docker://{IMAGE}@{ONE}"]
    action = yaml.safe_load(git(remote, "show", "v1.2.3:action.yml"))
    assert action["runs"] == {"using": "docker", "image": f"docker://{IMAGE}@{ONE}"}
    assert git(runner, "status", "--porcelain") == ""
    assert git(remote, "show", "--no-patch", "--format=%an|%s", "v1.2.3") == "github-actions[bot]|Release v1.2.3"


@pytest.mark.slow
@pytest.mark.parametrize("died_after", ["nothing", "tag", "move"])
def test_a_second_run_only_finishes_what_the_first_one_left_undone(
    remote: Path, tmp_path: Path, run: Run, died_after: str
) -> None:
    first = checkout(remote, tmp_path / "first")
    if died_after != "nothing":
        tag(run, first)
    if died_after == "move":
        move(run, first)
    before = refs(remote)
    second = checkout(remote, tmp_path / "second")
    _, output = run(second, "check", "--version", "1.2.3", *CHECK)
    assert output.endswith(f"digest={ONE if died_after != 'nothing' else ''}\n")
    assert tag(run, second)[0] == 0
    assert move(run, second)[0] == 0
    after = refs(remote)
    assert before.items() <= after.items()
    assert after["refs/tags/v1"] == after["refs/tags/v1.2.3"]


@pytest.mark.slow
def test_a_tag_with_another_image_or_commit_is_never_replaced(
    remote: Path, runner: Path, tmp_path: Path, run: Run
) -> None:
    tag(run, runner)
    before = refs(remote)
    code, output = tag(run, runner, digest=OTHER)
    assert code == 1
    assert "v1.2.3 is there already with the image sha256:111" in output
    assert refs(remote) == before
    develop(tmp_path / "work", "1.2.3")
    before = refs(remote)
    later = checkout(remote, tmp_path / "later")
    for code, output in (run(later, "check", "--version", "1.2.3", *CHECK), tag(run, later)):
        assert code == 1
        assert output == "the tag v1.2.3 is there already and is not of this commit: raise the version on main\n"
    assert refs(remote) == before


def test_a_tag_that_somebody_else_pushed_is_refused(runner: Path, tmp_path: Path, run: Run) -> None:
    git(tmp_path / "work", "push", "--quiet", "origin", "HEAD:refs/tags/v1.2.3")
    assert tag(run, runner)[0] == 1


@pytest.mark.slow
def test_the_major_tag_never_moves_to_an_older_version(remote: Path, tmp_path: Path, run: Run) -> None:
    folder = checkout(remote, tmp_path / "runner")
    tag(run, folder)
    move(run, folder)
    for version in ("1.10.0", "2.0.0"):
        develop(tmp_path / "work", version)
        newer = checkout(remote, tmp_path / version)
        tag(run, newer, version)
        move(run, newer, version)
    assert move(run, folder) == (0, "v1 is left to v1.10.0, which is later than v1.2.3\n")
    after = refs(remote)
    assert after["refs/tags/v1"] == after["refs/tags/v1.10.0"]
    assert after["refs/tags/v2"] == after["refs/tags/v2.0.0"]


@pytest.mark.slow
def test_a_release_is_undone_as_the_page_says(remote: Path, runner: Path, tmp_path: Path, run: Run) -> None:
    tag(run, runner)
    move(run, runner)
    develop(tmp_path / "work", "1.3.0")
    newer = checkout(remote, tmp_path / "newer")
    tag(run, newer, "1.3.0")
    move(run, newer, "1.3.0")
    ((_, commands),) = FENCE.findall(section("CONTRIBUTING.md", "Make a release", "Undo a release"))
    run_script(commands.replace("1.2.3", "1.3.0").replace("1.2.2", "1.2.3"), newer, tmp_path, {})
    after = refs(remote)
    assert after["refs/tags/v1"] == after["refs/tags/v1.2.3"] != after["refs/tags/v1.3.0"]
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls == ["release edit v1.3.0 --prerelease --notes Do not use: …"]


def test_the_major_tag_moves_only_to_the_tested_image(remote: Path, runner: Path, tmp_path: Path, run: Run) -> None:
    tag(run, runner)
    other = "the tag v1.2.3 is not of this commit and image: v1 is left; look who moved it\n"
    assert move(run, runner, digest=OTHER) == (1, other)
    git(tmp_path / "work", "push", "--quiet", "--force", "origin", "HEAD:refs/tags/v1.2.3")
    assert move(run, runner) == (1, other)
    assert "refs/tags/v1" not in refs(remote)


def test_the_major_tag_does_not_overwrite_a_concurrent_move(remote: Path, runner: Path, run: Run) -> None:
    assert move(run, runner) == (1, "there is no tag v1.2.3: it comes before v1\n")
    tag(run, runner)
    hook = remote / "hooks" / "pre-receive"
    main = refs(remote)["refs/heads/main"]
    hook.write_text(f"#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/tags/v1 {main}\n", encoding="utf-8")
    hook.chmod(0o755)
    code, _ = move(run, runner)
    assert code == 1
    assert refs(remote)["refs/tags/v1"] == main


def test_a_release_that_is_not_ready_is_refused_in_one_line(runner: Path, run: Run) -> None:
    def message(version: str, check: Sequence[str] = CHECK) -> str:
        code, output = run(runner, "check", "--version", version, *check)
        assert (code, len(output.splitlines())) == (1, 1)
        return output

    for version in ("v1.2.3", "1.2", "1.2.3-rc1", "01.2.3", "1.2.3\n", "$(id)"):
        assert "not a version" in message(version)
    assert message("1.2.4") == "bot/__init__.py does not say 1.2.4: change it on main first\n"
    assert "made of main" in message("1.2.3", [*CHECK[:-1], "refs/heads/other"])
    no_registry = "set the repository variable IMAGE_REGISTRY to the host of the registry\n"
    assert message("1.2.3", ["--registry", "", *CHECK[2:]]) == no_registry
    (runner / WORKFLOW).write_text("      - uses: OWNER/precedent@v1\n", encoding="utf-8")
    assert "OWNER/precedent: run make address REPOSITORY=OctoCat/Precedent on main first" in message("1.2.3")
    git(runner, "checkout", "--quiet", WORKFLOW)
    for changelog in ("# Changelog\n", "## 1.2.3\n\n## 1.2.2\n\nOld.\n", "## 1.2.30\n\nOther.\n"):
        (runner / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
        assert message("1.2.3") == "CHANGELOG.md has nothing below '## 1.2.3': write what changes for users\n"


@pytest.mark.parametrize(
    ("image", "digest"),
    [(IMAGE, "sha256:1"), (IMAGE, "latest"), (f"{IMAGE}:1", ONE), ("Registry.example.org/a/b", ONE), ("a b/c", ONE)],
)
def test_only_an_image_with_a_digest_is_pinned(image: str, digest: str) -> None:
    with pytest.raises(release.ReleaseError, match="names no image by its digest"):
        release.pinned(ACTION, image, digest)


def test_main_builds_from_the_dockerfile_and_could_be_released() -> None:
    assert yaml.safe_load(ACTION)["runs"] == {"using": "docker", "image": "Dockerfile"}
    assert release.VERSION.fullmatch(__version__)
    assert release.NAMED.search(release.pinned(ACTION, IMAGE, ONE))


# -- the workflow's own scripts ------------------------------------------------------------------------------------

JOBS = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
GH = """#!/bin/sh
echo "$*" >> "$CALLS"
[ "$1" != api ] || cat "$CALLS.tags"
[ "$1 $2" != "release create" ] || touch "$CALLS.released"
[ "$1 $2" != "release view" ] || [ -e "$CALLS.released" ]
"""


def run_job(job: str, folder: Path, scratch: Path, **values: str) -> str:
    """Run the scripts of a job as a runner does; returns the job's outputs."""
    output = scratch / "output"
    output.write_text("", encoding="utf-8")
    environ = {
        "GITHUB_REPOSITORY": "OctoCat/Precedent",
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_OUTPUT": str(output),
        "RUNNER_TEMP": str(scratch),
    }
    for step in JOBS[job]["steps"]:
        if "run" in step:
            run_script(
                step["run"], folder, scratch, environ | {name: values.get(name, "a-token") for name in step["env"]}
            )
    return output.read_text(encoding="utf-8")


def run_script(script: str, folder: Path, scratch: Path, variables: Mapping[str, str]) -> None:
    """Run a script with a `gh` that only records its calls."""
    (scratch / "bin").mkdir(exist_ok=True)
    (scratch / "bin" / "gh").write_text(GH, encoding="utf-8")
    (scratch / "bin" / "gh").chmod(0o755)
    path = f"{scratch / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "CALLS": str(scratch / "calls"), **variables}
    subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=environ, check=True, capture_output=True, text=True)


@pytest.mark.slow
def test_the_jobs_of_the_workflow_release_once_however_often_they_run(remote: Path, tmp_path: Path) -> None:
    values = {"VERSION": "1.2.3", "REGISTRY": "registry.example.org", "IMAGE": IMAGE, "DIGEST": ONE, "TAG": "v1.2.3"}
    outputs = []
    for attempt in ("first", "second"):
        folder = checkout(remote, tmp_path / attempt)
        outputs.append(run_job("check", folder, tmp_path, **values))
        run_job("tag", folder, tmp_path, **values)
        git(folder, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", "refs/tags/v1.2.3")
        assert (folder / "action.yml").read_text(encoding="utf-8") == ACTION
        run_job("finish", checkout(remote, tmp_path / f"{attempt}-finish"), tmp_path, **values)
    assert outputs == [f"image={IMAGE}\ntag=v1.2.3\ndigest={digest}\n" for digest in ("", ONE)]
    after = refs(remote)
    assert after.keys() == {"refs/heads/main", "refs/tags/v1.2.3", "refs/tags/v1"}
    assert after["refs/tags/v1"] == after["refs/tags/v1.2.3"]
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert [call.split(" --notes-file")[0] for call in calls if call.startswith("release create")] == [
        "release create v1.2.3 --verify-tag --title v1.2.3"
    ]
    assert (tmp_path / "notes").read_text(encoding="utf-8") == "What is new in 1.2.3.\n"


DOCKER = """#!/bin/sh
echo "docker $*" >> "$CALLS"
[ "$3" != inspect ] || echo '{"digest": "sha256:3"}'
"""


def test_an_image_is_not_published_again_once_its_tag_exists(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").write_text(DOCKER, encoding="utf-8")
    (tmp_path / "bin" / "docker").chmod(0o755)
    values = {"IMAGE": IMAGE, "TAG": "v1.2.3", "AMD64": ONE, "ARM64": OTHER}
    tags = tmp_path / "calls.tags"
    tags.write_text("refs/tags/v1.2.30\n", encoding="utf-8")
    assert run_job("publish", tmp_path, tmp_path, **values) == "digest=sha256:3\n"
    calls = tmp_path / "calls"
    create_calls = [line for line in calls.read_text(encoding="utf-8").splitlines() if "imagetools create" in line]
    assert create_calls == [f"docker buildx imagetools create --tag {IMAGE}:1.2.3 {IMAGE}@{ONE} {IMAGE}@{OTHER}"]
    tags.write_text("refs/tags/v1.2.3\nrefs/tags/v1.2.30\n", encoding="utf-8")
    calls.unlink()
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run_job("publish", tmp_path, tmp_path, **values)
    assert failed.value.stderr == "v1.2.3 exists already: start a new run, which continues after it\n"
    assert "docker" not in calls.read_text(encoding="utf-8")


def test_the_smoke_run_verifies_the_image_that_the_tag_names(
    remote: Path, runner: Path, tmp_path: Path, run: Run
) -> None:
    tag(run, runner)
    folder = tmp_path / "tagged"
    git(tmp_path, "clone", "--quiet", "--branch=v1.2.3", f"file://{remote}", str(folder))
    run_job("smoke", folder, tmp_path)
    (call,) = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert call.startswith(f"attestation verify oci://{IMAGE}@{ONE} --repo OctoCat/Precedent --signer-workflow ")
