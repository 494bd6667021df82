"""Pictures that look the same: 64-bit perceptual hashes, and the search for pairs of them.

Light on purpose: worker processes import it.
"""

from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from soubench.builders.errors import BuildError
from soubench.builders.images import MAX_PICTURE_PX, load_picture, pixels_digest

MAX_DISTANCE: Final = 4
"""Bits by which the perceptual hashes of two near-duplicates may differ."""
FLAT: Final = 0
"""Stands for the perceptual hash of a picture of one color. Any other picture has bits set: its
average is above the median of its frequencies."""

_HASH_BITS: Final = 64
_PHASH_SIDE_PX: Final = 32
_BLOCK_PAIRS: Final = 1 << 19
"""Pairs that are looked at together: what fits into a processor's cache."""
_CANDIDATE_COST: Final = 8
"""Looking at a pair that a band names costs as much as at so many pairs in a row (measured)."""
_MAX_BANDED_DISTANCE: Final = 15
"""Beyond it bands are of less than 4 bits and tell nothing apart."""

Hashes = NDArray[np.uint64]


class PictureHash(NamedTuple):
    """What identifies a picture.

    Attributes:
        sha256: SHA-256 of the file, hexadecimal.
        phash: 64-bit perceptual hash, or ``FLAT``.
        pixels_sha256: SHA-256 of width, height and upright 8-bit RGB pixels, hexadecimal: the
            same for a picture and its lossless copy in another format.
    """

    sha256: str
    phash: int
    pixels_sha256: str


def hash_picture(path: Path, *, max_pixels: int = MAX_PICTURE_PX) -> PictureHash:
    """Hash a picture file.

    The perceptual hash is ``imagehash.phash`` of the upright 8-bit RGB picture, decoded at full
    size: half of the bits of a usual picture are set. A JPEG is not decoded at a reduced size,
    which would move its hash away from that of the same picture as a PNG.

    A picture of one color (one gray value at 32 × 32 px, which is what is hashed) has no structure
    that could be hashed: its bits would say nothing, and all such pictures would look alike. Its
    hash is ``FLAT``.

    Args:
        path: The picture file.
        max_pixels: Largest width × height accepted, in px.

    Raises:
        PictureError: The picture cannot be read; see `load_picture`.
        BuildError: ``imagehash`` is not installed.
    """
    image = load_picture(path, max_pixels=max_pixels)
    return PictureHash(
        sha256(path.read_bytes()).hexdigest(), perceptual_hash(image), pixels_digest(image)
    )


def perceptual_hash(image: Image.Image) -> int:
    """Return ``imagehash.phash`` as an int, its first bit the highest; ``FLAT`` for one color.

    >>> perceptual_hash(Image.new("RGB", (64, 48), "white")) == FLAT
    True

    Raises:
        BuildError: ``imagehash`` is not installed.
    """
    phash = load_phash()
    # What phash makes of a picture first, and leaves as it is where it is done already.
    gray = image.convert("L").resize((_PHASH_SIDE_PX, _PHASH_SIDE_PX), Image.Resampling.LANCZOS)
    darkest, brightest = gray.getextrema()
    if darkest == brightest:
        return FLAT
    bits = np.packbits(phash(gray).hash.ravel())
    return int.from_bytes(bits.tobytes(), "big")


def load_phash() -> Callable[[Image.Image], Any]:
    """Return ``imagehash.phash``.

    Raises:
        BuildError: ``imagehash`` is not installed.
    """
    try:
        from imagehash import phash
    except ImportError as error:
        raise BuildError(
            'Comparing pictures needs imagehash: pip install "soubench[overlap]".'
        ) from error
    return phash


