"""The two output formats of the targets, and the attributes that they say (001, A.2.1)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from soubench.builders.errors import FormatError
from soubench.builders.shapes.configuration import Configuration, Shape, overlapping_pairs


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a target says of one shape; no size and no depth.

    Attributes:
        shape: Kind of shape.
        color: Name of its color.
        quadrant: ``top left``, ``top right``, ``bottom left`` or ``bottom right``.
        center_xy: Center in px.
        relative_position: ``<left of|right of|above|below> <Shape>``, to the nearest other shape.
        rotation: Degrees counter-clockwise.
        occluded: Its bounding box overlaps another one's by more than the margin.
    """

    shape: str
    color: str
    quadrant: str
    center_xy: tuple[int, int]
    relative_position: str
    rotation: int
    occluded: bool


def target_order(configuration: Configuration) -> list[int]:
    """Return the indices of the shapes in the order of a target: by center, top to bottom.

    Shapes of one height go from left to right. The paper fixes no order; this one can be read off
    the picture.
    """
    shapes = configuration.shapes
    return sorted(range(len(shapes)), key=lambda i: (shapes[i].center_y, shapes[i].center_x, i))


def attributes(configuration: Configuration) -> list[Attributes]:
    """Return what a target says of each shape, in its order."""
    occluded = {i for pair in overlapping_pairs(configuration) for i in pair}
    shapes = configuration.shapes
    return [
        Attributes(
            shape=shapes[i].kind,
            color=shapes[i].color,
            quadrant=_quadrant(shapes[i], configuration.canvas_px),
            center_xy=(shapes[i].center_x, shapes[i].center_y),
            relative_position=_relative_position(i, shapes),
            rotation=shapes[i].rotation,
            occluded=i in occluded,
        )
        for i in target_order(configuration)
    ]


def _quadrant(shape: Shape, canvas_px: int) -> str:
    vertical = "top" if shape.center_y < canvas_px / 2 else "bottom"
    horizontal = "left" if shape.center_x < canvas_px / 2 else "right"
    return f"{vertical} {horizontal}"


def _relative_position(i: int, shapes: Sequence[Shape]) -> str:
    """Say on which side of its nearest neighbor a shape lies, along the larger difference."""
    me = shapes[i]

    def distance(j: int) -> tuple[int, int, int]:
        other = shapes[j]
        square = (other.center_x - me.center_x) ** 2 + (other.center_y - me.center_y) ** 2
        # Ties go to the shape that a target names first.
        return square, other.center_y, other.center_x

    nearest = shapes[min((j for j in range(len(shapes)) if j != i), key=distance)]
    dx, dy = me.center_x - nearest.center_x, me.center_y - nearest.center_y
    if abs(dx) >= abs(dy):
        side = "left of" if dx < 0 else "right of"
    else:
        side = "above" if dy < 0 else "below"
    return f"{side} {nearest.kind}"


def sentence(shapes: Sequence[Attributes]) -> str:
    """Write a target in the sentence format, one sentence per shape."""
    return " ".join(
        f"A {s.color} {s.shape} is located in the {s.quadrant} quadrant, centred at coordinates "
        f"({s.center_xy[0]}, {s.center_xy[1]}), with relative positions described as "
        f"{s.relative_position}, rotated by {s.rotation} degrees, and is "
        f"{'occluded' if s.occluded else 'not occluded'}."
        for s in shapes
    )


def tuples(shapes: Sequence[Attributes]) -> str:
    """Write a target in the tuple format, one tuple per shape."""
    return ", ".join(
        f"({s.shape}, quadrant={s.quadrant}, "
        f"center_coordinates=({s.center_xy[0]}, {s.center_xy[1]}), "
        f"relative_position={s.relative_position}, rotation={s.rotation}, "
        f"occlusion={'Yes' if s.occluded else 'No'}, color={s.color})"
        for s in shapes
    )


FORMATS = {"sentence": sentence, "tuple": tuples}

_SENTENCE = re.compile(
    r"A (?P<color>\w+) (?P<shape>\w+) is located in the (?P<quadrant>\w+ \w+) quadrant, "
    r"centred at coordinates \((?P<x>-?\d+), (?P<y>-?\d+)\), with relative positions described as "
    r"(?P<relative>[^,]+), rotated by (?P<rotation>-?\d+) degrees, and is "
    r"(?P<occluded>not occluded|occluded)\."
)
_TUPLE = re.compile(
    r"\((?P<shape>\w+), quadrant=(?P<quadrant>\w+ \w+), "
    r"center_coordinates=\((?P<x>-?\d+), (?P<y>-?\d+)\), relative_position=(?P<relative>[^,]+), "
    r"rotation=(?P<rotation>-?\d+), occlusion=(?P<occluded>Yes|No), color=(?P<color>\w+)\)"
)
_SEPARATORS = {"sentence": " ", "tuple": ", "}


def parse(target: str, output_format: str) -> list[Attributes]:
    """Read a target back: the exact inverse of ``sentence`` and ``tuples``.

    For targets only; replies of models are read by the ``sama`` metric.

    Raises:
        FormatError: The text is no target of this format.
    """
    pattern = {"sentence": _SENTENCE, "tuple": _TUPLE}[output_format]
    found = list(pattern.finditer(target))
    if _SEPARATORS[output_format].join(match.group(0) for match in found) != target:
        raise FormatError(f"expected a target in {output_format} format, got {target[:80]!r}.")
    return [
        Attributes(
            shape=match["shape"],
            color=match["color"],
            quadrant=match["quadrant"],
            center_xy=(int(match["x"]), int(match["y"])),
            relative_position=match["relative"],
            rotation=int(match["rotation"]),
            occluded=match["occluded"] in ("occluded", "Yes"),
        )
        for match in found
    ]
