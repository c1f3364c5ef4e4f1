"""What people ask of the bot on an issue, and the one reply that each of them gets."""
