"""What stands on a site: outlines, and how each kind is drawn.

Lengths are px of the finished picture; angles are degrees clockwise as seen in it, 0 to the right.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, radians, sin
from types import MappingProxyType
from typing import TypeAlias

from PIL import ImageDraw

Color: TypeAlias = tuple[int, int, int]
Point: TypeAlias = tuple[float, float]

COLORS: Mapping[str, Color] = MappingProxyType(
    {
        "gray": (126, 132, 138),
        "white": (232, 234, 236),
        "red": (188, 52, 44),
        "blue": (52, 86, 160),
        "green": (72, 100, 58),
        "yellow": (216, 178, 48),
        "brown": (124, 84, 56),
        "black": (44, 46, 50),
    }
)
SHADOW: Color = (48, 50, 46)
SHADOW_OFFSET_PX = 3.0


@dataclass(frozen=True, slots=True)
class Item:
    """One thing on a site.

    Attributes:
        kind: What it is, a key of ``KINDS``.
        x: Its middle in px.
        y: Its middle in px.
        length: Along its axis, in px.
        width: Across, in px.
        angle_deg: Direction of its axis.
        color: A key of ``COLORS``.
    """

    kind: str
    x: float
    y: float
    length: float
    width: float
    angle_deg: float
    color: str

    def at(self, along: float, across: float) -> Point:
        """Return a point of the item: shares of half its length and half its width."""
        dx, dy = along * self.length / 2, across * self.width / 2
        c, s = cos(radians(self.angle_deg)), sin(radians(self.angle_deg))
        return self.x + dx * c - dy * s, self.y + dx * s + dy * c

    def corners(self) -> list[Point]:
        """Return the corners of its oriented box, clockwise as seen."""
        return [self.at(-1, -1), self.at(1, -1), self.at(1, 1), self.at(-1, 1)]

    def outline(self) -> list[Point]:
        """Return the polygon that it covers."""
        return [self.at(*share) for share in KINDS[self.kind].outline]

    def box_xyxy(self) -> tuple[float, float, float, float]:
        """Return the smallest box around its outline."""
        xs, ys = zip(*self.outline(), strict=True)
        return min(xs), min(ys), max(xs), max(ys)


Draw: TypeAlias = Callable[["Pen", Item], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of item.

    Attributes:
        outline: Polygon in shares of half the length and half the width.
        details: Draws what is on it.
        length: Least and largest length in px.
        width: Its width as a share of the length.
        colors: Its colors.
        is_box: Its outline is its oriented box.
        casts: It casts a shadow.
    """

    outline: tuple[Point, ...]
    details: Draw
    length: tuple[int, int]
    width: float
    colors: tuple[str, ...]
    is_box: bool = False
    casts: bool = True


class Pen:
    """Draws in px of the finished picture on a larger canvas."""

    def __init__(self, draw: ImageDraw.ImageDraw, scale: int) -> None:
        self._draw = draw
        self._scale = scale

    def polygon(self, points: Sequence[Point], fill: Color) -> None:
        """Fill a polygon."""
        self._draw.polygon([(x * self._scale, y * self._scale) for x, y in points], fill=fill)

    def line(self, points: Sequence[Point], fill: Color, width: float) -> None:
        """Draw a line."""
        scaled = [(x * self._scale, y * self._scale) for x, y in points]
        self._draw.line(scaled, fill=fill, width=max(1, round(width * self._scale)), joint="curve")

    def circle(self, middle: Point, radius: float, fill: Color) -> None:
        """Fill a circle."""
        x, y, r = (v * self._scale for v in (*middle, radius))
        self._draw.ellipse((x - r, y - r, x + r, y + r), fill=fill)

    def ring(self, middle: Point, radius: float, fill: Color, width: float) -> None:
        """Draw a circle's line."""
        x, y, r = (v * self._scale for v in (*middle, radius))
        line = max(1, round(width * self._scale))
        self._draw.ellipse((x - r, y - r, x + r, y + r), outline=fill, width=line)


def draw_item(pen: Pen, item: Item) -> None:
    """Draw an item's shadow, body and details."""
    kind = KINDS[item.kind]
    outline = item.outline()
    if kind.casts:
        away = SHADOW_OFFSET_PX
        pen.polygon([(x + away, y + away) for x, y in outline], SHADOW)
    pen.polygon(outline, COLORS[item.color])
    kind.details(pen, item)


def shade(color: Color, factor: float) -> Color:
    """Return a color made darker or lighter."""
    r, g, b = (max(0, min(255, round(v * factor))) for v in color)
    return r, g, b


def _strip(item: Item, along: tuple[float, float], across: tuple[float, float]) -> list[Point]:
    return [
        item.at(along[0], across[0]),
        item.at(along[1], across[0]),
        item.at(along[1], across[1]),
        item.at(along[0], across[1]),
    ]


