"""What is judged of the settings."""

from __future__ import annotations

import re

from bot.config import load_settings
from bot.doors.checkup.finding import Finding
from bot.settings import Settings, SettingsError


def read_config(data: bytes | None, name: str) -> tuple[Settings, Finding]:
    """The settings in the file, the defaults where they cannot be used, and whether they can."""
    if data is None:
        return Settings(), Finding("settings", "ok", f"no {name}: all settings are the defaults")
    try:
        return load_settings(data, name), Finding("settings", "ok", f"{name} is valid")
    except SettingsError as error:
        file = name if re.fullmatch(r"[\w./][\w./-]{0,199}", name, re.ASCII) else "FILE"
        remedy = f"mend that line, and look with `precedent doctor --config {file}` before it is pushed"
        return Settings(), Finding("settings", "error", str(error), remedy)
