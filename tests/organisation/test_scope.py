"""Which repositories may be shown in which: all readers of one may read the other, or both settings agree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.organisation import Visibility
from bot.organisation.scope import OrganisationRepository, Share, visible_to

PUBLIC, INTERNAL, PRIVATE = Visibility.PUBLIC, Visibility.INTERNAL, Visibility.PRIVATE
SDK = OrganisationRepository(1, "octo-org/sdk", 7, PUBLIC)
APP = OrganisationRepository(2, "octo-org/app", 7, PUBLIC)


@pytest.mark.parametrize(
    ("reader", "visible"),
    [(PUBLIC, {PUBLIC}), (INTERNAL, {PUBLIC, INTERNAL}), (PRIVATE, {PUBLIC, INTERNAL})],
)
def test_a_repository_that_all_readers_can_read_is_visible(reader: Visibility, visible: set[Visibility]) -> None:
    app = replace(APP, visibility=reader)
    assert {each for each in Visibility if visible_to(app, [replace(SDK, visibility=each)]) == {SDK.id}} == visible


@pytest.mark.parametrize(
    ("ours", "theirs", "is_visible"),
    [
        (("octo-org/sdk",), ("octo-org/app",), True),
        (("Octo-Org/*",), ("octo-org/a*",), True),
        (("octo-org/sdk",), (), False),
        ((), ("octo-org/app",), False),
        (("octo-org/app",), ("octo-org/sdk",), False),
        (("*/*",), ("other/*",), False),
    ],
)
def test_a_private_repository_is_visible_if_both_share_with_each_other(
    ours: tuple[str, ...], theirs: tuple[str, ...], is_visible: bool
) -> None:
    sdk = replace(SDK, visibility=PRIVATE, shares=tuple(Share(each, APP.id) for each in theirs))
    for visibility in (PRIVATE, INTERNAL):
        app = replace(APP, visibility=visibility, shares=tuple(Share(each, SDK.id) for each in ours))
        assert visible_to(app, [sdk]) == ({SDK.id} if is_visible else set())
        assert visible_to(replace(app, visibility=PUBLIC), [sdk]) == set(), "the public reads it"


def test_a_plain_name_means_only_the_repository_that_had_it_first() -> None:
    first, wanted = Share("octo-org/SDK").bound_to(SDK.id, "Octo-Org/sdk"), Share("octo-org/sdk")
    assert first.repository == SDK.id
    assert first.bound_to(5, "octo-org/sdk") == first, "whoever comes later changes nothing"
    assert wanted.bound_to(5, "octo-org/app") == wanted
    squatter = replace(SDK, id=5)
    assert [first.includes(each) for each in (SDK, squatter, replace(SDK, name="octo-org/new"))] == [True, False, False]
    assert [wanted.includes(each) for each in (SDK, squatter)] == [False, False]
    assert all(Share("octo-org/*").includes(each) for each in (SDK, squatter))


def test_neither_itself_nor_other_installations_are_visible() -> None:
    assert visible_to(APP, [APP, replace(SDK, installation=8)]) == set()


def test_a_repository_counts_as_private_until_its_visibility_is_known() -> None:
    assert visible_to(APP, [OrganisationRepository(1, "octo-org/sdk", 7)]) == set()


_REPOSITORIES = st.builds(
    OrganisationRepository,
    st.integers(1, 4),
    st.sampled_from(["octo-org/sdk", "octo-org/app"]),
    st.integers(1, 2),
    st.sampled_from(list(Visibility)),
    st.sampled_from([(), (Share("octo-org/*"),), (Share("octo-org/sdk", 1),)]),
)


@given(_REPOSITORIES, st.lists(_REPOSITORIES, max_size=5))
def test_a_repository_with_more_readers_never_sees_more(
    reader: OrganisationRepository, others: list[OrganisationRepository]
) -> None:
    order = (PRIVATE, INTERNAL, PUBLIC)
    visible = [visible_to(replace(reader, visibility=each), others) for each in order]
    assert visible[2] <= visible[1] <= visible[0]
