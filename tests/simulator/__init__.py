"""The deterministic simulator: random histories of a repository, disturbed in every way, and what must hold in all."""
