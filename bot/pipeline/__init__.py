"""What happens to one event, step by step."""
