"""What the server keeps: the tables of its database, tokens and clones. Imports none of the other folders."""
