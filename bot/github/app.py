"""Acts as our GitHub App: its identity, tokens for one repository each, and the deliveries of its webhook.

githubkit does this: it signs requests with the App's key and renews the signature. PyGithub sends the requests about a
repository, see `bot.github.transport`.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from githubkit import AppAuthStrategy, GitHub, Response, TokenAuthStrategy
from githubkit.auth.app import AppAuth
from githubkit.cache import MemCacheStrategy
from githubkit.exception import RequestError, RequestFailed
from jwt.exceptions import PyJWTError

from bot.domain.organisation import Visibility
from bot.domain.thread_json import parse_time, storable
from bot.errors import UserError
from bot.github.errors import (
    ForgeError,
    Gone,
    Invalid,
    NotInstalled,
    NotPermitted,
    Suspended,
    Unauthorised,
    Unreachable,
    date_of,
    error_for_status,
)
from bot.github.threads import object_in, objects_in
from bot.github.transport import PER_PAGE

PERMISSIONS = {"issues": "write", "contents": "write", "metadata": "read"}
"""Permissions of every token. The App needs no others."""

OPTIONAL_PERMISSIONS = {"discussions": "write", "pull_requests": "read"}
"""Further permissions that a token gets if the installation has accepted them, at most these levels.

Discussions are not remembered without `read`, nor answered without `write`. Without pull requests, those of a private
repository are not read: fixes lack their files and their release, and open pull requests are not shown.
"""

PERMISSION_LEVELS = ("none", "read", "write", "admin")
"""Levels of a permission, the least first."""

PERMISSIONS_TTL = 3600.0
"""Seconds until the permissions that an installation has accepted are read again."""

EVENTS = ("issues", "issue_comment", "push", "gollum", "release", "repository")
"""Events that the App subscribes to; those of its installations arrive anyway."""

TIMEOUT = 20.0
"""Seconds for each part of a request."""

NOT_INSTALLED = "the App is no longer installed there, or cannot see this repository"
SUSPENDED = "the App's installation is suspended there"
KEY_REJECTED = "GitHub rejected the App's key (401): check the App's ID, its private key and this machine's clock"
MISSING_PERMISSIONS = (
    "the App lacks permissions there: it needs "
    + ", ".join(f"{name}: {level}" for name, level in PERMISSIONS.items())
    + "; whoever installed it has to accept them"
)
INVALID_KEY = "the App's private key is not an RSA key in PEM format: use the file that GitHub generated"
UNEXPECTED_ANSWER = "GitHub sent an unexpected answer: this will be retried later"


@dataclass(frozen=True, slots=True)
class AppInfo:
    """The App itself. ``login`` is "slug[bot]"; ``ahead`` is GitHub's clock minus ours, in seconds."""

    id: int
    slug: str
    login: str
    events: tuple[str, ...] = ()
    permissions: Mapping[str, str] = field(default_factory=dict)
    ahead: float = 0.0


@dataclass(frozen=True, slots=True)
class InstallationToken:
    """A new token, and the current name of its repository. ``expires_at`` is in milliseconds since 1970, UTC."""

    token: str = field(repr=False)
    expires_at: int
    full_name: str
    visibility: Visibility = Visibility.PRIVATE


class ListedRepository(NamedTuple):
    """A repository of an installation; ``name`` is "owner/name"."""

    id: int
    name: str
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class InstallationInfo:
    """An account that has installed the App."""

    id: int
    account: str
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryInfo:
    """An attempt by GitHub to deliver an event.

    ``delivered_at`` is in milliseconds since 1970, UTC. Missing numbers are 0.
    """

    id: int
    guid: str
    event: str
    action: str
    status_code: int
    delivered_at: int
    installation_id: int = 0
    repository_id: int = 0


