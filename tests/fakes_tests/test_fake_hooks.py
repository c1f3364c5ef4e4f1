"""Webhook payloads and deliveries, event files, and the tokens of Apps."""

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from githubkit import AppAuthStrategy, GitHub
from githubkit.webhooks import parse_obj

from tests.fakes.github import FakeGitHub


def test_a_strict_parser_accepts_the_payload_of_a_comment(github: FakeGitHub) -> None:
    number = github.open_issue("octocat", "Crash", "It crashes.", labels=["bug"])
    comment_id = github.comment(number, "hubot", "Me too")
    payload = github.payload("issue_comment", "created", number, comment_id)
    event = parse_obj("issue_comment", payload)

    assert (event.action, event.comment.body, event.sender.login) == ("created", "Me too", "hubot")
    assert event.repository.full_name == "octocat/hello-world"


@pytest.mark.parametrize("action", ["created", "answered", "closed", "deleted", "transferred"])
def test_a_strict_parser_accepts_the_payload_of_a_discussion(github: FakeGitHub, action: str) -> None:
    number = github.discuss("hubot", "How?", "Like this?", labels=["help"])
    comment_id = github.say(number, "octocat", "Like that.")
    github.mark_answer(number, comment_id, "hubot")
    match action:
        case "closed":
            github.close_discussion(number)
        case "deleted":
            github.delete_discussion(number)
        case "transferred":
            github.transfer_discussion(number, github.add_project("octocat/other"))
    event = parse_obj("discussion", github.payload("discussion", action, number))
    assert (event.action, event.discussion.number, event.sender.login) == (action, number, "hubot")


@pytest.mark.parametrize("action", ["created", "edited", "deleted"])
def test_a_strict_parser_accepts_the_payload_of_a_discussion_comment(github: FakeGitHub, action: str) -> None:
    number = github.discuss("hubot", "How?")
    top = github.say(number, "octocat", "Like that.")
    reply = github.say(number, "hubot", "Thanks!", to=top)
    changes = {"changes": {"body": {"from": "Thank"}}} if action == "edited" else {}
    event = parse_obj("discussion_comment", github.payload("discussion_comment", action, number, reply, changes))
    assert (event.comment.body, event.comment.parent_id, event.discussion.comments) == ("Thanks!", top, 2)


def test_the_payload_of_an_edit_shows_the_old_title(github: FakeGitHub) -> None:
    number = github.open_issue("octocat", "Crash", "It crashes.")
    github.edit_issue(number, title="Crash on start")

    assert github.payload("issues", "edited", number)["changes"] == {"title": {"from": "Crash"}}


def test_deleted_and_transferred_issues_still_have_payloads(github: FakeGitHub) -> None:
    other = github.add_project("octocat/other")
    for title in ("Deleted", "Moved", "Commented"):
        github.open_issue("octocat", title)
    comment_id = github.comment(3, "hubot", "oops")
    github.delete_comment(comment_id)
    github.delete_issue(1)
    github.transfer(2, other)

    assert github.payload("issues", "deleted", 1)["issue"]["title"] == "Deleted"
    assert github.payload("issues", "transferred", 2)["changes"]["new_repository"]["full_name"] == "octocat/other"
    assert github.payload("issue_comment", "deleted", 3, comment_id)["comment"]["body"] == "oops"


def test_an_event_file_is_the_payload(github: FakeGitHub, tmp_path: Path) -> None:
    number = github.open_issue("octocat", "Crash")
    path = github.write_event(tmp_path / "event.json", "issues", "opened", number)

    assert json.loads(path.read_text(encoding="utf-8")) == github.payload("issues", "opened", number)
    assert github.payload("workflow_dispatch", extra={"inputs": {"mode": "rebuild"}})["inputs"] == {"mode": "rebuild"}
    assert "issue" not in github.payload("schedule")


