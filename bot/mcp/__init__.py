"""The memory as read-only tools for coding agents."""
