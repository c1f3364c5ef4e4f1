"""Other things worth remembering than issues: the pages of a repository."""
