"""Whether this installation compares issues by meaning, too."""

from __future__ import annotations

from bot.cli.checks.result import CheckResult
from bot.memory.text_model import MODEL_OF_THE_IMAGE

GAIN = "of 200 pairs kept aside, it shows 43, of which 33 are useful, instead of 35, of which 23 are"
"""What the model adds, as measured in docs/semantic.md."""


def check_text_model(named: str, *, is_here: bool) -> CheckResult:
    """``named`` is the setting ``similar.model``; ``is_here``: the folder of the image's model has one."""
    if not named:
        return CheckResult("text model", "ok", "similar.model switches it off: issues are compared by words")
    if named != MODEL_OF_THE_IMAGE:
        return CheckResult("text model", "ok", f"similar.model names {named}")
    if is_here:
        return CheckResult("text model", "ok", f"{named} has one: issues are compared by words and by meaning")
    says = f"none in {named}: this installation compares issues by words. With one, {GAIN}"
    remedy = f"in a clone of Precedent: `pip install '.[semantic]'`, then `python tools/minilm.py {named}`"
    return CheckResult("text model", "note", says, remedy)
