"""The result of a check, its severity, and the links that help to fix it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote, urlsplit

from bot.domain.hosts import GITHUB, is_hosted

Level = Literal["ok", "note", "warning", "error"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One finding on one line. ``remedy``: a command in backticks, or what to change; "" if none is needed.

    ``outside``: the reader cannot fix it, for example because a server does not answer. Both texts may quote
    strangers.
    """

    check: str
    level: Level
    says: str
    remedy: str = ""
    outside: bool = False

    @property
    def is_problem(self) -> bool:
        return self.level in ("warning", "error")


def exit_code(findings: Iterable[CheckResult]) -> int:
    """2 for an error that the user can fix, 1 for warnings and outside failures, else 0."""
    problems = [each for each in findings if each.is_problem]
    if any(each.level == "error" and not each.outside for each in problems):
        return 2
    return 1 if problems else 0


def format_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def abbreviate(names: Iterable[str], most: int = 3) -> str:
    """The first few of these names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(f"{name:.120}" for name in listed[:most]) + more


@dataclass(frozen=True, slots=True)
class RepositoryLinks:
    """A repository on its server, or a store in the folder ``store`` (the other fields are then unused).

    ``api`` is the address of the API; ``workflow`` the file name of the workflow that runs the Action; ``is_checkout``:
    the folder is a checkout of the branch, not a store made of archives.
    """

    repository: str = ""
    server: str = GITHUB
    api: str = ""
    branch: str = "precedent"
    workflow: str = "precedent.yml"
    store: str = ""
    is_checkout: bool = False

    @property
    def remote(self) -> str:
        return f"{self.server}/{self.repository}.git"

    def page(self, path: str) -> str:
        return f"{self.server}/{self.repository}/{path}"

    @property
    def trusts_tokens(self) -> bool:
        """Whether a token for GitHub may go to this server without `--server`."""
        host = urlsplit(self.server).hostname or ""
        return self.server.startswith("https://") and is_hosted(host)

    def rebuild_remedy(self) -> str:
        """How to rebuild the memory now."""
        if self.is_checkout:
            return "start the workflow by hand (Run workflow) with rebuild, then fetch the branch again"
        if self.store:
            return "read the archives into a new folder: `precedent import FILE --store NEW_FOLDER`"
        page = self.page(f"actions/workflows/{quote(self.workflow, errors='replace')}")
        return f"start the workflow by hand (Run workflow) with rebuild: {page}"


def api_of(server: str) -> str:
    """The API of a server; for your own: https://docs.github.com/enterprise-server/rest/quickstart."""
    host = urlsplit(server).netloc
    if is_hosted(host):
        return f"https://api.{host}"
    return f"{server}/api/v3"


def token_remedy(target: RepositoryLinks) -> str:
    page = f"{target.server}/settings/tokens"
    return f"set PRECEDENT_TOKEN to a token that may read {target.repository}; create one at {page}"