class _Session:
    """Connections for requests that are signed with one key."""

    def __init__(self, app_id: int, key: str, api_url: str) -> None:
        # A cache of its own, since the shared one keeps signatures by a key that may have been replaced.
        self._signatures = MemCacheStrategy()
        self._github = GitHub(
            AppAuthStrategy(str(app_id), key),
            base_url=api_url,
            auto_retry=False,
            http_cache=False,
            timeout=TIMEOUT,
            user_agent="precedent",
            cache_strategy=self._signatures,
        )
        try:
            AppAuth(self._github, app_id, key).get_jwt()
        except (PyJWTError, ValueError, TypeError):
            raise UserError(INVALID_KEY) from None
        # githubkit keeps connections per context, and threads do not share a context by themselves.
        self._context = contextvars.Context()
        self._context.run(self._github.__enter__)

    def ask(self, verb: str, path: str, token: str, **options: Any) -> Response[Any]:
        """Send a request. Returns GitHub's answer, even a refusal.

        A refused signature is made again once: it may be from before our clock was corrected.
        """
        answer = self._send(verb, path, token, **options)
        if answer.status_code == 401 and not token:
            self._signatures.cleanup()
            answer = self._send(verb, path, token, **options)
        return answer

    def _send(self, verb: str, path: str, token: str, **options: Any) -> Response[Any]:
        client = self._github.with_auth(TokenAuthStrategy(token)) if token else self._github
        try:
            answer: Response[Any] = self._caller_context().run(lambda: client.request(verb, path, **options))
        except RequestFailed as error:
            return error.response
        return answer

    def _caller_context(self) -> contextvars.Context:
        """The caller's context, which names the delivery in log lines, plus githubkit's connections."""
        context = contextvars.copy_context()
        for variable, value in self._context.items():
            context.run(variable.set, value)
        return context

    def close(self) -> None:
        self._context.run(self._github.__exit__)


