"""The webhook server: deliveries from GitHub, stored first, then handled one repository at a time by the flow."""
