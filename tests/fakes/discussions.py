"""Discussions: what people do in them, and their form in the payload of a webhook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.fakes.archive import ArchivedProject
from tests.fakes.history import one_at_a_time
from tests.fakes.objects import Json, Shapes, node_id
from tests.fakes.state import Discussion, DiscussionComment, Moment

ANSWERABLE = "Q&A"
UNARCHIVED = {"archived_at": None, "archived_by": None}
"""Fields that only the labels of a discussion have."""


class DiscussedProject(ArchivedProject):
    """A project with discussions. The first one switches discussions on."""

    def discussion(self, number: int) -> Discussion:
        """The state of a discussion, to look at."""
        return self.repo.discussions[number]

    def known_discussion(self, number: int) -> Discussion:
        return self.repo.discussions.get(number) or self.repo.lost_discussions[number]

    @one_at_a_time
    def discuss(
        self,
        author: str | None,
        title: str,
        body: str = "",
        at: Moment = None,
        category: str = ANSWERABLE,
        labels: Iterable[str] = (),
    ) -> int:
        """Open a discussion, in the same space of numbers as issues."""
        account, moment = self.world.account(author), self.world.clock.stamp(at)
        number, role = self.repo.next_number, self.association(account)
        self.repo.next_number += 1
        self.repo.has_discussions = True
        discussion = Discussion(
            self.repo, number, self.world.next_id(), title, body, account, role, moment, moment, category
        )
        discussion.labels = list(labels)
        self.repo.discussions[number] = discussion
        return number

    @one_at_a_time
    def say(self, number: int, author: str | None, text: str, at: Moment = None, to: int | None = None) -> int:
        """Comment in a discussion, or reply ``to`` a comment."""
        discussion, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        account = self.world.account(author)
        parent = self._comment_in(discussion, to) if to else None
        comment = DiscussionComment(
            self.world.next_id(), discussion, account, self.association(account), text, moment, moment, parent=parent
        )
        discussion.comments.append(comment)
        discussion.touch(moment)
        return comment.id

    @one_at_a_time
    def edit_discussion_comment(self, number: int, comment_id: int, text: str, at: Moment = None) -> None:
        discussion, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        comment = self._comment_in(discussion, comment_id)
        comment.body, comment.updated_at = text, moment
        discussion.touch(moment)

    @one_at_a_time
    def delete_discussion_comment(self, number: int, comment_id: int, at: Moment = None) -> None:
        """A comment with replies stays as an empty one; any other disappears."""
        discussion, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        comment = self._comment_in(discussion, comment_id)
        if any(reply.parent is comment for reply in discussion.comments):
            comment.body, comment.deleted_at = "", moment
        else:
            discussion.comments.remove(comment)
        if discussion.answer is comment:
            discussion.answer = discussion.answered_at = discussion.answered_by = None
        discussion.touch(moment)

    @one_at_a_time
    def mark_answer(self, number: int, comment_id: int, by: str, at: Moment = None) -> None:
        discussion, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        discussion.answer, discussion.answered_at = self._comment_in(discussion, comment_id), moment
        discussion.answered_by = self.world.account(by)
        discussion.touch(moment)

    @one_at_a_time
    def unmark_answer(self, number: int, at: Moment = None) -> None:
        discussion = self.repo.discussions[number]
        discussion.answer = discussion.answered_at = discussion.answered_by = None
        discussion.touch(self.world.clock.stamp(at))

    @one_at_a_time
    def close_discussion(self, number: int, reason: str = "resolved", at: Moment = None) -> None:
        discussion, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        discussion.closed, discussion.closed_at, discussion.state_reason = True, moment, reason
        discussion.touch(moment)

    @one_at_a_time
    def delete_discussion(self, number: int) -> None:
        self.repo.lost_discussions[number] = self.repo.discussions.pop(number)

    @one_at_a_time
    def transfer_discussion(self, number: int, other: DiscussedProject) -> int:
        """Move it to another project; returns its number there."""
        gone = self.repo.discussions.pop(number)
        self.repo.lost_discussions[number] = gone
        login = gone.author.login if gone.author else None
        new_number = other.discuss(login, gone.title, gone.body, gone.created_at, gone.category)
        gone.moved_to = other.discussion(new_number)
        return new_number

    @staticmethod
    def _comment_in(discussion: Discussion, comment_id: int) -> DiscussionComment:
        return next(comment for comment in discussion.comments if comment.id == comment_id)


def discussion_url(shapes: Shapes, discussion: Discussion) -> str:
    return f"{shapes.site}/{discussion.repo.full_name}/discussions/{discussion.number}"


def message_url(shapes: Shapes, comment: DiscussionComment) -> str:
    return f"{discussion_url(shapes, comment.discussion)}#discussioncomment-{comment.id}"


def discussion_shape(shapes: Shapes, discussion: Discussion) -> Json:
    """A discussion in the payload of a webhook; the REST API has none."""
    url = discussion_url(shapes, discussion)
    answer = discussion.answer
    return {
        "repository_url": shapes.repo_url(discussion.repo),
        "category": _category(discussion),
        "answer_html_url": message_url(shapes, answer) if answer else None,
        "answer_chosen_at": discussion.answered_at,
        "answer_chosen_by": shapes.account(discussion.answered_by),
        "html_url": url,
        "id": discussion.id,
        "node_id": node_id("D", discussion.id),
        "number": discussion.number,
        "title": discussion.title,
        "user": shapes.account(discussion.author),
        "labels": [shapes.label(discussion.repo, name) | UNARCHIVED for name in discussion.labels],
        "state": "closed" if discussion.closed else "open",
        "state_reason": discussion.state_reason,
        "locked": discussion.locked,
        "comments": len(discussion.comments),
        "created_at": discussion.created_at,
        "updated_at": discussion.updated_at,
        "author_association": discussion.association,
        "active_lock_reason": None,
        "body": discussion.body,
        "reactions": shapes.reactions(url, discussion.reactions),
        "timeline_url": f"{shapes.repo_url(discussion.repo)}/discussions/{discussion.number}/timeline",
    }


def _category(discussion: Discussion) -> dict[str, Any]:
    number = sum(discussion.category.encode()) + 32_000_000
    return {
        "id": number,
        "node_id": node_id("DIC", number),
        "repository_id": discussion.repo.id,
        "emoji": ":pray:",
        "name": discussion.category,
        "description": "",
        "created_at": discussion.repo.created_at,
        "updated_at": discussion.repo.created_at,
        "slug": discussion.category.lower(),
        "is_answerable": discussion.category == ANSWERABLE,
    }


def comment_shape(shapes: Shapes, comment: DiscussionComment) -> Json:
    url = message_url(shapes, comment)
    return {
        "id": comment.id,
        "node_id": node_id("DC", comment.id),
        "html_url": url,
        "parent_id": comment.parent.id if comment.parent else None,
        "child_comment_count": sum(other.parent is comment for other in comment.discussion.comments),
        "repository_url": comment.discussion.repo.full_name,
        "discussion_id": comment.discussion.id,
        "author_association": comment.association,
        "user": shapes.account(comment.author),
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
        "body": comment.body,
        "reactions": shapes.reactions(url, comment.reactions),
    }
