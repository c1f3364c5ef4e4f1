"""The options of the server: where they come from, what is missing, and that no secret is shown."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bot.server.options import (
    FLAGS,
    RECEIVING,
    REQUIRED,
    WORKING,
    Misconfigured,
    ServerOptions,
    forget_secrets,
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
    with pytest.raises(Misconfigured) as met:
        read_options(environ, flags)
    return list(met.value.faults)


def test_three_things_are_needed_and_all_else_has_a_default() -> None:
    options = read_options(NEEDED)
    assert (options.app_id, options.private_key, options.webhook_secret) == (4242, KEY, SECRET)
    assert (options.host, options.port, options.workers, options.jobs) == ("127.0.0.1", 8080, 1, 4)
    assert options.data == Path("data").absolute()
    assert options.secrets == (SECRET.encode(),)


def test_all_that_is_missing_is_said_at_once() -> None:
    found = faults({"PRECEDENT_PORT": "http", "PRECEDENT_LOG": "xml"})
    assert [fault.partition(" ")[0] for fault in found] == [
        "PRECEDENT_APP_ID",
        "PRECEDENT_PRIVATE_KEY",
        "PRECEDENT_WEBHOOK_SECRET",
        "PRECEDENT_PORT",
        "PRECEDENT_LOG",
    ]
    assert found[1] == (
        "PRECEDENT_PRIVATE_KEY is missing: the App's private key, in PEM format, "
        "or the name of a file that holds it in PRECEDENT_PRIVATE_KEY_FILE"
    )


def test_the_mistakes_stand_apart_in_the_line_that_a_command_prints() -> None:
    assert str(Misconfigured(["one is missing", "two is wrong"])) == "one is missing; two is wrong"


def test_what_needs_no_app_can_do_without_one(tmp_path: Path) -> None:
    assert read_options({}, {"data": str(tmp_path)}, required=()).data == tmp_path


@pytest.mark.parametrize("url", ["postgres://bot@db:5432/x", "postgresql:///x?host=/run/postgresql"])
def test_a_database_may_be_named_in_the_ways_that_postgresql_knows(url: str) -> None:
    assert read_options(NEEDED, {"database_url": url}).database_url == url


@pytest.mark.parametrize("name", secret_names())
def test_a_secret_may_come_from_a_file(name: str, tmp_path: Path) -> None:
    value = {"private_key": KEY, "database_url": "postgresql://bot:pass@db/precedent"}.get(name, SECRET)
    file = tmp_path / "secret"
    file.write_text(f"{value}\n", encoding="utf-8")
    given = {key: text for key, text in NEEDED.items() if key != variable(name)}
    assert getattr(read_options(given | {f"{variable(name)}_FILE": str(file)}), name) == value


def test_only_secrets_are_read_from_files(tmp_path: Path) -> None:
    assert read_options(NEEDED | {"PRECEDENT_HOST_FILE": str(tmp_path / "none")}).host == "127.0.0.1"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "PRECEDENT_WEBHOOK_SECRET_FILE cannot be read: No such file or directory"),
        (b"", "PRECEDENT_WEBHOOK_SECRET_FILE is empty: write the value into it"),
        (b"\xff\xfe", "PRECEDENT_WEBHOOK_SECRET_FILE cannot be read: it is not UTF-8 text"),
    ],
)
def test_a_file_that_gives_no_secret_is_named(content: bytes | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    given = {name: text for name, text in NEEDED.items() if name != "PRECEDENT_WEBHOOK_SECRET"}
    assert faults(given | {"PRECEDENT_WEBHOOK_SECRET_FILE": str(file)}) == [said]


def test_a_secret_is_given_in_one_way(tmp_path: Path) -> None:
    found = faults(NEEDED | {"PRECEDENT_WEBHOOK_SECRET_FILE": str(tmp_path)})
    assert found == ["PRECEDENT_WEBHOOK_SECRET and PRECEDENT_WEBHOOK_SECRET_FILE are both set: leave one out"]


def test_a_flag_goes_before_its_variable() -> None:
    given = NEEDED | {"PRECEDENT_PORT": "9000", "PRECEDENT_WORKERS": "3"}
    options = read_options(given, {"port": 9001, "workers": 0, "host": None})
    assert (options.port, options.workers, options.host) == (9001, 0, "127.0.0.1")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("APP_ID", "0", "must be from 1 to 9,007,199,254,740,992, not 0"),
        ("APP_ID", "octo", "must be a whole number from 1 to 9,007,199,254,740,992, not 'octo'"),
        ("PRIVATE_KEY", "hunter2", "is not a private key in PEM format: use the file from GitHub unchanged"),
        ("WEBHOOK_SECRET", "short", "is shorter than 16 characters: generate a longer random one"),
        ("WEBHOOK_SECRET_OLD", "short", "is shorter than 16 characters: generate a longer random one"),
        ("STATUS_PASSWORD", "hunter2", "is shorter than 12 characters: generate a longer random one"),
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
def test_what_cannot_be_used_is_said_with_what_would_be_right(name: str, value: str, said: str) -> None:
    said = said if said.startswith("[") else f" {said}"
    assert faults(NEEDED | {f"PRECEDENT_{name}": value}) == [f"PRECEDENT_{name}{said}"]


def test_patterns_are_separated_by_commas_spaces_and_lines() -> None:
    options = read_options(NEEDED | {"PRECEDENT_INCLUDE": "octo-org/*,a/b\n c/d-* , "})
    assert options.include == ("octo-org/*", "a/b", "c/d-*")
    assert (options.scope.includes("A/B"), options.scope.includes("a/c")) == (True, False)


@pytest.mark.parametrize("address", ["http://git.example.com", "https://", "https://a:b@git.example.com", "ftp://x"])
def test_tokens_go_nowhere_in_the_clear(address: str) -> None:
    given = NEEDED | {"PRECEDENT_API_URL": address, "PRECEDENT_SERVER_URL": "https://git.example.com/"}
    (fault,) = faults(given)
    assert fault.startswith("PRECEDENT_API_URL must be")


def test_server_and_api_are_given_together() -> None:
    both = {"PRECEDENT_SERVER_URL": "https://git.example.com/", "PRECEDENT_API_URL": "http://127.0.0.1:80/api/v3"}
    options = read_options(NEEDED | both)
    assert (options.server_url, options.api_url) == ("https://git.example.com", "http://127.0.0.1:80/api/v3")
    one = {"PRECEDENT_SERVER_URL": "https://git.example.com"}
    assert faults(NEEDED | one) == ["PRECEDENT_API_URL is missing: set it together with PRECEDENT_SERVER_URL"]


def test_a_name_that_is_nearly_one_is_a_slip_and_others_are_left_alone() -> None:
    assert faults(NEEDED | {"PRECEDENT_WEBHOK_SECRET_OLD": SECRET}) == [
        "PRECEDENT_WEBHOK_SECRET_OLD is not known: did you mean PRECEDENT_WEBHOOK_SECRET_OLD?"
    ]
    assert read_options(NEEDED | {"PRECEDENT_SERVICE_HOST": "10.0.0.1", "PRECEDENT_TOKEN": "t"}).port == 8080


def test_no_secret_is_in_an_error_or_a_repr() -> None:
    secrets = dict.fromkeys(secret_names(), "hunter2")
    said = "\n".join(faults({variable(name): text for name, text in secrets.items()}))
    assert said.count("\n") >= len(secrets) - 1
    assert "hunter2" not in said
    full = read_options(NEEDED | {"PRECEDENT_DATABASE_URL": "postgresql://bot:hunter%2F22@db/x"})
    assert all(text not in repr(full) for text in (KEY[40:60], SECRET, "hunter"))
    assert {"hunter%2F22", "hunter/22", SECRET} <= set(full.hidden)


def test_secrets_are_taken_out_of_the_environment() -> None:
    environ = {**NEEDED, "PATH": "/bin", "PRECEDENT_WEBHOOK_SECRET_FILE": "/run/secrets/x"}
    forget_secrets(environ)
    assert environ == {"PRECEDENT_APP_ID": "4242", "PATH": "/bin", "PRECEDENT_WEBHOOK_SECRET_FILE": "/run/secrets/x"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"PRECEDENT_WEBHOOK_SECRET_OLD": SECRET[::-1], "PRECEDENT_LOG": "text", "PRECEDENT_WORKERS": "0"},
        {"PRECEDENT_SERVER_URL": "https://git.example.com", "PRECEDENT_API_URL": "https://git.example.com/api/v3"},
        {"PRECEDENT_SERVER_URL": "https://github.com", "PRECEDENT_API_URL": "http://127.0.0.1:9"},
        {"PRECEDENT_SERVER_URL": "http://127.0.0.1:9", "PRECEDENT_API_URL": "https://api.github.com"},
        {"PRECEDENT_INCLUDE": "a/b c/*", "PRECEDENT_OBSERVE": "a/*,c/d", "PRECEDENT_HISTORIES": "5"},
    ],
)
def test_what_is_packed_for_a_worker_is_the_same_again(more: dict[str, str]) -> None:
    options = read_options(NEEDED | more)
    unused = {name: getattr(ServerOptions(), name) for name in RECEIVING}
    assert read_options(worker_environment(options), required=WORKING) == replace(options, **unused)


def test_what_only_the_web_side_uses_is_told_to_no_worker_and_asked_of_none() -> None:
    told = worker_environment(
        read_options(NEEDED | {f"PRECEDENT_{name}": SECRET for name in ("WEBHOOK_SECRET_OLD", "STATUS_PASSWORD")})
    )
    assert told.keys() & {variable(name) for name in RECEIVING} == set()
    assert SECRET not in told.values()
    with pytest.raises(Misconfigured) as met:
        read_options({}, required=WORKING)
    assert [fault.partition(" ")[0] for fault in met.value.faults] == ["PRECEDENT_APP_ID", "PRECEDENT_PRIVATE_KEY"]


def test_a_key_on_one_line_is_unfolded() -> None:
    folded = KEY.replace("\n", "\\n")
    assert read_options(NEEDED | {"PRECEDENT_PRIVATE_KEY": folded}).private_key == KEY


def test_every_option_is_in_the_documentation_as_it_is() -> None:
    page = (ROOT / "docs/self-hosting.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(PRECEDENT_[A-Z_]+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    expected = []
    for name, (rule, default) in rules(ServerOptions).items():
        files = ", or a file" if is_secret(name) else ""
        flags = f", `--{name.replace('_', '-')}`" if name in FLAGS else ""
        given = "required" if name in REQUIRED else "none" if default in ("", ()) else f"`{default}`"
        expected.append((variable(name), given + files + flags, rule.explanation))
    assert shown == expected


def test_the_example_of_an_environment_can_be_used() -> None:
    lines = (ROOT / "deploy/env.example").read_text(encoding="utf-8").splitlines()
    given = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#?PRECEDENT_", line))
    known = {variable(name) for name in rules(ServerOptions)} | {f"{variable(name)}_FILE" for name in secret_names()}
    assert set(given) <= known
    plain = {name: text for name, text in given.items() if not name.endswith("_FILE") and text}
    assert read_options(NEEDED | plain)


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("s3://bucket/precedent", "s3://bucket/precedent"),
        ("gs://bucket", "gs://bucket"),
        ("/srv/index of all", "/srv/index of all"),
        ("index", str(Path("index").absolute())),
    ],
)
def test_the_index_of_all_repositories_is_in_a_folder_or_an_object_store(place: str, found: str) -> None:
    assert read_options(NEEDED, {"organisation": place}).organisation == found


@pytest.mark.parametrize("place", ["http://example.com/index", "s3://", "s3://key:word@bucket", "ftp://bucket", "a\nb"])
def test_another_place_for_the_index_is_refused(place: str) -> None:
    with pytest.raises(Misconfigured, match="--organisation"):
        read_options(NEEDED, {"organisation": place})
