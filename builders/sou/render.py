"""The two pictures of every sampled scene: as it is asked about, and with the red outline of OL.

Light on purpose (Pillow and hashlib): it is what worker processes import.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from PIL import Image, ImageDraw

from soubench.builders.errors import PictureError
from soubench.builders.images import inspect_picture, load_picture

RED = (255, 0, 0)
BOX_STROKE_PX = 5
"""On the outline itself, half in and half out (the authors' generator)."""
REGION_STROKE_PX = 2
"""Outside the region, so that it hides nothing of it."""
JPEG_QUALITY = 95
MAX_STEM = 160
"""File systems take names of 255 bytes; suffixes and a hash must fit too."""


@dataclass(frozen=True, slots=True)
class RenderJob:
    """One picture to check, convert where needed, and mark.

    Attributes:
        source: The source's picture file.
        folder: Where new files go.
        stem: Their name without suffix; unique within ``folder``.
        size_wh: The size to scale to with Lanczos, or None.
        mark: 4 or 8 ints, see ``Target.mark``.
        region: ``mark`` is a region to be outlined, not the object itself.
        max_pixels: Larger pictures are refused.
    """

    source: Path
    folder: Path
    stem: str
    size_wh: tuple[int, int] | None
    mark: tuple[int, ...]
    region: bool
    max_pixels: int


@dataclass(frozen=True, slots=True)
class Rendered:
    """What became of a job.

    Attributes:
        plain: The picture as it is asked about: a file name in ``folder``, or None if the
            source's own file serves.
        marked: File name of the OL copy in ``folder``; empty if the picture cannot be used.
        digest: SHA-256 of the source file, hexadecimal.
        plain_digest: SHA-256 of the file ``plain``; empty where there is none.
        marked_digest: SHA-256 of the OL copy.
        reason: Why the picture cannot be used; empty if it can.
        message: The same as a sentence.
    """

    plain: str | None = None
    marked: str = ""
    digest: str = ""
    plain_digest: str = ""
    marked_digest: str = ""
    reason: str = ""
    message: str = ""


def file_stem(image_id: str) -> str:
    """Return a file name for an image id: special characters quoted, a long one cut and hashed."""
    name = quote(image_id, safe=" ()+,=@[]")
    if len(name) <= MAX_STEM:
        return name
    return f"{name[:MAX_STEM]}-{sha256(image_id.encode()).hexdigest()[:16]}"


def render(job: RenderJob) -> Rendered:
    """Decode a picture in full and write the files that are made from it."""
    try:
        info = inspect_picture(job.source, max_pixels=job.max_pixels)
        image = load_picture(job.source, max_pixels=job.max_pixels)
    except PictureError as error:
        return Rendered(reason=error.reason, message=str(error))
    plain: str | None = None
    if job.size_wh is not None:
        image = image.resize(job.size_wh, Image.Resampling.LANCZOS)
    if job.size_wh is not None or not info.plain:
        plain = f"{job.stem}.png"
        image.save(job.folder / plain)
    outline(image, job.mark, region=job.region)
    if info.format == "JPEG":
        marked = f"{job.stem}.ol.jpg"
        image.save(job.folder / marked, quality=JPEG_QUALITY, subsampling=0)
    else:
        marked = f"{job.stem}.ol.png"
        image.save(job.folder / marked)
    return Rendered(
        plain,
        marked,
        file_digest(job.source),
        "" if plain is None else file_digest(job.folder / plain),
        file_digest(job.folder / marked),
    )


def outline(image: Image.Image, mark: Sequence[int], *, region: bool) -> None:
    """Draw the red outline into ``image``, in place.

    Args:
        image: 8-bit RGB.
        mark: ``x1, y1, x2, y2`` with exclusive right and bottom edge, or four corners.
        region: Draw 2 px outside the mark instead of 5 px on it.
    """
    draw = ImageDraw.Draw(image)
    if len(mark) == 8:
        corners = [(mark[i], mark[i + 1]) for i in range(0, 8, 2)]
        draw.line([*corners, corners[0], corners[1]], fill=RED, width=BOX_STROKE_PX, joint="curve")
        return
    x1, y1, x2, y2 = mark
    width = REGION_STROKE_PX if region else BOX_STROKE_PX
    out = width if region else width // 2
    # Pillow draws inwards from the given corners, the last of which is inclusive.
    draw.rectangle((x1 - out, y1 - out, x2 + out - 1, y2 + out - 1), outline=RED, width=width)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
