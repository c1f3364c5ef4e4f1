"""Does the work of a leased key: a run of a repository, or the changes for an organisation's index."""

from __future__ import annotations

from bot.server.model import Lease
from bot.server.organisation.changes import installation_of
from bot.server.organisation.indexer import index_changes
from bot.server.work.reconcile import reconcile
from bot.server.work.worker import RunDependencies


def work_on(lease: Lease, run: RunDependencies) -> None:
    """Do the work of a lease. Never raises."""
    if installation := installation_of(lease.key):
        index_changes(installation, lease, run)
    else:
        reconcile(lease, run)
