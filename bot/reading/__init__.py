"""Text to meaning: pure functions, no input or output, no clock."""
