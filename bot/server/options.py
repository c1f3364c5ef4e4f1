"""Reads the options of the server from the environment, files and flags, and reports all mistakes at once."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, fields, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from bot.domain.hosts import GITHUB
from bot.errors import UserError
from bot.server.model import RepositoryScope
from bot.settings.schema import SettingRule, SettingsError, Value, check_value, rules, setting

ENV_PREFIX = "PRECEDENT_"
FLAGS = ("data", "database_url", "organisation", "host", "port", "workers", "jobs")
"""Options that the command line may give instead of the environment."""

WORKER_REQUIRED = ("app_id", "private_key")
"""Options that a worker needs."""

REQUIRED = (*WORKER_REQUIRED, "webhook_secret")
WORKER_NAME_KEY = "name"
"""The key of a worker's name among the options that `serve` sends it."""

WEB_ONLY = ("webhook_secret", "webhook_secret_old", "status_password", "operator_password", "trusted_proxies")
"""Options that a worker does not need and does not get."""

PASSWORDS = ("status_password", "operator_password")
LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
MIN_SECRET_CHARS = {"webhook_secret": 16, "webhook_secret_old": 16, "status_password": 12, "operator_password": 12}
"""Minimum lengths of the secrets that the operator chooses."""

MIN_PASSWORD_BITS = 48
"""Bits of the passwords of the status page. A stranger may guess as fast as the server answers: at 5,000 guesses a
second, half of all such passwords take 900 years."""

MAX_SECRET_CHARS = 16_384
"""Most characters of a secret; of its file, bytes count."""

_PEM = re.compile(r"-----BEGIN (?:RSA )?PRIVATE KEY-----\s[A-Za-z0-9+/=\s]{200,}-----END (?:RSA )?PRIVATE KEY-----\s*")
_POSTGRES = re.compile(r"postgres(?:ql)?(?:\+psycopg)?://[^\s/]*/[^\s/?]+(?:\?\S*)?")
_PATTERN_RULE = {
    "form": r"[A-Za-z0-9._*-]{1,100}/[A-Za-z0-9._*-]{1,100}",
    "wording": "patterns such as octo-org/docs-*",
}
_ADDRESS_RULE = {
    "form": r"https?://[^\s/@?#]+(?:/[^\s@?#]*)?",
    "wording": "an address such as https://github.example.com",
}


class Misconfigured(UserError):
    """The configuration is wrong. ``faults`` has a line for each mistake, with its remedy."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """All options. Each is read from the variable ``PRECEDENT_`` plus its name in capitals. Secrets are in no repr."""

    app_id: int = setting(0, "The number of the GitHub App.", low=1, high=2**53)
    private_key: str = setting("", "The App's private key, in PEM format.", secret=True)
    webhook_secret: str = setting("", "The secret that the App signs its deliveries with.", secret=True)
    webhook_secret_old: str = setting("", "The previous webhook secret, during a rotation.", secret=True)
    data: Path = setting(Path("data"), "The folder for the queue and the clones, on a local disk.")  # type: ignore[arg-type]
    database_url: str = setting("", "A PostgreSQL database instead of SQLite in the folder.", secret=True)
    organisation: str = setting(
        "",
        "The index of all repositories: a folder, or s3://, gs://, az:// for several machines.",
        form=r"(?:(?:s3|gs|az)://[^\s/@?#]{1,200}(?:/[^\s?#]{0,500})?|(?![^/]{0,20}://)[^\x00-\x1f]{1,1000})",
        wording="a folder, or an address such as s3://bucket/precedent",
    )
    host: str = setting(
        "127.0.0.1",
        "The address to listen on; any but this one needs trusted proxies.",
        form=r"[0-9A-Za-z.:_-]{1,253}",
        wording="an address",
    )
    port: int = setting(8080, "The port to listen on.", low=1, high=65_535)
    workers: int = setting(1, "Worker processes to start; 0: receive only.", low=0, high=64)
    jobs: int = setting(4, "Repositories that one worker works on at once.", low=1, high=64)
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses or networks of the proxies in front, whose X-Forwarded-For names the client.",
        form=r"[0-9A-Fa-f:.]{2,45}(?:/[0-9]{1,3})?",
        wording="addresses or networks such as 10.0.0.0/8",
    )
    include: tuple[str, ...] = setting((), "Repositories to work on, as patterns; all if empty.", **_PATTERN_RULE)
    exclude: tuple[str, ...] = setting((), "Repositories to leave out, even if included.", **_PATTERN_RULE)
    observe: tuple[str, ...] = setting((), "Repositories to remember without writing there.", **_PATTERN_RULE)
    histories: int = setting(2, "Whole histories that all workers read at once.", low=1, high=64)
    status_user: str = setting("precedent", "The user of the status page.", form=r"[^\s:]{1,60}", wording="a name")
    status_password: str = setting(
        "", "The password of the status page; if empty, the server makes one at its first start.", secret=True
    )
    operator_password: str = setting(
        "", "The password that also allows replaying and dropping deliveries there; if empty, nobody can.", secret=True
    )
    server_url: str = setting(GITHUB, "The GitHub server.", **_ADDRESS_RULE)
    api_url: str = setting("https://api.github.com", "Its API; set both or neither.", **_ADDRESS_RULE)
    instance: str = setting(
        "app",
        "Distinguishes this server's comments from those of another with the same App.",
        form=r"(?=.{1,40}$)[a-z0-9]+(?:-[a-z0-9]+){0,19}",
        wording="lowercase letters, digits and single hyphens",
    )
    attempts: int = setting(8, "Attempts before a delivery is put aside.", low=1, high=100)
    pushes_per_minute: int = setting(6, "Maximum pushes to one repository per minute.", low=1, high=6)
    clones_mb: int = setting(5000, "Megabytes that all clones together may use.", low=50, high=10_000_000)
    sweep_minutes: int = setting(15, "Minutes between two checks for missed changes.", low=1, high=45)
    keep_days: int = setting(30, "Days that finished deliveries are kept.", low=4, high=3650)
    backlog: int = setting(100_000, "Deliveries that may wait; further ones are refused.", low=100, high=100_000_000)
    log: Literal["json", "text"] = setting("json", "The format of the log.", choices=("json", "text"))

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The secrets that may have signed a delivery, the current one first."""
        return tuple(each.encode() for each in (self.webhook_secret, self.webhook_secret_old) if each)

    @property
    def scope(self) -> RepositoryScope:
        return RepositoryScope(self.include, self.exclude, self.observe)

    @property
    def hidden(self) -> tuple[str, ...]:
        """All texts that must never be logged."""
        password = urlsplit(self.database_url).password or ""
        passwords = (self.status_password, self.operator_password, password, unquote(password))
        texts = (self.private_key, self.webhook_secret, self.webhook_secret_old, *passwords)
        return tuple(text for text in (*texts, *self.private_key.split()) if len(text) >= 8)


