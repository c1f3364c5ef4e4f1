"""Renders answers as Markdown that harms nobody."""
