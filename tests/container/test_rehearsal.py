"""The commands with which CONTRIBUTING.md rehearses a release, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.container.engine import CONTAINERS_CONF, IMAGE_VARIABLE, ROOT, Engine, has_docker
from tests.docs.pages import FENCE, section
from tests.fakes.github import FakeGitHub
from tests.fakes.registry import Registry, digest_of
from tools import release

pytestmark = [
    pytest.mark.container,
    pytest.mark.slow,
    pytest.mark.skipif(IMAGE_VARIABLE in os.environ, reason="tests an image that was built elsewhere"),
]

VERSION, REPOSITORY = "1.2.3", "octocat/precedent"
PYTHON = Path(sys.base_prefix) / "bin"
MARK = "== end of a block"


def steps() -> list[str]:
    """The blocks of the page, in order."""
    blocks = [
        body
        for language, body in FENCE.findall(section("CONTRIBUTING.md", "Make a release", "Rehearse it"))
        if language == "sh"
    ]
    return [block.replace(".venv/bin/python", sys.executable) for block in blocks]


def test_the_rehearsal_has_every_part_of_a_release_that_the_workflow_has() -> None:
    part = re.compile(r"tools\.release (\w+)")
    workflow = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert set(part.findall("".join(steps()))) == set(part.findall(workflow)) == {"check", "tag", "notes", "move"}


@dataclass(frozen=True)
class Rehearsal:
    """What the commands left. ``printed`` has the output of each block."""

    work: Path
    registry: Registry
    printed: list[str]

    def git(self, *words: str) -> str:
        command = ["git", "-C", str(self.work / "remote.git"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def settings(folder: Path, registry: Registry) -> dict[str, str]:
    """What podman needs here: it sends nothing to a registry without TLS unless it is told to."""
    containers, registries = folder / "containers.conf", folder / "registries.conf"
    containers.write_text(CONTAINERS_CONF, encoding="utf-8")
    registries.write_text(f'[[registry]]\nlocation = "{registry.address}"\ninsecure = true\n', encoding="utf-8")
    return {"CONTAINERS_CONF": str(containers), "CONTAINERS_REGISTRIES_CONF": str(registries)}


@pytest.fixture(scope="module")
def rehearsal(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """A rehearsal by the page's commands; ``engine`` has built the same image before, so that most layers are there."""
    assert engine.image
    work, registry, program = tmp_path_factory.mktemp("work"), Registry(), "docker" if has_docker() else "podman"
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    with FakeGitHub() as github:
        github.open_issue("octocat", "Login loops after the upgrade", "It loops since 2.3.0.")
        environ = os.environ | settings(tmp_path_factory.mktemp("settings"), registry) | {
            **dict.fromkeys(names, "octocat@example.org"),
            "PATH": f"{PYTHON}{os.pathsep}{os.environ['PATH']}",
            "VERSION": VERSION, "REPOSITORY": REPOSITORY, "REGISTRY": registry.address,
            "ENGINE": program, "WORK": str(work), "XDG_CACHE_HOME": str(work / "cache"),
            "TMPDIR": str(tmp_path_factory.mktemp("tmp")),  # the tests that it runs delete theirs
            "GITHUB_API_URL": github.url, "GH_TOKEN": github.token,
        }  # fmt: skip
        script = f"\necho '{MARK}'\n".join(steps())
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, env=environ, capture_output=True,
                              text=True, check=False)  # fmt: skip
    try:
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        yield Rehearsal(work, registry, done.stdout.split(f"{MARK}\n"))
    finally:
        registry.stop()
        for name, key in registry.manifests:
            image = f"{registry.address}/{name}{'@' if ':' in key else ':'}{key}"
            subprocess.run([program, "rmi", image], capture_output=True, check=False)


def test_the_tag_is_the_built_commit_and_names_the_pushed_image_by_its_digest(rehearsal: Rehearsal) -> None:
    _, content = rehearsal.registry.manifests[REPOSITORY, VERSION]
    image = f"{rehearsal.registry.address}/{REPOSITORY}"
    assert rehearsal.git("rev-parse", f"v{VERSION}^", "main").split() == [rehearsal.git("rev-parse", "main")] * 2
    changed = rehearsal.git("diff", "--unified=0", "main", f"v{VERSION}").splitlines()[-2:]
    assert changed == ["-  image: Dockerfile", f"+  image: docker://{image}@{digest_of(content)}"]
    assert rehearsal.printed[0] == f"image={image}\ntag=v{VERSION}\ndigest=\n"


def test_the_major_tag_moves_to_the_release(rehearsal: Rehearsal) -> None:
    major = f"v{VERSION.partition('.')[0]}"
    assert rehearsal.git("rev-parse", major) == rehearsal.git("rev-parse", f"v{VERSION}")
    assert rehearsal.printed[-1].endswith(f"{major} is at v{VERSION} now\n")
    expected = release.notes(rehearsal.git("show", "main:CHANGELOG.md"), VERSION)
    assert rehearsal.printed[-1].startswith(expected)


def test_wheel_and_source_archive_install_the_same_working_command(rehearsal: Rehearsal) -> None:
    built = {path.name for path in (rehearsal.work / "index").glob("precedent-*")}
    assert built == {f"precedent-{VERSION}-py3-none-any.whl", f"precedent-{VERSION}.tar.gz"}
    printed = rehearsal.printed[3]
    assert printed.count(f"precedent {VERSION}\n") == printed.count("usage: precedent") == 2
    assert printed.count("Seen before") == 2
    from_wheel, from_archive = (installed_files(rehearsal.work / form) for form in ("only-binary", "no-binary"))
    assert "bot/templates/base.md.j2" in from_wheel
    assert from_wheel == from_archive
    assert (rehearsal.work / "precedent-octocat-hello-world.html").exists()


def installed_files(environment: Path) -> dict[str, bytes]:
    (place,) = environment.glob("lib/python*/site-packages")
    found = [path for path in (place / "bot").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in found}
