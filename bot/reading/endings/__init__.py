"""How threads end and what is decided in them, read from their events and comments."""
