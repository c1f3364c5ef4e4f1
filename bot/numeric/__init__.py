"""Everything that counts with arrays: the only package that imports numpy."""
