"""Backgrounds, and the places on them where objects of a home ("lane", "water", ..) may be."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from soubench.builders.demo_scenes.draw import Color, tint

SizeWh = tuple[int, int]
SHADOW = (10, 14, 20)
CAMERA_HEIGHT_M = 5.0
FOCAL_PER_WIDTH = 0.9
ROAD_HALF_M = 12.0
WALK_EDGE_M = 27.0


class Span(NamedTuple):
    """A rectangle in px, right and bottom edge exclusive."""

    x1: float
    y1: float
    x2: float
    y2: float

    def shrunk(self, margin: float) -> "Span":
        """Return the span less a margin, and at least its middle."""
        dx = min(margin, (self.x2 - self.x1) / 2)
        dy = min(margin, (self.y2 - self.y1) / 2)
        return Span(self.x1 + dx, self.y1 + dy, self.x2 - dx, self.y2 - dy)


class Zone(NamedTuple):
    """Where centers of objects may lie, and how the objects there are turned.

    Attributes:
        span: Limits of the centers.
        headings_deg: One is drawn per object.
        sway_deg: Largest random turn away from the heading.
        shadow_xy: Offset of the object's shadow in px; (0, 0) for none.
    """

    span: Span
    headings_deg: tuple[float, ...] = (0.0,)
    sway_deg: float = 0.0
    shadow_xy: tuple[int, int] = (2, 2)


class Spot(NamedTuple):
    """Where one object goes.

    Attributes:
        center_xy: Center of the drawn object.
        heading_deg: Its turn.
        shadow_xy: Offset of its shadow in px.
        foot_y: Where it, or the pole that carries it, meets the ground; None seen from above.
    """

    center_xy: tuple[float, float]
    heading_deg: float
    shadow_xy: tuple[int, int] = (0, 0)
    foot_y: float | None = None


class Standing(NamedTuple):
    """How a kind of object stands in a road view.

    Attributes:
        home: ``lane``, ``walk`` or ``pole``.
        height_m: Real height.
        mount_m: Lowest and highest height of its lower edge above the ground.
    """

    home: str
    height_m: float = 1.0
    mount_m: tuple[float, float] = (0.0, 0.0)


class Ground(Protocol):
    """A background that knows where things belong."""

    image: Image.Image

    def spot(self, standing: Standing, size_wh: tuple[float, float], rng: random.Random) -> Spot:
        """Draw a place for an object of a size."""

    def shade(self, alpha: Image.Image, box: tuple[int, int, int, int], spot: Spot) -> None:
        """Put the object's shadow, or its pole, on the background."""


