"""Proof on history: the matches that would have been found and shown, measured against what people did later."""
