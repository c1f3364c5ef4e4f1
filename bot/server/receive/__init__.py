"""Takes deliveries in: checks a request, stores what it says, and answers."""
