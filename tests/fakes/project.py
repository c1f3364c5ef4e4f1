"""Changes of a whole repository: permissions, releases, and issues that are deleted or transferred."""

from __future__ import annotations

from collections.abc import Iterable

from tests.fakes.commits import add_commit, fake_sha
from tests.fakes.history import History, one_at_a_time
from tests.fakes.state import ChangedFile, Commit, Event, Moment, Pull, Release


class Project(History):
    """A repository as a whole; `history.History` holds what happens to single issues."""

    @one_at_a_time
    def set_permission(self, login: str, role: str) -> None:
        """``role`` is ``admin``, ``maintain``, ``write``, ``triage``, ``read`` or ``none``."""
        self.world.ensure_account(login)
        self.repo.roles[login.lower()] = role

    @one_at_a_time
    def set_draft(self, number: int) -> None:
        self._pull(number).draft = True

    @one_at_a_time
    def retarget(self, number: int, base: str) -> None:
        """Set the base branch of a pull request."""
        self._pull(number).base = base

    def _pull(self, number: int) -> Pull:
        pull = self.repo.issues[number].pull
        assert pull is not None, f"#{number} is no pull request"
        return pull

    @one_at_a_time
    def switch_issues(self, *, on: bool) -> None:
        """Switch the repository's issues on or off."""
        self.repo.has_issues = on

    @one_at_a_time
    def rename_repo(self, full_name: str) -> None:
        """Rename the repository; its old name redirects to it."""
        owner, name = full_name.split("/")
        self.repo.owner, self.repo.name = self.world.ensure_account(owner), name
        self.world.names[full_name.lower()] = self.repo.id

    @one_at_a_time
    def delete_issue(self, number: int) -> None:
        """Delete the issue; it answers 410 from now on."""
        gone = self.repo.issues.pop(number)
        for comment in gone.comments:
            self.repo.comments.pop(comment.id, None)
        self.repo.deleted[number] = gone

    @one_at_a_time
    def hide_issue(self, number: int) -> None:
        """Hide the issue: it answers 404, like the issues of an author whom GitHub flagged as a spammer."""
        self.repo.outsiders[number] = self.repo.issues.pop(number)

    @one_at_a_time
    def show_issue(self, number: int) -> None:
        """Undo `hide_issue`."""
        self.repo.issues[number] = self.repo.outsiders.pop(number)

    @one_at_a_time
    def transfer(self, number: int, to: Project, actor: str | None = None, at: Moment = None) -> int:
        """Move the issue to another repository; its old number answers 301. Returns its number there."""
        issue = self.repo.issues.pop(number)
        issue.repo, issue.number = to.repo, to.repo.next_number
        to.repo.next_number += 1
        to.repo.issues[issue.number] = issue
        for comment in issue.comments:
            to.repo.comments[comment.id] = self.repo.comments.pop(comment.id)
        self.repo.moved[number] = (to.repo.id, issue.number)
        event = Event(self.world.next_id(), "transferred", self.world.account(actor), self.world.clock.stamp(at))
        issue.events.append(event)
        issue.touch(event.at)
        return issue.number

    @one_at_a_time
    def add_commit(
        self,
        message: str,
        author: str | None,
        at: Moment = None,
        files: Iterable[str] = (),
        sha: str | None = None,
        branch: str | None = None,
    ) -> str:
        """Add a commit on top of a branch (None: the default one); returns its SHA."""
        sha = sha or fake_sha(f"{message} {len(self.repo.commits)}")
        changed = [ChangedFile(path) for path in files]
        stamp = self.world.clock.stamp(at)
        add_commit(self.repo, Commit(sha, message, self.world.account(author), stamp, changed), branch)
        return sha

    @one_at_a_time
    def add_branch(self, name: str, at: str | None = None) -> None:
        """Add a branch at a commit (None: the newest of the default branch)."""
        self.repo.branches[name] = at or self.repo.branches[self.repo.default_branch]

    @one_at_a_time
    def add_release(
        self,
        tag: str,
        at: Moment = None,
        body: str = "",
        prerelease: bool = False,
        draft: bool = False,
        branch: str | None = None,
    ) -> None:
        """Release the newest commit of a branch (None: the default one)."""
        stamp = self.world.clock.stamp(at)
        self.repo.releases.append(Release(self.world.next_id(), tag, stamp, body, prerelease, draft))
        if not draft:
            self.add_tag(tag, self.repo.branches.get(branch or self.repo.default_branch))

    @one_at_a_time
    def add_tag(self, name: str, sha: str | None = None) -> None:
        self.repo.tags[name] = sha or self.repo.branches.get(self.repo.default_branch) or fake_sha(f"tag {name}")
