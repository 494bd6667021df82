"""Picture files at the door: what their header says, and their upright 8-bit RGB pixels."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image, ImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from soubench.builders.errors import PictureError

MAX_PICTURE_PX: Final = 100_000_000
BACKGROUND_RGB: Final = (0, 0, 0)
"""What shows through transparent pixels."""

PICTURE_SUFFIXES: Final = frozenset(
    {".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".gif"}
)

_TURNS: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_FIRST_TRANSPOSING_ORIENTATION: Final = 5
_SUFFIXES_OF_FORMAT: Final = {
    "JPEG": {".jpg", ".jpeg"},
    "PNG": {".png"},
    "BMP": {".bmp"},
    "TIFF": {".tif", ".tiff"},
    "WEBP": {".webp"},
    "GIF": {".gif"},
}
_TAIL_BYTES: Final = 4096
_CHUNK_HEAD_BYTES: Final = 8
_CHUNK_CRC_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class PictureInfo:
    """What the header of a picture file says.

    Attributes:
        width: Width of the upright picture in px.
        height: Height of the upright picture in px.
        stored_width: Width as stored, before the EXIF turn, in px.
        stored_height: Height as stored, before the EXIF turn, in px.
        orientation: EXIF orientation, 1 to 8; 1 where there is none or it makes no sense.
        format: Pillow's name of the format of the content (``JPEG``), whatever the suffix says.
        mode: Pillow's mode of the stored pixels.
        plain: The file is an upright 8-bit RGB JPEG or PNG without transparency, so it may be
            referenced as it is.
        suffix_fits: The file's suffix agrees with the format of its content.
        exif_damaged: The EXIF block cannot be read, so the picture is taken as upright, which is
            how every viewer shows it.
    """

    width: int
    height: int
    stored_width: int
    stored_height: int
    orientation: int
    format: str
    mode: str
    plain: bool
    suffix_fits: bool
    exif_damaged: bool

    @property
    def transposed(self) -> bool:
        """Whether the EXIF turn swaps width and height."""
        return self.orientation >= _FIRST_TRANSPOSING_ORIENTATION


def inspect_picture(path: Path, *, max_pixels: int = MAX_PICTURE_PX) -> PictureInfo:
    """Read the header of a picture and check that the file is complete.

    A JPEG or PNG that ends with its end marker is taken as complete; any other file is decoded
    in full, and the decoder's verdict counts.

    Args:
        path: The picture file.
        max_pixels: Largest width × height accepted, in px.

    Returns:
        Sizes, orientation and kind of the picture.

    Raises:
        PictureError: With the reason ``picture_missing``, ``picture_empty``,
            ``picture_truncated``, ``picture_unreadable`` or ``picture_too_large``.
    """
    with _open_file(path) as file:
        try:
            image = _open_picture(file, path, max_pixels)
            complete = _has_end_marker(file, type(image))
            found = _orientation(image, file)
            orientation = found or 1
            mode, depth = image.mode, _raw_mode(image)
            transparent = image.has_transparency_data
            stored_width, stored_height = image.size
            if isinstance(image, TiffImageFile) and orientation >= _FIRST_TRANSPOSING_ORIENTATION:
                # Pillow turns TIFF itself, and says the turned size from the start.
                stored_width, stored_height = stored_height, stored_width
            if not complete:
                _decode(image, path)
        except PictureError:
            raise
        except Exception as error:
            raise _refusal(path, error) from error
    width, height = stored_width, stored_height
    if orientation >= _FIRST_TRANSPOSING_ORIENTATION:
        width, height = height, width
    kind = image.format or ""
    return PictureInfo(
        width=width,
        height=height,
        stored_width=stored_width,
        stored_height=stored_height,
        orientation=orientation,
        format=kind,
        mode=mode,
        plain=(
            kind in ("JPEG", "PNG")
            and mode == "RGB"
            and ";16" not in depth
            and orientation == 1
            and not transparent
        ),
        suffix_fits=path.suffix.lower() in _SUFFIXES_OF_FORMAT[kind],
        exif_damaged=found is None,
    )


def load_picture(path: Path, *, max_pixels: int = MAX_PICTURE_PX) -> Image.Image:
    """Decode a picture into upright 8-bit RGB.

    Transparent pixels show `BACKGROUND_RGB`; 16-bit values v become v × 255 / 65535, rounded.
    The first picture of an animated file is taken.

    Args:
        path: The picture file.
        max_pixels: Largest width × height accepted, in px.

    Returns:
        A fully decoded picture in mode ``RGB`` that carries no metadata.

    Raises:
        PictureError: As `inspect_picture`, and ``picture_mode_unsupported`` for pixels that
            have no fixed way into 8-bit RGB (floats, Lab, 32-bit integers out of range).
    """
    with _open_file(path) as file:
        try:
            image = _open_picture(file, path, max_pixels)
            if not _has_end_marker(file, type(image)):
                _decode(image, path)
                # Decoding used up what the header says about the way the pixels lie.
                image = _open_picture(file, path, max_pixels)
            rgb = _to_rgb(image, file, path, max_pixels)
            turn = _TURNS.get(_orientation(image, file) or 1)
        except PictureError:
            raise
        except Exception as error:
            raise _refusal(path, error) from error
    upright = rgb if turn is None else rgb.transpose(turn)
    # A leftover EXIF block would make the next program turn the picture once more.
    upright.info.clear()
    return upright


def turn_point(
    x: float, y: float, *, orientation: int, stored_wh: tuple[int, int]
) -> tuple[float, float]:
    """Carry a point of the stored picture over to the upright one.

    Args:
        x: Distance from the stored left edge in px.
        y: Distance from the stored top edge in px.
        orientation: EXIF orientation, 1 to 8.
        stored_wh: Width and height of the stored picture in px.

    Returns:
        The point in px of the upright picture.
    """
    width, height = stored_wh
    match orientation:
        case 2:
            return width - x, y
        case 3:
            return width - x, height - y
        case 4:
            return x, height - y
        case 5:
            return y, x
        case 6:
            return height - y, x
        case 7:
            return height - y, width - x
        case 8:
            return y, width - x
        case _:
            return x, y


def _open_file(path: Path) -> BinaryIO:
    try:
        file = path.open("rb")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise PictureError("picture_missing", f"{path}: there is no such picture file") from error
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from error
    if not file.read(1):
        file.close()
        raise PictureError("picture_empty", f"{path}: the picture file holds no bytes")
    file.seek(0)
    return file


def _open_picture(file: BinaryIO, path: Path, max_pixels: int) -> ImageFile.ImageFile:
    """Parse the header by content.

    `PIL.Image.open` would warn or raise by a limit that is global to the process, so the
    plugins are called directly and our own limit is applied.
    """
    file.seek(0)
    head = file.read(16)
    file.seek(0)
    plugin = _plugin_of(head)
    if plugin is None:
        raise PictureError(
            "picture_unreadable",
            f"{path}: expected a JPEG, PNG, BMP, TIFF, WebP or GIF file, found one that starts "
            f"with {head[:8]!r}",
        )
    try:
        image = plugin(file)
    except Image.DecompressionBombError as error:
        raise PictureError("picture_too_large", f"{path}: {error}") from error
    except Exception as error:
        # The plugins raise whatever damaged bytes lead them into.
        raise _refusal(path, error, cut=_lacks_end_marker(file, plugin)) from error
    width, height = image.size
    if width < 1 or height < 1:
        raise PictureError("picture_unreadable", f"{path}: the header says {width}×{height} px")
    if width * height > max_pixels:
        raise PictureError(
            "picture_too_large",
            f"{path}: {width}×{height} px is over the limit of {max_pixels} px",
        )
    return image


def _plugin_of(head: bytes) -> type[ImageFile.ImageFile] | None:
    if head.startswith(b"\xff\xd8\xff"):
        return JpegImageFile
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PngImageFile
    if head.startswith(b"BM"):
        return BmpImageFile
    if head.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return TiffImageFile
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WebPImageFile
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GifImageFile
    return None


def _has_end_marker(file: BinaryIO, plugin: type[ImageFile.ImageFile]) -> bool:
    position = file.tell()
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read().rstrip(b"\0\r\n ")
    file.seek(position)
    if plugin is JpegImageFile:
        # Only at the very end: a thumbnail within the header has an end marker too.
        return tail.endswith(b"\xff\xd9")
    return plugin is PngImageFile and b"IEND\xaeB`\x82" in tail


def _lacks_end_marker(file: BinaryIO, plugin: type[ImageFile.ImageFile]) -> bool:
    return plugin in (JpegImageFile, PngImageFile) and not _has_end_marker(file, plugin)


def _decode(image: ImageFile.ImageFile, path: Path) -> None:
    """Decode a file that may be cut, and refuse it if the decoder does."""
    has_markers = isinstance(image, JpegImageFile | PngImageFile)
    if ImageFile.LOAD_TRUNCATED_IMAGES and has_markers:
        # Another library told Pillow to fill what is missing with gray.
        raise PictureError("picture_truncated", f"{path}: the file has no end marker")
    try:
        image.load()
    except Exception as error:
        raise _refusal(path, error, cut=has_markers) from error


def _orientation(image: ImageFile.ImageFile, file: BinaryIO) -> int | None:
    """Return the EXIF orientation, 1 where there is none, or None if its block is damaged."""
    try:
        if isinstance(image, PngImageFile) and not _has_late_metadata(image, file):
            # PngImageFile's own method decodes the whole picture to look for late metadata.
            value = Image.Image.getexif(image).get(ExifTags.Base.Orientation, 1)
        else:
            value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # Pillow raises whatever the bytes lead to; the caller reports it
        return None
    return value if isinstance(value, int) and value in _TURNS else 1


def _has_late_metadata(image: PngImageFile, file: BinaryIO) -> bool:
    """Say whether a PNG may carry an orientation behind its pixels."""
    if "exif" in image.info:
        return False
    position = file.tell()
    file.seek(_CHUNK_HEAD_BYTES)
    late = pixels = False
    while len(head := file.read(_CHUNK_HEAD_BYTES)) == _CHUNK_HEAD_BYTES and not late:
        name = head[4:]
        pixels = pixels or name == b"IDAT"
        late = pixels and name in (b"eXIf", b"iTXt", b"tEXt", b"zTXt")
        file.seek(int.from_bytes(head[:4], "big") + _CHUNK_CRC_BYTES, 1)
    file.seek(position)
    return late


def _raw_mode(image: ImageFile.ImageFile) -> str:
    """Return how the pixels lie in the file, such as ``RGB;16B``; empty where unknown."""
    if not image.tile:
        return ""
    args = image.tile[0].args
    return str(args[0] if isinstance(args, tuple) and args else args)


def _to_rgb(image: ImageFile.ImageFile, file: BinaryIO, path: Path, max_pixels: int) -> Image.Image:
    raw_mode = _raw_mode(image)
    if image.mode.startswith("I"):
        image.load()
        return _scale_gray(image, path)
    if isinstance(image, PngImageFile) and raw_mode in ("RGB;16B", "RGBA;16B"):
        return _scale_deep_png(image, file, path, max_pixels)
    if ";16" in raw_mode or image.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK"):
        raise PictureError(
            "picture_mode_unsupported",
            f"{path}: there is no fixed way from {image.mode} pixels ({raw_mode or 'unknown'}) to "
            "8-bit RGB; convert the picture yourself",
        )
    image.load()
    if not image.has_transparency_data:
        # Converting copies every pixel, which is all that it would do to the usual picture. What is
        # handed on shares its pixels, without the file's metadata.
        usual = image.mode == "RGB" and isinstance(image, (JpegImageFile, PngImageFile))
        return image._new(image.im) if usual else image.convert("RGB")
    rgba = image.convert("RGBA")
    flat = Image.new("RGB", rgba.size, BACKGROUND_RGB)
    flat.paste(rgba, mask=rgba.getchannel("A"))
    return flat


def _scale_gray(image: ImageFile.ImageFile, path: Path) -> Image.Image:
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise PictureError(
            "picture_mode_unsupported",
            f"{path}: gray values {values.min()} to {values.max()} go beyond 16 bits",
        )
    rgb = np.repeat(_to_8_bit(values)[:, :, None], 3, axis=2)
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        rgb[values == clear] = BACKGROUND_RGB
    return Image.fromarray(rgb)


def _scale_deep_png(
    image: PngImageFile, file: BinaryIO, path: Path, max_pixels: int
) -> Image.Image:
    """Read a PNG of 16-bit RGB or RGBA.

    Pillow keeps one byte of each value. Told that the file is little-endian it keeps the other
    one, so two passes give all 16 bits.
    """
    low_image = _open_picture(file, path, max_pixels)
    low_image.tile = [tile._replace(args=f"{low_image.mode};16L") for tile in low_image.tile]
    low = np.asarray(low_image).astype(np.int64)
    file.seek(0)
    high_image = _open_picture(file, path, max_pixels)
    values = np.asarray(high_image).astype(np.int64) * 256 + low
    # The caller asks this object for its orientation, which may lie behind the pixels.
    image.info.update(high_image.info)
    color = values[:, :, :3]
    clear = image.info.get("transparency")
    background = np.array(BACKGROUND_RGB, dtype=np.int64) * 257
    if values.shape[2] == 4:
        alpha = values[:, :, 3:]
        color = (color * alpha + background * (65535 - alpha) + 32767) // 65535
    elif isinstance(clear, tuple):
        color = np.where((color == clear).all(axis=2, keepdims=True), background, color)
    return Image.fromarray(_to_8_bit(color))


def _to_8_bit(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Scale 0..65535 to 0..255: v × 255 / 65535 is v / 257, rounded."""
    return ((values + 128) // 257).astype(np.uint8)


def _refusal(path: Path, error: Exception, *, cut: bool = False) -> PictureError:
    """Name what is wrong with a file that Pillow does not read."""
    if cut or isinstance(error, EOFError) or "truncated" in str(error).lower():
        return PictureError("picture_truncated", f"{path}: the file is cut short: {error}")
    return PictureError(
        "picture_unreadable", f"{path}: the picture cannot be read: {type(error).__name__}: {error}"
    )


def pixels_digest(image: Image.Image) -> str:
    """Return the SHA-256 of a picture's size and pixels, hexadecimal.

    The same for a picture and its lossless copy in another format, if both are given as they are
    loaded here: upright, 8-bit RGB.
    """
    digest = sha256(b"%d %d " % image.size)
    digest.update(image.tobytes())
    return digest.hexdigest()
