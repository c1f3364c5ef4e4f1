"""The questions of people and agents, each with one request and one function. No I/O."""
