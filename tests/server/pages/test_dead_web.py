"""The page of dead deliveries over HTTP: who may change something, from where, and what is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

from bot.github.events import Event
from bot.server.model import Delivery, RepositoryKey, Result, RunReport
from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from bot.server.storage.inbox import Inbox
from bot.server.storage.operations import audit_entries
from tests.browser import TOO_WIDE, WATCH
from tests.server.client import OPERATOR, PASSWORD, Answer, auth_headers, open_connections, request_once
from tests.server.queues import begin_work
from tests.server.web_process import web_process
from tools.screenshot import chromium

pytestmark = pytest.mark.slow
AWAY = "GitHub did not answer (502): tried 8 times"
WHO = "precedent on the status page, role operate"


@dataclass
class Site:
    """A server with two dead deliveries, and its inbox as another process sees it."""

    port: int
    inbox: Inbox

    def get(self, path: str = "/dead", password: str = OPERATOR) -> Answer:
        return asyncio.run(request_once(self.port, "GET", path, auth_headers(f"precedent:{password}", self.host)))

    def post(self, form: dict[str, Any], **overrides: str | None) -> Answer:
        """Send a form as a browser does; ``overrides`` of None leave a header out."""
        body = urlencode(form).encode()
        headers: dict[str, str | None] = {
            **auth_headers(f"precedent:{OPERATOR}", self.host),
            "Content-Type": "application/x-www-form-urlencoded",
            "Content-Length": str(len(body)),
            "Origin": f"http://{self.host}",
            "Sec-Fetch-Site": "same-origin",
        }
        headers |= {name.replace("_", "-"): value for name, value in overrides.items()}
        sent_headers = {name: value for name, value in headers.items() if value is not None}
        return asyncio.run(request_once(self.port, "POST", "/dead", sent_headers, body))

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def states(self) -> list[str]:
        return [row.state for row in reversed(self.inbox.deliveries())]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("dead")
    with (
        open_inbox(ServerOptions(data=folder), "test") as inbox,
        web_process(folder, "--operator", OPERATOR) as (port, _),
    ):
        yield Site(port, inbox)


@pytest.fixture
def site(server: Site) -> Site:
    """With two dead deliveries, whatever was there before."""
    with server.inbox.database.transaction() as emptying:
        for table in ("deliveries", "audit", "sqlite_sequence"):
            emptying.change(f"delete from {table}")
    for number in (1, 2):
        repository, name = RepositoryKey(1, 16 + number), f"octo-org/project-{number}"
        event = Event("issues", "opened", number)
        server.inbox.put([Delivery(f"7:{number}", repository, event, name, received_at=number)])
        server.inbox.end(begin_work(server.inbox, repository), [Result(number, "dead", AWAY)], RunReport())
    return server


def test_an_operator_can_replay_one_delivery_and_drop_the_others(site: Site) -> None:
    answer = site.post({"number": 1, "action": "replay"})
    assert (answer.status, answer.headers["location"]) == (303, "/dead?audited=1")
    assert site.states == ["waiting", "dead"]
    assert b"1 delivery will be tried again." in site.get(answer.headers["location"]).body
    now = site.inbox.now() + 1
    answer = site.post({"reason": quote(AWAY), "seen": now, "why": "archivé", "action": "drop"})
    assert site.states == ["waiting", "dropped"]
    assert b"1 delivery was dropped." in site.get(answer.headers["location"]).body
    entries = audit_entries(site.inbox.database)
    assert [(each.who, each.action, each.done, each.why) for each in entries] == [
        (WHO, "drop", 1, "archivé"),
        (WHO, "replay", 1, ""),
    ]
    assert [each.chosen.partition(", ended")[0] for each in entries] == [
        f"all dead, with the reason {AWAY}",
        "all dead, number 1",
    ]
    assert site.post({"number": 1, "action": "replay"}).headers["location"] == "/dead?audited=0"


def test_neither_other_users_nor_other_sites_can_change_anything(site: Site) -> None:
    form = {"number": 1, "action": "drop"}
    viewer_credentials = auth_headers(host=site.host)["Authorization"]
    refused: list[tuple[int, dict[str, str | None]]] = [
        (401, {"Authorization": viewer_credentials}),
        (401, {"Authorization": None}),
        (403, {"Sec-Fetch-Site": "cross-site"}),
        (403, {"Sec-Fetch-Site": None, "Origin": "https://attacker.example"}),
    ]
    for status, changed in refused:
        assert site.post(form, **changed).status == status, changed
    assert asyncio.run(request_once(site.port, "PUT", "/dead", auth_headers(f"precedent:{OPERATOR}"))).status == 405
    assert b"Replay" in site.get(f"/dead?{urlencode(form)}").body, "a GET changes nothing"
    assert site.states == ["dead", "dead"]
    assert audit_entries(site.inbox.database) == []
    assert site.post(form, **{"Sec-Fetch-Site": None}).status == 303, "a browser that sends only the origin"


def test_each_role_sees_only_the_actions_it_may_take(site: Site) -> None:
    viewer, operator = site.get(password=PASSWORD), site.get()
    assert (viewer.status, b"<form" in viewer.body, b"<form" in operator.body) == (200, False, True)
    policies = [answer.headers["content-security-policy"] for answer in (viewer, operator)]
    assert ["form-action 'none'" in policies[0], "form-action 'self'" in policies[1]] == [True, True]
    assert all("default-src 'none'" in policy and "frame-ancestors 'none'" in policy for policy in policies)
    origin_is_sent = b'<meta name="referrer" content="same-origin">'
    assert origin_is_sent in operator.body, "browsers without Sec-Fetch-Site would send `Origin: null`"
    for path in ("/", "/deliveries/1", "/?state=dead"):
        assert "form-action 'none'" in site.get(path).headers["content-security-policy"]
    assert site.get(password="wrong").status == 401
    assert asyncio.run(request_once(site.port, "GET", "/dead", {"Host": site.host})).status == 401


def test_a_broken_form_is_refused_and_a_broken_address_shows_the_page(site: Site) -> None:
    for form in (
        {},
        {"action": "drop"},
        {str(number): number for number in range(50)},
        {"number": 1, "action": "drop", "why": "x" * 70_000},
    ):
        assert site.post(form).status == 400
    body = b"\xff\xfe=%00&action=drop&number=1"
    sent = {"Origin": f"http://{site.host}", "Content-Length": str(len(body))}
    headers = auth_headers(f"precedent:{OPERATOR}", site.host) | sent
    assert asyncio.run(request_once(site.port, "POST", "/dead", headers, body)).status == 400
    for query in (
        "reason=%00",
        "reason=" + quote("\udc80", errors="surrogatepass"),
        "before=x",
        "audited=-1",
        "reason=",
    ):
        assert site.get(f"/dead?{query}").status == 200
    assert site.post({"reason": quote("\0"), "seen": 5, "action": "drop", "why": "\0"}).status == 303
    assert site.states == ["dead", "dead"]


def test_a_truncated_form_changes_nothing(capfd: pytest.CaptureFixture[str], site: Site) -> None:
    async def send_half() -> None:
        headers = auth_headers(f"precedent:{OPERATOR}", site.host) | {"Sec-Fetch-Site": "same-origin"}
        async with open_connections(site.port) as (line,):
            header_lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            await line.send(
                f"POST /dead HTTP/1.1\r\n{header_lines}Content-Length: 99\r\n\r\nnumber=1&action=drop".encode()
            )

    asyncio.run(send_half())
    assert site.get().status == 200
    assert site.states == ["dead", "dead"]
    assert "Traceback" not in capfd.readouterr().err, "it is no bug"


@pytest.mark.browser
def test_the_buttons_work_in_a_browser_without_scripts(site: Site) -> None:
    with chromium("MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.add_init_script(WATCH)
        page.goto(f"http://precedent:{quote(OPERATOR)}@{site.host}/dead")
        assert page.evaluate(TOO_WIDE) == 0
        page.click("form:has([name=number][value='2']) [value=replay]")
        expect(page.locator("body")).to_contain_text("1 delivery will be tried again.")
        assert site.states == ["dead", "waiting"]
        page.click("summary")
        page.fill("[name=why]", "the project is archived")
        page.click("details [value=drop]")
        expect(page.locator("body")).to_contain_text("1 delivery was dropped.")
        assert site.states == ["dropped", "waiting"]
        assert page.evaluate("problems") == []
    assert [(each.who, each.why) for each in audit_entries(site.inbox.database)] == [
        (WHO, "the project is archived"),
        (WHO, ""),
    ]
