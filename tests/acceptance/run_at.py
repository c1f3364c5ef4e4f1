"""Runs the Action as `python -m bot action` does, but at a given time: ``python -m tests.acceptance.run_at TIME``."""

from __future__ import annotations

import os
import sys
from datetime import datetime

from bot.action.main import run

if __name__ == "__main__":
    sys.exit(run(os.environ, datetime.fromisoformat(sys.argv[1])))
