"""A developer's copy of the memory: one SQLite file that opens quickly."""
