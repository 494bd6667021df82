"""Pictures of records: checked, converted where needed, and corrupted.

Light on purpose where it can be: it is what worker processes import.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from PIL import Image

from soubench.builders.errors import PictureError, RecordError
from soubench.builders.images import inspect_picture, load_picture
from soubench.builders.rrs.corruptions import (
    OCCLUSION,
    Pixels,
    Rectangle,
    gaussian_noise,
    occlude,
    salt_and_pepper,
)
from soubench.builders.rrs.prompts import Prompts
from soubench.builders.rrs.questions import Asked, Subject, ask
from soubench.builders.rrs.record import FoundRecord, check_size
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
    """A record whose pictures are to be looked at, and its questions asked."""

    found: FoundRecord
    folder: Path
    prompts: Prompts
    ways: int
    key: tuple[str, int]
    max_pixels: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """What became of a `PrepareJob`: pictures and questions, or why there are none."""

    pictures: tuple[Picture, ...] = ()
    asked: Asked | None = None
    reason: str = ""
    message: str = ""


def prepare(job: PrepareJob) -> Prepared:
    """Decode a record's pictures, check its annotations against them, and ask its questions."""
    record, where = job.found.record, job.found.where
    pictures: list[Picture] = []
    try:
        for i, path in enumerate(job.found.pictures):
            pictures.append(_prepare_picture(path, job, f"{file_stem(record.id)}.{i}.png"))
        check_size(record, [p.size_wh for p in pictures], where)
    except PictureError as error:
        message = f"{where}, record {record.id!r}, images: {error}"
        return Prepared(reason=error.reason, message=message)
    except RecordError as error:
        return Prepared(reason=error.reason, message=str(error))
    subject = Subject(record, pictures[-1].size_wh, job.prompts, job.ways, job.key)
    return Prepared(tuple(pictures), ask(subject))


def _prepare_picture(path: Path, job: PrepareJob, name: str) -> Picture:
    info = inspect_picture(path, max_pixels=job.max_pixels)
    image = load_picture(path, max_pixels=job.max_pixels)
    if not info.plain:
        image.save(job.folder / name)
    return Picture(path, None if info.plain else name, image.size, file_digest(path))


@dataclass(frozen=True, slots=True)
class Corruption:
    """How one picture is corrupted.

    Attributes:
        kind: ``gaussian_noise``, ``salt_and_pepper`` or ``occlusion``.
        severity: 1 to 5.
        seed: Seed of noise.
        rectangles: What is covered.
        file: Name of the new file.
    """

    kind: str
    severity: int
    file: str
    seed: int = 0
    rectangles: tuple[Rectangle, ...] = ()

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the corrupted pixels."""
        if self.kind == OCCLUSION:
            return occlude(pixels, self.rectangles)
        corrupt = gaussian_noise if self.kind == "gaussian_noise" else salt_and_pepper
        return corrupt(pixels, self.severity, self.seed)


@dataclass(frozen=True, slots=True)
class CorruptJob:
    """A picture and the corrupted copies that are wanted of it."""

    source: Path
    folder: Path
    corruptions: Sequence[Corruption]
    max_pixels: int


def corrupt(job: CorruptJob) -> list[str]:
    """Write the copies as PNG files; return the SHA-256 of their sizes and pixels."""
    image = load_picture(job.source, max_pixels=job.max_pixels)
    pixels = np.asarray(image)
    digests = []
    for corruption in job.corruptions:
        made = corruption.apply(pixels)
        Image.fromarray(made).save(job.folder / corruption.file, compress_level=PNG_LEVEL)
        digests.append(sha256(b"%d %d " % image.size + made.tobytes()).hexdigest())
    return digests
