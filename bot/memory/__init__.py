"""What is kept of a repository's threads, and where."""
