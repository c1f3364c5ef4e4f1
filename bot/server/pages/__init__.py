"""Shows the state of the server to people and monitors."""