class App:
    """An App and its key. Several threads may use it; close it with `close`, or use it as a context.

    Every method raises ForgeError if GitHub cannot be used. Messages never contain a token or the key.
    """

    def __init__(
        self,
        app_id: int,
        key: str,
        api_url: str = "https://api.github.com",
        *,
        permissions_ttl: float = PERMISSIONS_TTL,
    ) -> None:
        """Raises UserError if ``key`` is not an RSA private key in PEM."""
        self._id = app_id
        self._permissions_ttl = permissions_ttl
        self._api_url = api_url
        self._sessions = [_Session(app_id, key, api_url)]
        self._accepted: dict[int, tuple[float, dict[str, str]]] = {}

    def use_key(self, key: str) -> None:
        """Sign with this key from now on; requests under way still use the former one.

        Raises UserError, and keeps the former key, if ``key`` is not an RSA private key in PEM.
        """
        self._sessions.append(_Session(self._id, key, self._api_url))

    def close(self) -> None:
        for session in self._sessions:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def about(self) -> AppInfo:
        """Return the identity, permissions and events of the App, and how far GitHub's clock is ahead."""
        before = time.time()
        answer = self._ask("GET", "/app")
        data = object_in(_json(answer))
        slug, permissions, events = storable(data.get("slug")), object_in(data.get("permissions")), data.get("events")
        if not slug:
            raise Unreachable(UNEXPECTED_ANSWER)
        return AppInfo(
            id=_positive_int(data.get("id")),
            slug=slug,
            login=f"{slug}[bot]",
            events=tuple(map(storable, events)) if isinstance(events, list) else (),
            permissions={storable(name): storable(level) for name, level in permissions.items()},
            ahead=seconds_ahead(answer.headers.get("date", ""), (before + time.time()) / 2),
        )

    def create_token(self, installation: int, repository: int) -> InstallationToken:
        """Create a token for this repository alone, valid for an hour.

        Raises NotInstalled, and NotPermitted if the installation has not accepted the permissions we need.
        """
        data = self._create_widest_token(installation, repository)
        token, expires_at = storable(data.get("token")), _milliseconds(data.get("expires_at"))
        matches = (item for item in objects_in(data.get("repositories")) if item.get("id") == repository)
        details = next(matches, None) or self._repository(token, repository)
        name = storable(details.get("full_name"))
        if not token or not expires_at or "/" not in name:
            raise Unreachable(UNEXPECTED_ANSWER)
        listed = _listed_repository(details)
        return InstallationToken(token, expires_at, name, listed.visibility)

    def installations(self) -> Iterator[InstallationInfo]:
        yield from map(_installation, self._pages("/app/installations"))

    def installation(self, number: int) -> InstallationInfo:
        """Return this installation as it is now. Raises NotInstalled."""
        return _installation(self._installation(number))

    def repositories(self, installation: int) -> Iterator[ListedRepository]:
        """Yield the repositories of an installation. Raises NotInstalled."""
        token = storable(self._token(installation, {"permissions": {"metadata": "read"}}).get("token"))
        for item in self._pages("/installation/repositories", "repositories", token):
            yield _listed_repository(item)

    def deliveries(self, until: int) -> Iterator[DeliveryInfo]:
        """Yield GitHub's attempts to deliver, newest first, back to this time; GitHub keeps three days."""
        query: dict[str, str | int] = {"per_page": PER_PAGE}
        while True:
            answer = self._ask("GET", "/app/hook/deliveries", params=query)
            for item in objects_in(_json(answer)):
                delivery = _delivery(item)
                if delivery.delivered_at < until:
                    return
                yield delivery
            cursor = _cursor(answer)
            if not cursor or cursor == query.get("cursor"):
                return
            query["cursor"] = cursor

    def redeliver(self, delivery: int) -> None:
        """Make GitHub repeat an attempt, by its ``id``, under the same GUID."""
        self._ask("POST", f"/app/hook/deliveries/{delivery}/attempts")

    def _create_widest_token(self, installation: int, repository: int) -> Mapping[str, Any]:
        scope = {"repository_ids": [repository]}
        read_at, optional = self._accepted.get(installation, (-self._permissions_ttl, {}))
        if time.monotonic() - read_at >= self._permissions_ttl:
            optional = self._accepted_optional(installation)
            self._accepted[installation] = time.monotonic(), optional
        try:
            return self._token(installation, {**scope, "permissions": PERMISSIONS | optional})
        except (NotPermitted, NotInstalled):
            if not optional:
                raise
            self._accepted.pop(installation, None)  # permissions may have been withdrawn: read them again next time
        return self._token(installation, {**scope, "permissions": PERMISSIONS})

    def _accepted_optional(self, installation: int) -> dict[str, str]:
        """The OPTIONAL_PERMISSIONS that this installation has accepted, at most at the levels given there."""
        try:
            accepted = object_in(self._installation(installation).get("permissions"))
        except NotPermitted:
            return {}  # the request for the token will say why
        return {
            name: min(level, most, key=PERMISSION_LEVELS.index)
            for name, most in OPTIONAL_PERMISSIONS.items()
            if (level := accepted.get(name)) in PERMISSION_LEVELS[1:]
        }

    def _installation(self, number: int) -> Mapping[str, Any]:
        try:
            return object_in(_json(self._ask("GET", f"/app/installations/{number}")))
        except Gone as error:
            raise NotInstalled(NOT_INSTALLED) from error

    def _token(self, installation: int, body: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return object_in(_json(self._ask("POST", f"/app/installations/{installation}/access_tokens", json=body)))
        except Gone as error:
            raise NotInstalled(NOT_INSTALLED) from error
        except Invalid as error:
            raise (
                NotPermitted(MISSING_PERMISSIONS) if "permissions" in str(error) else NotInstalled(NOT_INSTALLED)
            ) from error
        except NotPermitted as error:
            raise Suspended(SUSPENDED) if "suspended" in str(error) else NotPermitted(MISSING_PERMISSIONS) from error

    def _repository(self, token: str, repository: int) -> Mapping[str, Any]:
        try:
            return object_in(_json(self._ask("GET", f"/repositories/{repository}", token)))
        except Gone as error:
            raise NotInstalled(NOT_INSTALLED) from error

    def _pages(self, path: str, name: str = "", token: str = "") -> Iterator[Mapping[str, Any]]:
        """The objects of a paged list, found under ``name`` if the answer is an object."""
        page = 0
        while True:
            page += 1
            data = _json(self._ask("GET", path, token, params={"per_page": PER_PAGE, "page": page}))
            items = objects_in(object_in(data).get(name) if name else data)
            yield from items
            if len(items) < PER_PAGE:
                return

    def _ask(self, verb: str, path: str, token: str = "", **options: Any) -> Response[Any]:
        try:
            answer = self._sessions[-1].ask(verb, path, token, **options)
        except RequestError as error:
            kind = type(error.exc).__name__
            raise Unreachable(f"GitHub did not answer ({kind}): this will be retried later") from None
        if answer.status_code >= 400:
            raise _error_of(answer, path)
        return answer


def _error_of(answer: Response[Any], path: str) -> ForgeError:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    try:
        data = answer.json()
    except ValueError:
        data = None
    error = error_for_status(answer.status_code, headers, data, path)
    if not isinstance(error, Unauthorised) or not path.startswith("/app"):
        return error
    unauthorised = Unauthorised(KEY_REJECTED)
    unauthorised.ahead = seconds_ahead(headers.get("date", ""), time.time())
    return unauthorised


def _json(answer: Response[Any]) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError) as error:
        raise Unreachable(UNEXPECTED_ANSWER) from error


