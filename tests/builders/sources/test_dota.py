"""DOTA."""

import json
import math
from pathlib import Path

import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soubench.builders.errors import FormatError, SoubenchError
from soubench.builders.scene import ReadReport, Scene
from tests.data import draw_picture, read_all, write_text

FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HEADER = "imagesource:GoogleEarth\r\ngsd:0.27\r\n"
ROWS = (
    "10 10 30 10 30 20 10 20 plane 0\r\n40 10 50 20 40 30 30 20 small-vehicle 1\r\n"
    "1.5 30 9 30 9 40 1.5 40 plane 2\r\n"
)


def _read(
    folder: Path, text: str, *, stem: str = "P0001", size_wh: tuple[int, int] = (64, 48)
) -> tuple[Scene, ReadReport]:
    draw_picture(folder / "val" / "images" / f"{stem}.png", size_wh)
    write_text(folder / "val" / "labelTxt" / f"{stem}.txt", text)
    (scene,), report = read_all("dota", folder)
    return scene, report


def test_rows_become_quads_and_the_header_goes_to_meta(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, HEADER + ROWS)
    assert (scene.image_id, scene.group_id) == ("P0001", "P0001")
    assert scene.meta == {"imagesource": "GoogleEarth", "gsd": 0.27}
    assert [(o.category, o.quad_xy8, o.area_px, o.record_id) for o in scene.objects] == [
        ("plane", (10, 10, 30, 10, 30, 20, 10, 20), 200, "3"),
        ("small-vehicle", (40, 10, 50, 20, 40, 30, 30, 20), 200, "4"),
        ("plane", (1.5, 30, 9, 30, 9, 40, 1.5, 40), 75, "5"),
    ]
    assert scene.objects[1].box_xyxy == (30, 10, 50, 30)
    assert (report.source, report.categories) == ("dota", ("plane", "small-vehicle"))
    assert not report.dropped + report.repaired


def test_difficult_and_cut_objects_stay_and_do_not_count(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, ROWS)
    assert [found.ignore for found in scene.objects] == [False, True, True]
    assert report.ignored == {"difficult": 1, "cut_by_tiling": 1}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEADER + ROWS, id="crlf"),
        pytest.param("\ufeff" + (HEADER + ROWS).replace("\r\n", "\n"), id="bom-lf"),
        pytest.param((HEADER + ROWS).replace("\r\n", "\r").rstrip(), id="bare-cr-no-final-end"),
        pytest.param((HEADER + ROWS).replace(" ", "\t "), id="tabs"),
        pytest.param((HEADER + ROWS).replace("\r\n", " \n\n  \n"), id="blank-lines"),
        pytest.param((HEADER + ROWS).replace("plane 0", "plane"), id="no-difficulty"),
        pytest.param(
            HEADER.replace(":", " : ").replace("gsd", "GSD") + ROWS, id="header-with-blanks"
        ),
    ],
)
def test_harmless_spellings_read_the_same(tmp_path: Path, text: str) -> None:
    scene, report = _read(tmp_path, text)
    assert [(o.category, o.ignore) for o in scene.objects] == [
        ("plane", False),
        ("small-vehicle", True),
        ("plane", True),
    ]
    assert scene.meta["gsd"] == 0.27
    assert not report.dropped


@pytest.mark.parametrize(
    ("header", "gsd"),
    [
        pytest.param("gsd:null\n", None, id="null"),
        pytest.param("gsd:\n", None, id="empty"),
        pytest.param("gsd:None\n", None, id="word"),
        pytest.param("gsd:nan\n", None, id="nan"),
        pytest.param("gsd:-1\n", None, id="negative"),
        pytest.param("gsd:0\n", None, id="zero"),
        pytest.param("", None, id="no-header"),
        pytest.param("gsd:1\n", 1.0, id="whole"),
    ],
)
def test_gsd_that_is_no_size_is_unknown(tmp_path: Path, header: str, gsd: float | None) -> None:
    scene, report = _read(tmp_path, header + ROWS)
    assert scene.meta == {"imagesource": None, "gsd": gsd}
    assert not report.dropped