def variable(name: str) -> str:
    return ENV_PREFIX + name.upper()


def is_secret(name: str) -> bool:
    """Whether the option may be given as a file, ``PRECEDENT_…_FILE``, to keep it out of process lists."""
    return rules(ServerOptions)[name][0].secret


def secret_names() -> tuple[str, ...]:
    return tuple(each.name for each in fields(ServerOptions) if is_secret(each.name))


def read_options(
    environ: Mapping[str, str], flags: Mapping[str, object] | None = None, required: tuple[str, ...] = REQUIRED
) -> ServerOptions:
    """Read the options from these variables and flags. A flag wins over its variable; empty texts do not count.

    Raises Misconfigured with everything that is missing or invalid, without secrets in the message.
    """
    faults: list[str] = list(_misspelt_variables(environ))
    values: dict[str, object] = {}
    supplied = set()
    for name, (rule, default) in rules(ServerOptions).items():
        assert not isinstance(default, type)
        source, text = _look_up(name, environ, flags or {}, faults.append)
        if text:
            supplied.add(name)
            try:
                values[name] = _parse_value(source, text, rule, default)
            except SettingsError as error:
                faults.append(str(error))
        elif name in required and not any(fault.startswith(source) for fault in faults):
            faults.append(f"{source} is missing: {_explain(name)}")
    faults += _missing_address(supplied)
    faults += _same_passwords(values)
    faults += _wrong_networks(replace(ServerOptions(), **values).trusted_proxies)  # type: ignore[arg-type]
    if faults:
        raise Misconfigured(faults)
    options = replace(ServerOptions(), **values)  # type: ignore[arg-type]
    index = options.organisation
    if index and "://" not in index:
        options = replace(options, organisation=str(Path(index).absolute()))
    return replace(options, data=options.data.absolute())


