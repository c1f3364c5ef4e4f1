"""Works on what was stored: leases, runs, retries, and the search for what was missed."""
