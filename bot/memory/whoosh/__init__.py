"""The index on Whoosh. This package is the one importer of Whoosh; what it reads from a folder is hostile input."""

from bot.memory.whoosh.columns import LAYOUT
from bot.memory.whoosh.index import WhooshIndex, build, open_index
from bot.memory.whoosh.parting import USUAL, Sizes
from bot.memory.whoosh.parts import FOLDER as PARTS_FOLDER

__all__ = ["LAYOUT", "PARTS_FOLDER", "USUAL", "Sizes", "WhooshIndex", "build", "open_index"]
