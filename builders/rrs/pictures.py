"""Pictures of records: checked, converted where needed, and corrupted.

Light on purpose where it can be: it is what worker processes import.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soubench.builders.errors import PictureError, RecordError
from soubench.builders.images import inspect_picture, load_picture, pixels_digest
from soubench.builders.rrs.corruptions import Pixels
from soubench.builders.rrs.prompts import Prompts
from soubench.builders.rrs.questions import Draft, Subject, ask
from soubench.builders.rrs.record import FoundRecord, check_size
from soubench.builders.rrs.robustness import Corruption, Planned, corruption_of, plan
from soubench.builders.rrs.taxonomy import Task
from soubench.builders.sou.render import file_digest, file_stem

PNG_LEVEL = 1
"""Noise hardly gets smaller however long zlib tries."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of a record.

    Attributes:
        source: The record's own file.
        file: Name of the converted file in the pictures folder; None if the own one serves.
        size_wh: Width and height in px.
        digest: SHA-256 of the record's own file, hexadecimal.
    """

    source: Path
    file: str | None
    size_wh: tuple[int, int]
    digest: str

    def path(self, folder: Path) -> Path:
        """Return the file that is asked about; ``folder`` is the pictures folder."""
        return self.source if self.file is None else folder / self.file


@dataclass(frozen=True, slots=True)
class PrepareJob:
    """A record to be asked about, and whose pictures are to be looked at, and corrupted.

    Attributes:
        found: The record.
        folder: Where new files go.
        prompts: The words.
        ways: Options of a multiple-choice question.
        key: Version and seed.
        hide_evidence: Occlusion may hide what the answer rests on.
        max_pixels: Larger pictures are refused.
    """

    found: FoundRecord
    folder: Path
    prompts: Prompts
    ways: int
    key: tuple[str, int]
    hide_evidence: bool
    max_pixels: int


@dataclass(frozen=True, slots=True)
class Corrupted:
    """A corrupted copy that was written, and the SHA-256 of its size and pixels."""

    planned: Planned
    pixels_digest: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """What became of a `PrepareJob`: pictures and questions, or why there are none.

    Attributes:
        pictures: The record's pictures.
        drafts: Its questions.
        corrupted: Copies of its last picture, for NR and OR rows.
        unable: (task, reason) -> how often a question could not be asked.
        reason: Why the record takes no part; empty if it does.
        message: The same as a sentence.
    """

    pictures: tuple[Picture, ...] = ()
    drafts: tuple[Draft, ...] = ()
    corrupted: tuple[Corrupted, ...] = ()
    unable: Mapping[tuple[Task, str], int] = field(default_factory=dict)
    reason: str = ""
    message: str = ""


def prepare(job: PrepareJob) -> Prepared:
    """Decode a record's pictures once, check its annotations, ask its questions, and corrupt."""
    record, where = job.found.record, job.found.where
    pictures: list[Picture] = []
    image: Image.Image | None = None
    try:
        for i, path in enumerate(job.found.pictures):
            picture, image = _prepare_picture(path, job, f"{file_stem(record.id)}.{i}.png")
            pictures.append(picture)
        check_size(record, [p.size_wh for p in pictures], where)
    except PictureError as error:
        message = f"{where}, record {record.id!r}, images: {error}"
        return Prepared(reason=error.reason, message=message)
    except RecordError as error:
        return Prepared(reason=error.reason, message=str(error))
    size_wh = pictures[-1].size_wh
    asked = ask(Subject(record, size_wh, job.prompts, job.ways, job.key))
    unable = Counter(asked.unable)
    corrupted: list[Corrupted] = []
    pixels = np.asarray(image)
    for one in plan(record, asked.drafts, size_wh, job.key, hide_evidence=job.hide_evidence):
        if isinstance(one, Planned):
            shown = _write_corrupted(one.corruption, pixels, job.folder)
            corrupted.append(Corrupted(one, pixels_digest(shown)))
        else:
            unable[one] += 1
    return Prepared(tuple(pictures), asked.drafts, tuple(corrupted), unable)


def _write_corrupted(corruption: Corruption, pixels: Pixels, folder: Path) -> Image.Image:
    shown = Image.fromarray(corruption.apply(pixels))
    shown.save(folder / corruption.file, compress_level=PNG_LEVEL)
    return shown


def remake(row: Mapping[str, Any], source: Path, key: tuple[str, int], folder: Path) -> Path:
    """Write the picture of a row anew that was converted or corrupted, and return its file.

    Args:
        row: A row of a build.
        source: The record's own file.
        key: Version and seed of the build.
        folder: Where to write.

    Raises:
        PictureError: The source cannot be decoded.
    """
    image = load_picture(source, max_pixels=sys.maxsize)
    if not row["corruption"]:
        path = folder / f"{file_stem(source.stem)}.png"
        image.save(path)
        return path
    corruption = corruption_of(row, key)
    _write_corrupted(corruption, np.asarray(image), folder)
    return folder / corruption.file


def _prepare_picture(path: Path, job: PrepareJob, name: str) -> tuple[Picture, Image.Image]:
    info = inspect_picture(path, max_pixels=job.max_pixels)
    image = load_picture(path, max_pixels=job.max_pixels)
    if not info.plain:
        image.save(job.folder / name)
    picture = Picture(path, None if info.plain else name, image.size, file_digest(path))
    return picture, image
