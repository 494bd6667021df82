"""What every reader does alike with bad pictures, boxes and files."""

import io
import json
import math
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from soubench.builders.scene import Box, ReadReport, Scene
from soubench.builders.sources import SOURCES
from soubench.cli import main
from tests.data import draw_picture, read_all, write_text

WIDTH, HEIGHT = 64, 48
Corners = tuple[float, float, float, float]
SHIP: Corners = (10, 10, 30, 22)
"""Left, top, right and bottom in px, 0-based, right and bottom exclusive."""


def _json(names: tuple[str, ...], boxes: list[Corners], first: int = 1, **document) -> str:
    records = [
        {"id": i, "image_id": 1, "category_id": first, "bbox": [x1, y1, x2 - x1, y2 - y1]}
        for i, (x1, y1, x2, y2) in enumerate(boxes, 1)
    ]
    table = [{"id": i, "name": name} for i, name in enumerate(names, first)]
    return json.dumps({"annotations": records, "categories": table, **document}, indent=1)


def _coco(source: str) -> Callable[[list[Corners], str], str]:
    def write(boxes: list[Corners], picture: str) -> str:
        names = SOURCES[source].categories or ("ship",)
        images = [{"id": 1, "file_name": picture, "width": WIDTH, "height": HEIGHT}]
        return _json(names, boxes, images=images)

    return write


def _corners(box: Corners) -> list[float]:
    x1, y1, x2, y2 = box
    return [x1, y1, x2, y1, x2, y2, x1, y2]


def _soda_a(boxes: list[Corners], _: str) -> str:
    records = [{"id": i, "category_id": 4, "poly": _corners(box)} for i, box in enumerate(boxes)]
    table = [{"id": i, "name": name} for i, name in enumerate(SOURCES["soda-a"].categories or ())]
    return json.dumps({"annotations": records, "categories": table}, indent=1)


def _visdrone(boxes: list[Corners], _: str) -> str:
    return "".join(f"{x1},{y1},{x2 - x1},{y2 - y1},1,4,0,0\n" for x1, y1, x2, y2 in boxes)


def _yolo(boxes: list[Corners], _: str) -> str:
    rows = [
        ((x1 + x2) / 2 / WIDTH, (y1 + y2) / 2 / HEIGHT, (x2 - x1) / WIDTH, (y2 - y1) / HEIGHT)
        for x1, y1, x2, y2 in boxes
    ]
    return "".join(f"0 {' '.join(map(str, row))}\n" for row in rows)


def _voc(boxes: list[Corners], _: str) -> str:
    objects = "\n".join(
        f"<object><name>ship</name><bndbox><xmin>{x1 + 1}</xmin><ymin>{y1 + 1}</ymin>"
        f"<xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"
        for x1, y1, x2, y2 in boxes
    )
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
    return f"<annotation>\n{size}\n{objects}\n</annotation>\n"


def _dota(boxes: list[Corners], _: str) -> str:
    return "".join(f"{' '.join(map(str, _corners(box)))} ship 0\n" for box in boxes)


class Form(NamedTuple):
    """Where a reader's files lie, and how it writes boxes."""

    label: str
    pictures: str
    write: Callable[[list[Corners], str], str]
    more: dict[str, str] = {}  # noqa: RUF012  # never changed


FORMS = {
    "soda-d": Form("Annotations/val.json", "Images", _coco("soda-d")),
    "ai-tod": Form("annotations/aitod_val_v1.json", "images/val", _coco("ai-tod")),
    "ruod": Form("annotations/instances_test.json", "test", _coco("ruod")),
    "coco": Form("annotations/instances_val.json", "images/val", _coco("coco")),
    "soda-a": Form("Annotations/val/a.json", "Images/val", _soda_a),
    "visdrone": Form("val/annotations/a.txt", "val/images", _visdrone),
    "dota": Form("val/labelTxt/a.txt", "val/images", _dota),
    "yolo": Form(
        "labels/val/a.txt", "images/val", _yolo, {"data.yaml": "val: images/val\nnames: [ship]\n"}
    ),
    "voc": Form("Annotations/a.xml", "JPEGImages", _voc, {"ImageSets/Main/val.txt": "a\nb\n"}),
}
ONE_JSON = ("soda-d", "ai-tod", "ruod", "coco")
POLYGONS = ("soda-a", "dota")
every_reader = pytest.mark.parametrize("source", FORMS)


def _lay_out(
    folder: Path, source: str, boxes: list[Corners], *, picture: str = "a.jpg", drawn: bool = True
) -> Path:
    form = FORMS[source]
    write_text(folder / form.label, form.write(boxes, picture))
    for name, text in form.more.items():
        write_text(folder / name, text)
    if drawn:
        draw_picture(folder / form.pictures / picture, (WIDTH, HEIGHT))
    return folder / form.label


def _read(folder: Path, source: str) -> tuple[list[Scene], ReadReport]:
    scenes, report = read_all(source, folder, SOURCES[source].test_split)
    # VOC's list names a second picture, for the tests in which a reader must not stop.
    if source == "voc":
        report.dropped.pop("label_missing", None)
    return scenes, report


