"""Measures how soon a run of the image sends its first request to GitHub, and how soon Python imports its libraries.

python -m bench.bench_image [--runs N] [--json FILE]

The same engine starts both from the same image, in turn, and this machine's clock measures them: ours from the start of
the engine to the first request (git's, for the settings) and to the first one to the API; the peer to the line that it
prints after its imports. The table also has the size of the image, according to the engine, and how much of it is
sent: its layers, packed by gzip as in a registry.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from tests.container.base_image import NAME
from tests.container.engine import Engine
from tests.container.runner import Runner
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

PEER = "import github, jinja2, yaml, whoosh; print('imported', flush=True)"
OURS, API, IMPORTED, BARE = (
    "to the first request",
    "to the first request to the API",
    "imports done",
    "nothing imported",
)
LIMIT = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        engine = Engine(Path(folder))
        engine.build()
        sizes = measure_sizes(engine, Path(folder))
        times = measure_times(engine, Path(folder), options.runs)
    print(table(times, sizes))
    if options.json:
        options.json.write_text(json.dumps({"ms": times, "bytes": sizes}, indent=1) + "\n", encoding="utf-8")


def measure_times(engine: Engine, folder: Path, runs: int) -> dict[str, list[float]]:
    """Milliseconds of each run, without the first, which finds a cold disk."""
    all_times: dict[str, list[float]] = {OURS: [], API: [], IMPORTED: [], BARE: []}
    (folder / "runner").mkdir()
    runner = Runner(engine, folder / "runner")
    with GitServer(folder / "git") as git, FakeGitHub(site=git.url, validate=False) as github:
        git.create(github.repo.full_name)
        runner.connect(github, git)
        number = github.open_issue("octocat", "Login loops after the upgrade", "It loops since 2.3.0.")
        github.write_event(runner.folder / "workflow/event.json", "issues", "opened", number)
        for _ in range(runs + 1):
            for name, ms in zip((OURS, API), first_requests(runner, git, github), strict=True):
                all_times[name].append(ms)
            all_times[IMPORTED].append(peer(engine, runner, PEER))
            all_times[BARE].append(peer(engine, runner, "print(flush=True)"))
    return {name: times[1:] for name, times in all_times.items()}


def first_requests(runner: Runner, git: GitServer, github: FakeGitHub) -> tuple[float, float]:
    """Milliseconds from the engine's start to the first request to the fake, and to the first to its API."""
    to_git: list[float] = []
    to_api: list[float] = []

    def access(token: str, _: str) -> str | None:
        to_git.append(perf_counter())
        return git.tokens.get(token)

    git.access = access
    github.on_request = lambda _: to_api.append(perf_counter())
    began = perf_counter()
    ended = runner.run("issues", "--network", "host")
    if ended.code or not to_git or not to_api:
        raise SystemExit(f"the run failed:\n{ended.output}")
    return (min(to_git[0], to_api[0]) - began) * 1000, (to_api[0] - began) * 1000


def peer(engine: Engine, runner: Runner, script: str) -> float:
    """Milliseconds from the engine's start to the line that the script prints."""
    python = ["--network", "host", "--entrypoint", "/opt/precedent/bin/python"]
    command = engine.command("-I", "-c", script, options=[*runner.options("issues"), *python])
    began = perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        imported = perf_counter()
    if process.returncode:
        raise SystemExit(f"{script!r} failed in the image")
    return (imported - began) * 1000


def measure_sizes(engine: Engine, folder: Path) -> dict[str, int]:
    """Bytes of the image and its base image, according to the engine, and of our packed layers."""
    return {
        "image": int(engine.inspect("{{.Size}}")),
        NAME: int(engine.do("image", "inspect", "--format", "{{.Size}}", NAME).output),
        "layers, packed": packed_size(engine, folder / "saved.tar"),
    }


def packed_size(engine: Engine, archive: Path) -> int:
    saved = engine.do("save", "--output", str(archive), engine.image)
    if saved.code:
        raise SystemExit(saved.output)
    total = 0
    with tarfile.open(archive) as layers:
        for content in map(layers.extractfile, layers):
            compressor = zlib.compressobj(6)
            while content and (read := content.read(1 << 20)):
                total += len(compressor.compress(read))
            total += len(compressor.flush())
    archive.unlink()
    return total


def table(times: Mapping[str, Sequence[float]], sizes: Mapping[str, int]) -> str:
    medians = {name: median(values) for name, values in times.items()}
    lines = [f"{len(times[OURS])} runs; milliseconds, half and nine of ten"]
    for name, values in times.items():
        ninth = quantiles(values, n=10)[-1] if len(values) > 1 else values[0]
        lines.append(f"{name:40}{medians[name]:8.1f}{ninth:8.1f}")
    lines.append(f"{OURS} : {IMPORTED} = {medians[OURS] / medians[IMPORTED]:.2f} (limit {LIMIT})")
    lines += [f"{name:40}{size / 1e6:8.1f} MB" for name, size in sizes.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
