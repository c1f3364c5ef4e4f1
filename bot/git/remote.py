"""A remote, and the settings and environment that git is started with for it."""

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
from bot.git.process import QUIET_ENVIRONMENT, inherit

_PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_INHERITED = (
    "PATH",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    *_PROXY_VARIABLES,
    *(name.upper() for name in _PROXY_VARIABLES),
)
_ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
_SETTINGS = {
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.fsync": "none",  # anything lost in a power cut is still on the server
    "core.hooksPath": os.devnull,
    "core.symlinks": "false",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "maintenance.auto": "false",
    "transfer.fsckObjects": "true",
}
_SERVER_SETTINGS = {
    "advice.pushUpdateRejected": "false",
    "core.bigFileThreshold": "100m",
    "credential.helper": "",
    "fastimport.unpackLimit": "1",
    "http.lowSpeedTime": "60",
    "protocol.allow": "never",
    "protocol.http.allow": "always",
    "protocol.https.allow": "always",
}
_OWN_SETTINGS = {"http.lowSpeedTime": "20", "protocol.ext.allow": "never"}
# The rules of `git check-ref-format`, without names that look like an option.
_BRANCH = re.compile(
    r"(?![-/@]|.*(?:\.\.|@\{|//|/\.|\.lock/))[^\x00-\x20\x7f~^:?*\[\\.\ud800-\udfff]"
    r"[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]{0,199}"
)


@dataclass(frozen=True)
class Remote:
    """A repository to fetch from and push to. ``url`` is http(s), or a path on this machine."""

    url: str
    token: str | None = None
    no_access: ClassVar[str] = AuthFailed.usual_remedy
    """The remedy when the server refuses access."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(?:https?://[^\x00-\x20/@]+)?/[^\x00-\x20\x7f]*", self.url):
            raise UserError(
                f"not a repository address: {self.redact(self.url)[:200]!r}; give https://HOST/OWNER/NAME,"
                " without a user name, or an absolute path"
            )

    def settings(self, filter_spec: str = "") -> dict[str, str]:
        """Git's settings for this remote. Without a filter, git does not fetch missing objects by itself."""
        config = _address_settings(self.url, filter_spec)
        if self.url.startswith("/"):
            config["protocol.file.allow"] = "always"  # the path of a repository on this machine was given
        elif self.token:
            config[f"http.{self.url}.extraheader"] = f"AUTHORIZATION: basic {self._basic}"
        return config

    def environment(self, settings: Mapping[str, str], home: Path) -> dict[str, str]:
        """Git's environment: of this machine's settings, only those for network access."""
        variables = config_variables({**_SETTINGS, **_SERVER_SETTINGS, **settings})
        return inherit(_INHERITED) | QUIET_ENVIRONMENT | _ENVIRONMENT | variables | {"HOME": str(home)}

    def redact(self, text: str) -> str:
        """Remove the token, plain or encoded, from ``text``."""
        for secret in (self.token, self._basic) if self.token else ():
            text = text.replace(secret or "", "***")
        return re.sub(r"://[^/@\s]{1,300}@", "://***@", text)

    @property
    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()


def _address_settings(url: str, filter_spec: str) -> dict[str, str]:
    settings = {"remote.origin.url": url}
    if filter_spec:
        settings |= {"remote.origin.promisor": "true", "remote.origin.partialclonefilter": filter_spec}
    return settings


def as_remote(url: str | Remote, token: str | None) -> Remote:
    """Return the remote at this address, or a given remote unchanged."""
    return Remote(url, token) if isinstance(url, str) else url


def config_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """These settings as environment variables. https://git-scm.com/docs/git-config#ENVIRONMENT"""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for at, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return variables


def checked_branch(name: str) -> str:
    """Return ``name`` if git accepts it as the name of a branch. Raises UserError."""
    if name == "HEAD" or not _BRANCH.fullmatch(name) or name.endswith((".", "/", ".lock")):
        raise UserError(f"branch: {name[:80]!r} is not a branch name; use letters, digits, '-', '_' and '/'")
    return name


_ADDRESS = re.compile(
    r"(?:https?|ssh|git|file)://[^\x00-\x20\x7f]*"  # a URL
    r"|/[^\x00-\x1f\x7f]*"  # a folder
    r"|(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9_.\[\]-]+:(?!:|//)[^\x00-\x20\x7f]+"  # host:path, as in ssh
)
_OPTION = re.compile(r"(?:^|[@:\[\]])-|[\x00-\x20\x7f]")
"""Before the first slash: a user, host, port or path that ssh or git would mistake for an option, or a control
character hidden by percent encoding."""

_CHECKOUT_VARIABLE = re.compile(
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|COMMON_DIR|TRACE.*"
    r"|CONFIG_COUNT|CONFIG_KEY_\d+|CONFIG_VALUE_\d+|CONFIG_PARAMETERS)"
)


@dataclass(frozen=True)
class OwnRemote(Remote):
    """A repository that the user's own git fetches from. Git never prompts for a password: without one the fetch fails.

    The settings of the machine and the user apply, such as credential helpers. Those of a checkout do not, since they
    may be a stranger's.
    """

    no_access: ClassVar[str] = (
        "check that git can reach it: run `git ls-remote` with this address; a password in the remote's address or a"
        " setting of this checkout alone is not used"
    )

    def __post_init__(self) -> None:
        # Git decodes all of a URL before it looks for the host.
        plain = unquote(self.url.partition("://")[2]) if "://" in self.url else self.url
        if not _ADDRESS.fullmatch(self.url) or _OPTION.search(plain.partition("/")[0]):
            raise UserError(f"not the address of a repository: {self.redact(self.url)[:200]!r}")

    def settings(self, filter_spec: str = "") -> dict[str, str]:
        return _address_settings(self.url, filter_spec)

    def environment(self, settings: Mapping[str, str], home: Path) -> dict[str, str]:  # noqa: ARG002 - the user's stays
        """Our own environment, without variables that name a checkout, and with all prompts disabled."""
        kept = {name: value for name, value in os.environ.items() if not _CHECKOUT_VARIABLE.fullmatch(name)}
        # Git is started without a terminal, so ssh could only prompt through a program.
        no_prompts = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
        return kept | no_prompts | config_variables({**_SETTINGS, **_OWN_SETTINGS, **settings})