def secret_files(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the options that these variables give as files, with the names of the files."""
    files = {name: environ.get(f"{variable(name)}_FILE", "").strip() for name in secret_names()}
    return {name: file for name, file in files.items() if file}


def read_secret(name: str, file: str) -> str:
    """Read a secret from its file. Raises SettingsError, whose message does not show it."""
    return _check_secret(variable(name), _read_file(variable(name), file))


def worker_environment(options: ServerOptions) -> dict[str, str]:
    """Return the variables from which `read_options` restores these options for a worker, without `WEB_ONLY`."""
    values = {each.name: getattr(options, each.name) for each in fields(ServerOptions) if each.name not in WEB_ONLY}
    texts = {name: " ".join(value) if isinstance(value, tuple) else str(value) for name, value in values.items()}
    return {variable(name): text for name, text in texts.items() if text}


def forget_secrets(environ: MutableMapping[str, str]) -> None:
    """Remove the secrets from an environment before other programs inherit it."""
    for name in secret_names():
        environ.pop(variable(name), None)


def _look_up(
    name: str, environ: Mapping[str, str], flags: Mapping[str, object], fault: Callable[[str], None]
) -> tuple[str, str]:
    """The source and the text of an option; "" if it is missing or its file cannot be read, which is reported."""
    if name in flags and flags[name] not in (None, ""):
        return f"--{name.replace('_', '-')}", str(flags[name])
    source = variable(name)
    text, file = environ.get(source, "").strip(), environ.get(f"{source}_FILE", "").strip()
    if not file or not is_secret(name):
        return source, text
    if text:
        fault(f"{source} and {source}_FILE are both set: leave one out")
        return source, ""
    try:
        return source, _read_file(source, file)
    except SettingsError as error:
        fault(str(error))
        return source, ""


def _read_file(source: str, file: str) -> str:
    """The text in the file of a secret, not checked yet."""
    try:
        with Path(file).open("rb") as handle:
            content = handle.read(MAX_SECRET_CHARS + 1).decode("utf-8").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SettingsError(f"{source}_FILE cannot be read: {why}") from None
    if not content:
        raise SettingsError(f"{source}_FILE is empty: write the value into it")
    return content


def _parse_value(source: str, text: str, rule: SettingRule, default: Value | Path) -> object:
    if isinstance(default, Path):
        return Path(str(check_value(source, text, rule, str(default))))
    if isinstance(default, tuple):
        return check_value(source, re.findall(r"[^\s,]+", text), rule, default)
    if rule.secret:
        return _check_secret(source, text)
    if isinstance(default, int):
        return check_value(source, int(text) if re.fullmatch(r"[0-9]{1,18}", text) else text, rule, default)
    value = check_value(source, text, rule, default)
    return _check_address(source, str(value)) if rule.wording == _ADDRESS_RULE["wording"] else value


def _check_secret(source: str, text: str) -> str:
    """Check a secret. Mistakes are reported without showing it."""
    name = source.removeprefix(ENV_PREFIX).removeprefix("--").replace("-", "_").lower()
    if len(text) > MAX_SECRET_CHARS:
        raise SettingsError(f"{source} is longer than {MAX_SECRET_CHARS:,} characters")
    if name == "private_key":
        text = text.replace("\\n", "\n")
        if not _PEM.fullmatch(text):
            raise SettingsError(f"{source} is not a private key in PEM format: use the file from GitHub unchanged")
    elif name == "database_url" and not _is_database(text):
        raise SettingsError(f"{source} must be like postgresql://user:password@host/database")
    elif len(text) < MIN_SECRET_CHARS.get(name, 0):
        raise SettingsError(
            f"{source} is shorter than {MIN_SECRET_CHARS[name]} characters: generate a longer random one"
        )
    elif name in PASSWORDS and guessing_bits(text) < MIN_PASSWORD_BITS:
        raise SettingsError(f"{source} can be guessed: generate a longer random one")
    return text


def _is_database(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return bool(_POSTGRES.fullmatch(text)) and parts.port != 0 and parts.password != ""
    except ValueError:
        return False


def _check_address(source: str, address: str) -> str:
    """Require https, except for local addresses, as tokens are sent there."""
    try:
        parts = urlsplit(address)
        is_valid = (
            bool(parts.hostname) and (parts.scheme == "https" or parts.hostname in LOCAL_HOSTS) and parts.port != 0
        )
    except ValueError:
        is_valid = False
    if not is_valid:
        raise SettingsError(f"{source} must begin with https://, as tokens are sent there")
    return address.rstrip("/")


def _missing_address(supplied: set[str]) -> list[str]:
    given = {"server_url", "api_url"} & supplied
    if len(given) != 1:
        return []
    (present,), (missing,) = given, {"server_url", "api_url"} - given
    return [f"{variable(missing)} is missing: set it together with {variable(present)}"]


def _same_passwords(values: Mapping[str, object]) -> list[str]:
    passwords = [values.get(name) for name in PASSWORDS]
    if not all(passwords) or len(set(passwords)) == 2:
        return []
    return [f"{variable('operator_password')} must differ from {variable('status_password')}"]


def _wrong_networks(texts: Sequence[str]) -> Iterator[str]:
    source = variable("trusted_proxies")
    for text in texts:
        try:
            if ip_network(text).prefixlen == 0:
                yield f"{source}: {text} is everybody, who could then write any address: name the proxies"
        except ValueError as error:
            yield f"{source}: {error}: give addresses or networks such as 10.0.0.0/8"


def guessing_bits(password: str) -> float:
    """Return the bits of a random text with these kinds of characters; repetitions add nothing."""
    kinds = {"[a-z]": 26, "[A-Z]": 26, "[0-9]": 10, "[^a-zA-Z0-9]": 33}
    choice = sum(size for kind, size in kinds.items() if re.search(kind, password))
    return len(set(password)) * math.log2(choice) if choice else 0.0


def _misspelt_variables(environ: Mapping[str, str]) -> list[str]:
    known = [variable(each.name) for each in fields(ServerOptions)]
    known += [f"{variable(name)}_FILE" for name in secret_names()]
    faults = []
    for name in sorted(environ):
        near = difflib.get_close_matches(name, known, 1, 0.9)
        if name.startswith(ENV_PREFIX) and name not in known and near:
            faults.append(f"{name} is not known: did you mean {near[0]}?")
    return faults


def _explain(name: str) -> str:
    rule, _ = rules(ServerOptions)[name]
    also = f", or the name of a file that holds it in {variable(name)}_FILE" if rule.secret else ""
    return rule.explanation[0].lower() + rule.explanation[1:].rstrip(".") + also
