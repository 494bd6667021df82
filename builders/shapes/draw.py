"""The default renderer: Pillow, smoothed by drawing at four times the size."""

from PIL import Image, ImageDraw

from soubench.builders.shapes.configuration import BACKGROUND, COLORS, Configuration

SUPERSAMPLING = 4


def draw_picture(configuration: Configuration) -> Image.Image:
    """Draw a configuration as an 8-bit RGB picture of its canvas."""
    side = configuration.canvas_px * SUPERSAMPLING
    image = Image.new("RGB", (side, side), BACKGROUND)
    pen = ImageDraw.Draw(image)
    for shape in configuration.shapes:
        pen.polygon(_enlarged(shape.outline()), fill=COLORS[shape.color])
    return image.reduce(SUPERSAMPLING)


def draw_ids(configuration: Configuration) -> Image.Image:
    """Draw which shape is seen where, at four times the size: 0 is background, i + 1 shape i."""
    side = configuration.canvas_px * SUPERSAMPLING
    image = Image.new("L", (side, side), 0)
    pen = ImageDraw.Draw(image)
    for i, shape in enumerate(configuration.shapes):
        pen.polygon(_enlarged(shape.outline()), fill=i + 1)
    return image


def _enlarged(corners: list[tuple[float, float]]) -> list[tuple[float, float]]:
    # Pillow fills the pixels that a corner's coordinates name, edges included; half a pixel less
    # makes an edge at 10 end before pixel 40 of the enlarged picture.
    return [(x * SUPERSAMPLING - 0.5, y * SUPERSAMPLING - 0.5) for x, y in corners]
