"""Where the repository is that somebody tries, the token for it, and what GitHub's faults mean for them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from urllib.parse import urlsplit

from bot.comment.wording import count
from bot.doors.cache import cache_folder, name_of
from bot.doors.checkup.place import GITHUB, api_of
from bot.doors.given import address
from bot.doors.tokens import token_of
from bot.doors.try_options import Named
from bot.errors import PrecedentError, UserError, WorldError
from bot.github.errors import ForgeError, IssuesOff, NotPermitted, RateLimited, Unauthorised, Unreachable
from bot.github.graphql import NoGraphQL, OutOfSight

_OF_GITHUB = (".github.com", ".ghe.com")


@dataclass(frozen=True, slots=True)
class Site:
    """Where the repository is. ``token`` stays out of every text, "" where nothing is asked for; it was found in
    ``variable``."""

    repository: str
    server: str
    api: str
    token: str = field(repr=False)
    variable: str = "GH_TOKEN"

    @property
    def login(self) -> str:
        """How to get a token."""
        host = "" if self.server == GITHUB else f" --hostname {urlsplit(self.server).netloc}"
        return f"`export {self.variable}=$(gh auth token{host})`, or make one at {self.server}/settings/tokens"

    @property
    def cache(self) -> Path:
        return cache_folder() / "tries" / name_of(f"{self.api} {self.repository.lower()}")


def site_of(given: argparse.Namespace, environ: Mapping[str, str]) -> Site:
    """Where the repository is, and the token for it. UserError where they do not fit together."""
    named: Named = given.repository
    api = environ.get("GITHUB_API_URL", "").strip().rstrip("/")
    if given.server or not api:
        server = given.server or GITHUB
        api = api_of(server)
    else:
        server = _server_of(api, environ)
    if named.server and named.server != server:
        raise UserError(
            f"{named.repository} is on {named.server}, and the token is for {server}: "
            f"if it is for the other one, add --server {named.server}"
        )
    site = Site(named.repository, server, api, "")
    return site if given.offline else _with_token(site, environ)


def _server_of(api: str, environ: Mapping[str, str]) -> str:
    """The server with this API, as its address tells where GITHUB_SERVER_URL does not."""
    api, named = _address(api, "GITHUB_API_URL"), environ.get("GITHUB_SERVER_URL", "").strip()
    if named:
        return _address(named, "GITHUB_SERVER_URL")
    parts = urlsplit(api)
    host = parts.netloc
    return f"{parts.scheme}://{host.removeprefix('api.') if host.endswith(_OF_GITHUB) else host}"


def _address(text: str, name: str) -> str:
    try:
        return address(text)
    except argparse.ArgumentTypeError as error:
        raise UserError(f"{name}: {error}") from error


def _with_token(site: Site, environ: Mapping[str, str]) -> Site:
    found = token_of(environ)
    if not found.text:
        raise UserError(
            f"no token in GH_TOKEN or GITHUB_TOKEN: {site.login}; it needs no scope for a public repository"
        )
    return replace(site, token=found.text, variable=found.variable)


def held(kept: int) -> str:
    """What is not lost, "" for nothing."""
    if kept == 1:
        return "1 issue that was read is kept"
    return f"{count(kept, 'issue')} that were read are kept" if kept else ""


def told(error: ForgeError, site: Site, kept: int) -> PrecedentError:
    """What a fault means for who tries, and what they can do about it."""
    repository = site.repository
    if isinstance(error, RateLimited):
        when = f"after {error.until.astimezone(UTC):%H:%M} UTC" if error.until else "later"
        offline = "; or see now what there is, with --offline" if kept else ""
        return WorldError("; ".join(filter(None, (error.cause, held(kept)))), f"run the same command {when}{offline}")
    if isinstance(error, Unauthorised):
        return UserError(f"{site.variable} holds a token that is wrong or has expired (401)", site.login)
    if isinstance(error, OutOfSight):
        return UserError(
            f"{repository} does not exist on {site.server}, or is private and this token may not see it",
            "check the name, or use a token that may read it",
        )
    if isinstance(error, IssuesOff):
        return UserError(f"issues are switched off in {repository}", "try another repository")
    if isinstance(error, NotPermitted):
        return UserError(f"{repository}: {error.cause}", "use a token that may read its issues")
    if isinstance(error, NoGraphQL):
        return WorldError(f"{site.api}: {error.cause}, by which issues are read", "check --server or GITHUB_API_URL")
    again = "try again later: what was read is kept" if kept else "try again later"
    if isinstance(error, Unreachable):
        return WorldError(f"{site.api} cannot be used: {error.cause}", again)
    return WorldError(error.cause, again)
