"""Who and what a webhook payload is about, by GitHub's numbers; read leniently, as strangers' words are in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.archive import clean

_LARGEST = 2**53


@dataclass(frozen=True, slots=True)
class Place:
    """The repository of a payload; ``id`` is 0 where it names none. Private unless it says that it is not."""

    id: int = 0
    name: str = ""
    private: bool = True
    default_branch: str = ""


def repository_of(payload: Mapping[str, Any]) -> Place:
    """Where it happened."""
    found = _object(payload, "repository")
    return Place(
        id=_number(found.get("id")),
        name=clean(found.get("full_name"))[:200],
        private=found.get("private") is not False,
        default_branch=clean(found.get("default_branch"))[:300],
    )


def installation_of(payload: Mapping[str, Any]) -> int:
    """The installation of the App that it was delivered for, 0 for none."""
    return _number(_object(payload, "installation").get("id"))


def account_of(payload: Mapping[str, Any]) -> str:
    """The login of the account that the App is installed for, in the events of an installation."""
    return clean(_object(_object(payload, "installation"), "account").get("login"))[:100]


def sender_of(payload: Mapping[str, Any]) -> str:
    """The login of who did it."""
    return clean(_object(payload, "sender").get("login"))[:100]


def repositories_of(payload: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """The numbers in a list of repositories: ``repositories``, ``repositories_added``, ``repositories_removed``."""
    listed = payload.get(name)
    numbers = (_number(one.get("id")) for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()
    return tuple(number for number in numbers if number)


def pushed_to(payload: Mapping[str, Any]) -> str:
    """The branch that a push moved, "" for anything else."""
    ref = clean(payload.get("ref"))
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ""


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST
    return value if is_number and isinstance(value, int) else 0
