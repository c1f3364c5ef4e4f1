"""The memory of an organisation: a search over the threads of many repositories."""
