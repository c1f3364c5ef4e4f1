"""A git server over HTTP that behaves like GitHub's: git's own programs behind a small streaming server."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.fakes.faults import FaultPlan
from tests.fakes.git_handler import USER, WRITE_SERVICE, GitHandler, ServedRequest
from tests.fakes.httpd import Loopback
from tests.fakes.state import DEFAULT_TOKEN

MAIN = "refs/heads/main"
REFUSALS = {
    "GH006": "error: GH006: Protected branch update failed for $ref.\nerror: Changes need a pull request.",
    "GH013": "error: GH013: Repository rule violations found for $ref.\n- Cannot update this protected ref.",
    "push protection": "error: GH013: Rule violations found for $ref.\n- Push cannot contain secrets\n  path: x:1",
    "archived": "This repository was archived so it is read-only.",
}
HOOK = """#!/bin/sh
while read old new ref; do
    if [ "$ref" = "{ref}" ]; then
        cat >&2 <<END
{text}
END
        exit 1
    fi
done
"""


class GitServer(Loopback):
    """Serves ``{owner}/{repo}.git`` (and ``….wiki.git``) below a folder, from its creation until `stop`.

    ``tokens`` maps a token to ``read`` or ``write``; a token is the password of basic auth, and the user is
    ``x-access-token``. If ``access`` is set, it decides instead: token and ``{owner}/{repo}`` → ``write``, ``read``,
    "" for a repository that the token does not see, None for no token. ``bytes_in`` and ``bytes_out`` count bodies as
    sent over the wire, without HTTP headers.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.token = DEFAULT_TOKEN
        self.tokens = {DEFAULT_TOKEN: "write"}
        self.access: Callable[[str, str], str | None] | None = None
        self.faults = FaultPlan()
        self.requests: list[ServedRequest] = []
        self.bytes_in = self.bytes_out = 0
        self._lock = threading.Lock()
        super().__init__(GitHandler, port)

    def remote(self, full_name: str, token: str | None = None) -> str:
        """The URL to clone from, with the credentials in it (without them for an empty token)."""
        secret = self.token if token is None else token
        host = f"{USER}:{secret}@127.0.0.1" if secret else "127.0.0.1"
        return f"http://{host}:{self.server_port}/{full_name}.git"

    def create(self, full_name: str, branch: str = "main") -> Path:
        """Create an empty bare repository; returns its path."""
        path = self.folder / f"{full_name}.git"
        if path.is_symlink():
            path.unlink()
        command = ["git", "init", "--quiet", "--bare", "--initial-branch", branch, "--template=", str(path)]
        subprocess.run(command, check=True, env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull})
        return path

    def commit(
        self, full_name: str, path: str, content: str | bytes | None, ref: str = MAIN, *, mode: str = "100644"
    ) -> None:
        """Commit a file to a branch (None: delete it), as anybody with write access can; new branches start at main.

        ``mode`` 120000 makes it a symlink to ``content``.
        """
        repository = self.folder / f"{full_name}.git"
        bases = (_git(repository, "for-each-ref", "--format=%(objectname)", name) for name in (ref, MAIN))
        base = next(filter(None, bases), "")
        _git(repository, "read-tree", base or "--empty")
        line = f"0 {'0' * 40}\t{path}\n"
        if content is not None:
            data = content.encode() if isinstance(content, str) else content
            line = f"{mode} {_git(repository, 'hash-object', '-w', '--stdin', stdin=data)}\t{path}\n"
        _git(repository, "update-index", "--index-info", stdin=line.encode())
        tree = _git(repository, "write-tree")
        commit_id = _git(repository, "commit-tree", tree, *(["-p", base] if base else []), "-m", "Change")
        _git(repository, "update-ref", ref, commit_id)

    def rename(self, full_name: str, new_name: str) -> None:
        """Rename a repository; the old name redirects to it until `create` reuses that name."""
        old, new = self.folder / f"{full_name}.git", self.folder / f"{new_name}.git"
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
        old.symlink_to(new)

    def access_level(self, token: str, full_name: str) -> str | None:
        """What a token may do with a repository, according to ``access`` or ``tokens``."""
        return self.access(token, full_name) if self.access else self.tokens.get(token)

    def protect(self, full_name: str, branch: str, rule: str = "GH006") -> None:
        """Refuse every push to this branch: ``GH006`` (branch protection), ``GH013`` (a ruleset),
        ``push protection`` (for a secret in no file of ours) or ``archived``."""
        ref = f"refs/heads/{branch}"
        hook = self.folder / f"{full_name}.git" / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(HOOK.format(ref=ref, text=REFUSALS[rule]), encoding="utf-8")
        hook.chmod(0o755)

    def mark(self) -> None:
        """Reset the byte counters and forget the requests."""
        with self._lock:
            self.bytes_in = self.bytes_out = 0
            self.requests.clear()

    @property
    def pushes(self) -> int:
        """Pushes that reached the repository since the last `mark`, including refused ones."""
        return sum(served.method == "POST" and served.path.endswith(WRITE_SERVICE) for served in self.requests)

    def count(self, received: int = 0, sent: int = 0) -> None:
        with self._lock:
            self.bytes_in += received
            self.bytes_out += sent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _git(repository: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git without the machine's own settings; returns what it prints."""
    settings = ("user.name=octocat", "user.email=octocat@users.noreply.github.com", "core.fsync=none")
    options = [word for setting in settings for word in ("-c", setting)]
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(repository), *options, *arguments]
    return (
        subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, env=environment)
        .stdout.decode()
        .strip()
    )
