"""Gathering what the checks of `precedent doctor` judge: from git, the API and files. Nothing is written anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bot.archive import parse_time
from bot.config import CONFIG_PATH, MAX_BYTES
from bot.doors.checkup import forge as forges
from bot.doors.checkup import settings as checks
from bot.doors.checkup import workflow
from bot.doors.checkup.finding import Finding
from bot.doors.checkup.forge import Forge
from bot.doors.checkup.held import Held, chosen_records, look_at
from bot.doors.checkup.judge import TEMPLATES, Gathered, Setup
from bot.doors.checkup.memory import STALE
from bot.doors.checkup.place import Place
from bot.doors.progress import progress
from bot.errors import UserError
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError
from bot.inputs import with_inputs
from bot.memory.branch import BranchStore
from bot.memory.disk import regular_bytes
from bot.memory.draft import INDEX
from bot.memory.folder import FolderStore
from bot.memory.git_errors import AuthFailed, GitError, RemoteUnreachable
from bot.memory.head import read_head_files
from bot.memory.learned import FOLDER as MODEL
from bot.memory.manifest import PATH
from bot.memory.own_remote import OwnRemote
from bot.memory.paths import is_fit
from bot.memory.remote import Remote
from bot.memory.store import Store, StoreError
from bot.memory.tip import Tip, git_version, read_tip
from bot.settings import SettingsError

_OURS = re.compile(r"^name: Precedent$", re.MULTILINE)
_WORKFLOWS = (f"{workflow.FOLDER}/*.yml", f"{workflow.FOLDER}/*.yaml", "action.yml")
_OWN = (f"{TEMPLATES}/*.j2", f"{TEMPLATES}/*.yml")
_NO_WAY = (AuthFailed, RemoteUnreachable)
"""Why asking git for anything else would fail in the same way."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. ``config`` is a file here, ``branch`` empty for that of the settings; ``checkout`` is where
    files are read when the default branch cannot be. ``token`` stays out of every text; without one git goes to
    ``address`` with what the person's own git has."""

    place: Place
    token: str = ""
    address: str = ""
    branch: str = ""
    config: Path | None = None
    checkout: Path | None = None
    offline: bool = False
    thorough: bool = False

    @property
    def remote(self) -> Remote:
        """What git reads from, and as whom."""
        if self.address and not self.token:
            return OwnRemote(self.address)
        return Remote(self.place.remote, self.token or None)


def gather(wanted: Wanted, now: datetime) -> Gathered:
    """Look at everything. What cannot be had is told as such; UserError only for what was asked for wrongly."""
    if wanted.place.store:
        setup = _local_setup(wanted) if wanted.config else None
        return Gathered(
            wanted.place, now, setup=setup, held=_held(FolderStore(_folder(wanted), leaves_traces=False), wanted)
        )
    version = _git_version()
    if version is None:
        return Gathered(wanted.place, now, forge=_forge(wanted, None, now))
    with progress("Reading settings", 2) as tick:
        setup = _setup(wanted)
        tick(1)
        place = _place(wanted, setup)
        fault = setup.fault if isinstance(setup.fault, _NO_WAY) else None
        tip = fault or _tip(wanted.remote, place.branch)
        tick(1)
    held = None
    if isinstance(tip, Tip):
        held = _held(BranchStore(wanted.remote, place.branch), wanted)
    forge = _forge(replace(wanted, place=place), held if isinstance(held, Held) else None, now)
    return Gathered(place, now, version, setup, tip, held, forge)


def _folder(wanted: Wanted) -> Path:
    folder = Path(wanted.place.store)
    if not folder.is_dir():
        raise UserError(f"no store at {folder}: make one with 'precedent import FILE --store {folder}'")
    return folder


def _git_version() -> str | None:
    try:
        return git_version()
    except GitError:
        return None


def _place(wanted: Wanted, setup: Setup) -> Place:
    names = [step.path.rpartition("/")[2] for step in setup.steps]
    place = replace(wanted.place, branch=wanted.branch or setup.settings.branch)
    return replace(place, workflow=names[0]) if names else place


# -- settings and workflows ----------------------------------------------------------------------------------------


