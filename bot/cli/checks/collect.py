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
from bot.files import is_safe_path, read_regular, refuse_symlinks
from bot.git.errors import AuthFailed, RemoteUnreachable
from bot.git.remote import OwnRemote, Remote
from bot.git.remote_files import read_head
from bot.github.client import GitHubClient
from bot.github.discussion_comments import count_discussions
from bot.github.errors import ForgeError
from bot.memory.branch_store import BranchStore, Tip, read_tip
from bot.memory.folder_store import FolderStore
from bot.memory.manifest import INDEX_FOLDER, MANIFEST_PATH, MESSAGE_FOLDER
from bot.memory.store import Store
from bot.memory.text_model import MODEL_OF_THE_IMAGE, names_model
from bot.settings.schema import Settings, SettingsError, with_inputs
from bot.settings.yaml_file import CONFIG_PATH, MAX_BYTES

_ACTION_NAME = re.compile(r"^name: Precedent$", re.MULTILINE)
_WORKFLOW_PATTERNS = (f"{github.WORKFLOW_FOLDER}/*.yml", f"{github.WORKFLOW_FOLDER}/*.yaml", "action.yml")
_MAX_FILES = 200
"""Maximum workflow files of a checkout to read per pattern."""

_ACCESS_ERRORS = (AuthFailed, RemoteUnreachable)
"""Errors after which other git requests would fail in the same way."""


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What to check. ``config`` is a local file; ``branch`` is "" for that of the settings; ``checkout`` is read if the
    default branch cannot be. ``token`` never appears in output; without one, git reads ``address`` with the user's
    own credentials."""

    target: RepositoryLinks
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
        return Remote(self.target.remote, self.token or None)


def gather(options: DoctorOptions, now: datetime) -> SetupFacts:
    """Gather everything; errors become part of the result. UserError only for invalid arguments."""
    if options.target.store:
        setup = _read_local_setup(options.config) if options.config else None
        return SetupFacts(options.target, now, setup, memory=_inspect_store(FolderStore(_store_folder(options))))
    setup = _read_setup(options)
    target = _target_of(options, setup)
    tip = setup.fault if isinstance(setup.fault, _ACCESS_ERRORS) else _read_tip(options.remote, target.branch)
    memory = _inspect_store(BranchStore(options.remote, target.branch)) if isinstance(tip, Tip) else None
    has_model = names_model(MODEL_OF_THE_IMAGE)
    return SetupFacts(target, now, setup, tip, memory, _ask_api(options), has_model=has_model)


def _store_folder(options: DoctorOptions) -> Path:
    folder = Path(options.target.store)
    if not folder.is_dir():
        raise UserError(f"no store at {folder}: make one with 'precedent import FILE --store {folder}'")
    return folder


def _target_of(options: DoctorOptions, setup: Setup) -> RepositoryLinks:
    names = [step.path.rpartition("/")[2] for step in setup.steps]
    target = replace(options.target, branch=options.branch or setup.settings.branch)
    return replace(target, workflow=names[0]) if names else target


def _read_setup(options: DoctorOptions) -> Setup:
    """Read our files on the default branch. A workflow may name the settings file and override some settings."""
    files, fault, is_from_checkout = _read_files(options, (*_WORKFLOW_PATTERNS, CONFIG_PATH))
    is_ours = bool(_ACTION_NAME.search(files.pop("action.yml", b"").decode("utf-8", "replace")))
    data = files.pop(CONFIG_PATH, None)
    steps, findings = github.find_workflows(files, is_ours=is_ours)
    inputs = github.literal_inputs(steps[0]) if steps else {}
    name = inputs.get("config", CONFIG_PATH)
    if options.config:
        name, data = str(options.config), _read_local(options.config)
    elif name != CONFIG_PATH and is_safe_path(name):
        data = _read_files(options, (name,))[0].get(name)
    settings, finding = github.read_config(data, name)
    findings += [finding] if data is not None or not fault or is_from_checkout else []
    try:
        settings = with_inputs(settings, inputs)
    except SettingsError as error:
        findings.append(CheckResult("inputs", "error", str(error), f"change it under `with:` in {steps[0].path}"))
    return Setup(settings, tuple(findings), tuple(steps), fault, is_from_checkout)


def _read_local_setup(config: Path) -> Setup:
    settings, finding = github.read_config(_read_local(config), str(config))
    return Setup(settings, (finding,))


def _read_local(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; --config takes a settings file") from error


def _read_files(options: DoctorOptions, patterns: Iterable[str]) -> tuple[dict[str, bytes], StoreError | None, bool]:
    """The files of the default branch, else of the checkout; why the branch failed; whether the checkout was read."""
    try:
        return read_head(options.remote, None, patterns)[1], None, False
    except StoreError as error:
        if options.checkout is None or not isinstance(error, _ACCESS_ERRORS):
            return {}, error, False
        return _read_checkout(options.checkout, patterns), error, True


def _read_checkout(top: Path, patterns: Iterable[str]) -> dict[str, bytes]:
    contents = {}
    for path in sorted({path for pattern in patterns for path in sorted(top.glob(pattern))[:_MAX_FILES]}):
        name = path.relative_to(top).as_posix()
        try:
            refuse_symlinks(top, name)
            data = read_regular(path, MAX_BYTES)
        except (StoreError, OSError):
            continue
        if data is not None:
            contents[name] = data
    return contents


def _read_tip(remote: Remote, branch: str) -> Tip | StoreError | None:
    try:
        return read_tip(remote, branch)
    except StoreError as error:
        return error


def _inspect_store(store: Store) -> InspectedMemory | StoreError:
    with closing(store):
        try:
            return inspect(store.open([MANIFEST_PATH, INDEX_FOLDER, MESSAGE_FOLDER]))
        except StoreError as error:
            return error


def _ask_api(options: DoctorOptions) -> GitHubFacts | None:
    """Ask the API, first for the limits: that request is free, and the most useful if all others fail."""
    if options.offline:
        return None
    client = GitHubClient(options.target.api, options.token, options.target.repository)
    facts = GitHubFacts(bool(options.token))
    with suppress(ForgeError):  # a server without limits answers 404
        facts = replace(facts, limits=_get_object(client, "/rate_limit"))
    try:
        facts = replace(facts, repository=_get_object(client, f"/repos/{options.target.repository}"))
    except ForgeError as error:
        return replace(facts, fault=error)
    has_discussions = options.token and facts.repository and facts.repository.get("has_discussions")
    return replace(facts, discussions=count_discussions(client, options.target.repository) if has_discussions else None)


def _get_object(client: GitHubClient, path: str) -> dict[str, Any]:
    data = client.get(path, {})
    return data if isinstance(data, dict) else {}


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings and workflows of a repository; ``findings`` are the findings from reading them.

    ``fault`` says why the default branch could not be read; ``is_from_checkout``: the checkout was read instead.
    """

    settings: Settings = field(default_factory=Settings)
    findings: tuple[CheckResult, ...] = ()
    steps: tuple[github.Step, ...] = ()
    fault: StoreError | None = None
    is_from_checkout: bool = False


@dataclass(frozen=True, slots=True)
class SetupFacts:
    """The gathered facts. None for what was not checked: ``setup`` of a folder, the API offline. ``tip`` and
    ``memory`` are errors if they could not be read. ``has_model``: this installation has the image's text model."""

    target: RepositoryLinks
    now: datetime
    setup: Setup | None = None
    tip: Tip | StoreError | None = None
    memory: InspectedMemory | StoreError | None = None
    api: GitHubFacts | None = None
    has_model: bool = False
