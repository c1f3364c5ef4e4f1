"""The test bed: a fake GitHub held to GitHub's own description, and a git server that behaves as GitHub's does."""
