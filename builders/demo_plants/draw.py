"""Draw a plant from above, and the index picture that says which pixel belongs to which leaf.

Lengths are px of the finished picture unless a name says otherwise. Leaves are placed like those
of a real rosette: each one the golden angle further round than the one before, older ones lower
and further out.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SUPERSAMPLING = 3
GOLDEN_ANGLE_DEG = 137.508
OUTLINE_POINTS = 28
MIN_VISIBLE = 0.45
"""A leaf of which less is seen is not drawn at all, so that leaves can be counted by eye."""

Color = tuple[int, int, int]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Look:
    """What tells one kind of plant and its pot from another.

    Attributes:
        leaf: Color of the blades.
        soil: Color of the ground in the pot.
        tray: Color around the pot.
        rim: Color of the pot's edge.
        width: Width of a blade as a fraction of its length.
        stalk: Length of a stalk as a fraction of its blade's length.
        lobes: How far the edge of a blade swings in and out, as a fraction of its width.
        tip: How pointed a blade ends; 0 for an ellipse.
    """

    leaf: Color
    soil: Color
    tray: Color
    rim: Color
    width: float
    stalk: float
    lobes: float
    tip: float


ARA2012 = Look((82, 148, 52), (58, 47, 40), (176, 82, 56), (42, 40, 40), 0.62, 0.75, 0.05, 0.1)
ARA2013 = Look((104, 168, 62), (52, 42, 36), (52, 54, 60), (120, 104, 88), 0.74, 0.9, 0.0, 0.0)
TOBACCO = Look((96, 150, 66), (70, 54, 42), (122, 124, 122), (48, 48, 50), 0.58, 0.16, 0.02, 0.55)


@dataclass(frozen=True, slots=True)
class LeafShape:
    """One leaf: where it grows from the middle of the plant.

    Attributes:
        leaf_id: Its number; the same through all frames of a stack.
        angle_deg: Direction from the middle, clockwise from the right as seen in the picture.
        blade: Length of the blade in px.
        bend_deg: Turn of the blade against its stalk.
        shade: Brightness, 1 for the look's own color.
        width: Width as a fraction of the length.
    """

    leaf_id: int
    angle_deg: float
    blade: float
    bend_deg: float
    shade: float
    width: float


@dataclass(frozen=True, slots=True)
class DemoPlant:
    """A drawn plant.

    Attributes:
        image: The picture, RGB.
        label: Height × width leaf ids, 0 for background.
    """

    image: Image.Image
    label: np.ndarray


def grow(
    leaves: int, blade: float, look: Look, rng: random.Random, *, age: float = 1.0
) -> list[LeafShape]:
    """Make the leaves of a plant, oldest first.

    Args:
        leaves: Number of leaves at age 1.
        blade: Length of the largest blade in px at age 1.
        look: Kind of plant.
        rng: Source of all variation; the same one at another age gives the same plant.
        age: 0 to 1; younger plants have fewer and smaller leaves.
    """
    start = rng.uniform(0, 360)
    grown: list[LeafShape] = []
    for i in range(leaves):
        sway, bend = rng.uniform(-9, 9), rng.uniform(-14, 14)
        size, shade = rng.uniform(0.88, 1.12), rng.uniform(0.88, 1.1)
        width = look.width * rng.uniform(0.9, 1.1)
        born = 0.75 * max(0, i - 2) / leaves
        if age < born:
            continue
        # Old leaves are full-grown; the first pair stays small, the youngest are still small.
        ripe = min(1.0, 0.3 + 1.5 * (age - born))
        length = blade * size * ripe * (0.6 if i < 2 else 1.0)
        grown.append(
            LeafShape(i + 1, start + i * GOLDEN_ANGLE_DEG + sway, length, bend, shade, width)
        )
    return grown


def draw_plant(
    leaves: Sequence[LeafShape], look: Look, side: int, rng: random.Random, *, pot: float
) -> DemoPlant:
    """Draw a plant in the middle of a square picture.

    Args:
        leaves: Its leaves, the lowest first.
        look: Colors and shapes.
        side: Width and height in px.
        rng: Source of the soil's grain.
        pot: Radius of the pot in px.
    """
    kept = _countable(leaves, look, side)
    image = _ground(look, side, rng, pot)
    shadow = Image.new("L", image.size)
    for leaf in kept:
        for outline in _outlines(leaf, look, side, SUPERSAMPLING):
            ImageDraw.Draw(shadow).polygon(_shift(outline, 2 * SUPERSAMPLING), fill=120)
    soft = shadow.filter(ImageFilter.GaussianBlur(2 * SUPERSAMPLING))
    image.paste((12, 10, 8), mask=soft)
    for leaf in kept:
        _paint_leaf(image, leaf, look, side)
    return DemoPlant(image.reduce(SUPERSAMPLING), _label(kept, look, side))


def crop(plant: DemoPlant, margin: int) -> DemoPlant:
    """Cut a picture to the plant with a margin in px, as the set's plant pictures are cut."""
    ys, xs = np.nonzero(plant.label)
    height, width = plant.label.shape
    left, top = max(0, int(xs.min()) - margin), max(0, int(ys.min()) - margin)
    right, bottom = min(width, int(xs.max()) + margin + 1), min(height, int(ys.max()) + margin + 1)
    return DemoPlant(
        plant.image.crop((left, top, right, bottom)), plant.label[top:bottom, left:right]
    )


