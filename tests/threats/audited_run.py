"""Runs the Action as the runner does and records what it does to the machine; a program, as audit hooks are permanent.

python watched.py TRACE NOW [BYTES]     with the variables of a runner; BYTES limits its memory
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
RECORDED = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "pty.spawn",
        "os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
        "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.sendmsg", "socket.sendto",
        "subprocess.Popen", "ctypes.dlopen")  # fmt: skip


def as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {as_json(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value if isinstance(value, int | str | None) else os.fsdecode(value) if isinstance(value, bytes | os.PathLike) else repr(value)  # fmt: skip # noqa: E501


def watch(trace: int) -> None:
    def record(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(args[2], int) and args[2] & WRITING and not isinstance(args[0], int)
        if writes or event in RECORDED:
            os.write(trace, json.dumps([event, *as_json(args)]).encode() + b"\n")

    sys.addaudithook(record)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    watch(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    if len(sys.argv) > 3:
        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]),) * 2)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from bot.action.environment import prepare_process
    from bot.action.main import run

    prepare_process()
    sys.exit(run(os.environ, datetime.fromisoformat(sys.argv[2]), write_gap=0))
