"""The fake's REST objects: the description's own examples, filled with values from the state."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.fakes.contract import load_example
from tests.fakes.state import ACTIONS_SLUG, REACTIONS, Account, Comment, Issue, Reaction, Repository

Json = dict[str, Any]
API, SITE = "https://api.github.com", "https://github.com"
SAMPLE = "octocat/Hello-World"
"""The repository of the description's examples."""
ACTIONS_APP_ID = 15368


def node_id(kind: str, number: int) -> str:
    return f"{kind}_kwDO{base64.urlsafe_b64encode(number.to_bytes(8, 'big')).decode().rstrip('=')}"


def from_node_id(text: str) -> tuple[str, int]:
    """The kind and number of a node id; ValueError if it is none of ours."""
    kind, _, rest = text.partition("_kwDO")
    return kind, int.from_bytes(base64.urlsafe_b64decode(rest + "=" * (-len(rest) % 4)), "big")


class Shapes:
    """Renders state for one client: ``base`` is the API's URL for it, ``site`` the URL of the web pages."""

    def __init__(self, base: str, site: str, apps: dict[str, int] | None = None) -> None:
        self.base = base
        self.site = site
        self.apps = {ACTIONS_SLUG: ACTIONS_APP_ID, **(apps or {})}
        self._samples: dict[str, str] = {}

    def sample(self, name: str, repo: Repository | None = None, **names: str) -> Any:
        """A fresh copy of an example; its URLs lead here, and those of the sample repository to ``repo``."""
        text = self._samples.get(name)
        if text is None:
            text = json.dumps(load_example(name)).replace(API, self.base).replace(SITE, self.site)
            self._samples[name] = text
        if repo is not None:
            text = text.replace(SAMPLE, repo.full_name)
        for old, new in names.items():
            text = text.replace(old, new)
        return json.loads(text)

    def account(self, account: Account | None) -> Json | None:
        """A user; None for a deleted account."""
        if account is None:
            return None
        login = account.login.replace("[bot]", "%5Bbot%5D")
        user: Json = self.sample("simple-user", octocat=login)
        app = account.login.removesuffix("[bot]")
        return user | {
            "login": account.login,
            "id": account.id,
            "node_id": node_id("BOT" if account.type == "Bot" else "U", account.id),
            "avatar_url": f"https://avatars.githubusercontent.com/u/{account.id}?v=4",
            "html_url": f"{self.site}/apps/{app}" if account.type == "Bot" else f"{self.site}/{account.login}",
            "type": account.type,
            "user_view_type": "public",
        }

    def app(self, slug: str | None) -> Json | None:
        if slug is None:
            return None
        app: Json = self.sample("integration")
        return app | {
            "id": self.apps.get(slug, 1),
            "slug": slug,
            "name": slug,
            "node_id": node_id("A", self.apps.get(slug, 1)),
            "html_url": f"{self.site}/apps/{slug}",
        }

    def repo_url(self, repo: Repository) -> str:
        return f"{self.base}/repos/{repo.full_name}"

    def html_url(self, issue: Issue) -> str:
        return f"{self.site}/{issue.repo.full_name}/{'pull' if issue.pull else 'issues'}/{issue.number}"

    def label(self, repo: Repository, name: str) -> Json:
        number = sum(name.encode("utf-8", "replace")) + 208_000_000
        return {
            "id": number,
            "node_id": node_id("LA", number),
            "url": f"{self.repo_url(repo)}/labels/{name.replace(' ', '%20')}",
            "name": name,
            "description": None,
            "color": "ededed",
            "default": False,
        }

    def reactions(self, url: str, reactions: Sequence[Reaction]) -> Json:
        counts = Counter(reaction.content for reaction in reactions)
        return {"url": f"{url}/reactions", "total_count": len(reactions)} | {name: counts[name] for name in REACTIONS}

    def reaction(self, reaction: Reaction) -> Json:
        return {
            "id": reaction.id,
            "node_id": node_id("REA", reaction.id),
            "user": self.account(reaction.author),
            "content": reaction.content,
            "created_at": reaction.at,
        }

    def issue(self, issue: Issue) -> Json:
        """An issue or pull request as the issues API shows it. An empty body is null, as on GitHub."""
        url = f"{self.repo_url(issue.repo)}/issues/{issue.number}"
        shape: Json = dict(load_example("issue"))
        for name in ("repository", "assignee", "pinned_comment", "milestone", "pull_request"):
            shape.pop(name, None)
        shape |= self._issue_urls(issue, url)
        shape |= {
            "id": issue.id,
            "node_id": node_id("PR" if issue.pull else "I", issue.id),
            "number": issue.number,
            "state": issue.state,
            "state_reason": issue.state_reason,
            "title": issue.title,
            "body": issue.body,
            "user": self.account(issue.author),
            "author_association": issue.association,
            "labels": [self.label(issue.repo, name) for name in issue.labels],
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "locked": issue.locked,
            "active_lock_reason": issue.lock_reason,
            "comments": len(issue.comments),
            "created_at": issue.created_at,
            "updated_at": issue.updated_at,
            "closed_at": issue.closed_at,
            "closed_by": self.account(issue.closed_by),
            "reactions": self.reactions(url, issue.reactions),
            "performed_via_github_app": self.app(issue.app),
        }
        return shape | self._pull_part(issue)

    def _issue_urls(self, issue: Issue, url: str) -> Json:
        return {
            "url": url,
            "repository_url": self.repo_url(issue.repo),
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "timeline_url": f"{url}/timeline",
            "html_url": self.html_url(issue),
        }

    def _pull_part(self, issue: Issue) -> Json:
        if issue.pull is None:
            return {}
        page = self.html_url(issue)
        links = {
            "url": f"{self.repo_url(issue.repo)}/pulls/{issue.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": issue.pull.merged_at,
        }
        return {"draft": issue.pull.draft, "pull_request": links}

    def comment(self, comment: Comment) -> Json:
        issue = comment.issue
        url = f"{self.repo_url(issue.repo)}/issues/comments/{comment.id}"
        shape: Json = dict(load_example("issue-comment"))
        return shape | {
            "id": comment.id,
            "node_id": node_id("IC", comment.id),
            "url": url,
            "html_url": f"{self.html_url(issue)}#issuecomment-{comment.id}",
            "issue_url": f"{self.repo_url(issue.repo)}/issues/{issue.number}",
            "body": comment.body,
            "user": self.account(comment.author),
            "author_association": comment.association,
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
            "reactions": self.reactions(url, comment.reactions),
            "performed_via_github_app": self.app(comment.app),
            "minimized": {"reason": comment.minimized.lower()} if comment.minimized else None,
        }
