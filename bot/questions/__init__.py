"""What people and agents ask: one request and one function for each question. No I/O."""
