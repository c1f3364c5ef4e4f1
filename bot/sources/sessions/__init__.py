"""Transcripts of coding agents: where they are, how each agent writes them, and the sessions in them."""
