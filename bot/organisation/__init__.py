"""The memory of an organisation: a search over the threads of many repositories."""

import os

# The engine would write warnings of its own to stderr, between the lines of a log. What fails is raised.
os.environ.setdefault("LANCEDB_LOG", "off")
