"""A stage whose runs are logged, and the faults on it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping

from tests.acceptance.stage import Stage
from tests.fakes.faults import FaultPlan


class LoggedStage(Stage):
    """``log`` holds the output and summary of the last run."""

    log = ""

    def act(
        self,
        event: str,
        action: str | None = None,
        number: int | None = None,
        comment: int | None = None,
        inputs: Mapping[str, str] | None = None,
    ) -> int:
        """Run the Action 20 seconds later."""
        self.github.clock.advance(20)
        self.github.mark()
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = super().act(event, action, number, comment, inputs)
        self.log = out.getvalue() + self.summary.read_text(encoding="utf-8")
        return code

    def clear_faults(self) -> None:
        self.github.faults.clear()
        self.github.faults.injected.clear()
        self.git.faults = FaultPlan()
        (self.bare / "hooks" / "pre-receive").unlink(missing_ok=True)
