"""A repository, how to reach it, and its settings files. Imports little, as every run starts here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bot.errors import UnreadableFile
from bot.git.remote_files import read_head
from bot.github.budget import WRITE_GAP
from bot.settings.yaml_file import TEMPLATE_PATHS


@dataclass(frozen=True, slots=True)
class RepositorySite:
    """A repository and how to reach it. ``workspace`` is the folder that may hold text models.

    ``own_login`` is the account that writes our comments, "" for the one in the settings; their marker contains
    ``instance``. ``write_gap``: seconds between two writes.
    """

    repository: str
    token: str = field(repr=False)
    api_url: str
    server_url: str
    own_login: str = ""
    instance: str = "action"
    workspace: Path = Path()
    write_gap: float = WRITE_GAP

    @property
    def url(self) -> str:
        return f"{self.server_url}/{self.repository}.git"


class SettingsFiles(NamedTuple):
    """The settings file (at ``config``) and the templates of a repository, those that exist, by path.

    ``head`` is the commit of the default branch that they come from. ``fault``: why the settings file cannot be read.
    """

    config: str
    head: str
    files: dict[str, bytes]
    fault: str = ""


def fetch_settings(site: RepositorySite, config: str) -> SettingsFiles:
    """Fetch the settings file and the templates from the default branch. Raises StoreError."""
    try:
        return SettingsFiles(config, *read_head(site.url, site.token, [config, *TEMPLATE_PATHS]))
    except UnreadableFile as error:
        if config not in error.paths:
            raise
        return SettingsFiles(config, *read_head(site.url, site.token, TEMPLATE_PATHS), str(error))
