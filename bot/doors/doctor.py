"""`precedent doctor`: look at everything, write nothing, and say what is wrong and what mends it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from bot.doors.checkup.finding import Finding, exit_code
from bot.doors.checkup.judge import judge
from bot.doors.checkup.place import GITHUB, Place, api_of, place_of
from bot.doors.gathering import Wanted, gather, top_of_checkout
from bot.doors.output import Verdict
from bot.doors.remotes import at_address
from bot.doors.telling import as_data, tell, terminal
from bot.doors.tokens import token_of
from bot.errors import UserError
from bot.memory.store import StoreError
from bot.memory.tip import origin_of
from bot.settings import Settings


def run_doctor(given: argparse.Namespace) -> Verdict:
    """Check everything that can be checked from here; the exit code says how bad it is."""
    findings = examine(given, os.environ, datetime.now(UTC))
    code = exit_code(findings)
    if given.json:
        return Verdict(as_data(findings), code)
    return Verdict(tell(findings, terminal(), verbose=given.verbose), code)


def examine(given: argparse.Namespace, environ: Mapping[str, str], now: datetime) -> list[Finding]:
    """All findings. UserError where the arguments name nothing that can be looked at."""
    wanted, refused = wanted_of(given, environ)
    return [*refused, *judge(gather(wanted, now))]


def wanted_of(given: argparse.Namespace, environ: Mapping[str, str]) -> tuple[Wanted, list[Finding]]:
    """What to look at, and what is said of a token that goes nowhere."""
    options = {"config": given.config, "thorough": given.thorough}
    if given.store:
        is_checkout = (Path(given.store) / ".git").exists()
        return Wanted(Place(store=str(given.store), is_checkout=is_checkout), **options), []
    server, repository = (given.server or GITHUB, given.repo) if given.repo else _origin(given.server)
    place = Place(repository, server, given.api or api_of(server), branch=given.branch or Settings().branch)
    token, refused = token_of(environ).text, []
    known = given.server or given.api or place.trusts_tokens or environ.get("GITHUB_SERVER_URL", "") == server
    if token and not known:
        says = f"the one in the environment was not sent to {server}, which is not GitHub's"
        remedy = f"if it is for that server, say so: `precedent doctor --repo {repository} --server {server}`"
        token, refused = "", [Finding("token", "warning", says, remedy)]
    checkout = None if given.repo else top_of_checkout()
    address = "" if given.repo or given.server or not checkout else at_address(origin_of(checkout), checkout).url
    wanted = Wanted(place, token, address, given.branch or "", checkout=checkout, offline=given.offline, **options)
    return wanted, refused


def _origin(server: str | None) -> tuple[str, str]:
    """Server and repository of the remote ``origin`` here; ``server`` takes the place of the first."""
    try:
        origin = origin_of(Path.cwd())
    except StoreError as error:
        if "is missing" in str(error):
            raise UserError(str(error)) from error
        raise UserError(
            "no remote origin here: go into a checkout, or give --repo OWNER/NAME, or --store DIR"
        ) from error
    found = place_of(origin)
    if found is None:
        raise UserError("origin is no repository on a GitHub server: give --repo OWNER/NAME and --server URL")
    return server or found[0], found[1]
