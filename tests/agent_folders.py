"""The variables that name the folders of coding agents; the folders of other agents are always in the home folder."""

from __future__ import annotations

import re
from pathlib import Path

from bot.sources.sessions import formats

AGENT_FOLDERS = sorted(set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', Path(formats.__file__).read_text(encoding="utf-8"))))