def _countable(leaves: Sequence[LeafShape], look: Look, side: int) -> list[LeafShape]:
    """Leave out, lowest first, the leaves that others cover almost wholly."""
    kept = list(leaves)
    i = 0
    while i < len(kept):
        alone = np.count_nonzero(_label(kept[i : i + 1], look, side))
        seen = np.count_nonzero(_label(kept, look, side) == kept[i].leaf_id)
        if seen < max(MIN_VISIBLE * alone, 8):
            del kept[i]
        else:
            i += 1
    return kept


def _label(leaves: Sequence[LeafShape], look: Look, side: int) -> np.ndarray:
    label = Image.new("L", (side, side))
    for leaf in leaves:
        for outline in _outlines(leaf, look, side, 1):
            ImageDraw.Draw(label).polygon(outline, fill=leaf.leaf_id)
    return np.asarray(label)


def _outlines(leaf: LeafShape, look: Look, side: int, scale: int) -> tuple[list[Point], ...]:
    """Return the outlines of a leaf's stalk and blade in px times ``scale``."""
    start, turn = _axis(leaf, look, side)
    half = max(0.9, 0.035 * leaf.blade)
    nx, ny = -math.sin(math.radians(leaf.angle_deg)), math.cos(math.radians(leaf.angle_deg))
    middle = side / 2
    stalk = [
        (middle + nx * half, middle + ny * half),
        (middle - nx * half, middle - ny * half),
        (start[0] - nx * half, start[1] - ny * half),
        (start[0] + nx * half, start[1] + ny * half),
    ]
    cos, sin = math.cos(turn), math.sin(turn)
    blade: list[Point] = []
    for i in range(OUTLINE_POINTS):
        t = 2 * math.pi * i / OUTLINE_POINTS
        along = (1 - math.cos(t)) / 2
        across = math.sin(t) / 2 * leaf.width * (1 + look.lobes * math.cos(9 * t))
        # Beyond the middle a pointed blade narrows faster than an ellipse.
        across *= 1 - look.tip * max(0.0, along - 0.4)
        x, y = along * leaf.blade, across * leaf.blade
        blade.append((start[0] + x * cos - y * sin, start[1] + x * sin + y * cos))
    return tuple([(x * scale, y * scale) for x, y in outline] for outline in (stalk, blade))


def _axis(leaf: LeafShape, look: Look, side: int) -> tuple[Point, float]:
    """Return where a blade starts in px, and its direction in radians."""
    out = math.radians(leaf.angle_deg)
    turn = math.radians(leaf.angle_deg + leaf.bend_deg)
    middle, stalk = side / 2, look.stalk * leaf.blade
    start = (middle + stalk * math.cos(out), middle + stalk * math.sin(out))
    return start, turn


def _paint_leaf(image: Image.Image, leaf: LeafShape, look: Look, side: int) -> None:
    draw = ImageDraw.Draw(image)
    stalk, blade = _outlines(leaf, look, side, SUPERSAMPLING)
    color = _tint(look.leaf, leaf.shade)
    draw.polygon(stalk, fill=_tint(color, 1.12))
    draw.polygon(blade, fill=color)
    # A dark edge parts leaves that lie on each other; veins show which way each one points.
    edge = max(1, round(0.02 * leaf.blade * SUPERSAMPLING))
    draw.line([*blade, blade[0]], fill=_tint(color, 0.68), width=edge)
    start, turn = _axis(leaf, look, side)
    vein, thin = _tint(color, 1.22), max(1, edge // 2)

    def at(along: float, across: float) -> Point:
        x, y = along * leaf.blade, across * leaf.blade
        px = start[0] + x * math.cos(turn) - y * math.sin(turn)
        py = start[1] + x * math.sin(turn) + y * math.cos(turn)
        return px * SUPERSAMPLING, py * SUPERSAMPLING

    draw.line([at(0, 0), at(0.92, 0)], fill=vein, width=max(1, edge))
    for along in (0.2, 0.4, 0.6):
        for way in (-1, 1):
            draw.line(
                [at(along, 0), at(along + 0.14, way * 0.3 * leaf.width)], fill=vein, width=thin
            )


def _ground(look: Look, side: int, rng: random.Random, pot: float) -> Image.Image:
    """Paint tray, pot and grainy soil, ``SUPERSAMPLING`` times as large."""
    noise = np.random.default_rng(rng.getrandbits(64))
    ground = Image.new("RGB", (side, side), look.tray)
    draw = ImageDraw.Draw(ground)
    middle, rim = side / 2, max(2.0, 0.05 * pot)
    for radius, color in ((pot + rim, look.rim), (pot, look.soil)):
        draw.ellipse((middle - radius, middle - radius, middle + radius, middle + radius), color)
    pixels = np.asarray(ground, dtype=np.int16)
    fine = noise.integers(-9, 10, (side, side, 1), dtype=np.int16)
    # Crumbs of soil, a few px each.
    few = side // 3 + 2
    lumps = Image.fromarray(noise.integers(0, 256, (few, few), dtype=np.uint8))
    crumbs = np.asarray(lumps.resize((side, side), Image.Resampling.BICUBIC), dtype=np.int16)
    pixels = pixels + fine + (crumbs[:, :, np.newaxis] - 128) // 7
    rough = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    return rough.resize((side * SUPERSAMPLING, side * SUPERSAMPLING), Image.Resampling.BICUBIC)


def _shift(outline: Sequence[Point], by: float) -> list[Point]:
    return [(x + by, y + by) for x, y in outline]


def _tint(color: Color, factor: float) -> Color:
    red, green, blue = (max(0, min(255, round(channel * factor))) for channel in color)
    return red, green, blue
