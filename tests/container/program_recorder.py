"""Records every program that a container starts: a script that writes it down replaces each program of the image.

The script passes git and its helper on to the real programs and lets nothing else run. Python, the entry point, writes
itself down when it starts. So no tool has to watch processes, and this works with every engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.container.engine import Engine

REAL = ("/usr/bin/git", "/usr/lib/git-core/git-remote-http")
PYTHON = ("/usr/local/bin/python3.13",)
SITE_PACKAGES = "/opt/precedent/lib/python3.13/site-packages"
WRITE_SCRIPT = """\
import json, os, sys
log = os.open("/recorded/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
os.write(log, (json.dumps([{words}, dict(os.environ)]) + "\\n").encode())
os.close(log)
"""
SCRIPT = f"""\
#!{PYTHON[0]} -ISs
{WRITE_SCRIPT.format(words="sys.argv")}
name = os.path.basename(sys.argv[0])
real = "/recorded/real/" + {{"git-remote-https": "git-remote-http"}}.get(name, name)
if os.path.exists(real):
    os.execv(real, sys.argv)
sys.exit(126)
"""
FIND_SCRIPT = """
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
class StartedProgram:
    """A program that was started, with its command line and its variables."""

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
    """Makes the ``options`` of a recorded run. Programs other than git and Python end at once, with 126."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._folder = folder
        (folder / "real").mkdir()
        folder.chmod(0o777)
        (folder / "script").write_text(SCRIPT, encoding="utf-8")
        (folder / "script").chmod(0o755)
        (folder / "recorded.pth").write_text("import recorded\n", encoding="utf-8")
        (folder / "recorded.py").write_text(WRITE_SCRIPT.format(words="sys.orig_argv"), encoding="utf-8")
        self.programs = engine.shell(f'/opt/precedent/bin/python -I -c "{FIND_SCRIPT}"').split()
        copy_script = f"import shutil\nfor name in {REAL}: shutil.copy2(name, '/recorded/real')"
        python = ["--entrypoint", "/opt/precedent/bin/python", "-v", f"{folder}:/recorded", "--network", "none"]
        done = engine.run("-I", "-c", copy_script, options=python)
        assert done.code == 0, done.output
        mounts = [f"{folder}/script:{program}:ro" for program in self.programs if program not in PYTHON]
        mounts += [
            f"{folder}:/recorded",
            *(f"{folder}/{name}:{SITE_PACKAGES}/{name}:ro" for name in ("recorded.pth", "recorded.py")),
        ]
        self.options = [word for mount in mounts for word in ("-v", mount)]

    def started_programs(self) -> list[StartedProgram]:
        """The programs started so far, in order."""
        log = self._folder / "log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [StartedProgram(*json.loads(line)) for line in lines]
