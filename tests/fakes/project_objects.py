"""REST objects of a whole repository: itself, its pull requests, commits, releases and tags."""

from __future__ import annotations

import hashlib

from tests.fakes.commits import history_of
from tests.fakes.objects import Json, Shapes, node_id
from tests.fakes.state import Account, ChangedFile, Commit, Issue, Release, Repository

RELATIVES = ("parent", "source", "template_repository", "organization", "temp_clone_token", "license")


def repository_shape(shapes: Shapes, repo: Repository, viewer: Account | None = None) -> Json:
    shape: Json = shapes.sample("full-repository", repo)
    for name in RELATIVES:
        shape.pop(name, None)
    open_count = sum(issue.state == "open" for issue in repo.issues.values())
    writer = repo.writable_by(viewer) or (viewer is not None and viewer.type == "Bot")
    return shape | {
        "id": repo.id,
        "node_id": node_id("R", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "owner": shapes.account(repo.owner),
        "private": repo.private,
        "visibility": repo.visibility,
        "html_url": f"{shapes.site}/{repo.full_name}",
        "clone_url": f"{shapes.site}/{repo.full_name}.git",
        "url": shapes.repo_url(repo),
        "default_branch": repo.default_branch,
        "archived": repo.archived,
        "has_issues": repo.has_issues,
        "has_discussions": repo.has_discussions,
        "license": None,
        "open_issues": open_count,
        "open_issues_count": open_count,
        "created_at": repo.created_at,
        "permissions": {"admin": viewer is repo.owner, "push": writer, "pull": True},
    }


def pull_shape(shapes: Shapes, issue: Issue) -> Json:
    assert issue.pull is not None
    pull = issue.pull
    shape: Json = shapes.sample("pull-request", issue.repo)
    url = f"{shapes.repo_url(issue.repo)}/pulls/{issue.number}"
    shared = shapes.issue(issue)
    for name in ("title", "body", "user", "labels", "author_association", "locked", "active_lock_reason", "number"):
        shape[name] = shared[name]
    for name in ("state", "created_at", "updated_at", "closed_at", "comments", "html_url", "node_id", "id"):
        shape[name] = shared[name]
    for side in ("head", "base"):
        shape[side]["repo"] = repository_shape(shapes, issue.repo)
        shape[side]["user"] = shared["user"] or shapes.account(issue.repo.owner)
        shape[side]["ref"] = issue.repo.default_branch
    shape["base"] |= {"ref": pull.base or issue.repo.default_branch}
    shape["head"] |= {"sha": pull.head, "ref": f"patch-{issue.number}"}
    return shape | {
        "url": url,
        "diff_url": f"{shared['html_url']}.diff",
        "patch_url": f"{shared['html_url']}.patch",
        "issue_url": shared["url"],
        "comments_url": shared["comments_url"],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "requested_reviewers": [],
        "requested_teams": [],
        "merged": pull.merged_at is not None,
        "merged_at": pull.merged_at,
        "merged_by": shapes.account(pull.merged_by),
        "merge_commit_sha": pull.merge_commit,
        "draft": pull.draft,
        "additions": sum(file.additions for file in pull.files),
        "deletions": sum(file.deletions for file in pull.files),
        "changed_files": len(pull.files),
    }


def file_change_shape(shapes: Shapes, repo: Repository, file: ChangedFile, sha: str) -> Json:
    page = f"{shapes.site}/{repo.full_name}"
    return {
        "sha": hashlib.sha1(file.path.encode(), usedforsecurity=False).hexdigest(),
        "filename": file.path,
        "status": file.status,
        "additions": file.additions,
        "deletions": file.deletions,
        "changes": file.additions + file.deletions,
        "blob_url": f"{page}/blob/{sha}/{file.path}",
        "raw_url": f"{page}/raw/{sha}/{file.path}",
        "contents_url": f"{shapes.repo_url(repo)}/contents/{file.path}?ref={sha}",
        "patch": file.patch,
    }


def commit_shape(shapes: Shapes, repo: Repository, commit: Commit) -> Json:
    shape: Json = shapes.sample("commit", repo, **{"6dcb09b5b57875f334f61aebed695e2e4193db5e": commit.sha})
    login = commit.author.login if commit.author else "ghost"
    person = {"name": login, "email": f"{login}@users.noreply.github.com", "date": commit.at}
    shape["commit"] |= {"message": commit.message, "author": person, "committer": dict(person)}
    added, removed = sum(f.additions for f in commit.files), sum(f.deletions for f in commit.files)
    return shape | {
        "sha": commit.sha,
        "author": shapes.account(commit.author),
        "committer": shapes.account(commit.author),
        "parents": [
            {"sha": sha, "url": f"{shapes.repo_url(repo)}/commits/{sha}", "html_url": f"{shapes.site}/{sha}"}
            for sha in commit.parents
        ],
        "stats": {"additions": added, "deletions": removed, "total": added + removed},
        "files": [file_change_shape(shapes, repo, file, commit.sha) for file in commit.files],
    }


def comparison_shape(shapes: Shapes, repo: Repository, ends: tuple[Commit, Commit], page: tuple[int, int]) -> Json:
    """The comparison of the second commit with the first; ``page`` is a page number and a size."""
    base, head = ends
    older, newer = history_of(repo, base), history_of(repo, head)
    ahead = [commit for commit in reversed(newer) if commit not in older]
    behind = [commit for commit in older if commit not in newer]
    common = next((commit for commit in newer if commit in older), base)
    status = ("diverged" if behind else "ahead") if ahead else ("behind" if behind else "identical")
    number, size = page
    url = f"{shapes.repo_url(repo)}/compare/{base.sha}...{head.sha}"
    web = f"{shapes.site}/{repo.full_name}/compare/{base.sha}...{head.sha}"
    files = {file.path: file for commit in ahead for file in commit.files} if number == 1 else {}
    return {
        "url": url,
        "html_url": web,
        "permalink_url": web,
        "diff_url": f"{web}.diff",
        "patch_url": f"{web}.patch",
        "base_commit": commit_shape(shapes, repo, base),
        "merge_base_commit": commit_shape(shapes, repo, common),
        "status": status,
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": [commit_shape(shapes, repo, commit) for commit in ahead[(number - 1) * size : number * size]],
        "files": [file_change_shape(shapes, repo, file, head.sha) for file in files.values()],
    }


def release_shape(shapes: Shapes, repo: Repository, release: Release) -> Json:
    shape: Json = shapes.sample("release", repo, **{"v1.0.0": release.tag})
    shape.pop("discussion_url", None)
    return shape | {
        "id": release.id,
        "url": f"{shapes.repo_url(repo)}/releases/{release.id}",
        "tag_name": release.tag,
        "name": release.tag,
        "body": release.body,
        "prerelease": release.prerelease,
        "draft": release.draft,
        "created_at": release.at,
        "published_at": None if release.draft else release.at,
        "target_commitish": repo.default_branch,
        "author": shapes.account(repo.owner),
        "assets": [],
    }


def tag_shape(shapes: Shapes, repo: Repository, name: str, sha: str) -> Json:
    shape: Json = shapes.sample("tag-items", repo)[0]
    commit = {"sha": sha, "url": f"{shapes.repo_url(repo)}/commits/{sha}"}
    return shape | {"name": name, "commit": commit}
