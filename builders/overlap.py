"""What two sets of pictures share: files, pixels, looks, and groups of pictures.

Light on purpose: worker processes import it. ``soubench.builders.publishing.picture_sets`` reads
the sets.
"""

import csv
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from soubench.builders.errors import PictureError
from soubench.builders.images import MAX_PICTURE_PX
from soubench.builders.near_duplicates import FLAT, MAX_DISTANCE, hash_picture, near_duplicates

SHOWN = 5

Kind = Literal["file", "pixels", "near", "group"]


class Group(NamedTuple):
    """Pictures that belong together, such as the frames of a sequence.

    Attributes:
        source: Where they come from; empty where that is not known. Two sources may use the same
            ids.
        group_id: What they share.
    """

    source: str
    group_id: str


class Shown(NamedTuple):
    """A picture that a dataset shows: a file, bytes, or only hashes of what is not there.

    Attributes:
        label: What to call it in a report.
        path: Its file, or None.
        data: The bytes of its file, or None.
        files: Hashes of files that the dataset itself names: the source's own file.
        pixels: Hash of its pixels that the dataset itself names; empty where there is none.
        outlines: Name of the picture that this is a copy of with a red outline; empty for others.
    """

    label: str
    path: Path | None = None
    data: bytes | None = None
    files: frozenset[str] = frozenset()
    pixels: str = ""
    outlines: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture by what it can be recognized by.

    Attributes:
        label: What to call it in a report.
        files: SHA-256 of its file, and of the source's file that it was made from.
        pixels: SHA-256 of its pixels, see `hash_picture`; empty where not known.
        phash: Perceptual hash, ``FLAT`` for one color; None where not known.
        outlines: See `Shown`.
        unreadable: Why it cannot be decoded, so that it can be compared by file alone; or empty.
    """

    label: str
    files: frozenset[str]
    pixels: str = ""
    phash: int | None = None
    outlines: str = ""
    unreadable: str = ""


@dataclass(slots=True)
class PictureSet:
    """The distinct pictures of a dataset.

    Attributes:
        name: What to call the dataset in a report.
        pictures: Pictures with different pixels.
        groups: Groups -> the first picture of each.
        unreadable: Pictures that could not be decoded, by reason.
        examples: Reason -> the first of them.
        outlined: Copies with a red outline that were left aside for their plain picture.
        nameless: Rows with neither a picture nor a hash of one.
    """

    name: str
    pictures: list[Picture] = field(default_factory=list)
    groups: dict[Group, str] = field(default_factory=dict)
    unreadable: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    outlined: int = 0
    nameless: int = 0


class Pair(NamedTuple):
    """Two pictures, or two groups, that are the same by ``kind``; ``distance`` is in bits."""

    kind: Kind
    a: str
    b: str
    distance: int | None = None


def hash_shown(shown: Shown, *, max_pixels: int = MAX_PICTURE_PX) -> Picture:
    """Hash a picture that a dataset shows.

    Args:
        shown: The picture.
        max_pixels: A larger one is not decoded, see ``Picture.unreadable``.

    Raises:
        BuildError: ``imagehash`` is not installed.
    """
    known = Picture(shown.label, shown.files, shown.pixels, outlines=shown.outlines)
    if shown.path is not None:
        return _hash_file(shown.path, known, max_pixels)
    if shown.data is None:
        return known
    # What reads pictures takes files.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "picture")
        path.write_bytes(shown.data)
        return _hash_file(path, known, max_pixels)


def _hash_file(path: Path, known: Picture, max_pixels: int) -> Picture:
    try:
        found = hash_picture(path, max_pixels=max_pixels)
    except PictureError as error:
        files = known.files | _digest_of(path)
        return replace(known, files=files, unreadable=error.reason)
    files = known.files | {found.sha256}
    return replace(known, files=files, pixels=found.pixels_sha256, phash=found.phash)


def _digest_of(path: Path) -> frozenset[str]:
    """Return the hash of a file; nothing for one that is empty, as any other empty one is."""
    try:
        data = path.read_bytes()
    except OSError:
        return frozenset()
    return frozenset({sha256(data).hexdigest()}) if data else frozenset()


@dataclass(frozen=True)
class NearPairs:
    """Near-duplicates that are not the same file or pixels, expanded only when they are listed.

    Many pictures may have one hash, so that there are far more pairs than pictures.

    Attributes:
        distances: Distance in bits -> number of pairs.
        pictures_a: Number of pictures of A that take part.
        pictures_b: Number of pictures of B that take part.
    """

    distances: Mapping[int, int]
    pictures_a: int
    pictures_b: int
    _pairs: NDArray[np.int64]
    _members_a: Sequence[Sequence[int]]
    _members_b: Sequence[Sequence[int]]
    _exact: frozenset[tuple[int, int]]

    def __len__(self) -> int:
        return sum(self.distances.values())

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield index into A, index into B and distance, the nearest first."""
        for value_a, value_b, distance in self._pairs.tolist():
            for i in self._members_a[value_a]:
                for j in self._members_b[value_b]:
                    if (i, j) not in self._exact:
                        yield i, j, distance

    @classmethod
    def between(
        cls,
        a: Sequence[Picture],
        b: Sequence[Picture],
        exact: frozenset[tuple[int, int]],
        max_distance: int,
    ) -> "NearPairs":
        """Find them; ``exact`` are pairs of indices to leave out."""
        hashes_a, members_a, value_of_a = _by_hash(a)
        hashes_b, members_b, value_of_b = _by_hash(b)
        pairs = near_duplicates(hashes_a, hashes_b, max_distance)
        pairs = pairs[np.argsort(pairs[:, 2], kind="stable")]
        sizes_a = np.array([len(m) for m in members_a], dtype=np.int64)
        sizes_b = np.array([len(m) for m in members_b], dtype=np.int64)
        distances = Counter[int]()
        for distance in np.unique(pairs[:, 2]).tolist():
            i, j, _ = pairs[pairs[:, 2] == distance].T
            distances[distance] = int((sizes_a[i] * sizes_b[j]).sum())
        # Number of near pictures of each hash, and then of each picture.
        near_a, near_b = np.zeros_like(sizes_a), np.zeros_like(sizes_b)
        np.add.at(near_a, pairs[:, 0], sizes_b[pairs[:, 1]])
        np.add.at(near_b, pairs[:, 1], sizes_a[pairs[:, 0]])
        count_a = {i: int(near_a[value]) for i, value in value_of_a.items()}
        count_b = {j: int(near_b[value]) for j, value in value_of_b.items()}
        for i, j in exact:
            if i in value_of_a and j in value_of_b:
                hashes = int(hashes_a[value_of_a[i]]), int(hashes_b[value_of_b[j]])
                distance = (hashes[0] ^ hashes[1]).bit_count()
                if distance <= max_distance:
                    distances[distance] -= 1
                    count_a[i] -= 1
                    count_b[j] -= 1
        return cls(
            {distance: n for distance, n in distances.items() if n},
            sum(n > 0 for n in count_a.values()),
            sum(n > 0 for n in count_b.values()),
            pairs,
            members_a,
            members_b,
            exact,
        )


