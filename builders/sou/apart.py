"""Keeps training pictures apart from those that a benchmark is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from soubench.builders.errors import SplitError
from soubench.builders.near_duplicates import FLAT, near_duplicates
from soubench.builders.overlap import Picture, Shown, hash_shown
from soubench.builders.parallel import in_order
from soubench.builders.scene import ReadReport
from soubench.builders.sou.build import SourceFolder
from soubench.builders.sou.picture import SouPicture
from soubench.builders.sou.subsets import Subset
from soubench.builders.sources import SOURCES


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """What must not leak.

    Attributes:
        files: SHA-256 of the files of all evaluation pictures.
        pixels: SHA-256 of their pixels.
        hashes: Their perceptual hashes, ``(N,)``, those of one color left out.
        groups: Source -> the groups of its evaluation pictures.
    """

    files: frozenset[str]
    pixels: frozenset[str]
    hashes: NDArray[np.uint64]
    groups: Mapping[str, frozenset[str]]


class ApartFromEvaluation:
    """Leaves out what resembles a picture of any source's evaluation split, asked about or not.

    All pictures of the splits count, not just those that a build of the benchmark has sampled.
    Groups are compared within a source, pictures across them: two sources may hold the same one.
    """

    def __init__(
        self, evaluation: Mapping[str, SourceFolder], *, workers: int, max_pixels: int
    ) -> None:
        """Take where the evaluation pictures lie.

        Args:
            evaluation: Source -> its folder and evaluation split.
            workers: Processes that hash pictures.
            max_pixels: Larger pictures are compared by their file alone.
        """
        self._folders = evaluation
        self._workers = workers
        self._max_pixels = max_pixels
        self._known: dict[Path, Picture] = {}

    def by_group(self, subset: Subset, picture: SouPicture) -> str:
        """Return why a picture may not take part going by its group, or nothing."""
        groups = self._evaluation.groups[subset.source]
        return "group_in_evaluation" if picture.group_id in groups else ""

    def by_picture(self, subset: Subset, pictures: Sequence[SouPicture]) -> dict[str, str]:
        """Return image id -> reason for the pictures that may not take part."""
        evaluation = self._evaluation
        known = self._hashes([p.image_path for p in pictures], subset.name)
        near = set(near_duplicates(_phashes(known), evaluation.hashes)[:, 0].tolist())
        structured = [i for i, picture in enumerate(known) if _is_structured(picture)]
        near = {structured[i] for i in near}
        reasons: dict[str, str] = {}
        for i, (picture, found) in enumerate(zip(pictures, known, strict=True)):
            if found.files & evaluation.files:
                reasons[picture.image_id] = "file_in_evaluation"
            elif found.pixels in evaluation.pixels:
                reasons[picture.image_id] = "pixels_in_evaluation"
            elif i in near:
                reasons[picture.image_id] = "near_duplicate_in_evaluation"
        return reasons

    @cached_property
    def _evaluation(self) -> _Evaluation:
        groups: dict[str, frozenset[str]] = {}
        known: list[Picture] = []
        for source, folder in self._folders.items():
            report = ReadReport(max_pixels=self._max_pixels)
            try:
                scenes = list(SOURCES[source].read(folder.root.resolve(), folder.split, report))
            except SplitError as error:
                raise SplitError(
                    f"The evaluation split is needed too, to keep training pictures apart from it. "
                    f"{error}"
                ) from error
            groups[source] = frozenset(scene.group_id for scene in scenes)
            known += self._hashes([scene.image_path for scene in scenes], f"{source}, evaluation")
        return _Evaluation(
            frozenset().union(*(found.files for found in known)),
            frozenset(found.pixels for found in known) - {""},
            _phashes(known),
            groups,
        )

    def _hashes(self, paths: Sequence[Path], name: str) -> list[Picture]:
        new = [path for path in paths if path not in self._known]
        hashed = tqdm(
            in_order(
                partial(hash_shown, max_pixels=self._max_pixels),
                [Shown(path.name, path) for path in new],
                workers=max(1, min(self._workers, len(new))),
            ),
            total=len(new),
            desc=f"{name}: hashing",
            unit=" pictures",
        )
        self._known |= zip(new, hashed, strict=True)
        return [self._known[path] for path in paths]


def _is_structured(picture: Picture) -> bool:
    return picture.phash not in (None, FLAT)


def _phashes(known: Sequence[Picture]) -> NDArray[np.uint64]:
    return np.array([k.phash for k in known if _is_structured(k)], dtype=np.uint64)
