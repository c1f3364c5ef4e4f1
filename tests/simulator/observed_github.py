"""A fake GitHub that checks every request as it is made: what may be written, when, and how often."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bot.comment.marker import read_seal
from bot.domain.changes import FORGET
from bot.domain.post import COMMENT, Post, PostKey, replied_to
from bot.domain.thread import ThreadId
from bot.github.errors import resource_of
from bot.memory.shards import POSTS, REQUESTS
from bot.pipeline.draft import WITHDRAWN_FINGERPRINT
from tests.acceptance.bare_repository import Bare
from tests.fakes.github import FakeGitHub
from tests.fakes.service import SentReply
from tests.invariants import key_of

COMMENTS = re.compile(r"/repos/[^/]+/[^/]+/issues/(\d+)/(comments|timeline)", re.ASCII)
ONE_COMMENT = re.compile(r"/repos/[^/]+/[^/]+/issues/comments/(\d+)", re.ASCII)
ISSUES = re.compile(r"/(?:repos/[^/]+/[^/]+|repositories/\d+)/issues(?:/(\d+))?", re.ASCII)
ALL_COMMENTS = re.compile(r"/(?:repos/[^/]+/[^/]+|repositories/\d+)/issues/comments", re.ASCII)
RENEWING = tuple(f"/precedent {name}" for name in ("refresh", "on"))


@dataclass
class RunRequests:
    """The requests of one run, which is recognised by its token."""

    read_paths: list[str] = field(default_factory=list)
    writes: int = 0
    limited_by: dict[str, str] = field(default_factory=dict)
    """The request that was answered with a limit, by the allowance that the limit is of; "" for all requests."""

    sent: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    @property
    def reads(self) -> int:
        return len(self.read_paths)


class ObservedGitHub(FakeGitHub):
    """A fake GitHub that also sees the memory branch. ``broken`` collects the rules that were broken, and how."""

    def __init__(self, full_name: str, now: str, bare: Bare, site: str, *, validate: bool) -> None:
        self.bare = bare
        self.broken: list[str] = []
        self.requests_by_token: dict[str, RunRequests] = {}
        self.created: dict[PostKey, list[int]] = {}
        self.written: dict[int, str] = {}
        self.unconfirmed: set[PostKey] = set()
        super().__init__(full_name, now, validate=validate, site=site)

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> SentReply:
        path = target.partition("?")[0]
        token = headers.get("Authorization", "").rpartition(" ")[2]
        with self.world.lock:
            run_requests = self.requests_by_token.setdefault(token, RunRequests())
            request, allowance = f"{method} {path}", resource_of(path)
            if limited := run_requests.limited_by.get("") or run_requests.limited_by.get(allowance):
                self.broken.append(f"(5) {request} after a limit was answered to {limited}")
            text = _text(body) if method in ("POST", "PATCH") else ""
            key = self._check_request(method, path, text, run_requests)
            sent = super()._answer(method, target, headers, body)
            self._check_reply(method, path, key, text, sent)
            if not sent.dropped and _is_limit(sent):
                run_requests.limited_by["" if "Retry-After" in sent.headers or not _is_spent(sent) else allowance] = (
                    request
                )
        return sent

    def _check_request(self, method: str, path: str, text: str, run_requests: RunRequests) -> PostKey | None:
        is_query = path == "/graphql" and "mutation" not in text
        if method == "GET" or is_query:
            run_requests.read_paths.append(path)
            return None
        run_requests.writes += 1
        match = COMMENTS.fullmatch(path)
        key = self._key_of(int(match[1]), text) if method == "POST" and match else None
        if key:
            self._check_post(key, text)
        elif method == "PATCH" and (match := ONE_COMMENT.fullmatch(path)):
            self._check_patch(int(match[1]), text)
        run_requests.sent[method, path, text] += 1
        if run_requests.sent[method, path, text] > 1 and key is None:
            self.broken.append(f"(5) {method} {path} twice in one run")
        return key

    def _key_of(self, number: int, text: str) -> PostKey | None:
        key = key_of(number, text)
        if key is None:
            self.broken.append(f"(1) a comment without our marker on issue {number}")
        return key

    def _check_post(self, key: PostKey, text: str) -> None:
        if key in self.unconfirmed:
            self.broken.append(f"(5) POST of {key} repeated without a look in between")
        comment = replied_to(key.slot)
        if comment is None:
            self._check_promise(key, text)
            return
        requests = self._stored(REQUESTS, key.thread) or ()
        request = next((request for request in requests if request.comment_id == comment), None)
        if request is None or request.state != "pending" or request.trying_since is None:
            self.broken.append(f"(M) {key} before memory holds its promise: {request}")
        if request is None or request.name != FORGET or self._post(key):  # a forgotten thread has no posts
            self._check_promise(key, text)

    def _check_promise(self, key: PostKey, text: str) -> None:
        post, seal = self._post(key), read_seal(text)
        if post is None or post.state != "pending" or post.content != (seal.content if seal else ""):
            self.broken.append(f"(M) {key} before memory holds its promise: {post}")

    def _post(self, key: PostKey) -> Post | None:
        """The post as the tip of the branch has it."""
        thread = self._stored(POSTS, key.thread)
        return thread.post(key.slot) if thread else None

    def _check_patch(self, comment_id: int, text: str) -> None:
        comment = self.repo.comments.get(comment_id)
        if comment is None:
            return
        seal = read_seal(text)
        is_withdrawn = seal is not None and seal.content == WITHDRAWN_FINGERPRINT
        if self.written.get(comment_id) != comment.body and not is_withdrawn:
            self.broken.append(f"(1) comment {comment_id} is written over, which a person wrote or edited")
        key = key_of(comment.issue.number, text)
        if key and key.slot == COMMENT:
            self._check_promise(key, text)

    def _stored(self, family: Any, number: ThreadId) -> Any:
        """What the tip of the branch now stores about this thread."""
        tip = self.bare.tip()
        path = family.path(number)
        files = self.bare.files(self.bare.tree_of(tip)) if tip else {}
        if path not in files:
            return None
        return family.read(path, self.bare.object(files[path]), [number])[0].get(number)

    def _check_reply(self, method: str, path: str, key: PostKey | None, text: str, sent: SentReply) -> None:
        if method == "GET" and sent.status == 200 and not sent.dropped:
            self._note_read(path)
        if method == "PATCH" and sent.status == 200 and (match := ONE_COMMENT.fullmatch(path)):
            self.written[int(match[1])] = text
        if key is None:
            return
        if sent.dropped or sent.status == 0 or sent.status >= 500:
            self.unconfirmed.add(key)
        if sent.status == 201:
            self._note_created(key, json.loads(sent.body)["id"], text)

    def _note_read(self, path: str) -> None:
        """Note that after this read the client knows which comments exist."""
        if ALL_COMMENTS.fullmatch(path):
            self.unconfirmed.clear()
        elif match := COMMENTS.fullmatch(path):
            self.unconfirmed = {key for key in self.unconfirmed if key.thread != int(match[1])}
        elif ISSUES.fullmatch(path):
            bare = {number for number, issue in self.repo.issues.items() if not issue.comments}
            self.unconfirmed = {key for key in self.unconfirmed if key.thread not in bare}

    def _note_created(self, key: PostKey, comment_id: int, text: str) -> None:
        earlier = self.created.setdefault(key, [])
        if any(comment in self.repo.comments for comment in earlier):
            self.broken.append(f"(1) a second comment of ours for {key}")
        elif earlier and (key.slot or not self._was_renewed(key.thread, earlier[-1])):
            self.broken.append(f"(1) the comment for {key} was written again after a person deleted it")
        earlier.append(comment_id)
        self.written[comment_id] = text

    def _was_renewed(self, number: ThreadId, since: int) -> bool:
        """Whether somebody has asked for a new comment since the last one was written."""
        comments = [*self.repo.comments.values(), *self.repo.removed.values()]
        return any(
            comment.id > since and comment.issue.number == number and any(word in comment.body for word in RENEWING)
            for comment in comments
        )


def _text(body: bytes) -> str:
    try:
        data = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(data, dict):
        return ""
    if "query" in data:  # the same mutation with two ids changes two things
        return f"{data['query']}{json.dumps(data.get('variables'), sort_keys=True)}"
    return str(data.get("body") or data.get("content") or "")


def _is_limit(sent: SentReply) -> bool:
    return sent.status == 429 or (sent.status == 403 and (_is_spent(sent) or "Retry-After" in sent.headers))


def _is_spent(sent: SentReply) -> bool:
    return sent.headers.get("X-RateLimit-Remaining") == "0"
