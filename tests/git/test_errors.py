"""Messages of git and GitHub, and their meaning."""

from __future__ import annotations

import pytest

from bot.errors import StoreError, WorldError
from bot.files import DiskFault, TooManyFiles
from bot.git.errors import (
    Archived,
    AuthFailed,
    FilterRefused,
    GitError,
    PushRaced,
    PushRejected,
    RefMissing,
    RemoteRefused,
    RemoteUnreachable,
    parse_error,
)

REJECTED = "!\ta1b2:refs/heads/p\t[remote rejected] "
NO_ACCESS = "fatal: unable to access 'https://x/y/': The requested URL returned error: "
GIT_MESSAGES: dict[type[WorldError], tuple[str, ...]] = {
    PushRejected: (
        "To https://x/y\n!\tabc:refs/heads/p\t[rejected] (fetch first)\nerror: failed to push some refs to 'https://x/y'",
        "!\tabc:refs/heads/p\t[rejected] (non-fast-forward)",
        "!\tabc:refs/heads/p\t[rejected] (stale info)",
    ),
    PushRaced: (
        f"remote: error: cannot lock ref 'refs/heads/p': is at 11 but expected 22\n{REJECTED}(failed to update ref)",
        f"{REJECTED}(cannot lock ref 'refs/heads/p': reference already exists)",
        f"{REJECTED}(incorrect old value provided)",
    ),
    RemoteRefused: (
        f"remote: error: GH006: Protected branch update failed.\n{REJECTED}(protected branch hook declined)",
        f"remote: error: GH013: Repository rule violations found for refs/heads/p.\n{REJECTED}(push declined)",
        f"{REJECTED}(pre-receive hook declined)",
        f"{REJECTED}(non-fast-forward)",
    ),
    Archived: (f"remote: This repository was archived so it is read-only.\n{NO_ACCESS}403",),
    AuthFailed: (
        f"remote: Permission to octocat/hello.git denied to github-actions[bot].\n{NO_ACCESS}403",
        f"remote: Write access to repository not granted.\n{NO_ACCESS}403",
        "remote: Invalid username or password.\nfatal: Authentication failed for 'https://github.com/x/'",
        "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
        "remote: Repository not found.\nfatal: repository 'https://github.com/octocat/none/' not found",
    ),
    RefMissing: ("fatal: couldn't find remote ref refs/heads/precedent",),
    FilterRefused: (
        "fatal: remote error: filter 'tree' not supported",
        "fatal: remote error: tree filter allows max depth 0, but got 2",
    ),
    RemoteUnreachable: (
        "fatal: unable to access 'x': Could not resolve host: github.com",
        f"{NO_ACCESS}502",
        f"{NO_ACCESS}429",
        "error: RPC failed; curl 56 GnuTLS recv error\nfetch-pack: unexpected disconnect\nfatal: early EOF",
        "fatal: the remote end hung up unexpectedly",
    ),
    TooManyFiles: ("error: cannot create async thread: Too many open files\nfatal: fetch-pack: unable to fork off",),
    DiskFault: (
        "fatal: write error: No space left on device\nfatal: index-pack failed",
        "error: unable to create temporary file: Read-only file system",
    ),
    GitError: ("fatal: bad object 1234", "", f"{REJECTED}(shallow update not allowed)"),
}


@pytest.mark.parametrize(
    ("kind", "words"), [(kind, words) for kind, messages in GIT_MESSAGES.items() for words in messages]
)
def test_each_git_message_becomes_the_right_error_in_one_line(kind: type[WorldError], words: str) -> None:
    error = parse_error("push", words)
    assert type(error) is kind
    assert isinstance(error, StoreError)
    assert str(error).startswith("git push: ")
    assert len(str(error).splitlines()) == 1
    assert kind is GitError or str(error).count("; ") >= 1


def test_control_characters_and_floods_from_the_server_stay_out_of_the_error() -> None:
    message = str(parse_error("fetch", "fatal: \x1b[31m::error::\u202e" + "x" * 100_000 + "\nremote: ::set-output::"))
    assert len(message) < 400
    assert message.isprintable()
