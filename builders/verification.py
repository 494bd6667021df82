"""What every verification of a dataset speaks in."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Problem(NamedTuple):
    """One thing that does not hold.

    Attributes:
        row_id: The row; empty if it is the whole dataset.
        field: The column, or ``fingerprint``, ``config``, ``files``.
        message: What was expected and what came.
    """

    row_id: str
    field: str
    message: str
