"""Errors that a user of soubench may meet.

Every message says what was expected, what came, where (file, line or record id), and what to do.
"""


class SoubenchError(Exception):
    """Base of every error that soubench raises on purpose."""


class FormatError(SoubenchError):
    """An annotation file or folder is not what its reader expects."""


class SplitError(FormatError):
    """A folder does not have the split that was asked for."""


class PictureError(SoubenchError):
    """A picture cannot be used; ``reason`` is the name it is counted under in a report."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Say how to make it again: worker processes hand it to their parent."""
        return type(self), (self.reason, str(self))


class RecordError(FormatError):
    """A record cannot be used; ``reason`` is the name it is counted under in a report."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Say how to make it again: worker processes hand it to their parent."""
        return type(self), (self.reason, str(self))


class BuildError(SoubenchError):
    """A dataset cannot be built from what was given."""


class PublishError(SoubenchError):
    """A built dataset or a metric cannot be put where it should go."""


class RunError(SoubenchError):
    """A model cannot be run, or a run's folder cannot be written, resumed or read."""


class TrainError(SoubenchError):
    """A model cannot be trained with what was given."""


def brief(error: Exception, most: int = 300) -> str:
    """Return what another library said on one line, for the end of a message of ours."""
    return " ".join(str(error).split())[:most]
