"""What every verification of a dataset speaks in."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from soubench.builders.errors import SoubenchError, brief

Row = Mapping[str, Any]

OF_WHOLE_BUILD = ("fingerprint", "config", "missing")
"""Fields of problems that part of a build has just because the rest is not there."""


class Problem(NamedTuple):
    """One thing that does not hold.

    Attributes:
        row_id: The row; empty if it is the whole dataset.
        field: The column, or ``fingerprint``, ``config``, ``files``, ``row``.
        message: What was expected and what came.
    """

    row_id: str
    field: str
    message: str


def guarded(row: Row, found: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems of a row; a cell that makes no sense at all is one of them.

    Args:
        row: The row, for its ``id``.
        found: What is found while it is looked at.
    """
    try:
        yield from found
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, SoubenchError) as error:
        # Whatever a null, a list of another length or a number out of range makes the checks say.
        message = f"a cell is missing or of another form ({type(error).__name__}: {brief(error)})"
        yield Problem(str(row.get("id")), "row", message)
