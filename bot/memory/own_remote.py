"""A remote as the person at this machine reaches it: with their ssh, their credentials, and no token of ours."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from bot.errors import UserError
from bot.memory.remote import Remote, given

_ADDRESS = re.compile(
    r"(?:https?|ssh|git|file)://[^\x00-\x20\x7f]*"  # a URL
    r"|/[^\x00-\x1f\x7f]*"  # a folder
    r"|(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9_.\[\]-]+:(?!:|//)[^\x00-\x20\x7f]+"  # host:path, as ssh has it
)
_OPTION = re.compile(r"(?:^|[@:\[\]])-|[\x00-\x20\x7f]")
"""Before the first slash: a user, host, port or path that ssh or git would take for an option, or a control character
that was hidden in percent signs."""

_SETTINGS = {
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
        """As `Remote.settings`, without a token."""
        found = {"remote.origin.url": self.url}
        if leaving_out:
            found |= {"remote.origin.promisor": "true", "remote.origin.partialclonefilter": leaving_out}
        return found

    def environment(self, settings: Mapping[str, str], home: Path) -> dict[str, str]:  # noqa: ARG002 - theirs stays
        """What the person's programs are started with, but for what speaks of a checkout or would ask."""
        kept = {name: value for name, value in os.environ.items() if not _OF_A_CHECKOUT.fullmatch(name)}
        # Git is started without a terminal, so ssh has nowhere to ask but a program.
        asks_nobody = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
        return kept | asks_nobody | given({**_SETTINGS, **settings})
