"""Threads of all repositories of an organisation: what the index holds of each, and the engine that searches it."""
