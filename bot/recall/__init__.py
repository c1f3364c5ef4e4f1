"""From memory to what is worth saying. No I/O of its own, no clock: it is given a library and a moment."""