def test_every_reader_is_tested_here() -> None:
    assert FORMS.keys() == SOURCES.keys()


@every_reader
@pytest.mark.parametrize(
    "spelled",
    [
        pytest.param(lambda text: text, id="as-it-is"),
        pytest.param(lambda text: "\ufeff" + text, id="byte-order-mark"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="crlf"),
        pytest.param(lambda text: text.rstrip("\n"), id="no-final-line-end"),
        pytest.param(lambda text: text.replace("\n", "\n \n\n") + "\n\n", id="blank-lines"),
    ],
)
def test_spelling_of_the_file_changes_nothing(
    tmp_path: Path, source: str, spelled: Callable[[str], str]
) -> None:
    label = _lay_out(tmp_path, source, [SHIP, (40, 30, 50, 40)])
    label.write_bytes(spelled(label.read_text(encoding="utf-8")).encode())
    (scene,), report = _read(tmp_path, source)
    assert [found.box_xyxy for found in scene.objects] == [Box(*SHIP), Box(40, 30, 50, 40)]
    assert [found.area_px for found in scene.objects] == [240, 100]
    assert (scene.width, scene.height) == (WIDTH, HEIGHT)
    assert not report.dropped + report.repaired + report.ignored


NAN = math.nan


@every_reader
@pytest.mark.parametrize(
    ("box", "reason"),
    [
        pytest.param((10, 10, 10, 22), "degenerate", id="no-width"),
        pytest.param((10, 10, 30, 10), "degenerate", id="no-height"),
        pytest.param((10, 10, 10.5, 22), "degenerate", id="under-a-pixel"),
        pytest.param((63.5, 10, 90, 22), "degenerate", id="under-a-pixel-inside"),
        pytest.param((30, 22, 10, 10), "degenerate", id="inverted"),
        pytest.param((80, 10, 90, 22), "outside_picture", id="outside"),
        pytest.param((NAN, 10, 30, 22), "not_finite", id="nan"),
        pytest.param((10, 10, 30, math.inf), "not_finite", id="infinite"),
        pytest.param(SHIP, "duplicate_object", id="twice"),
    ],
)
def test_box_that_is_no_object_is_dropped_with_its_reason(
    tmp_path: Path, source: str, box: Corners, reason: str
) -> None:
    _lay_out(tmp_path, source, [SHIP, box])
    (scene,), report = _read(tmp_path, source)
    if source in POLYGONS and reason == "degenerate" and box[2] < box[0]:
        # Corners may begin anywhere, so these are a box like any other.
        assert [found.box_xyxy for found in scene.objects] == [Box(*SHIP)] * 2
        return
    assert [found.box_xyxy for found in scene.objects] == [Box(*SHIP)]
    # XML has no number that is none, so VOC's fields are not of the form.
    voc_word = source == "voc" and reason == "not_finite"
    assert report.dropped == {"malformed_record" if voc_word else reason: 1}
    assert not report.ignored


@every_reader
def test_box_over_the_edge_is_clipped_and_counted(tmp_path: Path, source: str) -> None:
    _lay_out(tmp_path, source, [(-6, 30, 20, 60)])
    (scene,), report = _read(tmp_path, source)
    assert [(o.box_xyxy, o.area_px) for o in scene.objects] == [(Box(0, 30, 20, 48), 360)]
    assert report.repaired == {"clipped": 1}


def _saved(image: Image.Image, kind: str = "JPEG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _bomb() -> bytes:
    """A PNG whose header says 50,000 × 50,000 px."""
    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


RGB = Image.new("RGB", (WIDTH, HEIGHT), (90, 120, 60))


@every_reader
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "picture_empty", id="zero-bytes"),
        pytest.param(_saved(RGB)[:-40], "picture_truncated", id="cut"),
        pytest.param(_bomb(), "picture_too_large", id="bomb-header"),
        pytest.param(b"<html>404</html>", "picture_unreadable", id="no-picture"),
    ],
)
def test_unusable_picture_is_dropped_with_its_reason(
    tmp_path: Path, source: str, content: bytes, reason: str
) -> None:
    _lay_out(tmp_path, source, [SHIP])
    (tmp_path / FORMS[source].pictures / "a.jpg").write_bytes(content)
    scenes, report = _read(tmp_path, source)
    assert scenes == []
    assert report.dropped == {reason: 1}
    assert report.examples[reason] == ["images/val/a" if source == "yolo" else "a"]


@every_reader
@pytest.mark.parametrize(
    ("content", "notice"),
    [
        pytest.param(_saved(RGB.convert("L")), None, id="gray"),
        pytest.param(_saved(RGB.convert("CMYK")), None, id="cmyk"),
        pytest.param(_saved(RGB, "PNG"), "picture_suffix", id="png-named-jpg"),
        pytest.param(
            _saved(RGB.convert("P"), "PNG", transparency=0), "picture_suffix", id="palette"
        ),
    ],
)
def test_other_kinds_of_pictures_are_read(
    tmp_path: Path, source: str, content: bytes, notice: str | None
) -> None:
    _lay_out(tmp_path, source, [SHIP])
    (tmp_path / FORMS[source].pictures / "a.jpg").write_bytes(content)
    (scene,), report = _read(tmp_path, source)
    assert len(scene.objects) == 1
    assert not report.dropped
    assert report.repaired == ({notice: 1} if notice else {})


