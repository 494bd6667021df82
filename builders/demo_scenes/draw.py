"""Draw one object as a small picture with exactly known edges."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from soubench.builders.scene import Quad

SUPERSAMPLING = 4
MIN_ALPHA = 40  # fainter edge pixels are cleared, so that a box ends where an eye says it does

Color = tuple[int, int, int]
Points = Sequence[tuple[float, float]]


class Pen:
    """Draw in unit coordinates: (0, 0) is the top left of the object's frame, (1, 1) its end."""

    def __init__(self, size_wh: tuple[float, float]) -> None:
        self.width = max(SUPERSAMPLING, round(size_wh[0] * SUPERSAMPLING))
        self.height = max(SUPERSAMPLING, round(size_wh[1] * SUPERSAMPLING))
        self.image = Image.new("RGBA", (self.width, self.height))
        self._draw = ImageDraw.Draw(self.image)

    def _points(self, points: Points) -> list[tuple[float, float]]:
        return [(x * (self.width - 1), y * (self.height - 1)) for x, y in points]

    def _length(self, fraction: float) -> int:
        return max(1, round(fraction * min(self.width, self.height)))

    def rect(
        self, x1: float, y1: float, x2: float, y2: float, fill: Color, *, radius: float = 0.0
    ) -> None:
        """Fill a rectangle; ``radius`` of its corners is a fraction of the shorter side."""
        corners = self._points([(x1, y1), (x2, y2)])
        self._draw.rounded_rectangle(corners, self._length(radius) if radius else 0, fill=fill)

    def oval(self, x1: float, y1: float, x2: float, y2: float, fill: Color) -> None:
        """Fill the ellipse inside a rectangle."""
        self._draw.ellipse(self._points([(x1, y1), (x2, y2)]), fill=fill)

    def half_oval(self, x1: float, y1: float, x2: float, y2: float, fill: Color) -> None:
        """Fill the upper half of the ellipse inside a rectangle."""
        self._draw.pieslice(self._points([(x1, y1), (x2, y2)]), 180, 360, fill=fill)

    def poly(self, points: Points, fill: Color) -> None:
        """Fill a polygon."""
        self._draw.polygon(self._points(points), fill=fill)

    def line(self, points: Points, fill: Color, width: float) -> None:
        """Draw a polyline; ``width`` is a fraction of the shorter side."""
        self._draw.line(self._points(points), fill=fill, width=self._length(width), joint="curve")

    def ring(self, x: float, y: float, radius: float, fill: Color, width: float) -> None:
        """Draw a circle; ``radius`` and ``width`` are fractions of the shorter side."""
        center_x, center_y = self._points([(x, y)])[0]
        reach = radius * min(self.width, self.height)
        box = (center_x - reach, center_y - reach, center_x + reach, center_y + reach)
        self._draw.ellipse(box, outline=fill, width=self._length(width))


Drawing = Callable[[Pen, random.Random], None]


@dataclass(frozen=True, slots=True)
class Sprite:
    """A drawn object.

    Attributes:
        image: RGBA, cropped to the object's visible pixels.
        quad_xy8: The object's own rectangle turned with it, in px of ``image``: front left,
            front right, back right, back left of an object that heads up.
    """

    image: Image.Image
    quad_xy8: Quad


def tint(color: Color, factor: float) -> Color:
    """Return a lighter (factor above 1) or darker color."""
    red, green, blue = (max(0, min(255, round(channel * factor))) for channel in color)
    return red, green, blue


def render(
    drawing: Drawing,
    size_wh: tuple[float, float],
    rng: random.Random,
    *,
    heading_deg: float = 0.0,
    mirror: bool = False,
    opacity: float = 1.0,
) -> Sprite:
    """Draw an object, turn it and crop it to what is visible.

    Args:
        drawing: Function that draws the object in a unit frame.
        size_wh: Size of the frame in px before turning.
        rng: Source of the object's colors and details.
        heading_deg: Turn, counter-clockwise as seen in the picture.
        mirror: Flip left and right before turning.
        opacity: Below 1 for an object that is hard to see.
    """
    pen = Pen(size_wh)
    drawing(pen, rng)
    upright = pen.image
    if mirror:
        upright = upright.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    left, top, right, bottom = upright.getchannel("A").getbbox() or (0, 0, *upright.size)
    turned = upright
    if heading_deg:
        turned = upright.rotate(heading_deg, Image.Resampling.BICUBIC, expand=True)
    small = turned.reduce(SUPERSAMPLING)
    levels = [0] * MIN_ALPHA + [round(value * opacity) for value in range(MIN_ALPHA, 256)]
    alpha = small.getchannel("A").point(levels)
    small.putalpha(alpha)
    crop = alpha.getbbox() or (0, 0, *small.size)

    cos, sin = math.cos(math.radians(heading_deg)), math.sin(math.radians(heading_deg))
    quad: list[float] = []
    for x, y in ((left, top), (right, top), (right, bottom), (left, bottom)):
        dx, dy = x - upright.width / 2, y - upright.height / 2
        turned_x = turned.width / 2 + dx * cos + dy * sin
        turned_y = turned.height / 2 - dx * sin + dy * cos
        quad += [turned_x / SUPERSAMPLING - crop[0], turned_y / SUPERSAMPLING - crop[1]]
    x1, y1, x2, y2, x3, y3, x4, y4 = quad
    return Sprite(small.crop(crop), (x1, y1, x2, y2, x3, y3, x4, y4))
