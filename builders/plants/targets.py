"""The two output formats of the targets: how many leaves, and where their centers are.

One fixed template for every number of leaves (``There are 1 leaves, ..``), so that all targets are
read by one rule. Without leaves nothing is centred anywhere: ``There are 0 leaves.``.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from soubench.builders.errors import FormatError


class Center(NamedTuple):
    """A leaf's center in whole px from the picture's top left pixel, which is (0, 0)."""

    x: int
    y: int


def in_order_of_reading(centers: Iterable[Center]) -> list[Center]:
    """Sort centers from top to bottom, then from left to right.

    The paper fixes no order; this one can be read off the picture, and it is that of the shapes.
    """
    return sorted(centers, key=lambda center: (center.y, center.x))


def sentence(centers: Sequence[Center]) -> str:
    """Write a target in the sentence format.

    >>> sentence([Center(30, 12), Center(8, 40)])
    'There are 2 leaves, centred at coordinates (30, 12), (8, 40).'
    """
    if not centers:
        return "There are 0 leaves."
    return f"There are {len(centers)} leaves, centred at coordinates {_listed(centers)}."


def tuples(centers: Sequence[Center]) -> str:
    """Write a target in the tuple format.

    >>> tuples([Center(30, 12), Center(8, 40)])
    '(leaves=2, centers=[(30, 12), (8, 40)])'
    """
    return f"(leaves={len(centers)}, centers=[{_listed(centers)}])"


def _listed(centers: Sequence[Center]) -> str:
    return ", ".join(f"({x}, {y})" for x, y in centers)


FORMATS = {"sentence": sentence, "tuple": tuples}
_CENTER = re.compile(r"\((-?[0-9]+), (-?[0-9]+)\)")


def parse(target: str, output_format: str) -> list[Center]:
    """Read a target back: the exact inverse of ``sentence`` and ``tuples``.

    For targets only; replies of models are read by the metrics.

    Raises:
        FormatError: The text is no target of this format.
    """
    centers = [Center(int(x), int(y)) for x, y in _CENTER.findall(target)]
    # Writing it again is the whole grammar: the template, the separators and the count.
    if FORMATS[output_format](centers) != target:
        raise FormatError(
            f"expected a target in {output_format} format, got {target[:80]!r}. "
            "Pass the text of a row's target, unchanged."
        )
    return centers
