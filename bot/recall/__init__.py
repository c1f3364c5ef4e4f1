"""Finds in memory what is worth saying. No I/O and no clock of its own: it is given a library and a moment."""
