"""Clusters of threads that report one thing."""

from __future__ import annotations

from bot.domain.cluster import Cluster
from bot.recall.library import Library


def clusters_of(_: Library) -> tuple[Cluster, ...]:
    """The clusters of a memory, newest last activity first; none are made yet."""
    return ()
