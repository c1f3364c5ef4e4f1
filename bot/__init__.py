"""Precedent: gives a repository a memory of its issues and of how they ended."""

__version__ = "0.1.0"
