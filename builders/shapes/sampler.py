"""Configurations under the rules of each split, no two alike (001, Table 1 and A.2.1).

Every configuration is drawn from an rng keyed by (version, seed, split, index). On rejection the
centers are drawn anew, then the sizes; the number of shapes, their kinds and rotations stay, so
that rejection cannot skew them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from types import MappingProxyType

from soubench.builders.errors import BuildError
from soubench.builders.keyed import KeyedRandom
from soubench.builders.shapes.configuration import (
    CANVAS_PX,
    COLORS,
    KINDS,
    OVERLAP_MARGIN_PX,
    TWO_AXES,
    Configuration,
    Shape,
    clusters,
    normalize_order,
    overlapping_pairs,
    visible_shares,
)

PAD_PX = 1
HALF_SIZE_PX = (16, 28)
SHORT_SHARE = (0.45, 0.70)
MIN_VISIBLE_SHARE = 0.4
MERGE_PX = 2
TRAINING_ROTATIONS = (0, 15, 30)
NEW_ROTATIONS = (45, 72)
CENTER_TRIES = 40
SIZE_TRIES = 250
DUPLICATE_TRIES = 100


@dataclass(frozen=True, slots=True)
class SplitRule:
    """What the pictures of a split have in common.

    Attributes:
        pictures: How many the paper has.
        shapes: Fewest and most shapes; every number in between is equally likely.
        largest_cluster: Fewest and most shapes in the largest group of overlapping shapes.
        rotations: Rotations of all shapes but circles, equally likely.
        shape_scale: Factor on the sizes.
        canvas_scale: Factor on the canvas and everything in it, after sampling.
    """

    pictures: int
    shapes: tuple[int, int] = (2, 4)
    largest_cluster: tuple[int, int] = (1, 3)
    rotations: tuple[int, ...] = TRAINING_ROTATIONS
    shape_scale: int = 1
    canvas_scale: int = 1


SPLITS: Mapping[str, SplitRule] = MappingProxyType(
    {
        "train": SplitRule(20_000),
        "test": SplitRule(1_000),
        "od_composition": SplitRule(
            200,
            shapes=(5, 6),
            largest_cluster=(5, 6),
            rotations=(*TRAINING_ROTATIONS, *NEW_ROTATIONS),
        ),
        "od_spatial": SplitRule(200, shapes=(5, 6)),
        "od_occlusion": SplitRule(200, shapes=(4, 4), largest_cluster=(4, 4)),
        "od_rotation": SplitRule(200, rotations=NEW_ROTATIONS),
        "od_size": SplitRule(200, canvas_scale=2),
        "od_size_in_place": SplitRule(200, shape_scale=2),
    }
)


def sample(rule: SplitRule, rng: KeyedRandom, name: str = "this split") -> Configuration:
    """Draw one configuration.

    Raises:
        BuildError: The rule cannot be met within ``CENTER_TRIES`` × ``SIZE_TRIES`` tries.
    """
    n = rng.integer(*rule.shapes)
    kinds = [rng.choice(KINDS) for _ in range(n)]
    rotations = [0 if kind == "Circle" else rng.choice(rule.rotations) for kind in kinds]
    low, high = rule.largest_cluster
    grown = rng.integer(low, min(n, high)) if low > 1 else 1
    for _ in range(SIZE_TRIES):
        shapes = [
            _sized(kind, rotation, rule, rng)
            for kind, rotation in zip(kinds, rotations, strict=True)
        ]
        for _ in range(CENTER_TRIES):
            placed = _place(shapes, grown, rng)
            if placed is None:
                continue
            if len({(s.center_x, s.center_y) for s in placed}) < n:
                continue  # neither lies to any side of the other
            found = Configuration(CANVAS_PX, tuple(placed))
            largest = max(map(len, clusters(found)))
            if not low <= largest <= high or min(visible_shares(found)) < MIN_VISIBLE_SHARE:
                continue
            return _scaled(normalize_order(_colored(found, rng)), rule.canvas_scale)
    raise BuildError(
        f"{name}: no arrangement of {n} shapes with {low} to {high} in the largest group of "
        f"overlapping ones was found in {SIZE_TRIES * CENTER_TRIES} tries. Loosen the rule: fewer "
        "or smaller shapes, or a larger canvas."
    )


def _sized(kind: str, rotation: int, rule: SplitRule, rng: KeyedRandom) -> Shape:
    half = rng.integer(*HALF_SIZE_PX) * rule.shape_scale
    short = half
    if kind in TWO_AXES:
        # Whole px inside the range, whatever the size.
        short = rng.integer(ceil(half * SHORT_SHARE[0]), floor(half * SHORT_SHARE[1]))
    return Shape(kind, "", 0, 0, rotation, half, short)


def _place(shapes: Sequence[Shape], grown: int, rng: KeyedRandom) -> list[Shape] | None:
    """Draw centers: a cluster of ``grown`` shapes around a first one, the others anywhere."""
    placed: list[Shape] = []
    for i, shape in enumerate(shapes):
        w, h = shape.half_extent()
        low_x, high_x = _range(w)
        low_y, high_y = _range(h)
        if 0 < i < grown:
            neighbor = placed[rng.below(i)]
            nw, nh = neighbor.half_extent()
            reach_x, reach_y = int(w + nw) - OVERLAP_MARGIN_PX, int(h + nh) - OVERLAP_MARGIN_PX
            low_x, high_x = (
                max(low_x, neighbor.center_x - reach_x),
                min(high_x, neighbor.center_x + reach_x),
            )
            low_y, high_y = (
                max(low_y, neighbor.center_y - reach_y),
                min(high_y, neighbor.center_y + reach_y),
            )
        if low_x > high_x or low_y > high_y:
            return None
        center = rng.integer(low_x, high_x), rng.integer(low_y, high_y)
        placed.append(replace(shape, center_x=center[0], center_y=center[1]))
    rng.shuffle(placed)
    return placed


def _range(half_extent: float) -> tuple[int, int]:
    """Return the least and largest center that keeps a shape inside the canvas."""
    reach = int(half_extent + PAD_PX) + 1
    return reach, CANVAS_PX - reach


def _colored(configuration: Configuration, rng: KeyedRandom) -> Configuration:
    """Draw colors until no two shapes share one that would merge; all stay equally likely."""
    pairs = list(overlapping_pairs(configuration, -MERGE_PX))
    names = tuple(COLORS)
    while True:
        colors = [rng.choice(names) for _ in configuration.shapes]
        if all(colors[i] != colors[j] for i, j in pairs):
            break
    return Configuration(
        configuration.canvas_px,
        tuple(replace(s, color=c) for s, c in zip(configuration.shapes, colors, strict=True)),
    )


def _scaled(configuration: Configuration, factor: int) -> Configuration:
    if factor == 1:
        return configuration
    return Configuration(
        configuration.canvas_px * factor,
        tuple(
            replace(
                s,
                center_x=s.center_x * factor,
                center_y=s.center_y * factor,
                half_long=s.half_long * factor,
                half_short=s.half_short * factor,
            )
            for s in configuration.shapes
        ),
    )


def draw(version: str, seed: int, split: str, index: int, attempt: int = 0) -> Configuration:
    """Draw the configuration that belongs to one place of one split."""
    return sample(SPLITS[split], KeyedRandom(version, seed, split, index, attempt), split)


def unique(
    version: str,
    seed: int,
    drawn: Iterator[tuple[str, int, Configuration]],
) -> Iterator[tuple[str, int, Configuration]]:
    """Replace configurations that came before, within and across splits, in one ordered pass.

    Args:
        version: Version of the dataset.
        seed: Seed of the build.
        drawn: Split, index and first draw of every configuration, in the order of the splits.

    Raises:
        BuildError: A split has no more configurations to give.
    """
    seen: set[str] = set()
    for split, index, first in drawn:
        found = first
        for attempt in range(1, DUPLICATE_TRIES + 1):
            if found.md5() not in seen:
                break
            found = draw(version, seed, split, index, attempt)
        else:
            raise BuildError(
                f"{split}: no new configuration for picture {index} in {DUPLICATE_TRIES} draws: "
                "ask for fewer pictures."
            )
        seen.add(found.md5())
        yield split, index, found