def roughen(image: Image.Image, rng: random.Random, *, grain: int, patches: int) -> Image.Image:
    """Give a flat picture fine grain and soft large patches."""
    noise = np.random.default_rng(rng.getrandbits(64))
    width, height = image.size
    fine = noise.integers(-grain, grain + 1, (height, width, 1), dtype=np.int16)
    rough = noise.integers(0, 256, (height // 40 + 2, width // 40 + 2), dtype=np.uint8)
    soft = Image.fromarray(rough).resize((width, height), Image.Resampling.BICUBIC)
    drift = (np.asarray(soft, dtype=np.int16) - 128) * patches // 128
    pixels = np.asarray(image, dtype=np.int16) + fine + drift[:, :, np.newaxis]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def fade(size_wh: SizeWh, top: Color, bottom: Color) -> Image.Image:
    """Return a vertical gradient."""
    return ImageOps.colorize(Image.linear_gradient("L").resize(size_wh), top, bottom)


def drop_shadow(image: Image.Image, alpha: Image.Image, at: SizeWh, strength: float) -> None:
    """Darken a picture in the shape of an object."""
    image.paste(SHADOW, at, alpha.point([round(value * strength) for value in range(256)]))


# --- Driving ------------------------------------------------------------------------------------


class RoadView:
    """A straight road in perspective, seen from a bridge over it."""

    def __init__(self, size_wh: SizeWh, rng: random.Random) -> None:
        self.width, self.height = size_wh
        self.horizon = round(self.height * rng.uniform(0.36, 0.42))
        self.vanish_x = self.width * rng.uniform(0.42, 0.58)
        self.image = fade(size_wh, (96, 150, 214), (226, 232, 236))
        self._draw = ImageDraw.Draw(self.image)
        self._paint_sky(rng)
        self._paint_town(rng)
        self._paint_road(rng)
        self.image = roughen(self.image, rng, grain=5, patches=7)
        self._draw = ImageDraw.Draw(self.image)

    def _x(self, lateral_m: float, y: float) -> float:
        return self.vanish_x + lateral_m * (y - self.horizon) / CAMERA_HEIGHT_M

    def _y(self, distance_m: float) -> float:
        return self.horizon + FOCAL_PER_WIDTH * self.width * CAMERA_HEIGHT_M / distance_m

    def _strip(self, left_m: float, right_m: float, near_m: float, far_m: float, c: Color) -> None:
        """Fill a piece of ground between two lines along the road."""
        near, far = self._y(near_m), self._y(far_m)
        corners = [(self._x(left_m, near), near), (self._x(right_m, near), near),
                   (self._x(right_m, far), far), (self._x(left_m, far), far)]  # fmt: skip
        self._draw.polygon(corners, c)

    def _paint_sky(self, rng: random.Random) -> None:
        clouds = Image.new("L", self.image.size)
        pen = ImageDraw.Draw(clouds)
        for _ in range(26):
            x, y = rng.uniform(0, self.width), rng.uniform(0, self.horizon * 0.7)
            length = self.width * rng.uniform(0.03, 0.1)
            pen.ellipse((x, y, x + length, y + length / 4), rng.randint(60, 150))
        soft = clouds.reduce(4).filter(ImageFilter.GaussianBlur(3)).resize(self.image.size)
        self.image.paste((255, 255, 255), (0, 0), soft)

    def _paint_town(self, rng: random.Random) -> None:
        for shade, reach in (((164, 180, 196), 0.6), ((134, 148, 164), 0.36)):
            x = -10.0
            while x < self.width:
                wide = self.width * rng.uniform(0.03, 0.07)
                # Low in the middle, so that the road runs out into open sky.
                aside = min(1.0, abs(x + wide / 2 - self.vanish_x) / (self.width * 0.4))
                tall = self.horizon * reach * rng.uniform(0.3, 1) * (0.25 + 0.75 * aside)
                front = tint(shade, rng.uniform(0.92, 1.06))
                self._draw.rectangle((x, self.horizon - tall, x + wide, self.horizon), front)
                for row in range(1, int(tall // 12)):
                    for column in range(1, int(wide // 10)):
                        if rng.random() < 0.7:
                            left, top = x + column * 10 - 5, self.horizon - tall + row * 12 - 6
                            lit = tint(front, rng.choice((0.86, 0.9, 1.1)))
                            self._draw.rectangle((left, top, left + 4, top + 5), lit)
                x += wide * rng.uniform(1, 1.2)

    def _paint_road(self, rng: random.Random) -> None:
        near, far = 4.0, 3000.0
        self._draw.rectangle((0, self.horizon, self.width, self.height), (112, 134, 88))
        self._strip(-WALK_EDGE_M, WALK_EDGE_M, near, far, (166, 162, 154))
        for step in range(160):
            self._strip(-WALK_EDGE_M, WALK_EDGE_M, 8 + step * 3, 8.1 + step * 3, (150, 146, 138))
        self._strip(-ROAD_HALF_M - 0.4, ROAD_HALF_M + 0.4, near, far, (196, 194, 188))
        self._strip(-ROAD_HALF_M, ROAD_HALF_M, near, far, (86, 88, 92))
        self._strip(-0.45, -0.2, near, far, (226, 190, 70))
        self._strip(0.2, 0.45, near, far, (226, 190, 70))
        for edge in (-ROAD_HALF_M + 0.5, ROAD_HALF_M - 0.7):
            self._strip(edge, edge + 0.2, near, far, (222, 222, 218))
        for lane in (-8, -4, 4, 8):
            for step in range(40):
                start = 6 + step * 9
                self._strip(lane - 0.1, lane + 0.1, start, start + 4, (222, 222, 218))
        for distance in range(220, 24, -12):
            for side in (-1, 1):
                self._paint_tree(side * rng.uniform(30, 40), distance, rng)

    def _paint_tree(self, lateral_m: float, distance_m: float, rng: random.Random) -> None:
        y = self._y(distance_m)
        x, scale = self._x(lateral_m, y), (y - self.horizon) / CAMERA_HEIGHT_M
        trunk, crown = 2 * scale, 3.2 * scale
        self._draw.rectangle((x - scale / 5, y - trunk, x + scale / 5, y), (90, 72, 56))
        green = tint((66, 108, 58), rng.uniform(0.8, 1.15))
        for shift, lift, light in ((-0.5, 0.6, 0.85), (0.5, 0.7, 0.95), (0, 1.3, 1.1)):
            mid_x, mid_y = x + shift * crown, y - trunk - lift * crown * 0.7
            box = (mid_x - crown * 0.7, mid_y - crown * 0.6, mid_x + crown * 0.7, mid_y + crown / 2)
            self._draw.ellipse(box, tint(green, light))

    def spot(self, standing: Standing, size_wh: tuple[float, float], rng: random.Random) -> Spot:
        """Put an object as far away as its size says."""
        scale = size_wh[1] / standing.height_m
        foot_y = self.horizon + scale * CAMERA_HEIGHT_M
        side = rng.choice((-1, 1))
        if standing.home == "lane":
            lateral = side * (rng.choice((2, 6, 10)) + rng.uniform(-0.4, 0.4))
        elif standing.home == "walk":
            lateral = side * rng.uniform(ROAD_HALF_M + 1, WALK_EDGE_M - 1)
        else:
            lateral = side * rng.uniform(ROAD_HALF_M + 0.8, ROAD_HALF_M + 8)
        bottom = foot_y - rng.uniform(*standing.mount_m) * scale
        center = (self._x(lateral, foot_y), bottom - size_wh[1] / 2)
        return Spot(center, 0.0, foot_y=foot_y)

    def shade(self, alpha: Image.Image, box: tuple[int, int, int, int], spot: Spot) -> None:
        """Draw a shadow under what stands, a pole under what hangs."""
        x1, _, x2, y2 = box
        foot = spot.foot_y or y2
        if foot > y2 + 3:
            middle, half = (x1 + x2) / 2, max(0.6, (foot - self.horizon) / 120)
            self._draw.rectangle((middle - half, y2 - 1, middle + half, foot), (104, 110, 116))
            return
        flat = alpha.resize((alpha.width + 4, max(3, alpha.height // 4)))
        drop_shadow(self.image, flat, (x1 - 2, y2 - flat.height // 2), 0.45)


# --- Seen from above, and under water -----------------------------------------------------------


@dataclass(slots=True)
class Plan:
    """A flat background with zones."""

    image: Image.Image
    zones: Mapping[str, Sequence[Zone]]

    def spot(self, standing: Standing, size_wh: tuple[float, float], rng: random.Random) -> Spot:
        """Draw a zone of the home, and a place in it."""
        zone = rng.choice(self.zones[standing.home])
        x, y = rng.uniform(zone.span.x1, zone.span.x2), rng.uniform(zone.span.y1, zone.span.y2)
        heading = rng.choice(zone.headings_deg) + rng.uniform(-zone.sway_deg, zone.sway_deg)
        return Spot((x, y), heading, zone.shadow_xy)

    def shade(self, alpha: Image.Image, box: tuple[int, int, int, int], spot: Spot) -> None:
        """Drop the object's shadow beside it."""
        dx, dy = spot.shadow_xy
        if dx or dy:
            drop_shadow(self.image, alpha, (box[0] + dx, box[1] + dy), 0.4)


Pen = ImageDraw.ImageDraw
Zones = dict[str, list[Zone]]
LandUse = Callable[[Pen, Span, random.Random, Zones], None]
ANY_HEADING = 180.0


def _paint_trees(pen: Pen, span: Span, rng: random.Random, count: int) -> None:
    for _ in range(count):
        x, y = rng.uniform(span.x1 + 8, span.x2 - 8), rng.uniform(span.y1 + 8, span.y2 - 8)
        reach, green = rng.uniform(4, 7), tint((56, 96, 52), rng.uniform(0.8, 1.1))
        pen.ellipse((x - reach + 2, y - reach + 3, x + reach + 2, y + reach + 3), (52, 70, 46))
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), green)
        pen.ellipse((x - reach * 0.7, y - reach * 0.8, x, y - reach * 0.1), tint(green, 1.2))


def _paint_crops(pen: Pen, span: Span, rng: random.Random) -> None:
    soil = rng.choice(((150, 152, 84), (112, 134, 72), (172, 150, 98), (96, 122, 66)))
    pen.rectangle(span, soil)
    along, step = rng.random() < 0.5, rng.choice((6, 8, 11))
    for k in range(1, int(max(span.x2 - span.x1, span.y2 - span.y1) // step)):
        if along and span.x1 + k * step < span.x2:
            pen.line((span.x1 + k * step, span.y1, span.x1 + k * step, span.y2), tint(soil, 0.9))
        elif not along and span.y1 + k * step < span.y2:
            pen.line((span.x1, span.y1 + k * step, span.x2, span.y1 + k * step), tint(soil, 0.9))


def _field(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    _paint_crops(pen, span, rng)
    zones["field"].append(Zone(span.shrunk(20), shadow_xy=(6, 7)))


def _canal(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    _paint_crops(pen, span, rng)
    middle = round((span.y1 + span.y2) / 2)
    pen.rectangle((span.x1, middle - 11, span.x2, middle + 11), (190, 182, 150))
    pen.rectangle((span.x1, middle - 8, span.x2, middle + 8), (58, 104, 128))
    count = max(1, int((span.x2 - span.x1) // 70))
    for k in range(count):
        x = span.x1 + (k + 0.5) * (span.x2 - span.x1) / count
        pen.rectangle((x - 3, span.y1, x + 3, middle - 9), (200, 186, 150))
        pen.rectangle((x - 3, middle + 9, x + 3, span.y2), (200, 186, 150))
        zones["canal"].append(Zone(Span(x, middle, x, middle), (90.0,)))


def _houses(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    pen.rectangle(span, (116, 140, 86))
    _paint_trees(pen, span, rng, int((span.x2 - span.x1) * (span.y2 - span.y1) / 2600))
    columns, rows = int((span.x2 - span.x1) // 58), int((span.y2 - span.y1) // 54)
    for column in range(max(1, columns)):
        for row in range(max(1, rows)):
            x = span.x1 + (column + 0.5) * (span.x2 - span.x1) / max(1, columns)
            y = span.y1 + (row + 0.5) * (span.y2 - span.y1) / max(1, rows) - 9
            half_w, half_h = rng.uniform(13, 18), rng.uniform(9, 11)
            box = (x - half_w, y - half_h, x + half_w, y + half_h)
            roof = tint(rng.choice(((168, 92, 70), (134, 120, 112), (150, 110, 80))), 1.0)
            pen.rectangle((box[0] + 3, box[1] + 4, box[2] + 3, box[3] + 4), (66, 80, 54))
            pen.rectangle(box, roof)
            ridge = [(box[0], box[3]), (box[0] + half_h, y), (box[2] - half_h, y), (box[2], box[3])]
            pen.polygon(ridge, tint(roof, 0.8))
            pen.line((box[0] + half_h, y, box[2] - half_h, y), tint(roof, 1.2))
            zones["houses"].append(Zone(Span(x, y + 23, x, y + 23), shadow_xy=(0, 0)))


def _water(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    pen.rectangle(span, (196, 182, 146))
    inner = span.shrunk(4)
    pen.rectangle(inner, (48, 98, 128))
    for _ in range(int((span.x2 - span.x1) * (span.y2 - span.y1) / 700)):
        x, y = rng.uniform(inner.x1, inner.x2 - 12), rng.uniform(inner.y1 + 2, inner.y2 - 2)
        pen.line((x, y, x + rng.uniform(4, 10), y), (66, 118, 146))
    zones["water"].append(Zone(span.shrunk(26), sway_deg=ANY_HEADING, shadow_xy=(1, 2)))


def _apron(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    pen.rectangle(span, (158, 160, 160))
    for k in range(int(span.x1), int(span.x2), 32):
        pen.line((k, span.y1, k, span.y2), (150, 152, 152))
    for k in range(int(span.y1), int(span.y2), 32):
        pen.line((span.x1, k, span.x2, k), (150, 152, 152))
    y = rng.uniform(span.y1 + 14, span.y2 - 14)
    pen.line((span.x1, y, span.x2, y), (220, 186, 60), 2)
    zones["apron"].append(Zone(span.shrunk(24), (0.0, 90.0, 180.0, 270.0), 25.0))


def _depot(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    pen.rectangle(span, (150, 142, 130))
    for _ in range(3):
        y = rng.uniform(span.y1, span.y2)
        pen.line((span.x1, y, span.x2, y), (136, 128, 118), 3)
    zones["depot"].append(Zone(span.shrunk(22), (0.0, 90.0), 1.5))


def _lot(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    pen.rectangle(span, (104, 106, 110))
    slot_w, slot_h, aisle = 17, 34, 26
    y = span.y1 + 6
    while y + slot_h <= span.y2:
        for k in range(int((span.x2 - span.x1 - 8) // slot_w)):
            x = span.x1 + 6 + k * slot_w
            pen.line((x, y, x, y + slot_h), (176, 176, 172))
            center = Span(x + slot_w / 2, y + slot_h / 2, x + slot_w / 2, y + slot_h / 2)
            zones["lot"].append(Zone(center, (90.0, 270.0), 2.0))
        y += slot_h + aisle
    if not zones["lot"]:
        zones["lot"].append(Zone(span.shrunk(20), (90.0, 270.0), 2.0))


def _yard(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    pen.rectangle(span, (120, 116, 110))
    pen.rectangle(span.shrunk(6), outline=(150, 142, 120), width=2)
    zones["yard"].append(Zone(span.shrunk(95)))


def _park(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    pen.rectangle(span, (104, 142, 80))
    path = (204, 190, 156)
    x, y = rng.uniform(span.x1 + 30, span.x2 - 30), rng.uniform(span.y1 + 30, span.y2 - 30)
    pen.line((span.x1, y, span.x2, y), path, 12)
    pen.line((x, span.y1, x, span.y2), path, 12)
    pen.ellipse((x - 20, y - 20, x + 20, y + 20), path)
    _paint_trees(pen, span, rng, int((span.x2 - span.x1) * (span.y2 - span.y1) / 2000))
    zones["park"].append(Zone(span.shrunk(14), shadow_xy=(3, 2)))


def _plaza(pen: Pen, span: Span, rng: random.Random, zones: Zones) -> None:
    pen.rectangle(span, (192, 184, 172))
    for k in range(int(span.x1), int(span.x2), 13):
        pen.line((k, span.y1, k, span.y2), (178, 170, 158))
    for k in range(int(span.y1), int(span.y2), 13):
        pen.line((span.x1, k, span.x2, k), (178, 170, 158))
    for _ in range(3):
        x, y = rng.uniform(span.x1 + 24, span.x2 - 24), rng.uniform(span.y1 + 24, span.y2 - 24)
        pen.rectangle((x - 12, y - 8, x + 12, y + 8), (150, 140, 128))
        _paint_trees(pen, Span(x - 18, y - 14, x + 18, y + 14), rng, 3)
    zones["plaza"].append(Zone(span.shrunk(12), shadow_xy=(3, 2)))


LAND_USES: dict[str, LandUse] = {
    "field": _field, "canal": _canal, "houses": _houses, "water": _water, "apron": _apron,
    "depot": _depot, "lot": _lot, "yard": _yard, "park": _park,
    "plaza": _plaza,
}  # fmt: skip


def _cuts(length: int, roads: int, half: float, rng: random.Random) -> list[float]:
    gap = length / (roads + 0.6)
    return [gap * (k + 0.8) + rng.uniform(-0.12, 0.12) * (gap - 2 * half) for k in range(roads)]


def paint_town(
    size_wh: SizeWh,
    rng: random.Random,
    homes: Sequence[str],
    *,
    roads_xy: tuple[int, int],
    lanes: int,
    lane_px: int,
    decor: Sequence[str] = ("field", "houses", "park"),
) -> Plan:
    """Lay out streets and blocks seen from above, with a block for every home.

    Args:
        size_wh: Size of the picture in px.
        rng: Source of the layout.
        homes: Land uses that must occur, most important first; ``lane`` is always there, and
            ``drive`` stands for lanes and a parking lot.
        roads_xy: Number of upright and of level roads.
        lanes: Lanes of a road, half of them each way.
        lane_px: Width of a lane.
        decor: Land uses that fill the other blocks.
    """
    width, height = size_wh
    image = Image.new("RGB", size_wh, (84, 86, 90))
    pen = ImageDraw.Draw(image)
    half = lanes * lane_px / 2
    zones: Zones = {name: [] for name in (*LAND_USES, "lane")}
    cuts_x, cuts_y = _cuts(width, roads_xy[0], half, rng), _cuts(height, roads_xy[1], half, rng)
    spans_x = list(zip((-half, *cuts_x), (*cuts_x, width + half), strict=True))
    spans_y = list(zip((-half, *cuts_y), (*cuts_y, height + half), strict=True))
    blocks = [
        Span(left + half, top + half, right - half, bottom - half)
        for left, right in spans_x
        for top, bottom in spans_y
    ]
    # Land uses that are needed take the largest blocks; the rest repeats them, with some green.
    blocks.sort(key=lambda block: (block.x1 - block.x2) * (block.y2 - block.y1))
    needed = ["lot" if home == "drive" else home for home in homes]
    needed = [home for home in needed if home in LAND_USES]
    filler = [*decor, *(home for home in needed if home != "yard")]
    uses = needed + [rng.choice(filler) for _ in blocks[len(needed) :]]
    for block, use in zip(blocks, uses, strict=False):
        pen.rectangle(block, (176, 172, 164))
        LAND_USES[use](pen, block.shrunk(5), rng, zones)

    for cuts, level, length in ((cuts_x, False, height), (cuts_y, True, width)):
        for cut in cuts:
            for lane in range(lanes):
                center = cut - half + (lane + 0.5) * lane_px
                forward = lane >= lanes / 2
                if level:
                    span, heading = Span(0, center, length, center), 0.0 if forward else 180.0
                else:
                    span, heading = Span(center, 0, center, length), 90.0 if forward else 270.0
                zones["lane"].append(Zone(span, (heading,), 2.0))
                if lane:
                    _paint_dashes(pen, center - lane_px / 2, level, length, lane * 2 == lanes)
    for x in cuts_x:
        for y in cuts_y:
            _paint_crossing(pen, x, y, half)
    often = 1 + len(zones["lot"]) // (2 * len(zones["lane"]))
    zones["drive"] = zones["lot"] + zones["lane"] * often
    return Plan(roughen(image, rng, grain=6, patches=12), zones)


def _paint_dashes(pen: Pen, at: float, level: bool, length: int, middle: bool) -> None:
    color, dash, gap = ((214, 178, 70), 14, 14) if middle else ((206, 206, 202), 8, 20)
    for start in range(0, length, gap):
        line = (start, at, start + dash, at) if level else (at, start, at, start + dash)
        pen.line(line, color)


def _paint_crossing(pen: Pen, x: float, y: float, half: float) -> None:
    """Clear the lanes of a crossing and paint zebra stripes on its four arms."""
    pen.rectangle((x - half, y - half, x + half, y + half), (84, 86, 90))
    reach, step = half * 0.34, max(3, round(half / 7))
    for side in (-1, 1):
        edge = half + reach / 2 + 2
        for k in range(-int(half // step) + 1, int(half // step), 2):
            near, offset = edge - reach / 2, k * step
            far = near + reach
            x1, x2 = sorted((x + side * near, x + side * far))
            pen.rectangle((x1, y + offset, x2, y + offset + step - 1), (204, 204, 200))
            y1, y2 = sorted((y + side * near, y + side * far))
            pen.rectangle((x + offset, y1, x + offset + step - 1, y2), (204, 204, 200))


def paint_sea(size_wh: SizeWh, rng: random.Random) -> Plan:
    """Paint water with light from above, and a sandy floor with stones and weed."""
    width, height = size_wh
    floor = round(height * rng.uniform(0.58, 0.68))
    top = rng.choice(((60, 170, 196), (72, 176, 170), (50, 150, 200)))
    image = fade(size_wh, top, tint(top, 0.42))
    rays = Image.new("L", size_wh)
    ray_pen = ImageDraw.Draw(rays)
    for _ in range(9):
        x, spread = rng.uniform(-0.1, 1) * width, rng.uniform(0.03, 0.1) * width
        foot = x + 0.25 * width
        corners = [(x, 0), (x + spread, 0), (foot + 2 * spread, floor), (foot, floor)]
        ray_pen.polygon(corners, rng.randint(16, 44))
    soft = rays.reduce(4).filter(ImageFilter.GaussianBlur(5)).resize(size_wh)
    image.paste((230, 255, 250), (0, 0), soft)

    sand = fade((width, height - floor), (104, 138, 128), (190, 182, 146))
    pen = ImageDraw.Draw(sand)
    for _ in range(width // 8):
        x, y = rng.uniform(-20, width), rng.uniform(6, height - floor)
        wide = 20 + y / 4
        pen.arc((x, y, x + wide, y + wide / 5), 190, 350, (206, 200, 166))
        pen.arc((x, y + 2, x + wide, y + 2 + wide / 5), 190, 350, (132, 142, 122))
    crest = Image.new("L", sand.size, 255)
    crest_pen = ImageDraw.Draw(crest)
    for x in range(0, width, 4):
        dip = 7 + 5 * np.sin(x / 70) + 3 * np.sin(x / 23)
        crest_pen.rectangle((x, 0, x + 4, float(dip)), 0)
    image.paste(sand, (0, floor), crest.filter(ImageFilter.GaussianBlur(2)))

    pen = ImageDraw.Draw(image)
    for _ in range(max(3, width // 90)):
        _paint_weed(pen, rng.uniform(0, width), rng.uniform(floor + 4, floor + 22), rng)
    for _ in range(width // 30):
        x, y = rng.uniform(0, width), rng.uniform(floor + 16, height)
        reach = rng.uniform(3, 9)
        gray = tint((120, 124, 112), rng.uniform(0.75, 1.05))
        pen.ellipse((x - reach, y - reach * 0.5, x + reach, y + reach * 0.6), tint(gray, 0.7))
        pen.ellipse((x - reach, y - reach * 0.6, x + reach, y + reach * 0.4), gray)
    zones = {
        "water": [Zone(Span(0, 0, width, floor - 36), sway_deg=18.0, shadow_xy=(0, 0))],
        "floor": [Zone(Span(0, floor + 46, width, height), sway_deg=25.0, shadow_xy=(2, 4))],
    }
    return Plan(roughen(image, rng, grain=4, patches=10), zones)


def _paint_weed(pen: Pen, x: float, y: float, rng: random.Random) -> None:
    green, tall = tint((40, 96, 70), rng.uniform(0.7, 1.1)), rng.uniform(30, 90)
    for blade in range(4):
        lean = rng.uniform(-14, 14)
        stem = [(x + blade * 5, y), (x + blade * 5 + lean / 3, y - tall / 2),
                (x + blade * 5 + lean, y - tall * rng.uniform(0.7, 1))]  # fmt: skip
        pen.line(stem, green, 3, joint="curve")
