"""Webhook payloads and event files, as GitHub sends them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.discussions import DiscussedProject, comment_shape, discussion_shape
from tests.fakes.objects import Json, Shapes
from tests.fakes.project_objects import repository_shape
from tests.fakes.state import Account, Comment, Issue

Extra = Mapping[str, Any]

_CONTENT_PARTS: Mapping[str, Json] = {
    "push": {"ref": "refs/tags/v1", "before": "0" * 40, "after": "1" * 40, "commits": [], "head_commit": None},
    "gollum": {"pages": []},
    "release": {"release": {"id": 1, "tag_name": "v1"}},
}
"""What the events of a repository's content have besides the repository, for nothing in particular."""


class EventfulProject(DiscussedProject):
    """A project that makes the payloads of webhooks."""

    shapes: Shapes

    def payload(
        self,
        event_name: str,
        action: str | None = None,
        number: int | None = None,
        comment_id: int | None = None,
        extra: Extra | None = None,
    ) -> Json:
        """The current payload of ``issues``, ``issue_comment``, ``discussion``, ``discussion_comment``, ``push``,
        ``gollum``, ``release``, ``schedule`` or ``workflow_dispatch``.

        ``extra`` replaces or adds keys at the top level (``sender``, ``installation``, ``inputs``). Deleted issues and
        comments still have payloads. ``edited`` shows the changes of the last edit.
        """
        with self.world.lock:
            body: Json = {"action": action} if action else {}
            if event_name in ("discussion", "discussion_comment") and number is not None:
                body |= self._discussion_part(number, action, comment_id)
                body |= self._project_part(event_name, self.known_discussion(number).author)
                return body | dict(extra or {})
            issue = self._find_issue(number) if number is not None else None
            comment = self._find_comment(comment_id) if comment_id is not None else None
            if issue is not None:
                body |= self._issue_part(issue, action)
                body["issue"] |= {"number": number}  # a transferred issue has another number now
            if comment is not None:
                body["comment"] = self.shapes.comment(comment)
            body |= self._project_part(event_name, _sender(issue, comment))
            return body | dict(extra or {})

    def write_event(
        self,
        path: Path,
        event_name: str,
        action: str | None = None,
        number: int | None = None,
        comment_id: int | None = None,
        extra: Extra | None = None,
    ) -> Path:
        """Write the payload to the file to which ``GITHUB_EVENT_PATH`` will point."""
        body = self.payload(event_name, action, number, comment_id, extra)
        path.write_text(json.dumps(body, indent=2), encoding="utf-8")
        return path

    def _find_issue(self, number: int) -> Issue:
        if number in self.repo.moved:
            repo_id, new_number = self.repo.moved[number]
            return self.world.repositories[repo_id].issues[new_number]
        return self.repo.issues.get(number) or self.repo.deleted[number]

    def _find_comment(self, comment_id: int) -> Comment:
        return self.repo.comments.get(comment_id) or self.repo.removed[comment_id]

    def _issue_part(self, issue: Issue, action: str | None) -> Json:
        shape = self.shapes.issue(issue)
        shape.pop("closed_by")
        part: Json = {"issue": shape}
        if action == "edited":
            part["changes"] = dict(issue.changes)
        if action == "transferred":
            new_repository = repository_shape(self.shapes, issue.repo)
            part["changes"] = {"new_issue": dict(shape), "new_repository": new_repository}
        if action in ("labeled", "unlabeled") and issue.label_changed:
            part["label"] = self.shapes.label(issue.repo, issue.label_changed)
        return part

    def _discussion_part(self, number: int, action: str | None, comment_id: int | None) -> Json:
        discussion = self.known_discussion(number)
        part: Json = {"discussion": discussion_shape(self.shapes, discussion)}
        if comment_id is not None:
            comment = next(each for each in discussion.comments if each.id == comment_id)
            part["comment"] = comment_shape(self.shapes, comment)
        if action == "answered" and discussion.answer:
            part["answer"] = comment_shape(self.shapes, discussion.answer)
        if action == "transferred" and discussion.moved_to:
            new_repository = repository_shape(self.shapes, discussion.moved_to.repo)
            new_repository.pop("permissions")
            new = discussion_shape(self.shapes, discussion.moved_to)
            part["changes"] = {"new_discussion": new, "new_repository": new_repository}
        return part

    def _project_part(self, event_name: str, sender: Account | None) -> Json:
        repo = repository_shape(self.shapes, self.repo)
        repo.pop("permissions")
        part: Json = {"repository": repo, "sender": self.shapes.account(sender or self.repo.owner)}
        if event_name == "workflow_dispatch":
            workflow = ".github/workflows/precedent.yml"
            part |= {"inputs": None, "ref": f"refs/heads/{self.repo.default_branch}", "workflow": workflow}
        part |= _CONTENT_PARTS.get(event_name, {})
        if event_name == "schedule":
            part |= {"schedule": "17 3 * * *", "workflow": ".github/workflows/precedent.yml"}
        return part


def _sender(issue: Issue | None, comment: Comment | None) -> Account | None:
    if comment is not None:
        return comment.author
    return issue.author if issue is not None else None
