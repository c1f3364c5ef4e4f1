"""Absurd counts in an index: a process with little memory refuses them before it allocates anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import resource, shutil, sys
from pathlib import Path
from random import Random
sys.path.insert(0, {root!r})
from bot.index.protocol import IndexCorrupt
from tests.index.test_whoosh_attacks import build_index, document, open_index, use
honest, copy = Path(sys.argv[1]) / "honest", Path(sys.argv[1]) / "copy"
build_index(honest, [document(number) for number in range(1, 40)])
open_index(honest).update([document(99)])
use(shutil.copytree(honest, copy))
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + {room}, now + {room}))
chance, refused, tried = Random(20261122), 0, 0
absurd = [b"\\xff" * 4, b"\\xff" * 8, b"\\x7f" + b"\\xff" * 7]
absurd += [b"\\xff\\xff\\xff\\x7f", b"\\x7f\\xff\\xff\\xff", b"999999999999"]
for file in sorted(honest.iterdir()):
    data = file.read_bytes()
    digits = [at for at in range(len(data)) if data[at : at + 1].isdigit()]
    for turn in range(120):
        at = chance.choice(digits) if turn % 4 == 0 and digits else chance.randrange(max(1, len(data) - 8))
        count = absurd[turn % 6]
        shutil.rmtree(copy)
        shutil.copytree(honest, copy)
        (copy / file.name).write_bytes(data[:at] + count + data[at + len(count) :])
        tried += 1
        try:
            use(copy)
        except IndexCorrupt:
            refused += 1
print(tried, refused)
"""
ROOM = 128_000_000
"""Bytes of address space beyond what opening the honest index took."""


@pytest.mark.slow
def test_absurd_counts_in_an_index_take_no_memory(tmp_path: Path) -> None:
    script = PROGRAM.format(root=str(ROOT), room=ROOM)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.run(
        [sys.executable, "-I", "-c", script, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2_000:]
    tried, refused = map(int, process.stdout.split())
    assert tried >= 240
    assert refused > tried // 4
