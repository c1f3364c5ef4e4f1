"""A container registry in memory, for pushing and pulling by digest without an account.

``python -m tests.fakes.registry 5000`` serves one until it is stopped. API:
https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from itertools import count
from urllib.parse import parse_qs

from tests.fakes.httpd import Listener
from tests.fakes.service import SentReply

PLACE = re.compile(r"/v2/(?P<name>[a-z0-9/._-]+)/(?P<kind>blobs/uploads|blobs|manifests)/(?P<key>[\w.:-]*)")


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Registry:
    """Listens from its creation until `stop`. ``manifests`` has types and contents by name and by digest or tag."""

    def __init__(self, port: int = 0) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._uploads: dict[str, bytes] = {}
        self._numbers = count(1)
        self._listener = Listener(self._answer, port)

    @property
    def address(self) -> str:
        """Host and port, as in the name of an image."""
        return self._listener.url.removeprefix("http://")

    def stop(self) -> None:
        self._listener.stop()

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> SentReply:
        path, _, query = target.partition("?")
        found = PLACE.fullmatch(path)
        if found is None:
            return SentReply(200 if path == "/v2/" else 404, {}, b"")
        name, kind, key = found.groups()
        if kind == "blobs/uploads":
            return self._upload(method, name, key, body, parse_qs(query).get("digest", [""])[0])
        if kind == "manifests" and method == "PUT":
            return self._store_manifest(name, key, headers.get("Content-Type", ""), body)
        media, content = ("application/octet-stream", self.blobs.get(key))
        if kind == "manifests":
            media, content = self.manifests.get((name, key), ("", None))
        if content is None or method not in ("GET", "HEAD"):
            return SentReply(404, {}, b"")
        return SentReply(200, {"Content-Type": media, "Docker-Content-Digest": digest_of(content)}, content)

    def _upload(self, method: str, name: str, key: str, body: bytes, digest: str) -> SentReply:
        key = key or str(next(self._numbers))
        content = self._uploads[key] = self._uploads.get(key, b"") + body
        place = {"Location": f"/v2/{name}/blobs/uploads/{key}", "Range": f"0-{max(len(content) - 1, 0)}"}
        if method != "PUT":
            return SentReply(202, place, b"")
        if digest_of(content) != digest:
            return SentReply(400, {}, b"")
        self.blobs[digest] = self._uploads.pop(key)
        return SentReply(201, {"Location": f"/v2/{name}/blobs/{digest}", "Docker-Content-Digest": digest}, b"")

    def _store_manifest(self, name: str, key: str, media: str, body: bytes) -> SentReply:
        digest = digest_of(body)
        self.manifests[name, key] = self.manifests[name, digest] = (media, body)
        return SentReply(201, {"Location": f"/v2/{name}/manifests/{digest}", "Docker-Content-Digest": digest}, b"")


if __name__ == "__main__":
    print(Registry(int(sys.argv[1])).address, flush=True)
    threading.Event().wait()
