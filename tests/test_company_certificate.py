"""For a server with a certificate signed by the company, the variables named in docs/workflows.md are enough."""

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

VARIABLES = re.findall(r"(\w+)=/etc/ssl/certs/ca-certificates\.crt", (ROOT / "docs/workflows.md").read_text("utf-8"))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and an untrusted certificate for localhost, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
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
    file.write_bytes(key.private_bytes(*plain) + signed.public_bytes(serialization.Encoding.PEM))
    return file


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def behind_tls(url: str, certificate: Path) -> Iterator[str]:
    """The address of a TLS proxy with this certificate in front of a plain server on this machine."""
    context, opened = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[socket.socket]()
    context.load_cert_chain(certificate)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                outer, inner = listener.accept()[0], socket.create_connection(("127.0.0.1", urlsplit(url).port or 0))
                opened.extend((outer, inner))
                for pair in ((inner, outer), (outer, inner)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    plain = socket.create_server(("127.0.0.1", 0))
    with context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"https://localhost:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    for each in opened:
        each.close()


@pytest.mark.slow
@pytest.mark.parametrize("missing", [None, *VARIABLES])
def test_the_api_and_git_each_need_one_of_the_variables(
    stage: Stage, certificate: Path, monkeypatch: pytest.MonkeyPatch, missing: str | None
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        if name != missing:
            monkeypatch.setenv(name, str(certificate))
    number = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    stage.github.write_event(stage.folder / "event.json", "issues", "opened", number, None)
    with behind_tls(stage.github.url, certificate) as api, behind_tls(stage.git.url, certificate) as git:
        environ = stage.environment("issues", {"mode": "summary"})
        environ |= {"GITHUB_API_URL": api, "GITHUB_SERVER_URL": git}
        code = run(environ, datetime.fromisoformat(stage.github.clock.now), write_gap=0)
    summary = stage.summary.read_text(encoding="utf-8")
    succeeded = code == 0 and "could not be reached" not in summary
    assert succeeded is (missing in (None, "SSL_CERT_FILE")), summary  # that one is for the server's App


def test_the_page_names_the_variables() -> None:
    assert sorted(VARIABLES) == ["GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"]
