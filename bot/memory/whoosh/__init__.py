"""The index on Whoosh. This package is the one importer of Whoosh; what it reads from a folder is hostile input."""

from bot.memory.whoosh.index import WhooshIndex, build, open_index

__all__ = ["WhooshIndex", "build", "open_index"]