@pytest.mark.parametrize("text", [pytest.param("", id="zero-bytes"), HEADER, "\r\n"])
def test_label_file_without_rows_is_a_scene_without_objects(tmp_path: Path, text: str) -> None:
    scene, report = _read(tmp_path, text)
    assert scene.objects == ()
    assert not report.dropped + report.repaired


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("10 10 30 10 30 20 plane 0", id="six-numbers"),
        pytest.param("10 10 30 10 30 20 10 20", id="no-class"),
        pytest.param("10 10 30 10 30 20 10 20 large vehicle 0", id="class-of-two-words"),
        pytest.param("10 10 30 10 30 20 10 x plane 0", id="word-for-a-number"),
        pytest.param("10 10 30 10 30 20 10 2_0 plane 0", id="underscore-in-a-number"),
        pytest.param("10 10 30 10 30 20 10 20 plane 3", id="difficulty-3"),
        pytest.param("10 10 30 10 30 20 10 20 plane hard", id="difficulty-word"),
        pytest.param("10 10 30 10 30 20 10 20 0 0", id="number-as-class"),
        pytest.param("P0001 0.9 10 10 30 10 30 20 10 20", id="detection-result"),
        pytest.param("annotator:somebody", id="unknown-header"),
    ],
)
def test_row_of_another_form_is_dropped_and_counted(tmp_path: Path, row: str) -> None:
    scene, report = _read(tmp_path, f"{row}\n{ROWS}")
    assert len(scene.objects) == 3
    assert report.dropped == {"malformed_record": 1}
    assert report.examples["malformed_record"][0].startswith("P0001.txt:1: ")


def test_labels_without_one_readable_row_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none of the 2 rows reads .* first P0001\.txt:1"):
        _read(tmp_path, "1,2,3,4,1,4,0,0\n5,6,7,8,1,4,0,0\n")


def test_yolo_rows_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"P0001\.txt:1: .*nine numbers.*'yolo'"):
        _read(tmp_path, "0 0.1 0.1 0.2 0.1 0.2 0.2 0.1 0.2\n" + ROWS)


@pytest.mark.parametrize(
    ("row", "dropped", "repaired"),
    [
        pytest.param("70 10 90 10 90 20 70 20 ship 0", "outside_picture", None, id="outside"),
        pytest.param("10 10 10 10 10 20 10 20 ship 0", "degenerate", None, id="no-width"),
        pytest.param("10 10 nan 10 30 20 10 20 ship 0", "not_finite", None, id="nan"),
        pytest.param("10 10 inf 10 30 20 10 20 ship 0", "not_finite", None, id="infinite"),
        pytest.param("50 10 70 10 70 20 50 20 ship 0", None, "clipped", id="over-the-edge"),
        pytest.param(
            "10 30 20 30 10 40 20 40 ship 0", None, "quad_self_crossing", id="crossing-edges"
        ),
        pytest.param("30 10 30 20 10 20 10 10 plane 0", None, None, id="another-first-corner"),
    ],
)
def test_corners_against_the_picture(
    tmp_path: Path, row: str, dropped: str | None, repaired: str | None
) -> None:
    scene, report = _read(tmp_path, row)
    assert len(scene.objects) == (dropped is None)
    assert report.dropped == ({dropped: 1} if dropped else {})
    assert report.repaired == ({repaired: 1} if repaired else {})


def test_row_that_is_there_twice_is_one_object(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, ROWS + ROWS)
    assert len(scene.objects) == 3
    assert report.dropped == {"duplicate_object": 3}


def test_spellings_a_reader_would_overlook_become_the_most_frequent(tmp_path: Path) -> None:
    rows = [f"{x} 10 {x + 5} 10 {x + 5} 20 {x} 20" for x in (1, 10, 20)]
    names = ("Tennis_Court 0", "tennis-court 0", "tennis-court 0")
    scene, report = _read(tmp_path, "\n".join(map(" ".join, zip(rows, names, strict=True))))
    assert [found.category for found in scene.objects] == ["tennis-court"] * 3
    assert report.categories == ("tennis-court",)
    assert report.repaired == {"category_spelling": 1}
    assert report.examples["category_spelling"] == [
        "'Tennis_Court' is read as 'tennis-court', 1 times"
    ]


@pytest.mark.parametrize(
    ("stem", "group"),
    [("P0004__1__0___0", "P0004"), ("P0004", "P0004"), ("__odd", "__odd"), ("a_b", "a_b")],
)
def test_tiles_are_grouped_by_their_source_picture(tmp_path: Path, stem: str, group: str) -> None:
    scene, _ = _read(tmp_path, ROWS, stem=stem)
    assert (scene.image_id, scene.group_id) == (stem, group)


