"""The three kinds of failure: the user's, the world's; everything else is a bug of ours."""


class PrecedentError(Exception):
    """Base of the errors that are expected. The message is one line that names the thing and the remedy."""

    exit_code = 1


class UserError(PrecedentError):
    """Something that the user gave is wrong: a setting, an argument, a file. Shown in one line, exit code 2."""

    exit_code = 2


class WorldError(PrecedentError):
    """Something outside failed: the network, GitHub, git, the disk. Reported in one line, exit code 1."""
