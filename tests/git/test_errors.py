"""Messages of git and GitHub, and their meaning."""

from __future__ import annotations

import pytest

from bot.errors import StoreError, WorldError
from bot.files import DiskFault
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
GIT_MESSAGES: list[tuple[type[WorldError], str]] = [
    (
        PushRejected,
        (
            "To https://x/y\n"
            "!\tabc:refs/heads/p\t[rejected] (fetch first)\n"
            "error: failed to push some refs to 'https://x/y'"
        ),
    ),
    (PushRejected, "!\tabc:refs/heads/p\t[rejected] (non-fast-forward)"),
    (PushRejected, "!\tabc:refs/heads/p\t[rejected] (stale info)"),
    (
        PushRaced,
        f"remote: error: cannot lock ref 'refs/heads/p': is at 11 but expected 22\n{REJECTED}(failed to update ref)",
    ),
    (PushRaced, f"{REJECTED}(cannot lock ref 'refs/heads/p': reference already exists)"),
    (PushRaced, f"{REJECTED}(incorrect old value provided)"),
    (
        RemoteRefused,
        (
            "remote: error: GH006: Protected branch update failed for refs/heads/p.\n"
            f"{REJECTED}(protected branch hook declined)"
        ),
    ),
    (
        RemoteRefused,
        f"remote: error: GH013: Repository rule violations found for refs/heads/p.\n{REJECTED}(push declined)",
    ),
    (RemoteRefused, f"{REJECTED}(pre-receive hook declined)"),
    (RemoteRefused, f"{REJECTED}(non-fast-forward)"),
    (GitError, f"{REJECTED}(shallow update not allowed)"),
    (
        Archived,
        f"remote: This repository was archived so it is read-only.\n{NO_ACCESS}403",
    ),
    (
        AuthFailed,
        f"remote: Permission to octocat/hello.git denied to github-actions[bot].\n{NO_ACCESS}403",
    ),
    (
        AuthFailed,
        f"remote: Write access to repository not granted.\n{NO_ACCESS}403",
    ),
    (
        AuthFailed,
        "remote: Invalid username or password.\nfatal: Authentication failed for 'https://github.com/x/'",
    ),
    (AuthFailed, "fatal: could not read Username for 'https://github.com': terminal prompts disabled"),
    (
        AuthFailed,
        "remote: Repository not found.\nfatal: repository 'https://github.com/octocat/none/' not found",
    ),
    (RefMissing, "fatal: couldn't find remote ref refs/heads/precedent"),
    (FilterRefused, "fatal: remote error: filter 'tree' not supported"),
    (FilterRefused, "fatal: remote error: tree filter allows max depth 0, but got 2"),
    (RemoteUnreachable, "fatal: unable to access 'x': Could not resolve host: github.com"),
    (RemoteUnreachable, f"{NO_ACCESS}502"),
    (RemoteUnreachable, f"{NO_ACCESS}429"),
    (
        RemoteUnreachable,
        (
            "error: RPC failed; curl 56 GnuTLS recv error\n"
            "fetch-pack: unexpected disconnect while reading sideband packet\n"
            "fatal: early EOF"
        ),
    ),
    (RemoteUnreachable, "fatal: the remote end hung up unexpectedly"),
    (
        DiskFault,
        "fatal: write error: No space left on device\nfatal: index-pack failed",
    ),
    (DiskFault, "error: unable to create temporary file: Read-only file system"),
    (GitError, "fatal: bad object 1234"),
    (GitError, ""),
]


@pytest.mark.parametrize(("kind", "words"), GIT_MESSAGES)
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
