"""Every call to GitHub and every exchange with git, times all that can go wrong there."""
