"""Repository keys as text and back, log fields, and tokens that no repr shows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.github.app import InstallationToken
from bot.github.events import Event
from bot.server.model import Delivery, Grant, RepositoryKey, delivery_fields

NUMBERS = st.integers(min_value=0, max_value=2**53)


@settings(deadline=None)
@given(NUMBERS, NUMBERS)
def test_a_key_is_read_from_its_text(installation: int, number: int) -> None:
    key = RepositoryKey(installation, number)
    assert RepositoryKey.of(key.text) == key


@pytest.mark.parametrize(
    "text", ["", "-", "1", "1-", "-1", "-1-2", "1--2", "01-2", "1-2-3", " 1-2", "1_0-2", "1-2\n", "\uff11-2"]
)
def test_other_text_is_not_a_key(text: str) -> None:
    with pytest.raises(ValueError, match="is not a repository key"):
        RepositoryKey.of(text)


def test_a_repr_shows_no_token() -> None:
    assert "secret" not in repr(Grant(RepositoryKey(1, 2), "secret"))
    assert "secret" not in repr(InstallationToken("secret", 0, "octo-org/hello-world"))


def test_log_fields_for_several_deliveries_list_them_all() -> None:
    first, second, third = (
        Delivery(f"7:guid-{number}", RepositoryKey(1, 2), Event("issues"), request=request)
        for number, request in enumerate(("r1", "r2", "r1"))
    )
    assert delivery_fields([first, second, third]) == {"request": "r1 r2", "delivery": "guid-0 guid-1 guid-2"}
    assert delivery_fields([first]) == {"request": "r1", "delivery": "guid-0"}
