"""The fakes as separate processes: they print their URL, count requests, and stop on a signal."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def start(module: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def stop(process: subprocess.Popen[str]) -> str:
    process.terminate()
    output, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    return output


def test_the_fake_github_serves_an_archive_and_reports_its_counts(tmp_path: Path) -> None:
    thread = {
        "id": 5,
        "title": "Crash",
        "body": "It crashes.",
        "state": "open",
        "created_at": "2024-01-01T00:00:00Z",
        "author": "octocat",
        "labels": [],
        "comments": [],
    }
    archive = tmp_path / "threads.jsonl"
    archive.write_text(json.dumps(thread), encoding="utf-8")
    process, url = start("tests.fakes.github", "--archive", str(archive), "--token", "secret=hubot", "--limit", "9")
    headers = {"Authorization": "Bearer secret"}
    with httpx.Client(base_url=url, headers=headers) as client:
        issue = client.get("/repos/octocat/hello-world/issues/5")
        client.post("/repos/octocat/hello-world/issues/5/comments", json={"body": "hello"})
        stats = client.get("/_fake/stats").json()
        threads = client.get("/_fake/archive").json()
        client.post("/_fake/mark")
        after = client.get("/_fake/stats").json()
    stop(process)

    assert issue.headers["x-ratelimit-limit"] == "9"
    assert (stats["reads"], stats["writes"], stats["violations"]) == (1, 1, [])
    assert threads[0]["comments"][0]["author"] == "hubot"
    assert (after["reads"], after["writes"]) == (0, 0)


def test_the_git_server_makes_a_repository_and_serves_it(tmp_path: Path) -> None:
    process, url = start("tests.fakes.git_http", str(tmp_path), "--create", "octocat/hello-world", "--token", "t=write")
    remote = url.replace("http://", "http://x-access-token:t@") + "/octocat/hello-world.git"
    listed = subprocess.run(["git", "ls-remote", remote], capture_output=True, check=False)

    assert listed.returncode == 0
    assert re.fullmatch(r"in \d+ out \d+ requests \d+\n", stop(process))