@every_reader
@pytest.mark.parametrize("picture", ["a.JPG", "A.jpeg", "a.png"])
def test_picture_is_found_whatever_its_suffix(tmp_path: Path, source: str, picture: str) -> None:
    if source == "yolo" and picture.startswith("A"):
        picture = picture.lower()  # YOLO goes from the picture to the label, by the exact name.
    _lay_out(tmp_path, source, [SHIP], picture=picture)
    (scene,), report = _read(tmp_path, source)
    assert scene.image_path.name == picture
    assert not report.dropped


@every_reader
def test_size_in_the_label_never_overrules_the_picture(tmp_path: Path, source: str) -> None:
    _lay_out(tmp_path, source, [SHIP])
    draw_picture(tmp_path / FORMS[source].pictures / "a.jpg", (HEIGHT, WIDTH))
    (scene,), report = _read(tmp_path, source)
    assert (scene.width, scene.height) == (HEIGHT, WIDTH)
    if source == "yolo":
        return
    assert scene.objects[0].box_xyxy == Box(*SHIP)
    says_size = source == "voc" or source in ONE_JSON
    assert report.repaired == ({"size_transposed": 1} if says_size else {})


@every_reader
def test_boxes_of_an_exif_turned_picture_follow_the_stated_size(
    tmp_path: Path, source: str
) -> None:
    _lay_out(tmp_path, source, [SHIP])
    # Orientation 6: the stored picture is turned by 90° clockwise to be seen.
    draw_picture(tmp_path / FORMS[source].pictures / "a.jpg", (WIDTH, HEIGHT), orientation=6)
    (scene,), report = _read(tmp_path, source)
    assert (scene.width, scene.height) == (HEIGHT, WIDTH)
    if source == "voc" or source in ONE_JSON:
        # The label states the stored size, so it was made on the unturned picture.
        assert scene.objects[0].box_xyxy == Box(HEIGHT - 22, 10, HEIGHT - 10, 30)
        assert report.repaired == {"exif_turned": 1}
    elif source != "yolo":
        assert scene.objects[0].box_xyxy == Box(*SHIP)


@every_reader
def test_labels_whose_pictures_are_all_missing_are_refused(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _lay_out(tmp_path, source, [SHIP], drawn=False)
    (tmp_path / FORMS[source].pictures).mkdir(parents=True, exist_ok=True)
    assert main(["inspect", source, str(tmp_path)]) == 2
    _is_one_line_of_ours(capsys)


@every_reader
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xff\xfe\x00\xd8garbage\x80", id="binary"),
        pytest.param(b"a,b;c d\n<x>{", id="text"),
        pytest.param(b'[{"image_id": 1, "score": 0.9, "bbox": [1, 2, 3, 4]}]', id="results"),
        pytest.param(b"(63,78),(130,173),1\n", id="bracketed-corners"),
    ],
)
def test_file_of_another_kind_is_one_line_and_exit_2(
    tmp_path: Path, source: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    label = _lay_out(tmp_path, source, [SHIP])
    label.write_bytes(content)
    assert main(["inspect", source, str(tmp_path)]) == 2
    assert label.name in _is_one_line_of_ours(capsys)


def _is_one_line_of_ours(capsys: pytest.CaptureFixture[str]) -> str:
    error = capsys.readouterr().err
    assert error.startswith("soubench: error: ")
    assert error.count("\n") == 1
    return error


@every_reader
def test_empty_label_file_is_no_object_or_a_named_file(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    label = _lay_out(tmp_path, source, [SHIP])
    label.write_bytes(b"")
    if source in ("soda-a", "visdrone", "dota", "yolo"):
        (scene,), report = _read(tmp_path, source)
        assert scene.objects == ()
        assert report.repaired == ({"label_empty": 1} if source == "soda-a" else {})
    else:
        assert main(["inspect", source, str(tmp_path)]) == 2
        assert label.name in _is_one_line_of_ours(capsys)


@every_reader
def test_picture_of_100_megapixels_is_read_by_choice_only(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str], huge: Path
) -> None:
    _lay_out(tmp_path, source, [], picture="a.png", drawn=False)
    pictures = tmp_path / FORMS[source].pictures
    pictures.mkdir(parents=True, exist_ok=True)
    (pictures / "a.png").hardlink_to(huge)
    assert main(["inspect", source, str(tmp_path)]) == 0
    refused = capsys.readouterr().out
    assert "picture_too_large 1: " in refused
    assert "--max-pixels" in refused
    assert main(["inspect", source, str(tmp_path), "--max-pixels=100010000"]) == 0
    assert "all 10001×10000 px" in capsys.readouterr().out


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of 100,010,000 px; of one bit each, to spare memory."""
    path = tmp_path_factory.mktemp("huge") / "a.png"
    Image.new("1", (10_001, 10_000)).save(path, compress_level=1)
    return path
