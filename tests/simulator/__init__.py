"""A deterministic simulator: random histories of a repository, disturbed in many ways, and invariants of them all."""
