"""Plain values that every other package uses. They do no I/O."""
