"""The search index: terms, postings, scores and vectors."""

import bot.ranking  # noqa: F401 - it sets how many threads NumPy uses, before NumPy is loaded
