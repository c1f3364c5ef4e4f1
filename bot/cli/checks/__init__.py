"""Checks of a memory and its setup: small functions that judge the gathered facts."""
