"""The settings file and the Action's inputs."""
