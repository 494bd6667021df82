"""Scenes made up from numbers, for tests of the questions; no picture is read."""

import math
import random
from pathlib import Path

from soubench.builders.scene import Box, Quad, Scene, SceneObject
from soubench.builders.sou.subsets import Subset

CATEGORIES = ("car", "van", "bus", "truck", "motor", "bicycle", "people", "tricycle")
SUBSET = Subset("a-visdrone", "aerial", "visdrone", 514)


def make_object(
    category: str, x: float, y: float, w: float, h: float, *, ignore: bool = False
) -> SceneObject:
    return SceneObject(category, Box(x, y, x + w, y + h), w * h, ignore)


def make_quad(category: str, x: float, y: float, w: float, h: float, degrees: float) -> SceneObject:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    corners = ((-w / 2, -h / 2), (w / 2, -h / 2), (w / 2, h / 2), (-w / 2, h / 2))
    quad: Quad = tuple(v for a, b in corners for v in (x + a * c - b * s, y + a * s + b * c))  # type: ignore[assignment]
    hull = Box(min(quad[0::2]), min(quad[1::2]), max(quad[0::2]), max(quad[1::2]))
    return SceneObject(category, hull, w * h, quad_xy8=quad)


def make_scene(
    objects: list[SceneObject], *, image_id: str = "p", size: tuple[int, int] = (960, 540)
) -> Scene:
    return Scene(
        Path(f"{image_id}.jpg"), image_id, image_id, *size, tuple(objects), "visdrone", "val"
    )


def random_scene(
    i: int,
    *,
    objects: tuple[int, int] = (4, 60),
    oriented: bool = False,
    categories: tuple[str, ...] = CATEGORIES,
    weights: list[float] | None = None,
) -> Scene:
    """A scene of small objects at random places, with a few large ones."""
    rng = random.Random(i)
    made = []
    kinds = rng.sample(categories, rng.randint(1, len(categories)))
    if weights is not None:
        kinds = sorted(set(rng.choices(categories, weights, k=len(categories))))
    for _ in range(rng.randint(*objects)):
        w, h = rng.uniform(4, 32), rng.uniform(4, 32)
        x, y = rng.uniform(20, 900), rng.uniform(20, 480)
        if oriented:
            made.append(make_quad(rng.choice(kinds), x, y, w, h, rng.uniform(0, 180)))
        else:
            made.append(make_object(rng.choice(kinds), x, y, w, h))
    for _ in range(rng.randint(0, 2)):
        made.append(
            make_object(rng.choice(kinds), rng.uniform(0, 800), rng.uniform(0, 400), 60, 50)
        )
    return make_scene(made, image_id=f"{i:07d}")
