"""The memory of an organisation: a search over the threads of many repositories."""

import os

# The engine would write its own warnings to stderr, between the lines of a log. Failures are raised anyway.
os.environ.setdefault("LANCEDB_LOG", "off")
