"""The commits of a repository as a graph, with branches and merged pull requests."""

from __future__ import annotations

import hashlib

from tests.fakes.state import Commit, Issue, Repository


def add_commit(repo: Repository, commit: Commit, branch: str | None = None) -> None:
    """Put a commit on top of a branch (None: the default one), unless the repository has it already."""
    name = branch or repo.default_branch
    if commit.sha not in repo.commits:
        commit.parents = [repo.branches[name]] if name in repo.branches else []
        repo.commits[commit.sha] = commit
        repo.branches[name] = commit.sha


def merge(issue: Issue, sha: str | None) -> None:
    """Put the merge commit of a closed pull request on top of its base branch."""
    pull = issue.pull
    assert pull is not None
    pull.merged_at, pull.merged_by = issue.closed_at, issue.closed_by
    pull.merge_commit = sha or fake_sha(f"merge {issue.number}")
    commit = Commit(pull.merge_commit, f"Merge #{issue.number}", pull.merged_by, pull.merged_at or "", pull.files)
    add_commit(issue.repo, commit, pull.base)


def find_commit(repo: Repository, ref: str) -> Commit | None:
    """Find a commit by branch, tag, full or short SHA; ``HEAD`` is the default branch."""
    name = repo.branches.get(repo.default_branch if ref == "HEAD" else ref) or repo.tags.get(ref, ref)
    return next((commit for sha, commit in repo.commits.items() if len(name) >= 4 and sha.startswith(name)), None)


def history_of(repo: Repository, commit: Commit) -> list[Commit]:
    """The commit and its ancestors, newest first."""
    seen, waiting = {commit.sha: commit}, [commit]
    while waiting:
        for sha in waiting.pop().parents:
            if sha not in seen:
                seen[sha] = repo.commits[sha]
                waiting.append(seen[sha])
    return [other for other in reversed(repo.commits.values()) if other.sha in seen]


def fake_sha(seed: str) -> str:
    return hashlib.sha1(seed.encode(), usedforsecurity=False).hexdigest()
