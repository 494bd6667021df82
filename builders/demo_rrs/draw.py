"""Draw a site: ground by season and kind, what stands on it, trees."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from soubench.builders.demo_rrs.items import COLORS, Color, Pen, draw_item, shade
from soubench.builders.demo_rrs.sites import SIZE_WH, WATER_FROM, DemoSite

SUPERSAMPLING = 2
GROUND: Mapping[str, Color] = MappingProxyType(
    {
        "spring": (132, 158, 92),
        "summer": (98, 126, 66),
        "autumn": (156, 132, 84),
        "winter": (226, 230, 234),
    }
)
TREES: Mapping[str, Color] = MappingProxyType(
    {
        "spring": (204, 160, 178),
        "summer": (44, 84, 40),
        "autumn": (186, 100, 40),
        "winter": (120, 112, 104),
    }
)
WATER: Color = (44, 78, 104)
CONCRETE: Color = (172, 170, 162)
DIRT: Color = (168, 146, 112)


def draw_site(site: DemoSite) -> Image.Image:
    """Return the picture of a site, 8-bit RGB."""
    width, height = SIZE_WH
    s = SUPERSAMPLING
    image = Image.new("RGB", (width * s, height * s), GROUND[site.season])
    pen = Pen(ImageDraw.Draw(image), s)
    _draw_ground(pen, site)
    image = _textured(image, site.texture)
    pen = Pen(ImageDraw.Draw(image), s)
    for item in site.items:
        draw_item(pen, item)
    for x, y, r in site.trees:
        pen.circle((x + 2, y + 2), r, shade(GROUND[site.season], 0.6))
        pen.circle((x, y), r, TREES[site.season])
        pen.circle((x - r / 4, y - r / 4), r / 2, shade(TREES[site.season], 1.2))
    return image.resize(SIZE_WH, Image.Resampling.LANCZOS)


def _draw_ground(pen: Pen, site: DemoSite) -> None:
    width, height = SIZE_WH
    ground = site.subtype.ground
    middle = (width / 2, height / 2)
    road = CONCRETE if site.season != "winter" else shade(CONCRETE, 0.85)
    if ground == "water":
        quay = WATER_FROM * height
        pen.polygon([(0, quay), (width, quay), (width, height), (0, height)], WATER)
        pen.polygon([(0, quay - 14), (width, quay - 14), (width, quay), (0, quay)], road)
    elif ground == "apron":
        edges = [(30, height * 0.3), (width - 30, height * 0.3)]
        pen.polygon([*edges, (width - 30, height - 30), (30, height - 30)], road)
    elif ground == "clearing":
        pen.circle(middle, height * 0.46, DIRT)
        pen.line([middle, (width, height * 0.9)], road, 9)
    elif ground == "roads":
        pen.ring(middle, height * 0.4, road, 9)
        pen.line([(0, height * 0.5), (width, height * 0.5)], road, 9)
    elif ground == "yard":
        pen.polygon(
            [(50, 40), (width - 50, 40), (width - 50, height - 40), (50, height - 40)], DIRT
        )
        pen.line([(width / 2, height - 40), (width / 2, height)], road, 12)
    else:
        track = [(60, 60), (width - 60, 60), (width - 60, height - 60), (60, height - 60)]
        pen.line([*track, track[0], track[1]], DIRT, 16)
    if site.subtype.fence:
        bottom = WATER_FROM * height - 18 if ground == "water" else height - 5
        fence = [(5.0, 5.0), (width - 5.0, 5.0), (width - 5.0, bottom), (5.0, bottom)]
        pen.line([*fence, fence[0]], COLORS["black"], 1.5)
        for x in range(5, width, 18):
            for y in (5.0, bottom):
                pen.circle((x, y), 2, COLORS["black"])


def _textured(image: Image.Image, seed: int) -> Image.Image:
    """Lay soft spots over a picture."""
    width, height = image.size
    small = (width // 6, height // 6)
    raw = np.random.PCG64(seed).random_raw(small[0] * small[1] // 8 + 1)
    values = np.asarray(raw, dtype="<u8").view(np.uint8)[: small[0] * small[1]]
    spots = Image.fromarray(values.reshape(small[1], small[0])).filter(ImageFilter.BoxBlur(2))
    grain = np.asarray(spots.resize(image.size, Image.Resampling.BICUBIC), dtype=np.int16) - 128
    pixels = np.asarray(image, dtype=np.int16) + (grain // 3)[:, :, None]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
