"""The variables that name the folders of coding agents; the folders of other agents are always in the home folder."""

from __future__ import annotations

AGENT_FOLDERS = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "PI_CODING_AGENT_DIR",
    "QWEN_RUNTIME_DIR",
    "XDG_DATA_HOME",
)
