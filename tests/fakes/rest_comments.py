"""The comments API: of one issue, of the whole repository, and single ones."""

from __future__ import annotations

from tests.fakes.exchange import Call, Refusal, Reply, RouteTable, invalid, not_found
from tests.fakes.paging import KeyedList, cached_view, page_reply
from tests.fakes.rest_issues import ISSUE, ISSUES, check_may_change, find_issue, issues_of
from tests.fakes.state import REACTIONS, Comment, Issue

ROUTES = RouteTable()
COMMENT = f"{ISSUES}/comments/{{comment_id}}"
MAX_BODY = 65_536
"""Characters, as the API's own message says."""
MAX_COMMENTS = 2_500


def find_comment(call: Call) -> Comment:
    comment = call.repository().comments.get(call.number("comment_id"))
    if comment is None or comment.issue.number not in comment.issue.repo.issues:
        raise not_found()
    return comment


def checked_body(call: Call) -> str:
    body = call.json().get("body")
    if not isinstance(body, str) or not body.strip():
        raise invalid("IssueComment", "body", "missing_field")
    if len(body) > MAX_BODY:
        error = {"resource": "IssueComment", "code": "unprocessable", "field": "data"}
        raise Refusal(
            422,
            "Validation Failed",
            errors=[error | {"message": f"Body is too long (maximum is {MAX_BODY} characters)"}],
        )
    return body


@ROUTES.route("GET", f"{ISSUES}/comments", needs="issues:read")
def list_repository_comments(call: Call) -> Reply:
    """Sorted by id unless ``sort`` is given; ``direction`` works only together with ``sort``."""
    repo, since, field = issues_of(call), call.query.get("since", ""), call.query.get("sort")
    if field not in ("created", "updated", None):
        raise invalid("IssueComment", "sort")
    descending = field is not None and call.query.get("direction", "desc") == "desc"

    def key(comment: Comment) -> str:
        return f"{getattr(comment, f'{field}_at') if field else ''}|{comment.id:012d}"

    def make() -> KeyedList[Comment]:
        chosen = (comment for comment in repo.comments.values() if _is_visible(comment) and comment.updated_at >= since)
        return KeyedList.sort(chosen, key, descending)

    listed = cached_view(call, ("comments", repo.id, since, field, descending), make)
    return page_reply(call, listed.items, call.shapes.comment)


def _is_visible(comment: Comment) -> bool:
    return comment.issue.number in comment.issue.repo.issues


@ROUTES.route("GET", f"{ISSUE}/comments", needs="issues:read")
def list_comments(call: Call) -> Reply:
    since = call.query.get("since", "")
    shown = [comment for comment in find_issue(call).comments if comment.updated_at >= since]
    return page_reply(call, shown, call.shapes.comment)


@ROUTES.route("POST", f"{ISSUE}/comments", needs="issues:write")
def create_comment(call: Call) -> Reply:
    issue = find_issue(call)
    body = checked_body(call)
    _check_open_for_comments(call, issue)
    comment_id = call.server.project(issue.repo).comment(issue.number, call.login, body)
    shape = call.shapes.comment(issue.repo.comments[comment_id])
    return Reply(201, shape, {"Location": shape["url"]})


def _check_open_for_comments(call: Call, issue: Issue) -> None:
    may_write = issue.repo.writable_by(call.account) and not (call.token and call.token.app)
    if issue.locked and not may_write:
        raise Refusal(403, "Unable to create comment because issue is locked.")
    if len(issue.comments) >= MAX_COMMENTS:
        raise Refusal(403, f"Commenting is disabled on issues with more than {MAX_COMMENTS} comments")


@ROUTES.route("GET", COMMENT, needs="issues:read")
def get_comment(call: Call) -> Reply:
    return Reply(200, call.shapes.comment(find_comment(call)))


@ROUTES.route("PATCH", COMMENT, needs="issues:write")
def update_comment(call: Call) -> Reply:
    comment = find_comment(call)
    check_may_change(call, comment.issue.repo, comment.author is call.account)
    project = call.server.project(comment.issue.repo)
    project.edit_comment(comment.id, checked_body(call), by=call.login)
    return Reply(200, call.shapes.comment(comment))


@ROUTES.route("DELETE", COMMENT, needs="issues:write")
def delete_comment(call: Call) -> Reply:
    comment = find_comment(call)
    check_may_change(call, comment.issue.repo, comment.author is call.account)
    call.server.project(comment.issue.repo).delete_comment(comment.id, by=call.login)
    return Reply(204)


@ROUTES.route("GET", f"{COMMENT}/reactions", needs="issues:read")
def list_comment_reactions(call: Call) -> Reply:
    return page_reply(call, find_comment(call).reactions, call.shapes.reaction)


@ROUTES.route("POST", f"{COMMENT}/reactions", needs="issues:write")
def create_comment_reaction(call: Call) -> Reply:
    """201 for a new reaction, 200 for an existing one."""
    comment, content = find_comment(call), call.json().get("content")
    if content not in REACTIONS:
        raise invalid("Reaction", "content")
    before = len(comment.reactions)
    reaction_id = call.server.project(comment.issue.repo).react(comment.issue.number, call.login, content, comment.id)
    shape = next(call.shapes.reaction(reaction) for reaction in comment.reactions if reaction.id == reaction_id)
    return Reply(201 if len(comment.reactions) > before else 200, shape)
