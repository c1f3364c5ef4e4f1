"""An object store with as much of S3 as a table needs: whole and conditional writes, ranges, lists, multipart uploads.

One lock guards every change of a key, so that ``If-None-Match: *`` lets exactly one writer through, as in S3.
Signatures are not checked. API: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations.html
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.fakes.httpd import Loopback

PAGE = 1_000
PART = re.compile(r"<PartNumber>(\d+)</PartNumber>")
KEY = re.compile(r"<Key>(.*?)</Key>", re.DOTALL)
XMLNS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


@dataclass
class StoredObjects:
    """What is stored. Each answer takes ``delay`` seconds; ``requests`` counts requests; ``is_down`` refuses them all;
    ``before_write`` is called with each key before it is written."""

    contents: dict[str, tuple[bytes, datetime]] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    delay: float = 0.0
    requests: int = 0
    is_down: bool = False
    before_write: Callable[[str], None] = lambda _: None

    def put(self, key: str, content: bytes, *, only_new: bool) -> bool:
        """Store an object; False if it exists already and ``only_new`` is set."""
        self.before_write(key)
        with self.lock:
            if only_new and key in self.contents:
                return False
            self.contents[key] = (content, datetime.now(UTC).replace(microsecond=0))
            return True


def key_of(path: str) -> str:
    """The key in ``/bucket/key``; there is only one bucket, whatever its name."""
    return path.removeprefix("/").partition("/")[2]


def etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


class S3Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    objects: StoredObjects

    def log_message(self, *_: object) -> None:
        pass

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.key = key_of(unquote(parts.path))
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert "aws-chunked" not in (self.headers.get("Content-Encoding") or "")
        self.objects.requests += 1
        time.sleep(self.objects.delay)
        if self.objects.is_down:
            self.fail(503, "ServiceUnavailable")
        return not self.objects.is_down

    def do_PUT(self) -> None:
        if "uploadId" in self.query:
            parts = self.objects.uploads.get(self.query["uploadId"])
            if parts is None:
                return self.fail(404, "NoSuchUpload")
            parts[int(self.query["partNumber"])] = self.body
            return self.reply(200, headers={"ETag": etag(self.body)})
        if source := self.headers.get("x-amz-copy-source"):
            source_object = self.objects.contents.get(key_of("/" + unquote(source).lstrip("/")))
            if source_object is None:
                return self.fail(404, "NoSuchKey")
            self.body = source_object[0]
        if not self.objects.put(self.key, self.body, only_new=self.headers.get("If-None-Match") == "*"):
            return self.fail(412, "PreconditionFailed")
        body_xml = f"<CopyObjectResult><ETag>{etag(self.body)}</ETag></CopyObjectResult>" if source else ""
        return self.reply(200, body_xml.encode(), {"ETag": etag(self.body)})

    def do_POST(self) -> None:
        if "uploads" in self.query:
            number = f"upload-{next(self.objects.numbers)}"
            self.objects.uploads[number] = {}
            body_xml = (
                f"<InitiateMultipartUploadResult {XMLNS}><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
            )
            return self.reply(200, body_xml.encode())
        if "uploadId" in self.query:
            return self.complete()
        keys = [
            key.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            for key in KEY.findall(self.body.decode())
        ]
        with self.objects.lock:
            for key in keys:
                self.objects.contents.pop(key, None)
        body_xml = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return self.reply(200, f"<DeleteResult {XMLNS}>{body_xml}</DeleteResult>".encode())

    def complete(self) -> None:
        parts = self.objects.uploads.pop(self.query["uploadId"], None)
        if parts is None:
            return self.fail(404, "NoSuchUpload")
        content = b"".join(parts[int(number)] for number in PART.findall(self.body.decode()))
        if not self.objects.put(self.key, content, only_new=self.headers.get("If-None-Match") == "*"):
            return self.fail(412, "PreconditionFailed")
        body_xml = (
            f"<CompleteMultipartUploadResult {XMLNS}><ETag>{etag(content)}</ETag></CompleteMultipartUploadResult>"
        )
        return self.reply(200, body_xml.encode())

    def do_DELETE(self) -> None:
        if "uploadId" in self.query:
            self.objects.uploads.pop(self.query["uploadId"], None)
        else:
            with self.objects.lock:
                self.objects.contents.pop(self.key, None)
        self.reply(204)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if not self.key:
            return self.list()
        stored = self.objects.contents.get(self.key)
        if stored is None:
            return self.fail(404, "NoSuchKey")
        content, at = stored
        headers = {"ETag": etag(content), "Last-Modified": format_datetime(at, usegmt=True)}
        byte_range = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if not byte_range:
            return self.reply(200, content, headers)
        first, last = byte_range.groups()
        begin = int(first) if first else max(0, len(content) - int(last))
        end = min(int(last) + 1, len(content)) if first and last else len(content)
        if begin >= len(content):
            return self.fail(416, "InvalidRange")
        return self.reply(
            206, content[begin:end], headers | {"Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"}
        )

    def list(self) -> None:
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        after = self.query.get("continuation-token") or self.query.get("start-after", "")
        with self.objects.lock:
            keys = sorted(key for key in self.objects.contents if key.startswith(prefix))
            stored = dict(self.objects.contents)
        entries: dict[str, bool] = {}  # key, or prefix shared by several keys → whether it is a prefix
        for key in keys:
            rest = key[len(prefix) :]
            is_folder = bool(delimiter) and delimiter in rest
            entries[prefix + rest.partition(delimiter)[0] + delimiter if is_folder else key] = is_folder
        names = [name for name in sorted(entries) if name > after]
        most = min(PAGE, int(self.query.get("max-keys", PAGE)))
        shown, is_cut = names[:most], len(names) > most
        body_xml = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            if entries[name]
            else object_xml(name, *stored[name])
            for name in shown
        )
        token = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if is_cut else ""
        head = f"<Prefix>{escape(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount>"
        end = f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{token}"
        self.reply(200, f"<ListBucketResult {XMLNS}>{head}{end}{body_xml}</ListBucketResult>".encode())

    def fail(self, status: int, code: str) -> None:
        self.reply(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def reply(self, status: int, content: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()


def object_xml(name: str, content: bytes, at: datetime) -> str:
    stamp = at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return (
        f"<Contents><Key>{escape(name)}</Key><LastModified>{stamp}</LastModified><ETag>{escape(etag(content))}</ETag>"
        f"<Size>{len(content)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
    )


@contextmanager
def s3() -> Iterator[tuple[StoredObjects, dict[str, str]]]:
    """The store, and the environment variables for its clients."""
    objects = StoredObjects()
    server = Loopback(type("Handler", (S3Handler,), {"objects": objects}))
    try:
        yield objects, environment(server.url)
    finally:
        server.stop()


def environment(url: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
    }
