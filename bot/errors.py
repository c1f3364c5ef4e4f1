"""The three kinds of failure: the user's, the world's; everything else is a bug of ours."""


class PrecedentError(Exception):
    """Base of the errors that are expected. The message is one line that names the thing and the remedy.

    ``cause`` is what is so. ``remedy`` is what mends it, or comes of it by itself; some errors tell both in the cause.
    """

    exit_code = 1
    joint = "; "
    """What stands between the two."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}{self.joint}{remedy}" if remedy else cause)
        self.cause, self.remedy = cause, remedy


class UserError(PrecedentError):
    """Something that the user gave is wrong: a setting, an argument, a file. Shown in one line, exit code 2."""

    exit_code = 2


class WorldError(PrecedentError):
    """Something outside failed: the network, GitHub, git, the disk. Reported in one line, exit code 1."""
