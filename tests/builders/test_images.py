"""Pictures: what the header says, upright 8-bit RGB pixels, and what is refused."""

import contextlib
import io
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, ImageOps
from PIL.PngImagePlugin import PngInfo

from soubench.builders.errors import PictureError
from soubench.builders.images import inspect_picture, load_picture, turn_point
from soubench.builders.scene import ReadReport
from soubench.builders.sources import SOURCES
from tests.data import draw_picture

BLACK = (0, 0, 0)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png(width: int, height: int, depth: int, color: int, rows: bytes, extra: bytes = b"") -> bytes:
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + extra
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def _noise(size_wh: tuple[int, int] = (64, 48)) -> Image.Image:
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(0, 255, (size_wh[1], size_wh[0], 3), dtype=np.uint8))


def _bytes(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _reason(path: Path, read=inspect_picture, **options: object) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PictureError) as caught:
            read(path, **options)
    assert str(path) in str(caught.value)
    return caught.value.reason


@pytest.mark.parametrize(
    ("name", "mode", "plain"),
    [
        pytest.param("a.jpg", "RGB", True, id="rgb-jpeg"),
        pytest.param("a.png", "RGB", True, id="rgb-png"),
        pytest.param("a.JPG", "RGB", True, id="upper-case-suffix"),
        pytest.param("a.jpg", "L", False, id="gray-jpeg"),
        pytest.param("a.jpg", "CMYK", False, id="cmyk-jpeg"),
        pytest.param("a.png", "RGBA", False, id="alpha"),
        pytest.param("a.png", "LA", False, id="gray-alpha"),
        pytest.param("a.png", "P", False, id="palette"),
        pytest.param("a.png", "1", False, id="bilevel"),
        pytest.param("a.png", "I;16", False, id="16-bit-gray"),
        pytest.param("a.bmp", "RGB", False, id="rgb-bmp"),
        pytest.param("a.webp", "RGB", False, id="rgb-webp"),
        pytest.param("a.gif", "P", False, id="gif"),
        pytest.param("a.tif", "RGB", False, id="rgb-tiff"),
    ],
)
def test_only_upright_rgb_jpeg_and_png_are_plain_and_all_load(
    tmp_path: Path, name: str, mode: str, plain: bool
) -> None:
    path = tmp_path / name
    Image.new(mode, (7, 5)).save(path)
    info = inspect_picture(path)
    assert (info.width, info.height, info.plain) == (7, 5, plain)
    loaded = load_picture(path)
    assert (loaded.mode, loaded.size, loaded.info) == ("RGB", (7, 5), {})


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_picture_is_turned_upright_once(tmp_path: Path, kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a.{kind.lower()}"
    _noise((6, 4)).save(path, exif=exif)
    with Image.open(path) as stored:
        stored.load()
        expected = ImageOps.exif_transpose(stored).convert("RGB")
    info = inspect_picture(path)
    assert (info.width, info.height) == expected.size
    assert (info.stored_width, info.stored_height, info.orientation) == (6, 4, orientation)
    assert info.plain is (orientation == 1 and kind in ("JPEG", "PNG"))
    loaded = load_picture(path)
    assert np.array_equal(np.asarray(loaded), np.asarray(expected))
    assert dict(loaded.getexif()) == {}


def test_orientation_behind_the_pixels_of_a_png_is_found(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = _bytes(_noise((6, 4)), "PNG")
    late = data[:-12] + _chunk(b"eXIf", exif.tobytes()[6:]) + data[-12:]
    path = tmp_path / "a.png"
    path.write_bytes(late)
    info = inspect_picture(path)
    assert (info.width, info.height, info.plain) == (4, 6, False)
    assert load_picture(path).size == (4, 6)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize(
    "exif",
    [
        pytest.param(b"Exif\0\0garbage", id="garbage"),
        pytest.param(b"Exif\0\0II*\0\x08\0\0\0\xff\xff", id="cut-directory"),
    ],
)
def test_damaged_exif_means_upright(tmp_path: Path, exif: bytes) -> None:
    path = tmp_path / "a.jpg"
    _noise((6, 4)).save(path, exif=exif)
    assert inspect_picture(path).orientation == 1
    assert load_picture(path).size == (6, 4)


@settings(max_examples=200)
@given(
    st.integers(1, 8),
    st.tuples(st.integers(3, 9), st.integers(3, 9)),
    st.data(),
)
def test_turned_box_covers_the_pixels_that_pillow_turns(
    orientation: int, size_wh: tuple[int, int], data: st.DataObject
) -> None:
    width, height = size_wh
    x1 = data.draw(st.integers(0, width - 1))
    y1 = data.draw(st.integers(0, height - 1))
    x2 = data.draw(st.integers(x1 + 1, width))
    y2 = data.draw(st.integers(y1 + 1, height))
    stored = np.zeros((height, width), dtype=np.uint8)
    stored[y1:y2, x1:x2] = 255
    image = Image.fromarray(stored)
    image.getexif()[0x0112] = orientation
    upright = np.asarray(ImageOps.exif_transpose(image))
    ax, ay = turn_point(x1, y1, orientation=orientation, stored_wh=size_wh)
    bx, by = turn_point(x2, y2, orientation=orientation, stored_wh=size_wh)
    expected = np.zeros_like(upright)
    expected[int(min(ay, by)) : int(max(ay, by)), int(min(ax, bx)) : int(max(ax, bx))] = 255
    assert np.array_equal(upright, expected)


def test_hidden_colors_of_transparent_pixels_do_not_show(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    palette = Image.new("P", (2, 1))
    palette.putpalette([200, 10, 10, 10, 200, 10])
    palette.putdata([0, 1])
    palette.save(path, transparency=bytes([0, 255]))
    assert not inspect_picture(path).plain
    assert list(load_picture(path).get_flattened_data()) == [BLACK, (10, 200, 10)]


@pytest.mark.parametrize(
    ("mode", "color", "expected"),
    [
        pytest.param("RGBA", (200, 100, 50, 0), BLACK, id="clear"),
        pytest.param("RGBA", (200, 100, 50, 255), (200, 100, 50), id="opaque"),
        pytest.param("LA", (200, 0), BLACK, id="clear-gray"),
        pytest.param("LA", (200, 255), (200, 200, 200), id="opaque-gray"),
        pytest.param("L", 77, (77, 77, 77), id="gray"),
        pytest.param("1", 1, (255, 255, 255), id="bilevel"),
    ],
)
def test_modes_flatten_on_black(tmp_path: Path, mode: str, color, expected) -> None:
    path = tmp_path / "a.png"
    Image.new(mode, (1, 1), color).save(path)
    assert load_picture(path).getpixel((0, 0)) == expected


def test_rgb_png_with_a_transparent_color_is_not_plain(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (2, 1), (9, 8, 7)).save(path, transparency=(9, 8, 7))
    assert not inspect_picture(path).plain
    assert load_picture(path).getpixel((0, 0)) == BLACK


def test_16_bit_gray_is_scaled_by_a_fixed_factor(tmp_path: Path) -> None:
    values = np.array([[0, 128, 129, 257, 32768, 65535]], dtype=np.uint16)
    path = tmp_path / "a.png"
    Image.fromarray(values).save(path)
    expected = np.rint(values.astype(float) * 255 / 65535).astype(int)
    assert np.asarray(load_picture(path))[:, :, 1].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("color", "channels"), [pytest.param(2, 3, id="rgb"), pytest.param(6, 4, id="rgba")]
)
def test_16_bit_color_png_is_scaled_from_all_16_bits(
    tmp_path: Path, color: int, channels: int
) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 65536, (3, 5, channels))
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    path = tmp_path / "a.png"
    path.write_bytes(_png(5, 3, 16, color, rows))
    assert not inspect_picture(path).plain
    rgb = values[:, :, :3].astype(float)
    if channels == 4:
        rgb = np.rint(rgb * values[:, :, 3:] / 65535)
    assert np.asarray(load_picture(path)).tolist() == np.rint(rgb * 255 / 65535).tolist()


def test_transparent_color_of_a_16_bit_png_is_compared_in_16_bits(tmp_path: Path) -> None:
    rows = b"\0" + struct.pack(">6H", 1000, 2000, 3000, 1001, 2000, 3000)
    clear = _chunk(b"tRNS", struct.pack(">3H", 1000, 2000, 3000))
    path = tmp_path / "a.png"
    path.write_bytes(_png(2, 1, 16, 2, rows, clear))
    assert list(load_picture(path).get_flattened_data()) == [BLACK, (4, 8, 12)]


def test_png_data_under_a_jpg_name_opens_by_content(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(_bytes(_noise(), "PNG"))
    info = inspect_picture(path)
    assert (info.format, info.plain, info.suffix_fits) == ("PNG", True, False)


@pytest.mark.parametrize("read", [inspect_picture, load_picture])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "picture_empty", id="zero-bytes"),
        pytest.param(b"GIF", "picture_unreadable", id="cut-signature"),
        pytest.param(b"hello, no picture at all", "picture_unreadable", id="text"),
        pytest.param(_bytes(_noise(), "JPEG")[:900], "picture_truncated", id="cut-jpeg"),
        pytest.param(_bytes(_noise(), "JPEG")[:30], "picture_truncated", id="cut-jpeg-header"),
        pytest.param(_bytes(_noise(), "JPEG")[:-2], "picture_truncated", id="jpeg-without-end"),
        pytest.param(_bytes(_noise(), "PNG")[:900], "picture_truncated", id="cut-png"),
        pytest.param(_bytes(_noise(), "PNG")[:20], "picture_truncated", id="cut-png-header"),
        pytest.param(_bytes(_noise(), "BMP")[:900], "picture_truncated", id="cut-bmp"),
        pytest.param(
            _png(50000, 50000, 8, 2, b"\0"),
            "picture_too_large",
            id="header-bomb-over-pillows-limit",
        ),
        pytest.param(
            _png(12000, 10000, 8, 2, b"\0"), "picture_too_large", id="header-bomb-in-warning-range"
        ),
    ],
)
def test_bad_file_is_refused_by_name(tmp_path: Path, read, content: bytes, reason: str) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    assert _reason(path, read) == reason