def _installation(data: Mapping[str, Any]) -> InstallationInfo:
    account = storable(object_in(data.get("account")).get("login"))
    return InstallationInfo(_positive_int(data.get("id")), account, suspended=bool(data.get("suspended_at")))


def _listed_repository(data: Mapping[str, Any]) -> ListedRepository:
    private = data.get("private") is not False
    name = storable(data.get("full_name"))
    return ListedRepository(_positive_int(data.get("id")), name, visibility_of(data.get("visibility"), private=private))


def visibility_of(name: object, *, private: bool) -> Visibility:
    """Return the visibility that GitHub names; if it contradicts ``private``, the narrower one.

    Without a name, as from an old GitHub Enterprise Server, it is public unless it is ``private``.
    """
    if not private and name in (None, Visibility.PUBLIC):
        return Visibility.PUBLIC
    return Visibility.INTERNAL if name == Visibility.INTERNAL else Visibility.PRIVATE


def _delivery(data: Mapping[str, Any]) -> DeliveryInfo:
    return DeliveryInfo(
        id=_positive_int(data.get("id")),
        guid=storable(data.get("guid")).lower(),
        event=storable(data.get("event")),
        action=storable(data.get("action")),
        status_code=_positive_int(data.get("status_code")),
        delivered_at=_milliseconds(data.get("delivered_at")),
        installation_id=_positive_int(data.get("installation_id")),
        repository_id=_positive_int(data.get("repository_id")),
    )


def _cursor(answer: Response[Any]) -> str:
    """The cursor of the next page. The link itself is not followed."""
    link = answer.raw_response.links.get("next", {}).get("url", "")
    return parse_qs(urlsplit(link).query).get("cursor", [""])[0]


def seconds_ahead(date: str, ours: float) -> float:
    """Return the seconds from our time to that of a ``Date`` header, which has whole seconds; 0 without one."""
    answered_at = date_of({"date": date})
    return answered_at.timestamp() + 0.5 - ours if answered_at else 0.0


def _milliseconds(stamp: object) -> int:
    """ISO 8601 in milliseconds since 1970; 0 for anything else."""
    try:
        return round(parse_time(stamp).timestamp() * 1000)
    except ValueError:
        return 0


def _positive_int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63 else 0