def _ship(pen: Pen, item: Item) -> None:
    dark = shade(COLORS[item.color], 0.7)
    pen.polygon(_strip(item, (-0.45, 0.15), (-0.55, 0.55)), shade(COLORS[item.color], 1.25))
    pen.polygon(_strip(item, (-0.2, 0.0), (-0.3, 0.3)), dark)
    pen.circle(item.at(0.45, 0), item.width * 0.18, dark)


def _plane(pen: Pen, item: Item) -> None:
    dark = shade(COLORS[item.color], 0.62)
    pen.line([item.at(-0.9, 0), item.at(0.9, 0)], dark, 1)
    for side in (-0.45, 0.45):
        pen.polygon(_strip(item, (-0.05, 0.25), (side - 0.06, side + 0.06)), dark)


def _roof(pen: Pen, item: Item) -> None:
    color = COLORS[item.color]
    pen.polygon(_strip(item, (-1, 1), (0, 1)), shade(color, 0.78))
    pen.line([item.at(-1, 0), item.at(1, 0)], shade(color, 0.55), 1)


def _hangar(pen: Pen, item: Item) -> None:
    for share in (-0.6, -0.2, 0.2, 0.6):
        line = [item.at(share, -1), item.at(share, 1)]
        pen.line(line, shade(COLORS[item.color], 0.75), 1)


def _runway(pen: Pen, item: Item) -> None:
    white = COLORS["white"]
    for i in range(-9, 10, 2):
        pen.line([item.at(i / 11 - 0.03, 0), item.at(i / 11 + 0.03, 0)], white, 1.5)
    for end in (-0.95, 0.9):
        for across in (-0.6, -0.3, 0.3, 0.6):
            pen.line([item.at(end, across), item.at(end + 0.05, across)], white, 1.5)


def _tank_top(pen: Pen, item: Item) -> None:
    dark = shade(COLORS[item.color], 0.72)
    pen.ring((item.x, item.y), item.length * 0.4, dark, 1)
    pen.line([(item.x, item.y), item.at(0.8, 0)], dark, 1)


def _helipad(pen: Pen, item: Item) -> None:
    white = COLORS["white"]
    pen.ring((item.x, item.y), item.length * 0.4, white, 1.5)
    for across in (-0.3, 0.3):
        pen.line([item.at(-0.35, across), item.at(0.35, across)], white, 2)
    pen.line([item.at(0, -0.3), item.at(0, 0.3)], white, 2)


def _radome(pen: Pen, item: Item) -> None:
    color = COLORS[item.color]
    pen.circle(
        (item.x - item.length * 0.08, item.y - item.length * 0.08),
        item.length * 0.34,
        shade(color, 1.06),
    )
    pen.circle(
        (item.x - item.length * 0.14, item.y - item.length * 0.14),
        item.length * 0.14,
        (252, 252, 252),
    )


def _dish(pen: Pen, item: Item) -> None:
    dark = shade(COLORS[item.color], 0.6)
    pen.ring((item.x, item.y), item.length * 0.32, dark, 1)
    pen.line([item.at(-0.8, 0), (item.x, item.y), item.at(0.2, 0.8)], dark, 1)
    pen.circle((item.x, item.y), item.length * 0.09, dark)


def _array(pen: Pen, item: Item) -> None:
    pen.circle(item.at(0.1, 0.0), item.width * 0.2, COLORS["black"])
    pen.ring(item.at(0.1, 0.0), item.width * 0.27, COLORS["white"], 1)


def _launcher(pen: Pen, item: Item) -> None:
    for across in (-0.5, 0.0, 0.5):
        pen.line([item.at(-0.6, across), item.at(0.7, across)], shade(COLORS[item.color], 0.6), 1.5)
    pen.polygon(_strip(item, (0.72, 1), (-0.9, 0.9)), shade(COLORS[item.color], 1.35))


def _silo(pen: Pen, item: Item) -> None:
    pen.circle((item.x, item.y), item.length * 0.28, COLORS["black"])
    pen.line([item.at(-0.55, 0), item.at(0.55, 0)], COLORS["yellow"], 1.5)


def _pad(pen: Pen, item: Item) -> None:
    dark = shade(COLORS[item.color], 0.6)
    pen.circle((item.x, item.y), item.length * 0.16, COLORS["black"])
    pen.line([item.at(-0.9, 0), item.at(0.9, 0)], dark, 1.5)
    pen.line([item.at(0, -0.9), item.at(0, 0.9)], dark, 1.5)


def _vehicle(pen: Pen, item: Item) -> None:
    pen.polygon(_strip(item, (0.35, 0.7), (-0.8, 0.8)), (30, 34, 40))


def _battle_tank(pen: Pen, item: Item) -> None:
    dark = shade(COLORS[item.color], 0.6)
    pen.line([(item.x, item.y), item.at(1.0, 0)], dark, 2)
    pen.circle((item.x, item.y), item.width * 0.32, dark)


