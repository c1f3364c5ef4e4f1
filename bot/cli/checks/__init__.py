"""What may be wrong with a memory and the setup around it: each check is a small function over what was gathered."""
