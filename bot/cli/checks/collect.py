"""Gathers facts for the checks of `precedent doctor` from git, the API and files. Writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.cli.checks import github
from bot.cli.checks.github import GitHubFacts
from bot.cli.checks.memory import InspectedMemory, inspect
from bot.cli.checks.result import CheckResult, RepositoryLinks
from bot.errors import StoreError, UserError
from bot.files import is_fit, refuse_detour, regular_bytes
from bot.git.errors import AuthFailed, RemoteUnreachable
from bot.git.remote import OwnRemote, Remote
from bot.git.remote_files import read_head
from bot.github.client import GitHubClient
from bot.github.discussion_comments import count_discussions
from bot.github.errors import ForgeError
from bot.memory.branch_store import BranchStore, Tip, read_tip
from bot.memory.folder_store import FolderStore
from bot.memory.manifest import INDEX, MANIFEST_PATH, MESSAGES
from bot.memory.store import Store
from bot.settings.schema import Settings, SettingsError, with_inputs
from bot.settings.yaml_file import CONFIG_PATH, MAX_BYTES

_OURS = re.compile(r"^name: Precedent$", re.MULTILINE)
_WORKFLOWS = (f"{github.WORKFLOW_FOLDER}/*.yml", f"{github.WORKFLOW_FOLDER}/*.yaml", "action.yml")
_MOST_FILES = 200
"""Workflows of a checkout that are read, of each kind."""

_NO_WAY = (AuthFailed, RemoteUnreachable)
"""Why asking git for anything else would fail in the same way."""


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What to check. ``config`` is a file here; ``branch`` is "" for that of the settings; ``checkout`` is read if the
    default branch cannot be. ``token`` stays out of every text; without one git reads ``address`` with the
    credentials of the user's own git."""

    place: RepositoryLinks
    token: str = ""
    address: str = ""
    branch: str = ""
    config: Path | None = None
    checkout: Path | None = None
    offline: bool = False

    @property
    def remote(self) -> Remote:
        if self.address and not self.token:
            return OwnRemote(self.address)
        return Remote(self.place.remote, self.token or None)


def gather(wanted: DoctorOptions, now: datetime) -> Gathered:
    """Gather everything; errors become part of the result. UserError only for invalid arguments."""
    if wanted.place.store:
        setup = _local_setup(wanted.config) if wanted.config else None
        return Gathered(wanted.place, now, setup, held=_held(FolderStore(_folder(wanted), leaves_traces=False)))
    setup = _setup(wanted)
    place = _place(wanted, setup)
    tip = setup.fault if isinstance(setup.fault, _NO_WAY) else _tip(wanted.remote, place.branch)
    held = _held(BranchStore(wanted.remote, place.branch)) if isinstance(tip, Tip) else None
    return Gathered(place, now, setup, tip, held, _forge(wanted))


def _folder(wanted: DoctorOptions) -> Path:
    folder = Path(wanted.place.store)
    if not folder.is_dir():
        raise UserError(f"no store at {folder}: make one with 'precedent import FILE --store {folder}'")
    return folder


def _place(wanted: DoctorOptions, setup: Setup) -> RepositoryLinks:
    names = [step.path.rpartition("/")[2] for step in setup.steps]
    place = replace(wanted.place, branch=wanted.branch or setup.settings.branch)
    return replace(place, workflow=names[0]) if names else place


def _setup(wanted: DoctorOptions) -> Setup:
    """Read our files on the default branch. A workflow may say where the settings are, and override some."""
    files, fault, here = _files(wanted, (*_WORKFLOWS, CONFIG_PATH))
    is_ours = bool(_OURS.search(files.pop("action.yml", b"").decode("utf-8", "replace")))
    data = files.pop(CONFIG_PATH, None)
    steps, told = github.find_workflows(files, is_ours=is_ours)
    given = github.literal(steps[0]) if steps else {}
    name = given.get("config", CONFIG_PATH)
    if wanted.config:
        name, data = str(wanted.config), _local(wanted.config)
    elif name != CONFIG_PATH and is_fit(name):
        data = _files(wanted, (name,))[0].get(name)
    settings, finding = github.read_config(data, name)
    told += [finding] if data is not None or not fault or here else []
    try:
        settings = with_inputs(settings, given)
    except SettingsError as error:
        told.append(CheckResult("inputs", "error", str(error), f"change it under `with:` in {steps[0].path}"))
    return Setup(settings, tuple(told), tuple(steps), fault, here)


def _local_setup(config: Path) -> Setup:
    settings, finding = github.read_config(_local(config), str(config))
    return Setup(settings, (finding,))


def _local(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; --config takes a file of settings") from error


def _files(wanted: DoctorOptions, patterns: Iterable[str]) -> tuple[dict[str, bytes], StoreError | None, bool]:
    """These files of the default branch, else of the checkout; why the first failed; whether the second was read."""
    try:
        return read_head(wanted.remote, None, patterns)[1], None, False
    except StoreError as error:
        if wanted.checkout is None or not isinstance(error, _NO_WAY):
            return {}, error, False
        return _checked_out(wanted.checkout, patterns), error, True


def _checked_out(top: Path, patterns: Iterable[str]) -> dict[str, bytes]:
    found = {}
    for path in sorted({path for pattern in patterns for path in sorted(top.glob(pattern))[:_MOST_FILES]}):
        name = path.relative_to(top).as_posix()
        try:
            refuse_detour(top, name)
            data = regular_bytes(path, MAX_BYTES)
        except (StoreError, OSError):
            continue
        if data is not None:
            found[name] = data
    return found


def _tip(remote: Remote, branch: str) -> Tip | StoreError | None:
    try:
        return read_tip(remote, branch)
    except StoreError as error:
        return error


def _held(store: Store) -> InspectedMemory | StoreError:
    with closing(store):
        try:
            return inspect(store.open([MANIFEST_PATH, INDEX, MESSAGES]))
        except StoreError as error:
            return error


def _forge(wanted: DoctorOptions) -> GitHubFacts | None:
    """Ask the API, first for the limits: that request is free, and says most if all others fail."""
    if wanted.offline:
        return None
    client = GitHubClient(wanted.place.api, wanted.token, wanted.place.repository)
    seen = GitHubFacts(bool(wanted.token))
    with suppress(ForgeError):  # a server without limits says that there is no such thing
        seen = replace(seen, limits=_told(client, "/rate_limit"))
    try:
        seen = replace(seen, repository=_told(client, f"/repos/{wanted.place.repository}"))
    except ForgeError as error:
        return replace(seen, fault=error)
    is_asked = wanted.token and seen.repository and seen.repository.get("has_discussions")
    return replace(seen, discussions=count_discussions(client, wanted.place.repository) if is_asked else None)


def _told(client: GitHubClient, path: str) -> dict[str, Any]:
    data = client.get(path, {})
    return data if isinstance(data, dict) else {}


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings and workflows of a repository; ``told`` are the findings from reading them.

    ``fault`` says why the default branch could not be read; ``checkout``: the checkout was read instead.
    """

    settings: Settings = field(default_factory=Settings)
    told: tuple[CheckResult, ...] = ()
    steps: tuple[github.Step, ...] = ()
    fault: StoreError | None = None
    checkout: bool = False


@dataclass(frozen=True, slots=True)
class Gathered:
    """The gathered facts. None for what was not looked at: ``setup`` of a folder, the API's part offline. ``tip`` and
    ``held`` are errors if they could not be read."""

    place: RepositoryLinks
    now: datetime
    setup: Setup | None = None
    tip: Tip | StoreError | None = None
    held: InspectedMemory | StoreError | None = None
    forge: GitHubFacts | None = None
