"""Precedent: gives a repository a memory of its issues and of how they ended."""

from __future__ import annotations

__version__ = "0.1.0"
