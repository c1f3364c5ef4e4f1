"""The forge: payloads, reading threads, writing comments. Payload dictionaries end here."""
