"""The index on Whoosh. This package is the one importer of Whoosh; what it reads from a folder is hostile input."""
