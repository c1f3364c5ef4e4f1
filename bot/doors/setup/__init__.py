"""Setting a repository up: what is written into its checkout, and where that goes."""
