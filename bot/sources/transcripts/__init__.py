"""Agent sessions and logs on this machine: JSON lines of three formats, read as sessions."""
