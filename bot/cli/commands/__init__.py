"""The commands: each adds its options and runs."""
