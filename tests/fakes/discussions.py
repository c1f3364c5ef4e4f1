"""Discussions: the verbs with which people make them, and their shape in the payload of a webhook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.fakes.archive import ArchivedProject
from tests.fakes.history import one_at_a_time
from tests.fakes.objects import Json, Shapes, node_id
from tests.fakes.state import Discussion, Moment, Said

ANSWERABLE = "Q&A"
UNARCHIVED = {"archived_at": None, "archived_by": None}
"""What only the labels of a discussion tell."""


class DiscussedProject(ArchivedProject):
    """A project in which people discuss. The first discussion switches discussions on."""

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
        made = Discussion(self.repo, number, self.world.next_id(), title, body, account, role, moment, moment, category)
        made.labels = list(labels)
        self.repo.discussions[number] = made
        return number

    @one_at_a_time
    def say(self, number: int, author: str | None, text: str, at: Moment = None, to: int | None = None) -> int:
        """Comment in a discussion, or reply ``to`` a comment."""
        there, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        account = self.world.account(author)
        parent = self._said(there, to) if to else None
        said = Said(
            self.world.next_id(), there, account, self.association(account), text, moment, moment, parent=parent
        )
        there.comments.append(said)
        there.updated_at = max(there.updated_at, moment)
        return said.id

    @one_at_a_time
    def edit_said(self, number: int, comment_id: int, text: str, at: Moment = None) -> None:
        there, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        said = self._said(there, comment_id)
        said.body, said.updated_at = text, moment
        there.updated_at = max(there.updated_at, moment)

    @one_at_a_time
    def delete_said(self, number: int, comment_id: int, at: Moment = None) -> None:
        """A comment with replies stays as an empty one; any other is gone."""
        there, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        said = self._said(there, comment_id)
        if any(one.parent is said for one in there.comments):
            said.body, said.deleted_at = "", moment
        else:
            there.comments.remove(said)
        if there.answer is said:
            there.answer = there.answered_at = there.answered_by = None
        there.updated_at = max(there.updated_at, moment)

    @one_at_a_time
    def mark_answer(self, number: int, comment_id: int, by: str, at: Moment = None) -> None:
        there, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        there.answer, there.answered_at = self._said(there, comment_id), moment
        there.answered_by = self.world.account(by)
        there.updated_at = max(there.updated_at, moment)

    @one_at_a_time
    def unmark_answer(self, number: int, at: Moment = None) -> None:
        there = self.repo.discussions[number]
        there.answer = there.answered_at = there.answered_by = None
        there.updated_at = max(there.updated_at, self.world.clock.stamp(at))

    @one_at_a_time
    def close_discussion(self, number: int, reason: str = "resolved", at: Moment = None) -> None:
        there, moment = self.repo.discussions[number], self.world.clock.stamp(at)
        there.closed, there.closed_at, there.state_reason = True, moment, reason
        there.updated_at = max(there.updated_at, moment)

    @one_at_a_time
    def delete_discussion(self, number: int) -> None:
        self.repo.lost_discussions[number] = self.repo.discussions.pop(number)

    @one_at_a_time
    def transfer_discussion(self, number: int, other: DiscussedProject) -> int:
        """It gets a new number there, and answers nothing here."""
        gone = self.repo.discussions.pop(number)
        self.repo.lost_discussions[number] = gone
        login = gone.author.login if gone.author else None
        there = other.discuss(login, gone.title, gone.body, gone.created_at, gone.category)
        gone.moved_to = other.discussion(there)
        return there

    @staticmethod
    def _said(there: Discussion, comment_id: int) -> Said:
        return next(said for said in there.comments if said.id == comment_id)


def discussion_url(shapes: Shapes, discussion: Discussion) -> str:
    return f"{shapes.site}/{discussion.repo.full_name}/discussions/{discussion.number}"


def message_url(shapes: Shapes, said: Said) -> str:
    return f"{discussion_url(shapes, said.discussion)}#discussioncomment-{said.id}"


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


def comment_shape(shapes: Shapes, said: Said) -> Json:
    url = message_url(shapes, said)
    return {
        "id": said.id,
        "node_id": node_id("DC", said.id),
        "html_url": url,
        "parent_id": said.parent.id if said.parent else None,
        "child_comment_count": sum(one.parent is said for one in said.discussion.comments),
        "repository_url": said.discussion.repo.full_name,
        "discussion_id": said.discussion.id,
        "author_association": said.association,
        "user": shapes.account(said.author),
        "created_at": said.created_at,
        "updated_at": said.updated_at,
        "body": said.body,
        "reactions": shapes.reactions(url, said.reactions),
    }
