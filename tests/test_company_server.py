"""A server with a certificate that the company signed: the variables that docs/workflows.md names are enough."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bot.action.main import run
from tests.acceptance.stage import Stage
from tools.snippets import ROOT

NAMED = re.findall(r"(\w+)=/etc/ssl/certs/ca-certificates\.crt", (ROOT / "docs/workflows.md").read_text("utf-8"))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate of localhost that nobody knows, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path / "company.pem"
    file.write_bytes(key.private_bytes(*plain) + made.public_bytes(serialization.Encoding.PEM))
    return file


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def behind_tls(url: str, certificate: Path) -> Iterator[str]:
    """The address of a door with this certificate in front of a plain server on this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    port = urlsplit(url).port
    assert port
    opened: list[socket.socket] = []

    def serve(door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = door.accept()
                opened.append(plain)
                with contextlib.suppress(ssl.SSLError):
                    outer = context.wrap_socket(plain, server_side=True)
                    opened.append(outer)
                    inner = socket.create_connection(("127.0.0.1", port))
                    opened.append(inner)
                    for pair in ((inner, outer), (outer, inner)):
                        threading.Thread(target=pump, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=serve, args=(door,), daemon=True).start()
        yield f"https://localhost:{door.getsockname()[1]}"
        door.shutdown(socket.SHUT_RDWR)
    for each in opened:
        each.close()


@pytest.mark.slow
@pytest.mark.parametrize("missing", [None, *NAMED])
def test_the_api_and_git_each_need_one_of_the_variables(
    stage: Stage, certificate: Path, monkeypatch: pytest.MonkeyPatch, missing: str | None
) -> None:
    for name in NAMED:
        monkeypatch.delenv(name, raising=False)
        if name != missing:
            monkeypatch.setenv(name, str(certificate))
    number = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    stage.github.write_event(stage.folder / "event.json", "issues", "opened", number, None)
    with behind_tls(stage.github.url, certificate) as api, behind_tls(stage.git.url, certificate) as git:
        environ = stage.environment("issues", {"mode": "summary"})
        environ |= {"GITHUB_API_URL": api, "GITHUB_SERVER_URL": git}
        code = run(environ, datetime.fromisoformat(stage.github.clock.now), write_gap=0)
    told = stage.summary.read_text(encoding="utf-8")
    is_well = code == 0 and "could not be reached" not in told
    assert is_well is (missing in (None, "SSL_CERT_FILE")), told  # that one is for the App of the server


def test_the_page_names_the_variables() -> None:
    assert sorted(NAMED) == ["GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"]
