"""`precedent doctor`: look at everything, write nothing, and say what is wrong and what mends it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bot.doors.checkup.finding import Finding, exit_code
from bot.doors.checkup.judge import judge
from bot.doors.checkup.place import GITHUB, Place, api_of, place_of
from bot.doors.gathering import Wanted, gather
from bot.doors.output import Verdict
from bot.doors.remotes import Remote, of_checkout
from bot.doors.telling import as_data, tell, terminal
from bot.doors.tokens import token_of
from bot.errors import UserError
from bot.memory.checkout_git import top_of
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
    if given.store:
        is_checkout = (Path(given.store) / ".git").exists()
        return Wanted(Place(store=str(given.store), is_checkout=is_checkout), config=given.config), []
    found = None if given.repo else _counted()
    server, repository = _site(found) if found else (GITHUB, given.repo)
    server = given.server or server
    place = Place(repository, server, given.api or api_of(server), branch=given.branch or Settings().branch)
    token, refused = token_of(environ).text, []
    known = given.server or given.api or place.trusts_tokens or environ.get("GITHUB_SERVER_URL", "") == server
    if token and not known:
        says = f"the one in the environment was not sent to {server}, which is not GitHub's"
        remedy = f"if it is for that server, say so: `precedent doctor --repo {repository} --server {server}`"
        token, refused = "", [Finding("token", "warning", says, remedy)]
    wanted = Wanted(place, token, branch=given.branch or "", config=given.config, offline=given.offline)
    if found:
        address = "" if given.server else found.url
        wanted = replace(wanted, address=address, checkout=top_of(Path.cwd()))
    return wanted, refused


def _counted() -> Remote:
    """The remote that counts here."""
    found = of_checkout(top_of(Path.cwd()))
    if isinstance(found, str):
        raise UserError(found)
    return found


def _site(remote: Remote) -> tuple[str, str]:
    """Its server and repository."""
    found = place_of(remote.url)
    if found is None:
        raise UserError(
            f"the remote {remote.name} is no repository on a GitHub server: give --repo OWNER/NAME and --server URL"
        )
    return found
