"""How threads end, and what was decided in them: from their events and words."""
