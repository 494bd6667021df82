"""Read the points that a reply counts and lists, in sentence form, tuple form or between.

The templates are::

    There are {n} leaves, centred at coordinates ({x1}, {y1}), ({x2}, {y2}), ....
    (leaves={n}, centers=[({x1}, {y1}), ...])

A leaf module: the metric's script imports it and it imports nothing beside it, because `evaluate`
copies only the files that the script names.
"""

import re
from typing import NamedTuple

Point = tuple[float, float]

_NUMBER = r"[+-]?\d{1,9}(?:\.\d{0,20})?(?!\d)"
_POINT = re.compile(
    rf"[(\[{{]\s{{0,3}}(?:[\"']?x[\"']?\s?[=:]\s?)?({_NUMBER})\s{{0,3}},"
    rf"\s{{0,3}}(?:[\"']?y[\"']?\s?[=:]\s?)?({_NUMBER})\s{{0,3}}[)\]}}]",
    re.IGNORECASE,
)
_WHOLE = r"(?:\d{1,3}(?:,\d{3}){1,2}(?![\d,])|\d{1,9})"
_COUNT = re.compile(
    rf"(?<![\w.−-])(?<!\d,)(?<!\bnot\s)(?<!n't\s)(?P<before>{_WHOLE}|no)\s{{1,3}}"
    r"(?:[^\W\d][\w-]{0,19},?\s{1,3}){0,3}?lea(?:f|ves)\b"
    r"|\b(?:lea(?:f|ves)(?:[ _]count)?|count)[\"']?\s{0,3}(?:[=:]|\bis\b)\s{0,3}"
    rf"[\"']?(?P<after>{_WHOLE})(?![\d.]*\d)",
    re.IGNORECASE,
)
# Full-width signs of models that write Chinese.
_FOLDED = str.maketrans("（），：＝０１２３４５６７８９", "(),:=0123456789", "*`")


class Points(NamedTuple):
    """What a reply says.

    Attributes:
        total: The number that it states, or how many points it lists where it states none.
        points: x and y in pixels, in its order.
    """

    total: int
    points: list[Point]


def read_points(reply: str) -> Points | None:
    """Return the count and points that a reply states; None if it states neither.

    Args:
        reply: What was said, without thoughts.

    >>> read_points("There are 3 leaves, centred at coordinates (10, 20), (30, 4")
    Points(total=3, points=[(10.0, 20.0)])
    """
    text = reply.translate(_FOLDED)
    points = [(float(found[1]), float(found[2])) for found in _POINT.finditer(text)]
    stated = _COUNT.search(text)
    if stated is None:
        return Points(len(points), points) if points else None
    number = (stated["before"] or stated["after"]).lower()
    return Points(0 if number == "no" else int(number.replace(",", "")), points)
