"""Requests as bytes: what is stored, dropped or refused, and in which order the checks come."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.github.events import Event
from bot.server.model import Delivery, DroppedDelivery, Priority, Refused, RepositoryKey
from bot.server.receive.webhook import WebhookRules, check_headers, is_signed, receive
from tests.fakes.github import FakeGitHub
from tests.server.client import SECRET, delivery_headers, event_body, issue_event, signature

RULES = WebhookRules(7, (SECRET, b"the secret before that one"), "helper[bot]")
GUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
NOW = 1_790_000_000_000


def raw(headers: dict[str, str]) -> dict[bytes, bytes]:
    return {name.lower().encode("latin-1"): value.encode("latin-1") for name, value in headers.items()}


def receive_event(payload: Any, event: str = "issues", method: str = "POST", **overrides: str | None) -> Any:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    headers = raw(delivery_headers(body, event, GUID, **overrides))
    return receive(method, headers, body, RULES, NOW, "request-1")


def status(payload: Any, event: str = "issues", method: str = "POST", **overrides: str | None) -> int:
    received = receive_event(payload, event, method, **overrides)
    return received.status if isinstance(received, Refused) else 202


def with_installation(github: FakeGitHub, *args: Any, **more: Any) -> dict[str, Any]:
    return github.payload(*args, **more) | {"installation": {"id": 5}}


def test_an_opened_issue_becomes_an_arrival_without_its_text_or_author(github: FakeGitHub) -> None:
    number = github.open_issue("octocat", "Sesame", "a secret word")
    payload = with_installation(github, "issues", "opened", number)
    repository = payload["repository"]
    arrival = receive_event(payload)
    assert arrival == Delivery(
        id=f"7:{GUID}",
        repository=RepositoryKey(5, repository["id"]),
        event=Event("issues", "opened", number),
        name=repository["full_name"],
        received_at=NOW,
        request="request-1",
        priority=Priority.URGENT,
    )
    assert not any(word in repr(arrival) for word in ("Sesame", "secret word", "octocat'"))


def test_a_comment_becomes_an_arrival_with_its_number_but_not_its_author(github: FakeGitHub) -> None:
    number = github.open_issue("octocat", "Crash")
    comment = github.comment(number, "hubot", "Me too")
    arrival = receive_event(with_installation(github, "issue_comment", "created", number, comment), "issue_comment")
    assert arrival.event == Event("issue_comment", "created", number, comment_id=comment)


def test_a_discussion_becomes_an_arrival_without_urgency(github: FakeGitHub) -> None:
    number = github.discuss("octocat", "How?")
    comment = github.say(number, "hubot", "/precedent search that")
    for name, action, comment_id in (("discussion", "created", None), ("discussion_comment", "created", comment)):
        arrival = receive_event(with_installation(github, name, action, number, comment_id), name)
        assert (arrival.event, arrival.priority) == (Event(name, action, number), Priority.CHANGE)


REFUSALS = [
    (405, "method", {}),
    (415, "type", {"content_type": "application/x-www-form-urlencoded"}),
    (415, "no type", {"content_type": None}),
    (411, "no length", {"content_length": None}),
    (411, "chunks", {"transfer_encoding": "chunked"}),
    (411, "a length that is none", {"content_length": "+5"}),
    (413, "26 MB", {"content_length": str(26 * 1024 * 1024)}),
    (413, "one byte more than 25 MB", {"content_length": str(25 * 1024 * 1024 + 1)}),
    (413, "a length of five thousand digits", {"content_length": "9" * 5_000}),
    (400, "no event", {"x_github_event": None}),
    (400, "an event that is none", {"x_github_event": "Issues!"}),
    (403, "no signature", {"x_hub_signature_256": None}),
    (403, "SHA-1 alone", {"x_hub_signature_256": None, "x_hub_signature": "sha1=" + "0" * 40}),
    (403, "SHA-1 in its place", {"x_hub_signature_256": "sha1=" + "0" * 40}),
    (403, "a short one", {"x_hub_signature_256": "sha256=00"}),
    (403, "another one", {"x_hub_signature_256": "sha256=" + "0" * 64}),
    (400, "no delivery", {"x_github_delivery": None}),
    (400, "a delivery that is no GUID", {"x_github_delivery": "../../etc/passwd"}),
]


@pytest.mark.parametrize(
    ("expected", "changed"), [(one, rest) for one, _, rest in REFUSALS], ids=[r[1] for r in REFUSALS]
)
def test_each_refusal_has_its_status(expected: int, changed: dict[str, str | None]) -> None:
    assert status(issue_event(1), method="PUT" if expected == 405 else "POST", **changed) == expected


ORDER = {
    405: {},
    415: {"content_type": "text/plain"},
    411: {"transfer_encoding": "chunked"},
    413: {"content_length": str(26 * 1024 * 1024)},
    400: {"x_github_event": None},
    403: {"x_hub_signature_256": None},
}


@pytest.mark.parametrize("first", ORDER)
@pytest.mark.parametrize("second", ORDER)
def test_of_two_faults_the_earlier_check_decides_the_status(first: int, second: int) -> None:
    order = list(ORDER)
    expected = min(first, second, key=order.index)
    method = "GET" if 405 in (first, second) else "POST"
    assert (
        status(issue_event(1), "issues", method, **ORDER[first], **ORDER[second] if first != second else {}) == expected
    )


def test_headers_are_checked_before_the_body_is_read() -> None:
    for expected, name, changed in REFUSALS:
        headers = raw(delivery_headers(b"{}", guid=GUID, **changed))
        checked = check_headers("GET" if expected == 405 else "POST", headers)
        later = name in ("another one", "no delivery", "a delivery that is no GUID")
        assert checked == 2 if later else isinstance(checked, Refused) and checked.status == expected


def test_no_body_is_parsed_before_its_signature_is_verified() -> None:
    assert status(b"no JSON", x_hub_signature_256=signature(b"another body")) == 403
    assert status(b"no JSON", x_github_delivery=None, x_hub_signature_256=signature(b"another body")) == 403


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[]", b'"text"', b"[" * 100_000, b"\xff\xfe", b"1" * 6_000])
def test_a_signed_body_that_is_not_a_json_object_is_refused(body: bytes) -> None:
    assert status(body) == 400


@pytest.mark.parametrize("part", ["installation", "repository"])
@pytest.mark.parametrize("wrong", [None, {}, [], {"id": "5"}, {"id": 0}, {"id": -1}, {"id": True}, {"id": 2**60}])
def test_a_payload_without_valid_installation_and_repository_ids_is_refused(part: str, wrong: object) -> None:
    assert status(issue_event(1) | {part: wrong}) == 400


def test_the_example_signature_of_githubs_documentation_is_valid() -> None:
    expected = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert is_signed(b"Hello, World!", expected, (SECRET,))


def test_the_current_and_the_previous_secret_are_valid_and_no_other() -> None:
    body = json.dumps(issue_event(1)).encode()
    assert status(body, x_hub_signature_256=signature(body, RULES.secrets[1])) == 202
    assert status(body, x_hub_signature_256=signature(body, b"a secret of long ago")) == 403
    assert status(body, x_hub_signature_256=signature(body, b"")) == 403


@pytest.mark.parametrize("position", [7, 38, 70])
def test_one_wrong_digit_makes_a_signature_invalid(position: int) -> None:
    body = json.dumps(issue_event(1)).encode()
    valid = signature(body)
    wrong = valid[:position] + ("0" if valid[position] != "0" else "1") + valid[position + 1 :]
    assert (status(body, x_hub_signature_256=valid), status(body, x_hub_signature_256=wrong)) == (202, 403)


def test_checking_a_signature_takes_equally_long_for_each_secret() -> None:
    """Each secret is tried, also after one that fits."""
    body, tried = b"{}", list[bytes]()

    def watched() -> Iterator[bytes]:
        for secret in RULES.secrets:
            tried.append(secret)
            yield secret

    signed_with = [*RULES.secrets, b"neither"]
    results = [is_signed(body, signature(body, secret).encode(), watched()) for secret in signed_with]  # type: ignore[arg-type]
    assert (results, tried) == ([True, True, False], [*RULES.secrets] * 3)


@settings(deadline=None)
@given(st.data())
def test_any_flipped_bit_in_the_body_invalidates_the_signature(data: st.DataObject) -> None:
    body = json.dumps(issue_event(1)).encode()
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    flipped = bytearray(body)
    flipped[bit // 8] ^= 1 << bit % 8
    assert status(bytes(flipped), x_hub_signature_256=signature(body)) == 403


def test_a_body_whose_length_differs_from_content_length_is_refused() -> None:
    assert status(issue_event(1), content_length="3") == 400


OURS = {"comment": {"id": 3, "user": {"login": "helper[bot]"}}}
BY_US = OURS | {"sender": {"login": "Helper[bot]"}}
NO_BRANCH = {"ref": "refs/tags/v1", "repository": {"id": 17, "full_name": "octo-org/project-17"}}


@pytest.mark.parametrize(
    ("event", "action", "changed", "why"),
    [
        ("ping", "", {}, "ping"),
        *((name, "opened", {}, "unknown event") for name in ("star", "workflow_job", "github_app_authorization")),
        ("pull_request", "opened", {}, "unknown event"),
        *((name, "dreamt", {}, "unknown action") for name in ("issues", "repository", "installation")),
        *((f"{kind}_comment", "created", BY_US, "our own comment") for kind in ("issue", "discussion")),
        *((f"{kind}_comment", "edited", BY_US, "our own comment") for kind in ("issue", "discussion")),
        ("issue_comment", "deleted", OURS, ""),
        ("push", "", {"ref": "refs/heads/main"}, ""),
        *(
            ("push", "", {"ref": ref}, "not the default branch")
            for ref in ("refs/heads/precedent", "refs/tags/main", "")
        ),
        ("push", "", NO_BRANCH, "not the default branch"),
    ],
)
def test_what_does_not_concern_us_is_dropped(event: str, action: str, changed: dict[str, Any], why: str) -> None:
    received = receive_event(event_body(event, action, **changed), event)
    assert received == DroppedDelivery(why) if why else isinstance(received, Delivery)


def test_an_installation_event_gets_its_own_key_and_lists_account_and_repositories() -> None:
    payload = {
        "action": "created",
        "installation": {"id": 5, "account": {"login": "octo-org"}},
        "repositories": [{"id": 17}, {"id": 18}, {"id": "x"}, None],
    }
    arrival = receive_event(payload, "installation")
    assert (arrival.repository, arrival.event) == (RepositoryKey(5, 0), Event("installation", "created"))
    assert arrival.extra == (("account", "octo-org"), ("added", "17,18"))


def test_added_and_removed_repositories_are_listed_by_id() -> None:
    payload = {
        "action": "removed",
        "installation": {"id": 5, "account": {"login": "octo-org"}},
        "repositories_added": [],
        "repositories_removed": [{"id": 17}, {"id": 18}],
    }
    assert dict(receive_event(payload, "installation_repositories").extra) == {
        "account": "octo-org",
        "removed": "17,18",
    }


def test_a_rename_gets_the_key_of_the_installation_and_the_id_of_the_repository() -> None:
    arrival = receive_event(event_body("repository", "renamed"), "repository")
    assert (arrival.repository, arrival.event) == (RepositoryKey(1, 0), Event("repository", "renamed"))
    assert arrival.name == "octo-org/project-17"
    assert arrival.extra == (("repository", "17"),)


def test_a_transferred_issue_records_its_destination(github: FakeGitHub) -> None:
    payload = issue_event(3, action="transferred") | {
        "changes": {"new_issue": {"number": 9}, "new_repository": {"full_name": "octo-org/other"}}
    }
    assert receive_event(payload).event == Event("issues", "transferred", 3, moved_to="octo-org/other#9")


def test_the_case_of_a_guid_does_not_matter() -> None:
    assert receive_event(issue_event(1), x_github_delivery=GUID.upper()).id == f"7:{GUID}"


def test_no_secret_is_in_the_repr_of_the_rules() -> None:
    assert "Everybody" not in repr(RULES)


@settings(deadline=None)
@given(st.binary(max_size=200), st.dictionaries(st.sampled_from([*raw(delivery_headers(b""))]), st.binary(max_size=80)))
def test_no_request_causes_a_crash(body: bytes, headers: dict[bytes, bytes]) -> None:
    all_headers = raw(delivery_headers(body)) | headers
    assert isinstance(receive("POST", all_headers, body, RULES, NOW, ""), Delivery | DroppedDelivery | Refused)
    signed = b"sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest().encode()
    assert isinstance(
        receive("POST", all_headers | {b"x-hub-signature-256": signed}, body, RULES, NOW, ""),
        Delivery | DroppedDelivery | Refused,
    )
