"""Keeps training pictures apart from those that a benchmark is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from soubench.builders.errors import PictureError, SplitError
from soubench.builders.near_duplicates import near_duplicates, picture_hash
from soubench.builders.parallel import in_order
from soubench.builders.scene import ReadReport
from soubench.builders.sou.build import SourceFolder
from soubench.builders.sou.picture import SouPicture
from soubench.builders.sou.subsets import Subset
from soubench.builders.sources import SOURCES


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """What must not leak: files, perceptual hashes and groups of one evaluation split."""

    files: frozenset[str]
    hashes: NDArray[np.uint64]
    groups: frozenset[str]


class ApartFromEvaluation:
    """Leaves out what resembles any picture of a source's evaluation split, asked about or not.

    All pictures of the split count, not just those that a build of the benchmark has sampled: so
    what is left out depends on the source alone.
    """

    def __init__(
        self, evaluation: Mapping[str, SourceFolder], *, workers: int, max_pixels: int
    ) -> None:
        """Take where the evaluation pictures lie.

        Args:
            evaluation: Subset name -> its source's folder and evaluation split.
            workers: Processes that hash pictures.
            max_pixels: Larger pictures are left out, as they are by a build.
        """
        self._folders = evaluation
        self._workers = workers
        self._max_pixels = max_pixels
        self._read: dict[str, _Evaluation] = {}
        self._known: dict[Path, tuple[str, int] | None] = {}

    def by_group(self, subset: Subset, picture: SouPicture) -> str:
        """Return why a picture may not take part going by its group, or nothing."""
        return "group_in_evaluation" if picture.group_id in self._of(subset).groups else ""

    def by_picture(self, subset: Subset, pictures: Sequence[SouPicture]) -> dict[str, str]:
        """Return image id -> reason for the pictures that may not take part.

        Pictures that cannot be decoded are left to the build, which says why.
        """
        evaluation = self._of(subset)
        paths = [p.image_path for p in pictures if p.image_path not in self._known]
        self._known |= self._hashes(paths, subset.name)
        known = {p.image_id: h for p in pictures if (h := self._known[p.image_path]) is not None}
        hashes = np.array([phash for _, phash in known.values()], dtype=np.uint64)
        near = set(near_duplicates(hashes, evaluation.hashes)[:, 0].tolist())
        reasons: dict[str, str] = {}
        for i, (image_id, (file, _)) in enumerate(known.items()):
            if file in evaluation.files:
                reasons[image_id] = "file_in_evaluation"
            elif i in near:
                reasons[image_id] = "near_duplicate_in_evaluation"
        return reasons

    def _of(self, subset: Subset) -> _Evaluation:
        if subset.name not in self._read:
            folder = self._folders[subset.name]
            report = ReadReport(max_pixels=self._max_pixels)
            read = SOURCES[subset.source].read
            try:
                scenes = list(read(folder.root.resolve(), folder.split, report))
            except SplitError as error:
                raise SplitError(
                    f"The evaluation split is needed too, to keep training pictures apart from it. "
                    f"{error}"
                ) from error
            hashes = self._hashes([scene.image_path for scene in scenes], subset.name)
            known = [pair for pair in hashes.values() if pair is not None]
            self._read[subset.name] = _Evaluation(
                frozenset(file for file, _ in known),
                np.array([phash for _, phash in known], dtype=np.uint64),
                frozenset(scene.group_id for scene in scenes),
            )
        return self._read[subset.name]

    def _hashes(self, paths: Sequence[Path], name: str) -> dict[Path, tuple[str, int] | None]:
        hashed = tqdm(
            in_order(
                partial(_hash, max_pixels=self._max_pixels),
                paths,
                workers=max(1, min(self._workers, len(paths))),
            ),
            total=len(paths),
            desc=f"{name}: hashing",
            unit=" pictures",
        )
        return dict(zip(paths, hashed, strict=True))


def _hash(path: Path, *, max_pixels: int) -> tuple[str, int] | None:
    try:
        return picture_hash(path, max_pixels=max_pixels)
    except PictureError:
        return None
