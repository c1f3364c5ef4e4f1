"""What the server keeps: the tables of its database, tokens, clones and pushes. Imports none of the other folders."""