def _setup(wanted: Wanted) -> Setup:
    """What the default branch has of ours. A workflow may say where the settings are, and override some."""
    files, fault, here = _files(wanted, (*_WORKFLOWS, *_OWN, CONFIG_PATH))
    is_ours = bool(_OURS.search(files.pop("action.yml", b"").decode("utf-8", "replace")))
    flows = {path: files.pop(path) for path in list(files) if path.startswith(workflow.FOLDER)}
    steps, told = workflow.find(flows, is_ours=is_ours)
    given = workflow.literal(steps[0]) if steps else {}
    name, data = given.get("config", CONFIG_PATH), files.pop(CONFIG_PATH, None)
    if wanted.config:
        name, data = str(wanted.config), _local(wanted.config)
    elif name != CONFIG_PATH and is_fit(name):
        data = _files(wanted, (name,))[0].get(name)
    settings, finding = checks.read_config(data, name)
    told += [finding] if data is not None or not fault or here else []
    if wanted.checkout and not (wanted.config or fault) and is_fit(name):
        told += checks.unlike(data, _checked_out(wanted.checkout, (name,)).get(name), name)
    try:
        settings = with_inputs(settings, given)
    except SettingsError as error:
        told.append(Finding("inputs", "error", str(error), f"change it under `with:` in {steps[0].path}"))
    templates = {path.rpartition("/")[2]: text.decode("utf-8", "replace") for path, text in files.items()}
    return Setup(settings, name, tuple(told), tuple(steps), templates, fault, here)


def _local_setup(wanted: Wanted) -> Setup:
    name = str(wanted.config)
    settings, finding = checks.read_config(_local(Path(name)), name)
    return Setup(settings, name, (finding,))


def _local(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; --config takes a file of settings") from error


def _files(wanted: Wanted, patterns: Iterable[str]) -> tuple[dict[str, bytes], StoreError | None, bool]:
    """These files of the default branch, else of the checkout: what was wrong with the first, and whether it is so."""
    try:
        return read_head_files(wanted.remote, None, patterns), None, False
    except StoreError as error:
        if wanted.checkout is None or not isinstance(error, _NO_WAY):
            return {}, error, False
        return _checked_out(wanted.checkout, patterns), error, True


def _checked_out(top: Path, patterns: Iterable[str]) -> dict[str, bytes]:
    found = {}
    for path in sorted({path for pattern in patterns for path in top.glob(pattern)}):
        try:
            data = regular_bytes(path, MAX_BYTES)
        except (StoreError, OSError):
            continue
        if data is not None:
            found[path.relative_to(top).as_posix()] = data
    return found


# -- memory --------------------------------------------------------------------------------------------------------


def _tip(remote: Remote, branch: str) -> Tip | StoreError | None:
    try:
        return read_tip(remote, None, branch)
    except StoreError as error:
        return error


def _held(store: Store, wanted: Wanted) -> Held | StoreError:
    with closing(store):
        try:
            snapshot = store.open([PATH, INDEX, MODEL])
            chosen = chosen_records(snapshot, all_of_them=wanted.thorough)
            with progress("Reading records", len(chosen)) as tick:
                return look_at(snapshot, chosen, tick)
        except StoreError as error:
            return error


# -- the API -------------------------------------------------------------------------------------------------------


def _forge(wanted: Wanted, held: Held | None, now: datetime) -> Forge | None:
    """What the API tells, the limits first: asking for them is free, and they say most when nothing else is given."""
    if wanted.offline:
        return None
    client = GitHubClient(wanted.place.api, wanted.token, wanted.place.repository)
    home = f"/repos/{wanted.place.repository}"
    cursor = held.manifest.cursor if held else None
    with progress("Asking GitHub", 4) as tick:
        limits = _told(client, "/rate_limit")  # a server without limits says that there is no such thing
        tick(1)
        seen = Forge(forges.kind_of(wanted.token), limits=limits)
        try:
            headers, told = client.get(home, {})
        except ForgeError as error:
            return replace(seen, fault=error)
        seen = replace(seen, repository=told if isinstance(told, dict) else {}, scopes=_scopes(headers))
        tick(1)
        seen = _issues(client, seen, cursor)
        tick(1)
        seen = replace(seen, branch=_told(client, f"{home}/branches/{quote(wanted.place.branch)}"))
        if cursor is None or now - cursor <= STALE or not seen.changed:
            return seen
        runs = f"{home}/actions/workflows/{quote(wanted.place.workflow, safe='', errors='replace')}/runs"
        return replace(seen, runs=_told(client, runs, {"per_page": 1}))


def _issues(client: GitHubClient, seen: Forge, cursor: datetime | None) -> Forge:
    try:
        listed, _ = client.issues_since(cursor, 1)
        return replace(seen, changed=tuple(parse_time(issue.get("updated_at")) for issue in listed) if cursor else None)
    except ForgeError as error:
        return replace(seen, unreadable=error)
    except ValueError:
        return seen


def _told(client: GitHubClient, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """What stands there, None where that cannot be had."""
    try:
        data = client.get(path, query or {})[1]
    except ForgeError:
        return None
    return data if isinstance(data, dict) else None


def _scopes(headers: Mapping[str, str]) -> frozenset[str] | None:
    """The scopes of a classic token. https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps"""
    told = next((text for name, text in headers.items() if name.lower() == "x-oauth-scopes"), None)
    return None if told is None else frozenset(part.strip() for part in told.split(",") if part.strip())
