"""Sees every program that is started in a container: each one of the image gives way to a script that writes it down.

The script takes git and its helper on to the real ones, and lets nothing else run. Python, which is the entry point,
writes itself down when it starts. So no tool is needed that watches processes, and it works with every engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.container.engine import Engine

REAL = ("/usr/bin/git", "/usr/lib/git-core/git-remote-http")
PYTHON = ("/usr/local/bin/python3.13",)
SITE = "/opt/precedent/lib/python3.13/site-packages"
WRITE = """\
import json, os, sys
log = os.open("/recorded/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
os.write(log, (json.dumps([{words}, dict(os.environ)]) + "\\n").encode())
os.close(log)
"""
SCRIPT = f"""\
#!{PYTHON[0]} -ISs
{WRITE.format(words="sys.argv")}
name = os.path.basename(sys.argv[0])
real = "/recorded/real/" + {{"git-remote-https": "git-remote-http"}}.get(name, name)
if os.path.exists(real):
    os.execv(real, sys.argv)
sys.exit(126)
"""
FIND = """
import os, stat
for top in ('/usr', '/opt', '/etc', '/var', '/data', '/models'):
    for folder, _, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode) and os.access(path, os.X_OK):
                start = open(path, 'rb').read(18)
                loadable = start[:4] == b'\\x7fELF' and '.so' not in name
                if loadable or (start[:2] == b'#!' and not name.endswith('.py')):  # env is what starts those
                    print(path)
"""


@dataclass(frozen=True)
class Started:
    """A program that was started: with these words, and these variables."""

    words: list[str]
    environment: dict[str, str]

    @property
    def program(self) -> str:
        return Path(self.words[0]).name

    @property
    def text(self) -> str:
        """Everything that it was given."""
        return "\0".join([*self.words, *(f"{name}={value}" for name, value in self.environment.items())])


class Recorder:
    """``options`` for runs that are to be recorded. Programs other than git and Python end at once, with 126."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._folder = folder
        (folder / "real").mkdir()
        folder.chmod(0o777)
        (folder / "script").write_text(SCRIPT, encoding="utf-8")
        (folder / "script").chmod(0o755)
        (folder / "recorded.pth").write_text("import recorded\n", encoding="utf-8")
        (folder / "recorded.py").write_text(WRITE.format(words="sys.orig_argv"), encoding="utf-8")
        self.programs = engine.shell(f'/opt/precedent/bin/python -I -c "{FIND}"').split()
        copied = f"import shutil\nfor name in {REAL}: shutil.copy2(name, '/recorded/real')"
        python = ["--entrypoint", "/opt/precedent/bin/python", "-v", f"{folder}:/recorded", "--network", "none"]
        done = engine.run("-I", "-c", copied, options=python)
        assert done.code == 0, done.said
        over = [f"{folder}/script:{program}:ro" for program in self.programs if program not in PYTHON]
        over += [
            f"{folder}:/recorded",
            *(f"{folder}/{name}:{SITE}/{name}:ro" for name in ("recorded.pth", "recorded.py")),
        ]
        self.options = [word for mount in over for word in ("-v", mount)]

    def started(self) -> list[Started]:
        """What was started until now, in order."""
        log = self._folder / "log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [Started(*json.loads(line)) for line in lines]
