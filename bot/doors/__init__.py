"""The doors: each parses what it is given, calls the flow, and prints."""
