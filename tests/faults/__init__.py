"""Every call to GitHub and every exchange with git, combined with everything that can go wrong there."""
