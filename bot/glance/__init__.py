"""The memory as one file on this machine, quick to open: for people in a checkout and for agents."""
