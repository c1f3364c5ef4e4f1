"""Proof on history: what would have been found and said, measured against what people did later."""
