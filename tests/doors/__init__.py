"""The same questions at every entry point, and what each must find there."""
