"""`precedent init`: show the workflow and the settings that set a repository up, or write them into its checkout."""

from __future__ import annotations

import argparse

from bot.doors.output import show
from bot.doors.setup import files
from bot.doors.setup.place import look
from bot.doors.setup.plan import Plan, plan
from bot.doors.setup.telling import as_data, tell, tell_written
from bot.errors import UserError


def run_init(given: argparse.Namespace) -> object:
    """Show the plan, or carry it out with ``--write``: all of it, or nothing where something stands against it."""
    made = plan(look(given.folder), given)
    if not given.write:
        shown = as_data(made, written=False) if given.json else tell(made)
        if not made.refused:
            return shown
        show(shown)
    if made.refused:
        raise UserError(made.refused)
    _write(made)
    return as_data(made, written=True) if given.json else tell_written(made)


def _write(made: Plan) -> None:
    wanted = [file for file in made.files if file.is_written]
    if wanted and not made.is_named:
        raise UserError(
            "where the Action comes from is not known, and no release is tagged yet: give the account that you use it "
            "from and the full id of a commit, as --action OWNER/precedent@COMMIT"
        )
    for file in wanted:
        files.write(made.place.top, file.path, file.text.encode(), file.before)