def _by_hash(
    pictures: Sequence[Picture],
) -> tuple[NDArray[np.uint64], list[list[int]], dict[int, int]]:
    """Return the distinct hashes, which pictures have each, and the place of each picture's hash.

    Pictures of one color are left out: going by their looks alone all of them would be the same.
    """
    members: dict[int, list[int]] = {}
    for i, picture in enumerate(pictures):
        if picture.phash not in (None, FLAT):
            members.setdefault(picture.phash, []).append(i)
    value_of = {i: value for value, same in enumerate(members.values()) for i in same}
    return np.array(list(members), dtype=np.uint64), list(members.values()), value_of


@dataclass(frozen=True)
class Overlap:
    """What two sets of pictures share. Each pair of pictures counts once, as what comes first.

    Attributes:
        a: The first set.
        b: The second set.
        max_distance: Bits by which near-duplicates may differ.
        files: Pairs that are, or were made from, the same file.
        pixels: Pairs of other files with the same pixels.
        near: Pairs that look the same.
        groups: Groups that have pictures in both.
        notes: What could not be compared.
    """

    a: PictureSet
    b: PictureSet
    max_distance: int
    files: list[Pair]
    pixels: list[Pair]
    near: NearPairs
    groups: list[Pair]
    notes: list[str]

    @property
    def disjoint(self) -> bool:
        """Whether nothing is shared."""
        return not (self.files or self.pixels or len(self.near) or self.groups)

    @property
    def complete(self) -> bool:
        """Whether every picture could be compared by what it shows or by a hash of it."""
        return not any(s.unreadable or s.nameless for s in (self.a, self.b))

    def near_pairs(self) -> Iterator[Pair]:
        """Yield the near-duplicates, the nearest first."""
        for i, j, distance in self.near:
            yield Pair("near", self.a.pictures[i].label, self.b.pictures[j].label, distance)

    def pairs(self) -> Iterator[Pair]:
        """Yield everything that is shared."""
        yield from chain(self.files, self.pixels, self.near_pairs(), self.groups)


