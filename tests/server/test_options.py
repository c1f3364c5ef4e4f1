"""The options of the server: their sources, what is missing, and that no secret is shown."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from bot.server.options import (
    FLAGS,
    MIN_PASSWORD_BITS,
    REQUIRED,
    WEB_ONLY,
    WORKER_REQUIRED,
    Misconfigured,
    ServerOptions,
    forget_secrets,
    guessing_bits,
    is_secret,
    read_options,
    secret_names,
    variable,
    worker_environment,
)
from bot.settings.schema import rules

ROOT = Path(__file__).resolve().parents[2]
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEAsEcReT\n" * 20 + "-----END RSA PRIVATE KEY-----"
SECRET = "It's a Secret to Everybody"
NEEDED = {"PRECEDENT_APP_ID": "4242", "PRECEDENT_PRIVATE_KEY": KEY, "PRECEDENT_WEBHOOK_SECRET": SECRET}


def faults(environ: dict[str, str], **flags: object) -> list[str]:
    with pytest.raises(Misconfigured) as caught:
        read_options(environ, flags)
    return list(caught.value.faults)


def test_three_options_are_required_and_all_others_have_a_default() -> None:
    options = read_options(NEEDED)
    assert (options.app_id, options.private_key, options.webhook_secret) == (4242, KEY, SECRET)
    assert (options.host, options.port, options.workers, options.jobs) == ("127.0.0.1", 8080, 1, 4)
    assert options.data == Path("data").absolute()
    assert options.secrets == (SECRET.encode(),)


def test_all_missing_and_wrong_options_are_reported_at_once() -> None:
    reported = faults({"PRECEDENT_PORT": "http", "PRECEDENT_LOG": "xml"})
    assert [fault.partition(" ")[0] for fault in reported] == [
        "PRECEDENT_APP_ID",
        "PRECEDENT_PRIVATE_KEY",
        "PRECEDENT_WEBHOOK_SECRET",
        "PRECEDENT_PORT",
        "PRECEDENT_LOG",
    ]
    assert reported[1] == (
        "PRECEDENT_PRIVATE_KEY is missing: the App's private key, in PEM format, "
        "or the name of a file that holds it in PRECEDENT_PRIVATE_KEY_FILE"
    )


def test_a_command_that_needs_no_app_runs_without_one(tmp_path: Path) -> None:
    assert read_options({}, {"data": str(tmp_path)}, required=()).data == tmp_path


@pytest.mark.parametrize("url", ["postgres://bot@db:5432/x", "postgresql:///x?host=/run/postgresql"])
def test_a_database_url_takes_the_forms_that_postgresql_accepts(url: str) -> None:
    assert read_options(NEEDED, {"database_url": url}).database_url == url


@pytest.mark.parametrize("name", secret_names())
def test_a_secret_may_come_from_a_file(name: str, tmp_path: Path) -> None:
    value = {"private_key": KEY, "database_url": "postgresql://bot:pass@db/precedent"}.get(name, SECRET)
    file = tmp_path / "secret"
    file.write_text(f"{value}\n", encoding="utf-8")
    environ = {key: text for key, text in NEEDED.items() if key != variable(name)}
    assert getattr(read_options(environ | {f"{variable(name)}_FILE": str(file)}), name) == value


def test_only_secrets_are_read_from_files(tmp_path: Path) -> None:
    assert read_options(NEEDED | {"PRECEDENT_HOST_FILE": str(tmp_path / "none")}).host == "127.0.0.1"


def test_a_secret_cannot_be_set_both_directly_and_by_file(tmp_path: Path) -> None:
    reported = faults(NEEDED | {"PRECEDENT_WEBHOOK_SECRET_FILE": str(tmp_path)})
    assert reported == ["PRECEDENT_WEBHOOK_SECRET and PRECEDENT_WEBHOOK_SECRET_FILE are both set: leave one out"]


def test_a_flag_overrides_its_variable() -> None:
    environ = NEEDED | {"PRECEDENT_PORT": "9000", "PRECEDENT_WORKERS": "3"}
    options = read_options(environ, {"port": 9001, "workers": 0, "host": None})
    assert (options.port, options.workers, options.host) == (9001, 0, "127.0.0.1")


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("APP_ID", "0", "must be from 1 to 9,007,199,254,740,992, not 0"),
        ("APP_ID", "octo", "must be a whole number from 1 to 9,007,199,254,740,992, not 'octo'"),
        ("PRIVATE_KEY", "hunter2", "is not a private key in PEM format: use the file from GitHub unchanged"),
        ("WEBHOOK_SECRET", "short", "is shorter than 16 characters: generate a longer random one"),
        ("WEBHOOK_SECRET_OLD", "short", "is shorter than 16 characters: generate a longer random one"),
        ("STATUS_PASSWORD", "hunter2", "is shorter than 12 characters: generate a longer random one"),
        ("STATUS_PASSWORD", "123456789012345678", "can be guessed: generate a longer random one"),
        ("OPERATOR_PASSWORD", "passwordpassword", "can be guessed: generate a longer random one"),
        ("TRUSTED_PROXIES", "10.0.0.1, proxy", "[1] must be addresses or networks such as 10.0.0.0/8, not 'proxy'"),
        (
            "TRUSTED_PROXIES",
            "10.0.0.1/8",
            ": 10.0.0.1/8 has host bits set: give addresses or networks such as 10.0.0.0/8",
        ),
        (
            "TRUSTED_PROXIES",
            "10.0.0.0/8,1.2.3",
            ": '1.2.3' does not appear to be an IPv4 or IPv6 network: give addresses or networks such as 10.0.0.0/8",
        ),
        ("TRUSTED_PROXIES", "::/0", ": ::/0 is everybody, who could then write any address: name the proxies"),
        ("DATABASE_URL", "mysql://bot:hunter2@db/x", "must be like postgresql://user:password@host/database"),
        ("DATABASE_URL", "postgresql://[db/x", "must be like postgresql://user:password@host/database"),
        ("PORT", "70000", "must be from 1 to 65,535, not 70000"),
        ("SWEEP_MINUTES", "46", "must be from 1 to 45, not 46"),
        ("PUSHES_PER_MINUTE", "7", "must be from 1 to 6, not 7"),
        ("KEEP_DAYS", "3", "must be from 4 to 3,650, not 3"),
        ("INSTANCE", "a--b", "must be lowercase letters, digits and single hyphens, not 'a--b'"),
        ("INCLUDE", "octo-org", "[0] must be patterns such as octo-org/docs-*, not 'octo-org'"),
        ("EXCLUDE", "octo-org/*, a/b/c", "[1] must be patterns such as octo-org/docs-*, not 'a/b/c'"),
        ("HISTORIES", "0", "must be from 1 to 64, not 0"),
        ("LOG", "xml", "must be one of json, text, not 'xml'"),
    ],
)
def test_an_invalid_value_is_reported_with_what_would_be_valid(name: str, value: str, fault: str) -> None:
    fault = fault if fault.startswith(("[", ":")) else f" {fault}"
    assert faults(NEEDED | {f"PRECEDENT_{name}": value}) == [f"PRECEDENT_{name}{fault}"]


def test_proxies_are_addresses_or_networks() -> None:
    options = read_options(NEEDED | {"PRECEDENT_TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.1 2001:db8::/48"})
    assert options.trusted_proxies == ("10.0.0.0/8", "192.0.2.1", "2001:db8::/48")


def test_a_long_random_password_is_not_guessable() -> None:
    for password in (secrets.token_urlsafe(24), secrets.token_hex(16), "open sesame, please"):
        assert guessing_bits(password) >= MIN_PASSWORD_BITS
        assert read_options(NEEDED | {"PRECEDENT_STATUS_PASSWORD": password}).status_password == password


def test_patterns_are_separated_by_commas_spaces_and_lines() -> None:
    options = read_options(NEEDED | {"PRECEDENT_INCLUDE": "octo-org/*,a/b\n c/d-* , "})
    assert options.include == ("octo-org/*", "a/b", "c/d-*")
    assert (options.scope.includes("A/B"), options.scope.includes("a/c")) == (True, False)


@pytest.mark.parametrize("address", ["http://git.example.com", "https://", "https://a:b@git.example.com", "ftp://x"])
def test_tokens_are_never_sent_unencrypted(address: str) -> None:
    environ = NEEDED | {"PRECEDENT_API_URL": address, "PRECEDENT_SERVER_URL": "https://git.example.com/"}
    (fault,) = faults(environ)
    assert fault.startswith("PRECEDENT_API_URL must be")


def test_server_url_and_api_url_must_be_set_together() -> None:
    both = {"PRECEDENT_SERVER_URL": "https://git.example.com/", "PRECEDENT_API_URL": "http://127.0.0.1:80/api/v3"}
    options = read_options(NEEDED | both)
    assert (options.server_url, options.api_url) == ("https://git.example.com", "http://127.0.0.1:80/api/v3")
    only_server = {"PRECEDENT_SERVER_URL": "https://git.example.com"}
    assert faults(NEEDED | only_server) == ["PRECEDENT_API_URL is missing: set it together with PRECEDENT_SERVER_URL"]


def test_a_misspelt_variable_is_reported_and_unrelated_ones_are_ignored() -> None:
    assert faults(NEEDED | {"PRECEDENT_WEBHOK_SECRET_OLD": SECRET}) == [
        "PRECEDENT_WEBHOK_SECRET_OLD is not known: did you mean PRECEDENT_WEBHOOK_SECRET_OLD?"
    ]
    assert read_options(NEEDED | {"PRECEDENT_SERVICE_HOST": "10.0.0.1", "PRECEDENT_TOKEN": "t"}).port == 8080


def test_no_secret_is_in_an_error_or_a_repr() -> None:
    secrets = dict.fromkeys(secret_names(), "hunter2")
    reported = "\n".join(faults({variable(name): text for name, text in secrets.items()}))
    assert reported.count("\n") >= len(secrets) - 1
    assert "hunter2" not in reported
    options = read_options(NEEDED | {"PRECEDENT_DATABASE_URL": "postgresql://bot:hunter%2F22@db/x"})
    assert all(text not in repr(options) for text in (KEY[40:60], SECRET, "hunter"))
    assert {"hunter%2F22", "hunter/22", SECRET} <= set(options.hidden)


def test_secrets_are_removed_from_the_environment() -> None:
    environ = {**NEEDED, "PATH": "/bin", "PRECEDENT_WEBHOOK_SECRET_FILE": "/run/secrets/x"}
    forget_secrets(environ)
    assert environ == {"PRECEDENT_APP_ID": "4242", "PATH": "/bin", "PRECEDENT_WEBHOOK_SECRET_FILE": "/run/secrets/x"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"PRECEDENT_WEBHOOK_SECRET_OLD": SECRET[::-1], "PRECEDENT_LOG": "text", "PRECEDENT_WORKERS": "0"},
        {"PRECEDENT_SERVER_URL": "https://git.example.com", "PRECEDENT_API_URL": "https://git.example.com/api/v3"},
        {"PRECEDENT_SERVER_URL": "https://github.com", "PRECEDENT_API_URL": "http://127.0.0.1:9"},
        {"PRECEDENT_SERVER_URL": "http://127.0.0.1:9", "PRECEDENT_API_URL": "https://api.github.com"},
        {"PRECEDENT_INCLUDE": "a/b c/*", "PRECEDENT_OBSERVE": "a/*,c/d", "PRECEDENT_HISTORIES": "5"},
    ],
)
def test_a_worker_reads_the_same_options_from_its_environment(changes: dict[str, str]) -> None:
    options = read_options(NEEDED | changes)
    unused = {name: getattr(ServerOptions(), name) for name in WEB_ONLY}
    assert read_options(worker_environment(options), required=WORKER_REQUIRED) == replace(options, **unused)


def test_workers_neither_get_nor_need_the_options_of_the_web_side() -> None:
    environ = worker_environment(
        read_options(NEEDED | {f"PRECEDENT_{name}": SECRET for name in ("WEBHOOK_SECRET_OLD", "STATUS_PASSWORD")})
    )
    assert environ.keys() & {variable(name) for name in WEB_ONLY} == set()
    assert SECRET not in environ.values()
    with pytest.raises(Misconfigured) as caught:
        read_options({}, required=WORKER_REQUIRED)
    assert [fault.partition(" ")[0] for fault in caught.value.faults] == ["PRECEDENT_APP_ID", "PRECEDENT_PRIVATE_KEY"]


def test_escaped_newlines_in_a_private_key_are_restored() -> None:
    folded = KEY.replace("\n", "\\n")
    assert read_options(NEEDED | {"PRECEDENT_PRIVATE_KEY": folded}).private_key == KEY


def test_the_documentation_lists_every_option_with_its_default() -> None:
    page = (ROOT / "docs/self-hosting.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(PRECEDENT_[A-Z_]+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    expected = []
    for name, (rule, default) in rules(ServerOptions).items():
        files = ", or a file" if is_secret(name) else ""
        flags = f", `--{name.replace('_', '-')}`" if name in FLAGS else ""
        value = "required" if name in REQUIRED else "none" if default in ("", ()) else f"`{default}`"
        expected.append((variable(name), value + files + flags, rule.explanation))
    assert documented == expected


def test_the_example_environment_is_valid() -> None:
    lines = (ROOT / "deploy/env.example").read_text(encoding="utf-8").splitlines()
    example = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#?PRECEDENT_", line))
    values = {name: text for name, text in example.items() if not name.endswith("_FILE") and text}
    assert read_options(NEEDED | values)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://bucket/precedent", "s3://bucket/precedent"),
        ("gs://bucket", "gs://bucket"),
        ("/srv/index of all", "/srv/index of all"),
        ("index", str(Path("index").absolute())),
    ],
)
def test_the_organisation_index_is_in_a_folder_or_an_object_store(location: str, expected: str) -> None:
    assert read_options(NEEDED, {"organisation": location}).organisation == expected


@pytest.mark.parametrize(
    "location", ["http://example.com/index", "s3://", "s3://key:word@bucket", "ftp://bucket", "a\nb"]
)
def test_another_location_for_the_organisation_index_is_refused(location: str) -> None:
    with pytest.raises(Misconfigured, match="--organisation"):
        read_options(NEEDED, {"organisation": location})