class Receiver(HTTPServer):
    """Keeps what it receives."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _ReceiverHandler)
        self.received: list[tuple[Message, bytes]] = []


class _ReceiverHandler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.headers, body))
        self.send_response(202)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def private_pem(key: rsa.RSAPrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def public_pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def app_token(key: rsa.RSAPrivateKey, app_id: int, **claims: Any) -> str:
    now = int(time.time())
    return jwt.encode({"iat": now - 60, "exp": now + 540, "iss": str(app_id), **claims}, private_pem(key), "RS256")


def test_a_delivery_is_signed_and_a_lost_one_can_be_sent_again(
    github: FakeGitHub, receiver: Receiver, key: rsa.RSAPrivateKey
) -> None:
    github.add_app(77, "precedent")
    github.hooks.url = f"http://127.0.0.1:{receiver.server_port}/hook"
    number = github.open_issue("octocat", "Crash")
    lost = github.hooks.deliver("issues", github.payload("issues", "opened", number), lose=True)
    headers = {"Authorization": f"Bearer {app_token(key, 77)}"}
    with httpx.Client(base_url=github.url, headers=headers) as client:
        failed = [d for d in client.get("/app/hook/deliveries").json() if d["status_code"] != 200]
        assert client.post(f"/app/hook/deliveries/{failed[0]['id']}/attempts").status_code == 202
    deadline = time.monotonic() + 5
    while len(github.hooks.deliveries) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    ((sent, body),) = receiver.received
    digest = hmac.new(github.hooks.secret.encode(), body, hashlib.sha256).hexdigest()

    assert sent["X-GitHub-Delivery"] == lost.guid
    assert sent["X-Hub-Signature-256"] == f"sha256={digest}"
    assert [(d.status, d.redelivery) for d in github.hooks.deliveries] == [(502, False), (202, True)]


def test_githubkit_gets_a_token_for_an_installation_and_acts_as_the_app(
    github: FakeGitHub, key: rsa.RSAPrivateKey
) -> None:
    github.clock.now = None
    github.add_app(77, "precedent", {"issues": "write", "metadata": "read"}, public_pem(key))
    github.open_issue("octocat", "Crash")
    with GitHub(AppAuthStrategy(77, private_pem(key)), base_url=github.url, auto_retry=False) as app:
        installation = app.rest.apps.get_repo_installation("octocat", "hello-world").parsed_data
        with app.with_auth(app.auth.as_installation(installation.id)) as client:
            comment = client.rest.issues.create_comment("octocat", "hello-world", 1, body="hello").parsed_data

    assert comment.user is not None
    assert comment.user.login == "precedent[bot]"
    assert github.issue(1).comments[0].app == "precedent"


@pytest.mark.parametrize("claims", [{"exp": 1}, {"exp": int(time.time()) + 5000}, {"iss": "78"}])
def test_a_bad_app_token_is_refused(github: FakeGitHub, key: rsa.RSAPrivateKey, claims: dict[str, Any]) -> None:
    github.add_app(77, "precedent", None, public_pem(key))
    token = app_token(key, 77, **claims)
    with httpx.Client() as client:
        answer = client.get(f"{github.url}/app", headers={"Authorization": f"Bearer {token}"})

    assert answer.status_code == 401


def test_a_token_signed_with_a_foreign_key_is_refused(github: FakeGitHub, key: rsa.RSAPrivateKey) -> None:
    github.add_app(77, "precedent", None, public_pem(key))
    foreign = app_token(rsa.generate_private_key(65537, 2048), 77)
    with httpx.Client() as client:
        answer = client.get(f"{github.url}/app", headers={"Authorization": f"Bearer {foreign}"})

    assert answer.json()["message"] == "A JSON web token could not be decoded"


def test_a_token_gets_no_more_permissions_than_the_app(github: FakeGitHub, key: rsa.RSAPrivateKey) -> None:
    github.add_app(77, "precedent", {"issues": "read"})
    headers = {"Authorization": f"Bearer {app_token(key, 77)}"}
    with httpx.Client(base_url=github.url, headers=headers) as client:
        path = "/app/installations/77/access_tokens"
        assert client.post(path, json={"permissions": {"issues": "write"}}).status_code == 422
        token = client.post(path, json={"permissions": {"issues": "read"}}).json()["token"]
        client.headers["Authorization"] = f"Bearer {token}"
        assert client.get("/installation/repositories").json()["total_count"] == 1
        assert client.get("/repos/octocat/hello-world/contents/README.md").status_code == 403
