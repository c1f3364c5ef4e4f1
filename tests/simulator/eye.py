"""The fake GitHub with an eye on every request at the moment it is made: what may be written, when, and how often."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bot.comment.marker import read_seal
from bot.github.threads import OwnCommentRule
from bot.memory.shards import ANSWERS, REQUESTS
from bot.pipeline.outbox import NOTHING
from tests.fakes.github import FakeGitHub
from tests.fakes.service import Sent
from tests.fakes.state import BOT_LOGIN
from tests.simulator.bare import Bare

OURS = OwnCommentRule(BOT_LOGIN, "<!-- precedent:v1 id=action -->")
COMMENTS = re.compile(r"/repos/[^/]+/[^/]+/issues/(\d+)/(comments|timeline)", re.ASCII)
ONE_COMMENT = re.compile(r"/repos/[^/]+/[^/]+/issues/comments/(\d+)", re.ASCII)
ISSUES = re.compile(r"/(?:repos/[^/]+/[^/]+|repositories/\d+)/issues(?:/(\d+))?", re.ASCII)
ALL_COMMENTS = re.compile(r"/(?:repos/[^/]+/[^/]+|repositories/\d+)/issues/comments", re.ASCII)
RENEWING = tuple(f"/precedent {name}" for name in ("refresh", "on"))

Key = tuple[int, int]
"""What a comment of ours is for: (issue, 0) is the comment on the issue, (issue, comment) the reply to a comment."""


@dataclass
class Seen:
    """What one run has asked for, known by its token."""

    read: list[str] = field(default_factory=list)
    writes: int = 0
    limited: str = ""
    sent: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    @property
    def reads(self) -> int:
        return len(self.read)


class Watched(FakeGitHub):
    """A fake GitHub that knows the memory branch. ``broken`` collects which rule was broken, and how."""

    def __init__(self, full_name: str, now: str, bare: Bare, site: str, *, validate: bool) -> None:
        self.bare = bare
        self.broken: list[str] = []
        self.seen: dict[str, Seen] = {}
        self.created: dict[Key, list[int]] = {}
        self.written: dict[int, str] = {}
        self.unsure: set[Key] = set()
        super().__init__(full_name, now, validate=validate, site=site)

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Sent:
        path = target.partition("?")[0]
        token = headers.get("Authorization", "").rpartition(" ")[2]
        with self.world.lock:
            seen = self.seen.setdefault(token, Seen())
            what = f"{method} {path}"
            if seen.limited:
                self.broken.append(f"(5) {what} after a limit was answered to {seen.limited}")
            text = _text(body) if method in ("POST", "PATCH") else ""
            key = self._before(method, path, text, seen)
            sent = super()._answer(method, target, headers, body)
            self._after(method, path, key, text, sent)
            if not sent.dropped and _is_limit(sent):
                seen.limited = what
        return sent

    def _before(self, method: str, path: str, text: str, seen: Seen) -> Key | None:
        is_query = path == "/graphql" and "mutation" not in text
        if method == "GET" or is_query:
            seen.read.append(path)
            return None
        seen.writes += 1
        found = COMMENTS.fullmatch(path)
        key = self._key_of(int(found[1]), text) if method == "POST" and found else None
        if key:
            self._check_post(key, text)
        elif method == "PATCH" and (one := ONE_COMMENT.fullmatch(path)):
            self._check_patch(int(one[1]), text)
        seen.sent[method, path, text] += 1
        if seen.sent[method, path, text] > 1 and key is None:
            self.broken.append(f"(5) {method} {path} twice in one run")
        return key

    def _key_of(self, number: int, text: str) -> Key | None:
        comment = {"body": text, "user": {"login": BOT_LOGIN}}
        if OURS.is_answer(comment):
            return number, 0
        reply = OURS.reply_target(comment)
        if reply is None:
            self.broken.append(f"(1) a comment without our marker on issue {number}")
            return None
        return number, reply

    def _check_post(self, key: Key, text: str) -> None:
        if key in self.unsure:
            self.broken.append(f"(5) POST of {key} repeated without a look in between")
        number, reply = key
        if reply:
            wish = next((wish for wish in self._held(REQUESTS, number) or () if wish.comment_id == reply), None)
            if wish is None or wish.state != "pending" or wish.trying_since is None:
                self.broken.append(f"(M) reply {key} before memory holds its promise: {wish}")
        else:
            self._check_promise(number, text)

    def _check_promise(self, number: int, text: str) -> None:
        said, seal = self._held(ANSWERS, number), read_seal(text)
        content = seal.content if seal else ""
        if said is None or said.state != "pending" or said.text_hash != content:
            self.broken.append(f"(M) the comment on issue {number} before memory holds its promise: {said}")

    def _check_patch(self, comment_id: int, text: str) -> None:
        comment = self.repo.comments.get(comment_id)
        if comment is None:
            return
        seal = read_seal(text)
        is_taken_back = seal is not None and seal.content == NOTHING
        if self.written.get(comment_id) != comment.body and not is_taken_back:
            self.broken.append(f"(1) comment {comment_id} is written over, which a person wrote or edited")
        if OURS.is_answer({"body": text, "user": {"login": BOT_LOGIN}}):
            self._check_promise(comment.issue.number, text)

    def _held(self, family: Any, number: int) -> Any:
        """What the tip of the branch holds of this thread at this very moment."""
        tip = self.bare.tip()
        path = family.path(number)
        files = self.bare.files(self.bare.tree_of(tip)) if tip else {}
        if path not in files:
            return None
        return family.read(path, self.bare.object(files[path]), [number])[0].get(number)

    def _after(self, method: str, path: str, key: Key | None, text: str, sent: Sent) -> None:
        if method == "GET" and sent.status == 200 and not sent.dropped:
            self._look(path)
        if method == "PATCH" and sent.status == 200 and (one := ONE_COMMENT.fullmatch(path)):
            self.written[int(one[1])] = text
        if key is None:
            return
        if sent.dropped or sent.status == 0 or sent.status >= 500:
            self.unsure.add(key)
        if sent.status == 201:
            self._note_created(key, json.loads(sent.body)["id"], text)

    def _look(self, path: str) -> None:
        """After this read the client knows which comments stand."""
        if ALL_COMMENTS.fullmatch(path):
            self.unsure.clear()
        elif found := COMMENTS.fullmatch(path):
            self.unsure = {key for key in self.unsure if key[0] != int(found[1])}
        elif ISSUES.fullmatch(path):
            bare = {number for number, issue in self.repo.issues.items() if not issue.comments}
            self.unsure = {key for key in self.unsure if key[0] not in bare}

    def _note_created(self, key: Key, made: int, text: str) -> None:
        number, reply = key
        earlier = self.created.setdefault(key, [])
        if any(each in self.repo.comments for each in earlier):
            self.broken.append(f"(1) a second comment of ours for {key}")
        elif earlier and (reply or not self._was_renewed(number, earlier[-1])):
            self.broken.append(f"(1) the comment for {key} was written again after a person deleted it")
        earlier.append(made)
        self.written[made] = text

    def _was_renewed(self, number: int, since: int) -> bool:
        """Whether somebody asked for a new comment since the last one was written."""
        known = [*self.repo.comments.values(), *self.repo.removed.values()]
        return any(
            comment.id > since and comment.issue.number == number and any(word in comment.body for word in RENEWING)
            for comment in known
        )


def _text(body: bytes) -> str:
    try:
        data = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(data, dict):
        return ""
    if "query" in data:  # two comments are folded by one text with two ids
        return f"{data['query']}{json.dumps(data.get('variables'), sort_keys=True)}"
    return str(data.get("body") or data.get("content") or "")


def _is_limit(sent: Sent) -> bool:
    is_empty = sent.headers.get("X-RateLimit-Remaining") == "0"
    return sent.status == 429 or (sent.status == 403 and (is_empty or "Retry-After" in sent.headers))
