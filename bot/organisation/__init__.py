"""The memory of a whole organisation: its documents, its engine, and who may see what."""