def _tower(pen: Pen, item: Item) -> None:
    dark = COLORS["black"]
    pen.line([item.at(-0.8, -0.8), item.at(0.8, 0.8)], dark, 1)
    pen.line([item.at(-0.8, 0.8), item.at(0.8, -0.8)], dark, 1)


def _target(pen: Pen, item: Item) -> None:
    for share, color in ((0.36, "white"), (0.22, "red"), (0.1, "white")):
        pen.circle((item.x, item.y), item.length * share, COLORS[color])


def _obstacle(pen: Pen, item: Item) -> None:
    for share in (-0.7, -0.35, 0.0, 0.35, 0.7):
        pen.line([item.at(share, -1), item.at(share, 1)], COLORS["black"], 1)


def _crane(pen: Pen, item: Item) -> None:
    pen.line([item.at(-0.9, 0), item.at(0.9, 0)], COLORS["black"], 1)
    pen.polygon(_strip(item, (-0.5, -0.2), (-0.9, 0.9)), shade(COLORS[item.color], 0.7))


def _pier(pen: Pen, item: Item) -> None:
    pen.line([item.at(-1, 0), item.at(1, 0)], shade(COLORS[item.color], 0.8), 1)


_BOX: tuple[Point, ...] = ((-1, -1), (1, -1), (1, 1), (-1, 1))
_DISC: tuple[Point, ...] = tuple((cos(2 * pi * i / 32), sin(2 * pi * i / 32)) for i in range(32))
_OCTAGON: tuple[Point, ...] = tuple(
    (cos(pi / 8 + pi * i / 4), sin(pi / 8 + pi * i / 4)) for i in range(8)
)
_HULL: tuple[Point, ...] = (
    *((-1.0, -0.7), (-0.85, -1.0), (0.4, -1.0), (0.75, -0.6), (1.0, 0.0)),
    *((0.75, 0.6), (0.4, 1.0), (-0.85, 1.0), (-1.0, 0.7)),
)
_PLANE: tuple[Point, ...] = (
    *((1.0, 0.0), (0.8, -0.09), (0.3, -0.1), (-0.1, -1.0), (-0.3, -1.0), (-0.15, -0.1)),
    *((-0.75, -0.08), (-0.95, -0.4), (-1.0, -0.4), (-0.9, 0.0), (-1.0, 0.4), (-0.95, 0.4)),
    *((-0.75, 0.08), (-0.15, 0.1), (-0.3, 1.0), (-0.1, 1.0), (0.3, 0.1), (0.8, 0.09)),
)
_WEDGE: tuple[Point, ...] = ((-1.0, -1.0), (0.5, -1.0), (1.0, 0.0), (0.5, 1.0), (-1.0, 1.0))

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "ship": Kind(_HULL, _ship, (44, 110), 0.2, ("gray", "blue", "red", "white")),
        "pier": Kind(_BOX, _pier, (120, 160), 0.12, ("gray",), is_box=True),
        "crane": Kind(_BOX, _crane, (26, 40), 0.25, ("yellow", "blue"), is_box=True),
        "storage tank": Kind(_DISC, _tank_top, (26, 54), 1.0, ("white", "gray", "brown")),
        "runway": Kind(_BOX, _runway, (420, 520), 0.075, ("black",), is_box=True, casts=False),
        "plane": Kind(_PLANE, _plane, (36, 66), 0.9, ("white", "gray", "green")),
        "hangar": Kind(_BOX, _hangar, (50, 84), 0.6, ("gray", "green", "blue"), is_box=True),
        "helipad": Kind(_DISC, _helipad, (34, 46), 1.0, ("gray", "green"), casts=False),
        "radome": Kind(_DISC, _radome, (26, 60), 1.0, ("white", "gray")),
        "dish antenna": Kind(_DISC, _dish, (24, 52), 1.0, ("white", "gray")),
        "phased-array building": Kind(_WEDGE, _array, (64, 84), 0.8, ("gray", "brown")),
        "launcher": Kind(_BOX, _launcher, (30, 44), 0.32, ("green", "brown"), is_box=True),
        "silo": Kind(_DISC, _silo, (24, 36), 1.0, ("gray", "brown"), casts=False),
        "launch pad": Kind(_OCTAGON, _pad, (80, 120), 1.0, ("gray",), casts=False),
        "building": Kind(
            _BOX, _roof, (50, 110), 0.36, ("red", "brown", "gray", "blue"), is_box=True
        ),
        "vehicle": Kind(_BOX, _vehicle, (14, 22), 0.45, ("green", "blue", "black"), is_box=True),
        "battle tank": Kind(_BOX, _battle_tank, (20, 28), 0.55, ("green", "brown"), is_box=True),
        "watchtower": Kind(_BOX, _tower, (14, 18), 1.0, ("brown", "gray"), is_box=True),
        "target": Kind(_DISC, _target, (28, 50), 1.0, ("red",), casts=False),
        "obstacle": Kind(_BOX, _obstacle, (34, 60), 0.22, ("brown", "yellow"), is_box=True),
    }
)
"""Name -> kind. The names are the categories of the records."""
