"""What is worth saying → Markdown that harms nobody."""