def compare(
    a: PictureSet, b: PictureSet, *, max_distance: int = MAX_DISTANCE, groups: bool = True
) -> Overlap:
    """Compare two sets of pictures by file, by pixels, by perceptual hash and by group.

    Args:
        a: One set.
        b: The other.
        max_distance: Bits by which the perceptual hashes of near-duplicates may differ.
        groups: Whether to compare groups.
    """
    by_file = _matches([p.files for p in a.pictures], [p.files for p in b.pictures])
    pixels_a, pixels_b = ([frozenset({p.pixels} - {""}) for p in s.pictures] for s in (a, b))
    known = frozenset(by_file)
    by_pixels = [pair for pair in _matches(pixels_a, pixels_b) if pair not in known]
    shared = sorted(a.groups.keys() & b.groups.keys()) if groups else []
    return Overlap(
        a,
        b,
        max_distance,
        [Pair("file", a.pictures[i].label, b.pictures[j].label) for i, j in by_file],
        [Pair("pixels", a.pictures[i].label, b.pictures[j].label) for i, j in by_pixels],
        NearPairs.between(a.pictures, b.pictures, known | frozenset(by_pixels), max_distance),
        [Pair("group", *("/".join(filter(None, group)),) * 2) for group in shared],
        [*chain(*map(_picture_notes, (a, b))), *(_group_notes(a, b) if groups else ())],
    )


def _matches(
    keys_a: Sequence[frozenset[str]], keys_b: Sequence[frozenset[str]]
) -> list[tuple[int, int]]:
    """Return the pairs of indices whose keys meet, in order."""
    having: dict[str, list[int]] = {}
    for j, keys in enumerate(keys_b):
        for key in keys:
            having.setdefault(key, []).append(j)
    return [
        (i, j)
        for i, keys in enumerate(keys_a)
        for j in sorted({j for key in keys for j in having.get(key, ())})
    ]


def _picture_notes(pictures: PictureSet) -> Iterator[str]:
    name = pictures.name
    for reason, n in sorted(pictures.unreadable.items()):
        examples = ", ".join(pictures.examples[reason])
        yield f"{name}: {n} pictures compared by file alone, {reason}: {examples}"
    if n := sum(p.phash is None and not p.unreadable for p in pictures.pictures):
        yield f"{name}: {n} pictures are known by hash only, near-duplicates cannot be found"
    if pictures.nameless:
        yield f"{name}: {pictures.nameless} rows have neither a picture nor a hash of one"
    if n := sum(p.phash == FLAT for p in pictures.pictures):
        yield f"{name}: {n} pictures of one color, compared by file and pixels only"


def _group_notes(a: PictureSet, b: PictureSet) -> Iterator[str]:
    lacking = [s.name for s in (a, b) if not s.groups]
    if lacking:
        yield f"groups: {' and '.join(lacking)} {'have' if lacking[1:] else 'has'} no group ids"
        return
    for s, other in ((a, b), (b, a)):
        if any(g.source for g in s.groups) and not all(g.source for g in other.groups):
            yield (
                f"groups: {other.name} does not say which source its pictures come from, and "
                f"{s.name} does; ids of different sources are not compared"
            )


def overlap_text(overlap: Overlap) -> str:
    """Write a comparison as lines of text."""
    near = overlap.near
    lines = []
    for side, s in (("A", overlap.a), ("B", overlap.b)):
        aside = f" ({s.outlined} outlined copies left aside)" if s.outlined else ""
        groups = f", {len(s.groups)} groups" if s.groups else ""
        lines.append(f"{side}: {s.name}: {len(s.pictures)} different pictures{groups}{aside}")
    lines.append(f"Same file: {len(overlap.files)} pairs")
    lines += _examples(overlap.files)
    lines.append(f"Same pixels only: {len(overlap.pixels)} pairs")
    lines += _examples(overlap.pixels)
    spread = ", ".join(f"{n} at distance {d}" for d, n in sorted(near.distances.items()))
    lines.append(
        f"Near-duplicates (up to {overlap.max_distance} of 64 bits differ): {len(near)} pairs"
        + (f" of {near.pictures_a} and {near.pictures_b} pictures: {spread}" if spread else "")
    )
    lines += _examples(list(islice(overlap.near_pairs(), SHOWN)))
    lines.append(f"Shared groups: {len(overlap.groups)}")
    lines += _examples(overlap.groups)
    lines += [f"Note: {note}" for note in overlap.notes]
    names = f"{overlap.a.name} and {overlap.b.name}"
    if not overlap.disjoint:
        verdict = "overlap"
    elif overlap.complete:
        verdict = "share nothing"
    else:
        verdict = "share nothing that could be compared; see the notes on what could not"
    lines.append(f"{names} {verdict}.")
    return "\n".join(lines)


def _examples(pairs: Sequence[Pair]) -> Iterator[str]:
    for pair in pairs[:SHOWN]:
        bits = "" if pair.distance is None else f" ({pair.distance} bits)"
        yield f"  {pair.a}" if pair.kind == "group" else f"  {pair.a} and {pair.b}{bits}"


def write_pairs(overlap: Overlap, path: Path) -> int:
    """Write all pairs as CSV (``kind``, ``a``, ``b``, ``distance``) and return how many."""
    n = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Pair._fields)
        for pair in overlap.pairs():
            writer.writerow(pair)
            n += 1
    return n
