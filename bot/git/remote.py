"""A remote, and what git is started with for it: of this machine's settings only the way to the network."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from bot.errors import UserError
from bot.git.errors import AuthFailed

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
        found = _address_settings(self.url, leaving_out)
        if self.url.startswith("/"):
            found["protocol.file.allow"] = "always"  # a repository on this machine was asked for by its path
        elif self.token:
            found[f"http.{self.url}.extraheader"] = f"AUTHORIZATION: basic {self._basic}"
        return found

    def environment(self, settings: Mapping[str, str], home: Path) -> dict[str, str]:
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


def _address_settings(url: str, leaving_out: str) -> dict[str, str]:
    found = {"remote.origin.url": url}
    if leaving_out:
        found |= {"remote.origin.promisor": "true", "remote.origin.partialclonefilter": leaving_out}
    return found


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


_ADDRESS = re.compile(
    r"(?:https?|ssh|git|file)://[^\x00-\x20\x7f]*"  # a URL
    r"|/[^\x00-\x1f\x7f]*"  # a folder
    r"|(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9_.\[\]-]+:(?!:|//)[^\x00-\x20\x7f]+"  # host:path, as ssh has it
)
_OPTION = re.compile(r"(?:^|[@:\[\]])-|[\x00-\x20\x7f]")
"""Before the first slash: a user, host, port or path that ssh or git would take for an option, or a control character
that was hidden in percent signs."""

_OWN_SETTINGS = {
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.symlinks": "false",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "20",
    "maintenance.auto": "false",
    "protocol.ext.allow": "never",
    "transfer.fsckObjects": "true",
}
_OF_A_CHECKOUT = re.compile(
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|COMMON_DIR|TRACE.*"
    r"|CONFIG_COUNT|CONFIG_KEY_\d+|CONFIG_VALUE_\d+|CONFIG_PARAMETERS)"
)


@dataclass(frozen=True)
class OwnRemote(Remote):
    """Where the person's own git fetches from. Nothing asks for a password: where git has none, the fetch fails.

    The settings of the machine and of the person hold, such as credential helpers; those of a checkout do not, as
    whoever packed a folder may have written them.
    """

    no_access: ClassVar[str] = (
        "let your git reach it: see `git ls-remote` with this address; a password in the address of the remote, or a"
        " setting of this checkout alone, is not used"
    )

    def __post_init__(self) -> None:
        # Of a URL git decodes all before it looks for the host.
        plain = unquote(self.url.partition("://")[2]) if "://" in self.url else self.url
        if not _ADDRESS.fullmatch(self.url) or _OPTION.search(plain.partition("/")[0]):
            raise UserError(f"not the address of a repository: {self.redacted(self.url)[:200]!r}")

    def settings(self, leaving_out: str = "") -> dict[str, str]:
        return _address_settings(self.url, leaving_out)

    def environment(self, settings: Mapping[str, str], home: Path) -> dict[str, str]:  # noqa: ARG002 - theirs stays
        """What the person's programs are started with, but for what speaks of a checkout or would ask."""
        kept = {name: value for name, value in os.environ.items() if not _OF_A_CHECKOUT.fullmatch(name)}
        # Git is started without a terminal, so ssh has nowhere to ask but a program.
        asks_nobody = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
        return kept | asks_nobody | given({**_OWN_SETTINGS, **settings})
