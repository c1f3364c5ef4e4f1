"""Errors of git, grouped by remedy, and how to recognise them in git's output."""

from __future__ import annotations

import re

from bot.errors import StoreError, TextRefused
from bot.files import DiskFault, TooManyFiles


class GitError(StoreError):
    """Git failed; the message is one line without secrets."""

    usual_remedy = ""


class RemoteRefused(GitError):
    """The server's rules forbid this push (protected branch, ruleset, hook, archived repository)."""

    usual_remedy = (
        "leave `precedent` out of the rule, let this token's App bypass it, or set `branch` to a name without one"
    )


class SecretRefused(RemoteRefused, TextRefused):
    """The server's push protection takes something in the push for a secret."""

    usual_remedy = "let it through at that address, or comment `/precedent forget` on the issue with it"

    def __init__(self, cause: str, remedy: str = "") -> None:
        TextRefused.__init__(self, cause, remedy, ((path, int(line or 1)) for path, line in _PLACE.findall(cause)))


class Archived(RemoteRefused):
    """The repository was archived: nothing can be written until it is unarchived."""

    usual_remedy = "nothing can be remembered or posted there"


class AuthFailed(GitError):
    """The server does not know the token (401), or the token may not do this (403; 404 for a private repository)."""

    usual_remedy = "check the token, and give the job `permissions: contents: write`"


class RefMissing(GitError):
    """The remote has no such branch."""

    usual_remedy = "check the branch name"


class PushRejected(GitError):
    """Another process moved the branch first: fetch, apply the changes again and push again."""

    usual_remedy = "fetch and try again"


class PushRaced(PushRejected):
    """The same, detected by the server while moving the branch; or a push that arrived twice and succeeded."""


class RemoteUnreachable(GitError):
    """No answer, or the server is busy: the same call may work a moment later."""

    usual_remedy = "check the network and the server's status, then run again"


class FilterRefused(GitError):
    """The server does not support this kind of partial clone."""

    usual_remedy = "ask for more"


# In this order, since local faults are followed by "the remote end hung up", refusals of a protected branch also say
# "remote rejected", and those of an archived repository also say "403".
_ERROR_PATTERNS: tuple[tuple[type[GitError | DiskFault], re.Pattern[str]], ...] = (
    (TooManyFiles, re.compile(r"Too many open files")),
    (
        DiskFault,
        re.compile(
            r"No space left on device|Read-only file system|Disk quota exceeded|"
            r"unable to (?:create temporary|write (?:sha1|object|loose object))",
            re.IGNORECASE,
        ),
    ),
    # The third: the base of a push is gone, because the branch was deleted or its history rewritten.
    (GitError, re.compile(r"unable to read [0-9a-f]{40}|bad object|shallow update not allowed")),
    (FilterRefused, re.compile(r"filter '[^']{0,100}' not supported|tree filter allows max depth")),
    (PushRejected, re.compile(r"\[rejected\] \((?:fetch first|non-fast-forward|stale info)")),
    (
        PushRaced,
        re.compile(r"cannot lock ref|failed to update ref|failed to lock|reference already exists|incorrect old value"),
    ),
    (Archived, re.compile(r"was archived")),
    (SecretRefused, re.compile(r"[Pp]ush cannot contain secrets|push protection|secret-scanning")),
    (RemoteRefused, re.compile(r"GH0\d\d|protected branch|was archived|read-only so|remote rejected")),
    (RefMissing, re.compile(r"couldn't find remote ref")),
    (
        AuthFailed,
        re.compile(
            r"Authentication failed|could not read (?:Username|Password)|(?:returned error:|HTTP) 40[13]\b|"
            r"Permission to |Permission denied \(|Host key verification failed|Resource not accessible|"
            r"repository '[^']{1,400}' not found|Write access to repository not",
            re.IGNORECASE,
        ),
    ),
    (
        RemoteUnreachable,
        re.compile(
            r"Could not resolve|Failed to connect|Couldn't connect|Network is unreachable|No route to host|timed out|"
            r"(?:returned error:|HTTP) (?:429|5\d\d)|"
            r"Timeout|Connection (?:refused|reset|closed|timed)|early EOF|RPC failed|hung up|unexpected disconnect|"
            r"Empty reply|Recv failure|expected flush|body are still expected|transfer closed|SSL_|GnuTLS|"
            r"bad line length"
        ),
    ),
)
# The most telling line comes first.
_REASON_PATTERNS = (
    re.compile(r"GH0\d\d|was archived|^ssh: |Permission denied \("),
    re.compile(r"^! "),
    re.compile(r"^(?:fatal|error):"),
    re.compile(""),
)
_RULE_LINE = re.compile(r"^remote: (?:error: )?[-\u2014\u2013 ]*(?=[^\W_])(.+?)[-\u2014\u2013 ]*$")
_PLACE = re.compile(r"\bpath: (\S+?)(?::(\d{1,9}))?(?=[;\s]|\Z)")
"""The place of a secret, as GitHub names it."""

_MAX_REASON_CHARS, _MAX_RULE_CHARS = 300, 900


def parse_error(verb: str, output: str, no_access: str = AuthFailed.usual_remedy) -> GitError | DiskFault:
    """Return the error in git's ``output`` (already redacted), as one line that ends with the remedy.

    ``no_access`` is the remedy when the server refuses access.
    """
    kind = next((kind for kind, marks in _ERROR_PATTERNS if marks.search(output)), GitError)
    lines = [" ".join(line.split()) for line in output.replace("\r", "\n").splitlines() if line.strip()]
    telling_line = next((line for sign in _REASON_PATTERNS for line in lines if sign.search(line)), "it gave no reason")
    limit = _MAX_REASON_CHARS
    if issubclass(kind, RemoteRefused):  # the first line only names the kind of rule
        rule = dict.fromkeys(match[1].rstrip(" .") for line in lines if (match := _RULE_LINE.match(line)))
        telling_line, limit = "; ".join(rule) or telling_line, _MAX_RULE_CHARS
    sentence = "".join(char for char in telling_line if char.isprintable())[:limit]
    return kind(f"git {verb}: {sentence}", no_access if kind is AuthFailed else kind.usual_remedy)
