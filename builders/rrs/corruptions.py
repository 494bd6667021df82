"""Noise and occlusion of five severities (004, Sec. III-C3), the same bits on every machine.

The severities of the noises are those of ImageNet-C, whose names the paper uses. Pixels are drawn
from the raw 64-bit stream of PCG64, which NumPy promises to keep; its normal draws may change with
the version, so Gaussian noise is looked up in a table of 65,536 quantiles.
"""

from collections.abc import Sequence
from functools import cache
from math import ceil, sqrt
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from soubench.builders.keyed import KeyedRandom

Noise: TypeAlias = Literal["gaussian_noise", "salt_and_pepper"]
NOISES: tuple[Noise, ...] = ("gaussian_noise", "salt_and_pepper")
OCCLUSION = "occlusion"
SEVERITIES = (1, 2, 3, 4, 5)

GAUSSIAN_SIGMA = (0.08, 0.12, 0.18, 0.26, 0.38)
"""Standard deviation per severity, of values from 0 to 1, each channel on its own."""
SALT_AND_PEPPER_SHARE = (0.03, 0.06, 0.09, 0.17, 0.27)
"""Share of the pixels that turn white or black, half and half, per severity."""
OCCLUDED_SHARE = (0.05, 0.10, 0.20, 0.30, 0.40)
"""Share of the picture's area that is covered, per severity."""

OCCLUSION_RGB = (127, 127, 127)
MIN_VISIBLE = 0.5
"""What must be seen keeps at least this share of each box."""
MAX_ASPECT = 2.0
RECTANGLES = (1, 2, 4, 8)
"""A picture is covered by so many rectangles, more only where fewer would hide too much."""
TRIES = 100

Pixels: TypeAlias = npt.NDArray[np.uint8]
Rectangle: TypeAlias = tuple[int, int, int, int]

_LEVELS = 1 << 16


@cache
def _quantiles() -> npt.NDArray[np.float64]:
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / _LEVELS) for i in range(_LEVELS)])


def _draws(seed: int, n: int) -> npt.NDArray[np.uint16]:
    """Return ``n`` uniform 16-bit numbers."""
    raw = np.random.PCG64(seed).random_raw(-(-n // 4))
    return np.asarray(raw, dtype="<u8").view("<u2")[:n]


def gaussian_noise(pixels: Pixels, severity: int, seed: int) -> Pixels:
    """Add Gaussian noise to every channel of every pixel.

    Args:
        pixels: Height × width × 3, 0 to 255.
        severity: 1 to 5.
        seed: Seed of the noise.

    Returns:
        A new array.
    """
    sigma = 255 * GAUSSIAN_SIGMA[severity - 1]
    table = np.rint(sigma * _quantiles()).astype(np.int16)
    noisy: npt.NDArray[np.int16] = table[_draws(seed, pixels.size)].reshape(pixels.shape)
    noisy += pixels
    return np.clip(noisy, 0, 255, out=noisy).astype(np.uint8)


def salt_and_pepper(pixels: Pixels, severity: int, seed: int) -> Pixels:
    """Turn a share of the pixels black or white; see `gaussian_noise` for the arguments."""
    limit = round(SALT_AND_PEPPER_SHARE[severity - 1] * _LEVELS / 2)
    draws = _draws(seed, pixels.shape[0] * pixels.shape[1]).reshape(pixels.shape[:2])
    found = pixels.copy()
    found[draws < limit] = 0
    found[draws >= _LEVELS - limit] = 255
    return found


def occlude(pixels: Pixels, rectangles: Sequence[Rectangle]) -> Pixels:
    """Cover rectangles ``x1, y1, x2, y2`` with gray; returns a new array."""
    found = pixels.copy()
    for x1, y1, x2, y2 in rectangles:
        found[y1:y2, x1:x2] = OCCLUSION_RGB
    return found


def place_occlusion(
    size_wh: tuple[int, int],
    severity: int,
    must_be_seen: Sequence[Sequence[float]],
    rng: KeyedRandom,
) -> tuple[Rectangle, ...] | None:
    """Place rectangles that cover a share of a picture.

    They do not overlap each other, and of every box in ``must_be_seen`` at least half stays
    visible.

    Args:
        size_wh: Width and height of the picture in px.
        severity: 1 to 5.
        must_be_seen: Boxes in px.
        rng: Draws of this row.

    Returns:
        The rectangles; None if they cannot be placed.
    """
    width, height = size_wh
    area = OCCLUDED_SHARE[severity - 1] * width * height
    for n in RECTANGLES:
        placed: list[Rectangle] = []
        for _ in range(TRIES):
            if len(placed) == n:
                return tuple(placed)
            side = sqrt(area / n * MAX_ASPECT ** rng.uniform(-1, 1))
            # Wide enough that the height fits into a flat picture.
            w = min(width, max(1, round(side), ceil(area / n / height)))
            h = min(height, max(1, round(area / n / w)))
            x, y = rng.integer(0, width - w), rng.integer(0, height - h)
            new = (x, y, x + w, y + h)
            overlaps = any(_overlap(new, other) for other in placed)
            if not overlaps and keeps_visible([*placed, new], must_be_seen):
                placed.append(new)
        if len(placed) == n:
            return tuple(placed)
    return None


def keeps_visible(rectangles: Sequence[Rectangle], boxes: Sequence[Sequence[float]]) -> bool:
    """Say whether at least half of each box stays visible under rectangles that do not overlap."""
    return all(
        sum(_overlap(rectangle, box) for rectangle in rectangles)
        <= (1 - MIN_VISIBLE) * (box[2] - box[0]) * (box[3] - box[1])
        for box in boxes
    )


def _overlap(a: Sequence[float], b: Sequence[float]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(0.0, width) * max(0.0, height)
