"""Settings as weapons: reading any file takes little time and memory, and its error is one clear line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot.settings.schema import Settings, SettingsError
from bot.settings.yaml_file import MAX_BYTES, load_settings

ROOT = Path(__file__).parents[2]
MEGABYTE = 2**20
CPU_SECONDS = 2
"""Includes the start of Python; each file is allowed one second and is measured by itself."""

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)

FILES: dict[str, str | bytes] = {
    "python object": "!!python/object/apply:os.system ['touch {canary}']",
    "python name": "mode: !!python/name:os.system",
    "python module": "!!python/module:this",
    "python tuple": "ignore: {authors: !!python/tuple [a]}",
    "python object new": "!!python/object/new:os.system ['touch {canary}']",
    "python by its long name": "!<tag:yaml.org,2002:python/object/apply:os.system> ['touch {canary}']",
    "python by a handle of its own": "%TAG ! tag:yaml.org,2002:python/object/apply:\n--- !os.system ['touch {canary}']",
    "binary": "mode: !!binary aGk=",
    "set": "!!set {mode}",
    "own tag": "mode: !own off",
    "laughs": BOMB,
    "alias to itself": "a: &a [*a]",
    "merge of itself": "a: &a\n  <<: *a",
    "merge": "base: &b {mode: off}\n<<: *b",
    "merge of a list": "<<: [{mode: off}, {mode: off}]",
    "many anchors": "".join(f"&a{n} " for n in range(8000)),
    "same key": "mode: off\nmode: off\n",
    "same key quoted": "mode: off\n'mode': off\n",
    "same key 8,000 times": "mode: off\n" * 6500,
    "nested lists": "[" * (MAX_BYTES - 1),
    "nested lists that close": "[" * (MAX_BYTES // 2 - 1) + "]" * (MAX_BYTES // 2 - 1),
    "nested mappings": "{a: " * (MAX_BYTES // 4 - 1),
    "nested sequences": "- " * (MAX_BYTES // 2 - 1),
    "nested keys": "? " * (MAX_BYTES // 2 - 1),
    "nested by indentation": "".join(" " * depth + "a:\n" for depth in range(350)),
    "long key": "a" * (MAX_BYTES - 3) + ": 1",
    "near key, very long": "mod" + "e" * (MAX_BYTES - 7) + ": 1",
    "many keys": "".join(f"k{n}: 1\n" for n in range(7000)),
    "many items": "ignore: {authors: [" + "a," * 32_000 + "]}",
    "long text": "mode: '" + "x" * (MAX_BYTES - 9) + "'",
    "folded text": "mode: >\n" + " x\n" * 20_000,
    "empty lines": "mode: '" + "\n" * (MAX_BYTES - 9) + "'",
    "spaces": " " * (MAX_BYTES - 1) + "x",
    "huge number": "similar: {max: " + "9" * (MAX_BYTES - 30) + "}",
    "huge exponent": "similar: {max: 1e" + "9" * 60_000 + "}",
    "huge fraction": "similar: {threshold: 0." + "1" * 60_000 + "x}",
    "octal, hexadecimal, underscores": "similar: {max: 0x_7_f}",
    "sexagesimal": "similar: {max: 190:20:30}",
    "infinity": "similar: {threshold: .inf}",
    "date": "mode: 2001-12-14t21:59:43.10-05:00",
    "nul": "mode: o\0ff",
    "nul bytes": b"\0" * (MAX_BYTES - 1),
    "bom inside": b"mode: \xef\xbb\xbfoff",
    "utf-16": "mode: off".encode("utf-16"),
    "utf-16 without a mark": "mode: off".encode("utf-16-le"),
    "utf-32": "mode: off".encode("utf-32"),
    "latin-1": b"branch: caf\xe9",
    "surrogates": b"mode: \xed\xa0\x80",
    "overlong": b"mode: \xc0\xaf",
    "line separators": "mode: off\u2028branch: x\u2029",
    "directions": "mode: \u202eoff",
    "several documents": "---\n" * 16_000,
    "directives": "%YAML 9.9\n---\nmode: off",
    "comment without end": "#" * (MAX_BYTES - 1),
    "quote without end": '"' + "\\x41" * 16_000,
    "escapes": '"' + "\\U0010FFFF" * 6_000 + '"',
    "bad escape": '"\\ud800"',
    "more than may be": "#" * (MAX_BYTES + 1),
    "a megabyte": "a: [" * MEGABYTE,
}

READ = f"""
import json, resource, sys, time
sys.path.insert(0, {str(ROOT)!r})
from bot.settings.yaml_file import load_plain, load_settings, load_texts
from bot.errors import UserError
resource.setrlimit(resource.RLIMIT_AS, ({256 * MEGABYTE}, {256 * MEGABYTE}))
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
data, told = sys.stdin.buffer.read(), []
began = time.process_time()
for read in (load_settings, load_texts, load_plain):
    try:
        read(data, "p.yml")
    except UserError as error:
        told.append(str(error))
print(json.dumps([time.process_time() - began, told]))
"""


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_no_file_takes_more_than_a_second_and_256_megabytes(name: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    template = FILES[name]
    content = template.replace("{canary}", str(canary)) if isinstance(template, str) else template
    data = content.encode() if isinstance(content, str) else content
    process = subprocess.run([sys.executable, "-c", READ], input=data, capture_output=True, timeout=60, check=False)
    assert process.returncode == 0, process.stderr.decode()[-500:]
    seconds, messages = json.loads(process.stdout)
    assert seconds < 1
    assert not canary.exists()
    assert all(line.isprintable() and len(line) < 400 for line in messages)


def refusal_of(content: str | bytes) -> str:
    """The error that settings with this content cause; empty if they hold nothing."""
    try:
        assert load_settings(content, "p.yml") == Settings()
    except SettingsError as error:
        return str(error)
    return ""


def test_no_hostile_file_is_accepted_as_settings() -> None:
    refusals = {name: refusal_of(content) for name, content in FILES.items()}
    assert [name for name, refusal in refusals.items() if not refusal.startswith("p.yml:")] == ["comment without end"]
    assert all(refusal.isprintable() for refusal in refusals.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\nmod: off", "p.yml:3: unknown setting 'mod'; did you mean \"mode\"?"),
        ("comment:\n  autor: x", "p.yml:2: unknown setting 'comment.autor'; did you mean \"comment.author\"?"),
        ("mode: off\n\nmode: off", "p.yml:3: mode is set twice"),
        ("mode: off\nx: !!python/name:os.system", "p.yml:2: tags are not supported"),
        ("mode: off\nx: [[[[[[1]]]]]]", "p.yml:2: too long or too deeply nested"),
        ("mode: off\nbranch: &b x", "p.yml:2: anchors and aliases"),
        ("similar:\n  max: 99999999999999999999", "p.yml:2: similar.max must be"),
        ("mode: off\nbranch: [", "p.yml:2: not valid YAML"),
    ],
)
def test_an_error_names_file_line_and_the_nearest_name(text: str, message: str) -> None:
    assert refusal_of(text).startswith(message)
