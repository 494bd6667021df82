"""Precision, recall and F1 of the frequencies of attribute values (001, Eq. 1-2).

A leaf module: the metric's script imports it and it imports nothing beside it, because `evaluate`
copies only the files that the script names.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Agreement(NamedTuple):
    """Precision, recall and F1, each 0 to 1."""

    precision: float
    recall: float
    f1: float


def check_zero_division(value: object) -> float:
    """Return what a quotient with nothing in its divisor shall be.

    Raises:
        ValueError: It is no number of 0 to 1.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    msg = f"zero_division: expected a number of 0 to 1, got {value!r}"
    raise ValueError(msg)


def agreement(
    predicted: Iterable[str | None],
    reference: Iterable[str | None],
    zero_division: float = 0.0,
) -> Agreement:
    """Compare how often each value occurs among the shapes of one picture, whichever shape has it.

    Eq. 1 pads the shorter side with NA, which no total counts; here the padding, and an attribute
    that a shape lacks, is None.

    Args:
        predicted: One attribute's value for each predicted shape.
        reference: The same for each reference shape.
        zero_division: What a quotient with nothing in its divisor is; 0 in Eq. 2.

    >>> agreement(["square", "triangle", "circle"], ["circle", "circle", "triangle"]).recall
    0.6666666666666666
    """
    found = Counter([value for value in predicted if value is not None])
    wanted = Counter([value for value in reference if value is not None])
    n_found, n_wanted = sum(found.values()), sum(wanted.values())
    n_right = sum(min(count, found[value]) for value, count in wanted.items())
    return Agreement(
        n_right / n_found if n_found else zero_division,
        n_right / n_wanted if n_wanted else zero_division,
        # 2PR / (P + R) without its 0/0 where nothing is right.
        2 * n_right / (n_found + n_wanted) if n_found + n_wanted else zero_division,
    )


def mean_agreement(agreements: Sequence[Agreement]) -> Agreement:
    """Average each of the three; without any, all are 0.0."""
    if not agreements:
        return Agreement(0.0, 0.0, 0.0)
    return Agreement(*(sum(column) / len(agreements) for column in zip(*agreements, strict=True)))
