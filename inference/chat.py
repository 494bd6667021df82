"""A question with its pictures as a chat, for a processor's template or for a server."""

import io
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from soubench.builders.errors import PictureError
from soubench.inference.coordinates import PIXELS, Frame
from soubench.inference.questions import Question
from soubench.inference.run_folder import Size

SENT_AS_THEY_ARE = frozenset({"JPEG", "PNG", "WEBP"})
"""Formats that servers read."""
JPEG_QUALITIES = (95, 90, 80, 70)
SHRINK_STEP = 0.8
UPRIGHT = 1
EXIF_ORIENTATION = 0x0112

Message = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A picture as a row stores it: a file or its bytes.

    Attributes:
        path: The file; or its name only, where ``data`` is there.
        data: The file's bytes.
    """

    path: str | None
    data: bytes | None

    def read(self) -> bytes:
        """Return the file's bytes.

        Raises:
            PictureError: The file is gone.
        """
        if self.data is not None:
            return self.data
        try:
            return Path(self.path or "").read_bytes()
        except OSError as error:
            raise PictureError(
                "picture_missing",
                f"the picture {self.path} cannot be read ({error.strerror}). Put its folder back, "
                "or build the dataset again.",
            ) from error

    def open(self) -> Image.Image:
        """Decode the picture: upright RGB.

        Raises:
            PictureError: The file is gone or damaged.
        """
        with self._opened() as image:
            return ImageOps.exif_transpose(image).convert("RGB")

    def check(self) -> None:
        """Read the file to its end, decoding it as coarsely as its format allows.

        Raises:
            PictureError: The file is gone or damaged.
        """
        with self._opened() as image:
            # JPEG decodes to an eighth of the size several times faster.
            image.draft(None, (1, 1))
            image.load()

    @contextmanager
    def _opened(self) -> Iterator[Image.Image]:
        """Open the picture, and name it in whatever Pillow says of its file."""
        try:
            with Image.open(io.BytesIO(self.read())) as image:
                yield image
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            # Pillow names the buffer that it was given.
            said = re.sub(r"\s*<_io\.BytesIO object at 0x[0-9a-f]+>", "", str(error))
            name = self.path or "(stored without a name)"
            raise PictureError(
                "picture_unreadable", f"the picture {name} cannot be decoded: {said}"
            ) from error

    @cached_property
    def size_wh(self) -> Size:
        """Width and height of the upright picture in px, from the file's header."""
        with self._opened() as image:
            turned = image.getexif().get(EXIF_ORIENTATION, UPRIGHT) >= 5
            return (image.height, image.width) if turned else image.size

    @cached_property
    def sendable_kind(self) -> str:
        """The format of an upright picture that servers read as it is; empty for others."""
        with self._opened() as image:
            upright = image.getexif().get(EXIF_ORIENTATION, UPRIGHT) == UPRIGHT
            return image.format or "" if upright and image.format in SENT_AS_THEY_ARE else ""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a model in one go.

    Attributes:
        question: Words and right answer.
        pictures: The pictures in order; none if the model has to guess.
        stratum: What the row is an example of; for baselines.
        frame: What coordinates in the question count; for baselines.
    """

    question: Question
    pictures: tuple[Picture, ...] = ()
    stratum: tuple[str, ...] = ()
    frame: Frame = PIXELS


def pictures_of(row: Mapping[str, Any], columns: Iterable[str]) -> tuple[Picture, ...]:
    """Return the pictures of a row that was not decoded."""
    return tuple(_pictures(row, columns))


def _pictures(row: Mapping[str, Any], columns: Iterable[str]) -> Iterator[Picture]:
    for column in columns:
        value = row[column]
        for stored in filter(None, value if isinstance(value, list) else [value]):
            yield Picture(stored["path"], stored["bytes"])


def messages(
    question: Question, pictures: Sequence[Message], *, system_role: bool = True
) -> list[Message]:
    """Return a chat: the system prompt, then the pictures, then the text.

    Args:
        question: What is asked.
        pictures: A part of the content for each picture.
        system_role: The chat template has one; else the system prompt comes before the text.
    """
    text, system = question.text, question.system
    chat: list[Message] = []
    if system and system_role:
        chat.append({"role": "system", "content": [{"type": "text", "text": system}]})
    elif system:
        text = f"{system}\n{text}"
    chat.append({"role": "user", "content": [*pictures, {"type": "text", "text": text}]})
    return chat


def fit_pixels(image: Image.Image, max_pixels: int | None) -> Image.Image:
    """Scale a picture down so that width × height is at most ``max_pixels``."""
    if max_pixels is None or image.width * image.height <= max_pixels:
        return image
    scale = sqrt(max_pixels / (image.width * image.height))
    size = (max(1, int(image.width * scale)), max(1, int(image.height * scale)))
    return image.resize(size, Image.Resampling.LANCZOS)


def data_url(picture: Picture, *, max_bytes: int, max_pixels: int | None) -> str:
    """Return a picture as a data URL.

    The file goes as it is where it may; else it is encoded as JPEG, coarser and then smaller until
    it fits.

    Raises:
        PictureError: The file is gone or damaged.
    """
    kind, (width, height) = picture.sendable_kind, picture.size_wh
    if kind and (max_pixels is None or width * height <= max_pixels):
        data = picture.read()
        if len(data) <= max_bytes:
            return _url(data, kind)
    image = fit_pixels(picture.open(), max_pixels)
    while True:
        for quality in JPEG_QUALITIES:
            buffer = io.BytesIO()
            image.save(buffer, "JPEG", quality=quality, subsampling=0)
            if buffer.tell() <= max_bytes or image.size == (1, 1):
                return _url(buffer.getvalue(), "JPEG")
        smaller = int(image.width * SHRINK_STEP), int(image.height * SHRINK_STEP)
        image = image.resize((max(1, smaller[0]), max(1, smaller[1])), Image.Resampling.LANCZOS)


def _url(data: bytes, kind: str) -> str:
    return f"data:image/{kind.lower()};base64,{b64encode(data).decode('ascii')}"
