"""What GitHub tells an App: who it is, where it is installed, what was delivered, and a token for one repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
class Minted:
    """A new token, and what the repository that it is for is called now.

    ``expires_at`` is in milliseconds since 1970, UTC.
    """

    token: str = field(repr=False)
    expires_at: int
    full_name: str
    private: bool


@dataclass(frozen=True, slots=True)
class InstallationInfo:
    """An account that the App is installed for."""

    id: int
    account: str
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryInfo:
    """An attempt of GitHub to deliver something.

    ``delivered_at`` is in milliseconds since 1970, UTC; a number that GitHub left out is 0.
    """

    id: int
    guid: str
    event: str
    action: str
    status_code: int
    delivered_at: int
    installation_id: int = 0
    repository_id: int = 0
