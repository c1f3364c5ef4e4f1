"""The index of an organisation's threads, and who may be shown what."""