def near_duplicates(
    hashes_a: Hashes, hashes_b: Hashes, max_distance: int = MAX_DISTANCE
) -> NDArray[np.int64]:
    """Find all pairs of hashes that differ in few bits.

    Exact. Hashes at a distance of up to d agree in at least one of d + 1 bands of their bits
    (pigeonhole principle), so only pairs that share a band are looked at, a block at a time. Where
    bands single out too little (a large distance, hashes that are much alike) all pairs are.

    >>> a, b = np.array([0b1011, 7], dtype=np.uint64), np.array([0b1000], dtype=np.uint64)
    >>> near_duplicates(a, b, 2).tolist()
    [[0, 0, 2]]

    Args:
        hashes_a: ``(N,)``.
        hashes_b: ``(M,)``.
        max_distance: Largest Hamming distance, 0 to 64 bits.

    Returns:
        ``(K, 3)``: index into a, index into b, distance; ordered by the two indices.

    Raises:
        ValueError: The distance is not within 0 to 64.
    """
    if not 0 <= max_distance <= _HASH_BITS:
        raise ValueError(f"expected a distance of 0 to {_HASH_BITS} bits, got {max_distance}")
    a, b = (np.asarray(h, dtype=np.uint64).ravel() for h in (hashes_a, hashes_b))
    bands = _bands(max_distance) if max_distance <= _MAX_BANDED_DISTANCE else []
    joins = [_Join.of(band.of(a), band.of(b)) for band in bands]
    candidates = sum(join.candidates for join in joins)
    if not joins or candidates * _CANDIDATE_COST > a.size * b.size:
        found = _among_all(a, b, max_distance)
    else:
        found = _among_candidates(a, b, max_distance, bands, joins)
    pairs = np.concatenate(found) if found else np.empty((0, 3), np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


class _Band(NamedTuple):
    """Some neighboring bits of a hash."""

    shift: np.uint64
    mask: np.uint64

    def of(self, hashes: Hashes) -> Hashes:
        return (hashes >> self.shift) & self.mask


def _bands(max_distance: int) -> list[_Band]:
    """Cut the bits of a hash into one band more than two near-duplicates may differ in."""
    edges = [_HASH_BITS * i // (max_distance + 1) for i in range(max_distance + 2)]
    return [
        _Band(np.uint64(low), np.uint64((1 << (high - low)) - 1)) for low, high in pairwise(edges)
    ]


class _Join(NamedTuple):
    """Pairs of equal keys: the i-th key of a equals those of b at ``order[first[i]:][:counts[i]]``.

    Attributes:
        order: What sorts the keys of b, ``(M,)``.
        first: Place of the first equal key in that order, ``(N,)``.
        counts: Number of equal keys, ``(N,)``.
    """

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, keys_a: Hashes, keys_b: Hashes) -> "_Join":
        order = np.argsort(keys_b, kind="stable")
        ordered = keys_b[order]
        first = np.searchsorted(ordered, keys_a, "left")
        return cls(order, first, np.searchsorted(ordered, keys_a, "right") - first)

    @property
    def candidates(self) -> int:
        return int(self.counts.sum())

    def pairs(self, start: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs of the keys of a from ``start`` to ``end``."""
        counts = self.counts[start:end]
        i = np.repeat(np.arange(start, end), counts)
        within = np.arange(i.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return i, self.order[self.first[i] + within]


def _among_candidates(
    a: Hashes, b: Hashes, max_distance: int, bands: list[_Band], joins: list[_Join]
) -> list[NDArray[np.int64]]:
    found = []
    for k, join in enumerate(joins):
        ends = np.cumsum(join.counts)
        start = 0
        while start < a.size:
            done = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, done + _BLOCK_PAIRS, "right")))
            i, j = join.pairs(start, end)
            differing = a[i] ^ b[j]
            distance = np.bitwise_count(differing)
            near = distance <= max_distance
            i, j, differing, distance = i[near], j[near], differing[near], distance[near]
            # A pair that an earlier band shares has been found there.
            new = np.ones(i.size, dtype=bool)
            for earlier in bands[:k]:
                new &= earlier.of(differing) != 0
            found.append(np.column_stack((i[new], j[new], distance[new])).astype(np.int64))
            start = end
    return found


def _among_all(a: Hashes, b: Hashes, max_distance: int) -> list[NDArray[np.int64]]:
    found = []
    rows = max(1, _BLOCK_PAIRS // max(1, b.size))
    for start in range(0, a.size, rows):
        distance = np.bitwise_count(a[start : start + rows, None] ^ b)
        i, j = np.nonzero(distance <= max_distance)
        found.append(np.column_stack((i + start, j, distance[i, j])).astype(np.int64))
    return found
