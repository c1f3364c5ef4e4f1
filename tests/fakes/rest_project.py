"""The API around issues: the repository, its commits, pulls, releases and permissions."""

from __future__ import annotations

from tests.fakes.commits import find_commit
from tests.fakes.exchange import Call, Refusal, Reply, RouteTable, not_found
from tests.fakes.limits import RESOURCES
from tests.fakes.paging import page_reply
from tests.fakes.project_objects import (
    commit_shape,
    comparison_shape,
    file_change_shape,
    pull_shape,
    release_shape,
    repository_shape,
    tag_shape,
)
from tests.fakes.state import WRITER_ROLES, Issue

ROUTES = RouteTable()
REPO = "/repos/{owner}/{repo}"
PERMISSIONS = {"maintain": "write", "triage": "read"}
"""Roles for which the old field ``permission`` has a coarser name."""


@ROUTES.route("GET", REPO)
def get_repository(call: Call) -> Reply:
    return Reply(200, repository_shape(call.shapes, call.repository(), call.account))


@ROUTES.route("GET", f"{REPO}/collaborators/{{username}}/permission")
def get_permission(call: Call) -> Reply:
    repo, account = call.repository(), call.world.accounts.get(call.params["username"].lower())
    if account is None:
        raise not_found()
    role = repo.role(account)
    coarse, user = PERMISSIONS.get(role, role), call.shapes.account(account) or {}
    rights = {"pull": role != "none", "push": role in WRITER_ROLES, "admin": role == "admin"}
    user |= {"role_name": role, "permissions": rights}
    return Reply(200, {"permission": coarse, "role_name": role, "user": user})


@ROUTES.route("GET", f"{REPO}/commits/{{ref}}", needs="contents:read")
def get_commit(call: Call) -> Reply:
    """A commit by full or short SHA, tag, or branch."""
    repo, ref = call.repository(), call.params["ref"]
    commit = find_commit(repo, ref)
    if commit is None:
        raise Refusal(422, f"No commit found for SHA: {ref}")
    return Reply(200, commit_shape(call.shapes, repo, commit))


@ROUTES.route("GET", f"{REPO}/compare/{{basehead}}", needs="contents:read")
def compare(call: Call) -> Reply:
    """A page of the commits that are in head but not in base; only the first page lists the files."""
    repo = call.repository()
    base, dots, head = call.params["basehead"].partition("...")
    ends = find_commit(repo, base), find_commit(repo, head)
    if not dots or ends[0] is None or ends[1] is None:
        raise not_found()
    page, size = int(call.query.get("page", "1")), int(call.query.get("per_page", "250"))
    return Reply(200, comparison_shape(call.shapes, repo, (ends[0], ends[1]), (page, size)))


@ROUTES.route("GET", f"{REPO}/releases", needs="contents:read")
def list_releases(call: Call) -> Reply:
    """Newest first; drafts are shown only to writers."""
    repo = call.repository()
    may_write = call.token is not None and call.server.allows(call.token, "contents:write")
    shown = [release for release in repo.releases if may_write or not release.draft]
    newest_first = sorted(shown, key=lambda release: release.at, reverse=True)
    return page_reply(call, newest_first, lambda release: release_shape(call.shapes, repo, release))


@ROUTES.route("GET", f"{REPO}/tags", needs="contents:read")
def list_tags(call: Call) -> Reply:
    repo = call.repository()
    tags = sorted(repo.tags.items(), reverse=True)
    return page_reply(call, tags, lambda tag: tag_shape(call.shapes, repo, *tag))


def find_pull(call: Call) -> Issue:
    issue = call.repository().issues.get(call.number("pull_number"))
    if issue is None or issue.pull is None:
        raise not_found()
    return issue


@ROUTES.route("GET", f"{REPO}/pulls/{{pull_number}}", needs="pull_requests:read")
def get_pull(call: Call) -> Reply:
    return Reply(200, pull_shape(call.shapes, find_pull(call)))


@ROUTES.route("GET", f"{REPO}/pulls/{{pull_number}}/files", needs="pull_requests:read")
def list_pull_files(call: Call) -> Reply:
    issue = find_pull(call)
    assert issue.pull is not None
    head = issue.pull.head
    return page_reply(call, issue.pull.files, lambda file: file_change_shape(call.shapes, issue.repo, file, head))


@ROUTES.route("GET", "/rate_limit")
def get_rate_limit(call: Call) -> Reply:
    """The remaining allowances; this request does not count."""
    shape = call.shapes.sample("rate-limit-overview")
    for name in RESOURCES:
        allowance = call.server.limits.allowance(call.token, name)
        shape["resources"][name] = {
            "limit": allowance.limit,
            "used": min(allowance.used, allowance.limit),
            "remaining": allowance.remaining,
            "reset": allowance.reset,
        }
    shape["rate"] = shape["resources"]["core"]
    return Reply(200, shape)
