"""The GitHub Action: one run, from its environment to its report."""