@pytest.mark.parametrize(
    ("pictures", "labels", "root"),
    [
        pytest.param("val/images", "val/labelTxt", ".", id="from-above"),
        pytest.param("val/images", "val/labelTxt", "val", id="split-folder"),
        pytest.param("val/images", "val/labelTxt", "val/labelTxt", id="label-folder"),
        pytest.param("images/val", "labelTxt/val", ".", id="folders-by-role"),
        pytest.param("images", "labelTxt", ".", id="no-split-folder"),
        pytest.param("val/images", "val/annfiles", ".", id="annfiles"),
        pytest.param("val/images", "val/labelTxt-v1.0/labelTxt", ".", id="versioned"),
        pytest.param(
            "val/images", "val/labelTxt-v1.5/labelTxt", "val/labelTxt-v1.5", id="into-the-labels"
        ),
        pytest.param("val/images/part1/images", "val/labelTxt", ".", id="pictures-in-parts"),
    ],
)
def test_split_is_found_wherever_the_user_points(
    tmp_path: Path, pictures: str, labels: str, root: str
) -> None:
    draw_picture(tmp_path / "top" / pictures / "P1.PNG")
    write_text(tmp_path / "top" / labels / "P1.txt", ROWS)
    scenes, report = read_all("dota", tmp_path / "top" / root)
    assert [len(scene.objects) for scene in scenes] == [3]
    assert not report.dropped


def test_labels_and_pictures_without_partner_are_counted(tmp_path: Path) -> None:
    write_text(tmp_path / "val" / "labelTxt" / "P2.txt", ROWS)
    draw_picture(tmp_path / "val" / "images" / "P3.png")
    _, report = _read(tmp_path, ROWS)
    assert report.dropped == {"picture_missing": 1, "label_missing": 1}


def test_two_label_folders_are_listed_and_one_can_be_passed(tmp_path: Path) -> None:
    draw_picture(tmp_path / "val" / "images" / "P1.png")
    for version, text in (("v1.0", ROWS), ("v1.5", "")):
        write_text(tmp_path / "val" / f"labelTxt-{version}" / "labelTxt" / "P1.txt", text)
    with pytest.raises(FormatError, match="2 label folders fit"):
        read_all("dota", tmp_path)
    scenes, _ = read_all("dota", tmp_path / "val" / "labelTxt-v1.5")
    assert [scene.objects for scene in scenes] == [()]


_AT = st.floats(-20, 90, allow_subnormal=False).map(lambda value: round(value, 2))


@FUZZ
@given(st.tuples(_AT, _AT), st.floats(0, math.pi), st.floats(2, 40), st.floats(2, 40))
def test_area_is_that_of_the_rectangle_inside_the_picture(
    tmp_path: Path, center: tuple[float, float], angle: float, width: float, height: float
) -> None:
    cos, sin = math.cos(angle), math.sin(angle)
    corners = [
        (center[0] + x * cos - y * sin, center[1] + x * sin + y * cos)
        for x, y in ((0, 0), (width, 0), (width, height), (0, height))
    ]
    row = " ".join(repr(value) for corner in corners for value in corner)
    scene, report = _read(tmp_path, f"{row} ship 0\n")
    inside = shapely.Polygon(corners).intersection(shapely.box(0, 0, 64, 48)).area
    if scene.objects:
        (found,) = scene.objects
        assert found.area_px == pytest.approx(inside, abs=1e-6)
    else:
        # Nothing of a rectangle of 2 px or more vanishes but what the edge leaves of it.
        assert report.dropped.total() == 1
        assert inside < 64


@FUZZ
@given(data=st.data())
def test_any_changed_bytes_give_a_scene_or_our_error(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray((HEADER + ROWS).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    draw_picture(tmp_path / "val" / "images" / "P1.png")
    label = write_text(tmp_path / "val" / "labelTxt" / "P1.txt", "")
    label.write_bytes(content)
    _read_or_refuse(tmp_path)


_NUMBERS = st.floats() | st.integers() | st.floats(-10, 80) | st.integers(-3, 70)


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 7), _NUMBERS), min_size=1, max_size=3))
def test_any_number_in_a_row_gives_a_scene_or_our_error(
    tmp_path: Path, changes: list[tuple[int, float]]
) -> None:
    fields: list[float] = [10, 10, 30, 10, 30, 20, 10, 20]
    for place, number in changes:
        fields[place] = number
    draw_picture(tmp_path / "val" / "images" / "P1.png")
    row = " ".join(map(str, fields))
    write_text(tmp_path / "val" / "labelTxt" / "P1.txt", f"{row} plane 0\n{ROWS}")
    _read_or_refuse(tmp_path)


def _read_or_refuse(folder: Path) -> None:
    try:
        scenes, report = read_all("dota", folder)
    except SoubenchError:
        return
    json.dumps(report.as_dict())
    assert report.objects == sum(len(scene.objects) for scene in scenes)
    for scene in scenes:
        for found in scene.objects:
            box = found.box_xyxy
            assert 0 <= box.x1 < box.x2 <= scene.width
            assert 0 <= box.y1 < box.y2 <= scene.height
            assert 0 < found.area_px <= scene.width * scene.height
            assert found.category in report.categories
