"""A remote, and what git is started with for it: of this machine's settings nothing but the way to the network."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bot.errors import UserError
from bot.memory.git_errors import AuthFailed

_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_INHERITED = (
    "PATH",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    *_PROXIES,
    *(name.upper() for name in _PROXIES),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_SETTINGS = {
    "advice.pushUpdateRejected": "false",
    "core.autocrlf": "false",
    "core.bigFileThreshold": "100m",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.symlinks": "false",
    "credential.helper": "",
    "fastimport.unpackLimit": "1",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "protocol.http.allow": "always",
    "protocol.https.allow": "always",
    "transfer.fsckObjects": "true",
}
# `git check-ref-format`, without the names that an option parser could take for its own.
_BRANCH = re.compile(
    r"(?![-/@]|.*(?:\.\.|@\{|//|/\.|\.lock/))[^\x00-\x20\x7f~^:?*\[\\.\ud800-\udfff]"
    r"[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]{0,199}"
)


@dataclass(frozen=True)
class Remote:
    """Where to fetch from and push to. ``url`` is http(s), or the path of a repository on this machine."""

    url: str
    token: str | None = None
    no_access: ClassVar[str] = AuthFailed.usual_remedy
    """What to do where the server knows nobody, or not somebody who may."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(?:https?://[^\x00-\x20/@]+)?/[^\x00-\x20\x7f]*", self.url):
            raise UserError(
                f"not a repository address: {self.redacted(self.url)[:200]!r}; give https://HOST/OWNER/NAME,"
                " without a user name, or an absolute path"
            )

    def settings(self, leaving_out: str = "") -> dict[str, str]:
        """The settings of git for it. Without a filter git knows of no missing objects, and fetches none by itself."""
        found = {"remote.origin.url": self.url}
        if leaving_out:
            found |= {"remote.origin.promisor": "true", "remote.origin.partialclonefilter": leaving_out}
        if self.url.startswith("/"):
            found["protocol.file.allow"] = "always"  # a repository on this machine was asked for by its path
        elif self.token:
            found[f"http.{self.url}.extraheader"] = f"AUTHORIZATION: basic {self._basic}"
        return found

    def environment(self, settings: Mapping[str, str], home: Path) -> dict[str, str]:
        """What git is started with: of this machine's settings nothing but the way to the network."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return inherited | _ENVIRONMENT | given({**_SETTINGS, **settings}) | {"HOME": str(home)}

    def redacted(self, words: str) -> str:
        """``words`` without the token, plain or encoded."""
        for secret in (self.token, self._basic) if self.token else ():
            words = words.replace(secret or "", "***")
        return re.sub(r"://[^/@\s]{1,300}@", "://***@", words)

    @property
    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()


def at(url: str | Remote, token: str | None) -> Remote:
    """The remote at this address, or the one that is given, which has what it needs."""
    return Remote(url, token) if isinstance(url, str) else url


def given(settings: Mapping[str, str]) -> dict[str, str]:
    """These settings as git takes them from its environment. https://git-scm.com/docs/git-config#ENVIRONMENT"""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for at, (key, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return found


def checked_branch(name: str) -> str:
    """``name`` itself, when git would take it as a branch's name; else UserError."""
    if name == "HEAD" or not _BRANCH.fullmatch(name) or name.endswith((".", "/", ".lock")):
        raise UserError(f"branch: {name[:80]!r} is not a branch name; use letters, digits, '-', '_' and '/'")
    return name
