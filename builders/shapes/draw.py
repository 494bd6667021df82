"""The default renderer: Pillow, smoothed by drawing at four times the size."""

from math import floor

from PIL import Image, ImageDraw

from soubench.builders.shapes.configuration import (
    BACKGROUND,
    COLORS,
    Configuration,
    Shape,
    outline,
)

SUPERSAMPLING = 4
INSET_PX = 0.5


def draw_picture(configuration: Configuration) -> Image.Image:
    """Draw a configuration as an 8-bit RGB picture of its canvas."""
    side = configuration.canvas_px * SUPERSAMPLING
    image = Image.new("RGB", (side, side), BACKGROUND)
    pen = ImageDraw.Draw(image)
    for shape in configuration.shapes:
        pen.polygon(_corners(shape), fill=COLORS[shape.color])
    return image.reduce(SUPERSAMPLING)


def draw_ids(configuration: Configuration) -> Image.Image:
    """Draw which shape is seen where, at four times the size: 0 is background, i + 1 shape i."""
    side = configuration.canvas_px * SUPERSAMPLING
    image = Image.new("L", (side, side), 0)
    pen = ImageDraw.Draw(image)
    for i, shape in enumerate(configuration.shapes):
        pen.polygon(_corners(shape), fill=i + 1)
    return image


def _corners(shape: Shape) -> list[tuple[int, int]]:
    """Return the corners on the enlarged canvas, such that Pillow fills the right pixels.

    Pillow names a pixel by its center, cuts coordinates down to whole numbers, and fills the pixels
    that the outline runs through as well: half a pixel too much all round. So corners are rounded
    here, and the outline is drawn half a pixel further in: the square from 10 to 20 then covers the
    40 pixels 40 to 79 of the enlarged picture, no more and no less.
    """
    # The sides of a triangle lie at half its circumradius from the center.
    inset = 2 * INSET_PX if shape.kind == "Triangle" else INSET_PX
    corners = outline(
        shape.kind,
        (shape.center_x * SUPERSAMPLING - 0.5, shape.center_y * SUPERSAMPLING - 0.5),
        shape.rotation,
        shape.half_long * SUPERSAMPLING - inset,
        shape.half_short * SUPERSAMPLING - inset,
    )
    return [(floor(x + 0.5), floor(y + 0.5)) for x, y in corners]