def test_missing_picture_and_folder_are_refused(tmp_path: Path) -> None:
    assert _reason(tmp_path / "a.jpg") == "picture_missing"
    assert _reason(tmp_path) == "picture_missing"


def test_pixel_limit_is_the_callers(tmp_path: Path) -> None:
    path = draw_picture(tmp_path / "a.png", (10, 10))
    assert inspect_picture(path, max_pixels=100).width == 10
    assert _reason(path, max_pixels=99) == "picture_too_large"
    assert _reason(path, load_picture, max_pixels=99) == "picture_too_large"


def test_cut_jpeg_with_a_thumbnail_is_not_taken_as_complete(tmp_path: Path) -> None:
    thumbnail = _bytes(_noise((16, 12)), "JPEG")
    data = _bytes(_noise(), "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + thumbnail)
    path = tmp_path / "a.jpg"
    path.write_bytes(data[: data.index(thumbnail) + len(thumbnail) + 800])
    assert _reason(path) == "picture_truncated"


def test_bytes_behind_a_whole_jpeg_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(_bytes(_noise(), "JPEG") + b"motion photo" * 1000)
    assert inspect_picture(path).plain
    assert load_picture(path).size == (64, 48)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_cut_picture_is_refused_even_if_pillow_was_told_to_fill_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    path = tmp_path / "a.img"
    path.write_bytes(_bytes(_noise(), kind)[:-300])
    assert _reason(path) == "picture_truncated"
    assert _reason(path, load_picture) == "picture_truncated"


@pytest.mark.parametrize("mode", [pytest.param("F", id="float"), pytest.param("LAB", id="lab")])
def test_modes_without_a_fixed_way_to_rgb_are_refused(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.tif"
    Image.new(mode, (3, 3)).save(path)
    assert _reason(path, load_picture) == "picture_mode_unsupported"


def test_32_bit_values_out_of_range_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    Image.new("I", (3, 3), 70000).save(path)
    assert _reason(path, load_picture) == "picture_mode_unsupported"


def test_pillows_own_limit_is_left_alone(tmp_path: Path) -> None:
    before = Image.MAX_IMAGE_PIXELS
    load_picture(draw_picture(tmp_path / "a.png"))
    assert before == Image.MAX_IMAGE_PIXELS


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP"]), st.data())
def test_any_changed_byte_gives_a_picture_or_a_picture_error(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    text = PngInfo()
    text.add_text("comment", "x", zip=True)
    content = bytearray(
        _bytes(_noise((9, 7)), kind, **({"pnginfo": text} if kind == "PNG" else {}))
    )
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for read in (inspect_picture, load_picture):
            with contextlib.suppress(PictureError):
                read(path)


def test_an_exif_block_that_pillow_gives_up_on_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow forgives most damage, but not all: then the picture is upright, and it is said."""
    images = tmp_path / "images"
    images.mkdir()
    _noise((60, 40)).save(images / "a.jpg")
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "a.txt").write_text("3,4,9,8,1,4,0,0\n")
    assert not inspect_picture(images / "a.jpg").exif_damaged

    def give_up(image: Image.Image) -> Image.Exif:
        raise SyntaxError("not a TIFF file")

    monkeypatch.setattr(Image.Image, "getexif", give_up)
    info = inspect_picture(images / "a.jpg")
    assert (info.exif_damaged, info.orientation, info.width) == (True, 1, 60)
    assert load_picture(images / "a.jpg").size == (60, 40)
    report = ReadReport()
    (scene,) = SOURCES["visdrone"].read(tmp_path, "val", report)
    assert len(scene.objects) == 1
    assert report.repaired == {"exif_unreadable": 1}
