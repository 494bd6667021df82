"""YOLO: boxes, oriented boxes and polygons."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from soubench.builders.errors import FormatError, SoubenchError
from soubench.builders.scene import ReadReport, Scene
from tests.data import draw_picture, read_all, write_text

FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
YAML = "path: .\ntrain: images/train\nval: images/val\nnc: 2\nnames:\n  0: ship\n  1: car\n"
QUAD = "1 0.25 0.25 0.5 0.25 0.5 0.5 0.25 0.5"
POLYGON = "0 0.125 0.125 0.5 0.25 0.25 0.75"
SIZE_WH = (64, 48)


def _read(folder: Path, rows: str, *, config: str = YAML, **options) -> tuple[Scene, ReadReport]:
    draw_picture(folder / "images" / "val" / "a.jpg", **options)
    write_text(folder / "labels" / "val" / "a.txt", rows)
    write_text(folder / "data.yaml", config)
    (scene,), report = read_all("yolo", folder)
    return scene, report


def test_rows_become_boxes_in_px(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, "1 0.5 0.5 0.25 0.5\n0 0.25 0.25 0.5 0.5\n")
    assert (scene.image_id, scene.group_id) == ("images/val/a", "images/val/a")
    assert [(o.category, o.box_xyxy, o.area_px, o.record_id) for o in scene.objects] == [
        ("car", (24, 12, 40, 36), 384, "1"),
        ("ship", (0, 0, 32, 24), 768, "2"),
    ]
    assert (report.source, report.split, report.categories) == ("yolo", "val", ("ship", "car"))
    assert not report.dropped + report.repaired + report.ignored


def test_row_of_nine_is_an_oriented_box(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, f"{QUAD}\n0 0.5 0.5 0.25 0.5\n")
    first, second = scene.objects
    assert first.quad_xy8 == (16, 12, 32, 12, 32, 24, 16, 24)
    assert (first.area_px, first.mask, second.quad_xy8) == (192, None, None)
    assert not report.dropped


def test_polygon_is_a_box_round_it_and_a_mask(tmp_path: Path) -> None:
    scene, _ = _read(tmp_path, f"{POLYGON}\n")
    (found,) = scene.objects
    assert (found.box_xyxy, found.quad_xy8, found.area_px) == ((8, 6, 32, 36), None, 720)
    assert found.mask is not None
    assert found.mask.size_hw == (48, 64)
    assert found.mask.polygons == ((8, 6, 32, 12, 16, 36),)


def test_row_of_nine_among_polygons_is_a_polygon_of_four(tmp_path: Path) -> None:
    draw_picture(tmp_path / "images" / "val" / "b.jpg")
    write_text(tmp_path / "labels" / "val" / "b.txt", f"{POLYGON}\n")
    draw_picture(tmp_path / "images" / "val" / "a.jpg")
    write_text(tmp_path / "labels" / "val" / "a.txt", f"{QUAD}\n")
    write_text(tmp_path / "data.yaml", YAML)
    scenes, _ = read_all("yolo", tmp_path)
    (found,) = scenes[0].objects
    assert found.quad_xy8 is None
    assert found.mask is not None
    assert found.mask.polygons == ((16, 12, 32, 12, 32, 24, 16, 24),)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param("\ufeff1 0.5 0.5 0.25 0.5\r\n\r\n0 0.25 0.25 0.5 0.5", id="bom-crlf-blank"),
        pytest.param("1\t0.5\t0.5\t0.25\t0.5\n0\t.25  .25 .5\t5e-1\n", id="tabs"),
        pytest.param("1.0 0.5 0.5 0.25 0.5\r 0 0.25 0.25 0.5 0.5 \r", id="float-class-bare-cr"),
    ],
)
def test_harmless_spellings_read_the_same(tmp_path: Path, rows: str) -> None:
    scene, report = _read(tmp_path, rows)
    assert [found.category for found in scene.objects] == ["car", "ship"]
    assert not report.dropped


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param("0", "malformed_record", id="class-alone"),
        pytest.param("0 0.5 0.5 0.1", "malformed_record", id="four-values"),
        pytest.param("0 0.5 0.5 0.1 0.1 0.2 0.2 0.3", "malformed_record", id="half-a-point"),
        pytest.param("0 0.5 0.5 0.1 wide", "malformed_record", id="word"),
        pytest.param("0 0.5 0.5 0.1 0_1", "malformed_record", id="underscore"),
        pytest.param("0.5 0.5 0.5 0.1 0.1", "malformed_record", id="half-a-class"),
        pytest.param("nan 0.5 0.5 0.1 0.1", "malformed_record", id="class-nan"),
        pytest.param("ship 0.5 0.5 0.1 0.1", "malformed_record", id="class-by-name"),
        pytest.param("2 0.5 0.5 0.1 0.1", "unknown_category", id="class-beyond-names"),
        pytest.param("-1 0.5 0.5 0.1 0.1", "unknown_category", id="negative-class"),
        pytest.param("0 0.5 0.5 0 0.1", "degenerate", id="no-width"),
        pytest.param("0 0.5 0.5 -0.1 0.1", "degenerate", id="negative-width"),
        pytest.param("0 0.5 0.5 0.001 0.1", "degenerate", id="under-a-pixel"),
        pytest.param("0 0.5 nan 0.1 0.1", "not_finite", id="nan"),
        pytest.param("0 0.5 0.5 inf 0.1", "not_finite", id="infinite"),
        pytest.param("0 1.5 0.5 0.1 0.1", "outside_picture", id="outside"),
        pytest.param("0 320 240 40 40", "outside_picture", id="px"),
        pytest.param("0 0.1 0.1 0.2 nan 0.3 0.1", "not_finite", id="nan-in-polygon"),
        pytest.param("0 nan 0.1 0.2 0.3 0.3 0.1", "not_finite", id="nan-first-in-polygon"),
        pytest.param("0 0.1 0.1 0.2 0.1 0.3 0.1", "degenerate", id="flat-polygon"),
        pytest.param("0 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1", "degenerate", id="quad-of-one-point"),
        pytest.param("0 0.1 0.1 inf 0.1 0.1 0.1 0.1 0.1", "not_finite", id="infinite-quad"),
    ],
)
def test_row_that_is_no_object_is_dropped_with_its_reason(
    tmp_path: Path, row: str, reason: str
) -> None:
    scene, report = _read(tmp_path, f"1 0.5 0.5 0.25 0.5\n{row}\n")
    assert [found.record_id for found in scene.objects] == ["1"]
    assert report.dropped == {reason: 1}
    assert "2" in report.examples[reason][0]


def test_what_lies_outside_is_clipped_and_counted(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, "0 0 0.5 0.5 0.5\n1 0.75 0.75 0.5 1.5\n")
    assert [found.box_xyxy for found in scene.objects] == [(0, 12, 16, 36), (32, 0, 64, 48)]
    assert report.repaired == {"clipped": 2}


def test_edges_that_six_decimals_move_past_the_picture_are_not_clipped(tmp_path: Path) -> None:
    rows = "0 0.166666 0.166667 0.333333 0.333334\n1 0.833334 0.833334 0.333333 0.333333\n"
    scene, report = _read(tmp_path, rows + QUAD.replace("0.5", "1.000001"))
    assert scene.objects[1].box_xyxy[2:] == (64, 48)
    assert scene.objects[2].box_xyxy == (16, 12, 64, 48)
    assert not report.repaired


def test_row_that_is_there_twice_is_one_object(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, "0 0.5 0.5 0.25 0.5\n" * 3)
    assert len(scene.objects) == 1
    assert report.dropped == {"duplicate_object": 2}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param("0 0.5 0.5 0.1 0.1 0.87", "confidence.*detection results", id="confidence"),
        pytest.param("10,20,30,40,1,4,0,0", "found commas", id="visdrone"),
    ],
)
def test_rows_of_another_format_are_refused_with_file_and_line(
    tmp_path: Path, row: str, message: str
) -> None:
    with pytest.raises(FormatError, match=rf"a\.txt:2: .*{message}"):
        _read(tmp_path, f"0 0.5 0.5 0.1 0.1\n{row}\n")


def test_coordinates_are_shares_of_the_upright_picture(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, "0 0.25 0.25 0.5 0.5", orientation=6)
    assert (scene.width, scene.height) == (48, 64)
    assert scene.objects[0].box_xyxy == (0, 0, 24, 32)
    assert not report.repaired


_SHARE = st.floats(0, 1)


@FUZZ
@given(st.tuples(st.integers(1, 9000), st.integers(1, 9000)), _SHARE, _SHARE, _SHARE, _SHARE)
def test_printed_boxes_read_back_within_a_millionth_of_the_picture(
    tmp_path: Path, size_wh: tuple[int, int], a: float, b: float, c: float, d: float
) -> None:
    # The picture is small, and the shares are what they would be on one of that size.
    width, height = size_wh
    x1, x2 = sorted((round(a * width), round(b * width)))
    y1, y2 = sorted((round(c * height), round(d * height)))
    assume((x2 - x1) * 64 > 1.01 * width and (y2 - y1) * 48 > 1.01 * height)
    shares = (
        (x1 + x2) / 2 / width,
        (y1 + y2) / 2 / height,
        (x2 - x1) / width,
        (y2 - y1) / height,
    )
    scene, report = _read(tmp_path, "0 " + " ".join(f"{share:.6f}" for share in shares))
    (found,) = scene.objects
    for value, expected, side in zip(
        found.box_xyxy,
        (x1 / width, y1 / height, x2 / width, y2 / height),
        SIZE_WH * 2,
        strict=True,
    ):
        place = expected * side
        # What comes out within a hundredth of a whole pixel is that pixel.
        whole = float(round(place))
        allowed = [place, whole] if abs(place - whole) <= 0.01 + 1e-6 * side else [place]
        assert min(abs(value - one) for one in allowed) <= 1e-6 * side
    assert not report.dropped + report.repaired


def test_picture_without_label_file_is_kept_and_counted_unlike_an_empty_file(
    tmp_path: Path,
) -> None:
    draw_picture(tmp_path / "images" / "val" / "b.jpg")
    draw_picture(tmp_path / "images" / "val" / "c.jpg")
    write_text(tmp_path / "labels" / "val" / "c.txt", "0 0.5 0.5 0.25 0.5\n")
    draw_picture(tmp_path / "images" / "val" / "a.jpg")
    write_text(tmp_path / "labels" / "val" / "a.txt", "")
    write_text(tmp_path / "data.yaml", YAML)
    scenes, report = read_all("yolo", tmp_path)
    assert [len(scene.objects) for scene in scenes] == [0, 0, 1]
    assert report.repaired == {"label_missing": 1}
    assert report.examples["label_missing"] == ["images/val/b"]


def test_label_file_without_picture_is_counted(tmp_path: Path) -> None:
    write_text(tmp_path / "labels" / "val" / "lost.txt", "")
    write_text(tmp_path / "labels" / "val" / "classes.txt", "ship\ncar\n")
    _, report = _read(tmp_path, "")
    assert report.dropped == {"picture_missing": 1}
    assert report.examples["picture_missing"] == ["lost.txt"]


def test_no_label_file_at_all_is_refused_with_a_place(tmp_path: Path) -> None:
    draw_picture(tmp_path / "images" / "val" / "a.jpg")
    write_text(tmp_path / "data.yaml", YAML)
    with pytest.raises(FormatError, match=r"none of the 1 picture\(s\) .*labels/val/a\.txt"):
        read_all("yolo", tmp_path)


@pytest.mark.parametrize(
    ("names", "categories"),
    [
        pytest.param("names: [ship, car]", ("ship", "car"), id="list"),
        pytest.param("names:\n- ship\n- traffic  light", ("ship", "traffic light"), id="lines"),
        pytest.param("names: {1: car, 0: ship}", ("ship", "car"), id="map-in-another-order"),
        pytest.param("names: {'0': no, \"1\": 1e3}", ("no", "1e3"), id="names-like-values"),
        pytest.param("names: [0, 1]", ("0", "1"), id="digits"),
        pytest.param("nc: 2\nnames: [ship, car]", ("ship", "car"), id="count"),
        pytest.param("nc: 2  # classes\r\nnames: [ship, Größe]\r", ("ship", "Größe"), id="crlf"),
    ],
)
def test_names_in_the_order_of_their_ids(
    tmp_path: Path, names: str, categories: tuple[str, ...]
) -> None:
    scene, report = _read(tmp_path, "1 0.5 0.5 0.25 0.5\n", config=f"val: images/val\n{names}\n")
    assert report.categories == categories
    assert scene.objects[0].category == categories[1]
    assert not report.repaired


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param(
            "nc: 3\nnames:\n  0: pedestrian\n  2: car", "class 1 has no name", id="gap-in-names"
        ),
        pytest.param("names: {0: pedestrian, 2: car}", "class 1 has no name", id="gap-without-nc"),
        pytest.param("nc: 3\nnames: [ship, car]", "class 2 has no name", id="fewer-than-nc"),
        pytest.param("nc: 1\nnames: [ship, car]", "there are 1 classes", id="more-than-nc"),
        pytest.param("names: {1: ship, 2: car}", "class 0 has no name", id="from-1"),
        pytest.param("names: {999999999: ship}", "class 0 has no name", id="huge-id"),
        pytest.param("nc: two\nnames: [ship, car]", "a number of classes as 'nc'", id="nc-word"),
        pytest.param("names: {ship: 0, car: 1}", "one name for each class id", id="turned-round"),
        pytest.param("names: [ship, '']", "one name for each class id", id="empty-name"),
        pytest.param("names: [ship, [car]]", "one name for each class id", id="nested"),
        pytest.param("names: {0: ship, 00: car}", "one name for each class id", id="zero-twice"),
        pytest.param("names: {0: ship, 0: car}", "the key '0' is there twice", id="key-twice"),
        pytest.param("names: []", "'names' as a list or a map", id="no-names"),
        pytest.param("names: classes.txt", "'names' as a list or a map", id="file-of-names"),
        pytest.param("names: &a [ship]\nmore: [*a, *a]", "aliases", id="aliases"),
        pytest.param("names: [ship", "not a YAML document", id="cut-off"),
        pytest.param("names: [\x07]", "not a YAML document", id="control-character"),
        pytest.param("names: " + "[" * 900_000, "not a YAML document", id="nested-without-end"),
        pytest.param("- names: [ship]", "expected a mapping with 'names'", id="list"),
        pytest.param("'names:'", "expected a mapping with 'names'", id="text"),
        pytest.param("names: [ship]\n" + "#" * 1_000_001, "over 1 MB", id="huge"),
    ],
)
def test_yaml_that_makes_no_sense_is_refused_by_name(
    tmp_path: Path, names: str, message: str
) -> None:
    config = names if names.startswith(("-", "'")) else f"val: images/val\n{names}\n"
    path = write_text(tmp_path / "my.yml", config)
    draw_picture(tmp_path / "images" / "val" / "a.jpg")
    write_text(tmp_path / "labels" / "val" / "a.txt", "")
    with pytest.raises(FormatError, match=r"my\.yml") as caught:
        read_all("yolo", path)
    assert message in str(caught.value)


def test_two_ids_of_one_name_are_merged_with_a_notice(tmp_path: Path) -> None:
    config = "val: images/val\nnames: [war_ship, car, War-Ship]\n"
    scene, report = _read(tmp_path, "2 0.5 0.5 0.25 0.5\n", config=config)
    assert scene.objects[0].category == "war_ship"
    assert report.categories == ("war_ship", "car")
    assert report.repaired == {"duplicate_category": 1}


@pytest.mark.parametrize(
    ("config", "image_id"),
    [
        pytest.param("val: images/val", "images/val/a", id="folder"),
        pytest.param("val: images", "images/val/a", id="folder-above"),
        pytest.param("path: ..\nval: top/images/val", "top/images/val/a", id="path"),
        pytest.param("path: ../nowhere/x\nval: images/val", "images/val/a", id="path-elsewhere"),
        pytest.param("path: /nowhere\nval: images/val", "images/val/a", id="absolute-elsewhere"),
        pytest.param("path: images\nval: val", "val/a", id="path-to-pictures"),
        pytest.param("val: ../images/val", "images/val/a", id="one-step-too-high"),
        pytest.param("val: .\\images\\val", "images/val/a", id="back-slash"),
        pytest.param("valid: images/val", "images/val/a", id="other-spelling"),
        pytest.param("val: lists/val.txt", "images/val/a", id="list-file"),
        pytest.param("val: [images/val, lists/val.txt]", "images/val/a", id="folder-and-list"),
        pytest.param("val: [lists]\ntest:\ntrain: ''", "lists/images/a", id="list-of-one"),
    ],
)
def test_split_is_a_folder_a_list_or_several(tmp_path: Path, config: str, image_id: str) -> None:
    top = tmp_path / "top"
    draw_picture(top / "images" / "val" / "a.jpg")
    write_text(top / "labels" / "val" / "a.txt", "0 0.5 0.5 0.25 0.5\n")
    draw_picture(top / "lists" / "images" / "a.jpg")
    write_text(top / "lists" / "labels" / "a.txt", "0 0.5 0.5 0.25 0.5\n")
    listing = "\ufeff./images/val/a.jpg\r\n\r\nimages\\val\\a.jpg\r\nimages/val/lost.jpg\r\n"
    write_text(top / "lists" / "val.txt", listing)
    write_text(top / "data.yaml", f"{config}\nnames: [ship]\n")
    scenes, report = read_all("yolo", top)
    assert [(scene.image_id, len(scene.objects)) for scene in scenes] == [(image_id, 1)]
    if "val.txt" in config:
        assert report.dropped == {"picture_missing": 1}
        assert report.examples["picture_missing"] == ["val.txt:4: 'images/val/lost.jpg'"]
        assert report.repaired["duplicate_picture"] == 1 + ("[" in config)


def test_list_may_hold_absolute_paths_outside_the_dataset(tmp_path: Path) -> None:
    picture = draw_picture(tmp_path / "else" / "images" / "a.jpg")
    write_text(tmp_path / "else" / "labels" / "a.txt", "0 0.5 0.5 0.25 0.5\n")
    write_text(tmp_path / "top" / "val.txt", f"{picture}\n")
    write_text(tmp_path / "top" / "data.yaml", "val: val.txt\nnames: [ship]\n")
    scenes, _ = read_all("yolo", tmp_path / "top")
    assert [(s.image_path, s.image_id) for s in scenes] == [(picture, "a")]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param("train: images/val", "under 'val', found the keys 'train'", id="no-split"),
        pytest.param("val:", "under 'val', found the keys none", id="empty-split"),
        pytest.param("val: {a: b}", "a path or a list of paths", id="map"),
        pytest.param("val: [images/val, [x]]", "a path or a list of paths", id="nested"),
        pytest.param("val: images/test", "neither a folder nor a list", id="no-such-folder"),
        pytest.param(f"val: {'x' * 5000}", "neither a folder nor a list", id="too-long-a-name"),
        pytest.param('val: "\\0"', "neither a folder nor a list", id="nul"),
        pytest.param("val: /", "root of the disk", id="whole-disk"),
        pytest.param("path: [x]\nval: images/val", "a folder as 'path'", id="path-no-text"),
        pytest.param("val: empty", "no picture was found", id="no-pictures"),
    ],
)
def test_split_that_leads_nowhere_is_refused(tmp_path: Path, config: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match=r"data\.yaml") as caught:
        _read(tmp_path, "", config=f"{config}\nnames: [ship]\n")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("picture", "label"),
    [
        pytest.param(
            "images/a sub/a-weird Name.x.jpg", "labels/a sub/a-weird Name.x.txt", id="dots"
        ),
        pytest.param("Images/val/a.JPG", "Labels/val/a.txt", id="capitals"),
        pytest.param("Images/val/a.jpg", "labels/val/a.txt", id="mixed-case"),
        pytest.param("val/images/a.png", "val/labels/a.txt", id="split-first"),
        pytest.param("images/images/a.jpg", "images/labels/a.txt", id="last-of-two"),
        pytest.param("val/a.jpg", "val/a.txt", id="beside"),
    ],
)
def test_label_mirrors_the_picture(tmp_path: Path, picture: str, label: str) -> None:
    path = draw_picture(tmp_path / "set" / picture)
    write_text(tmp_path / "set" / label, "0 0.5 0.5 0.25 0.5\n")
    write_text(tmp_path / "set" / "x.yaml", f"val: {picture.split('/')[0]}\nnames: [ship]\n")
    (scene,), report = read_all("yolo", tmp_path / "set")
    assert scene.image_path == path
    assert scene.image_id == picture.rsplit(".", 1)[0]
    assert len(scene.objects) == 1
    assert not report.dropped + report.repaired


def test_pictures_that_would_share_an_id_keep_their_suffix(tmp_path: Path) -> None:
    draw_picture(tmp_path / "images" / "val" / "a.png")
    draw_picture(tmp_path / "images" / "val" / "a.jpg")
    write_text(tmp_path / "labels" / "val" / "a.txt", "")
    write_text(tmp_path / "data.yaml", YAML)
    scenes, report = read_all("yolo", tmp_path)
    assert [scene.image_id for scene in scenes] == ["images/val/a.jpg", "images/val/a.png"]
    assert report.repaired == {"image_id_shared": 2}


@pytest.mark.parametrize(
    "root", [".", "set", "set/data.yaml", "set/images", "set/labels", "set/images/val"]
)
def test_yaml_is_found_wherever_the_user_points(tmp_path: Path, root: str) -> None:
    _read(tmp_path / "set", "")
    write_text(tmp_path / "set" / "runs" / "args.yaml", "names: [x]\n")
    write_text(tmp_path / "set" / "hyp.yaml", "lr: 0.1\n")
    scenes, _ = read_all("yolo", tmp_path / root)
    assert [scene.image_id for scene in scenes] == ["images/val/a"]


def test_no_yaml_and_two_are_refused_with_what_is_there(tmp_path: Path) -> None:
    write_text(tmp_path / "hyp.yaml", "lr: 0.1\n")
    with pytest.raises(FormatError, match=r"'names' and 'val' below .*found hyp\.yaml"):
        read_all("yolo", tmp_path)
    for name in ("a.yaml", "b.yaml"):
        write_text(tmp_path / name, YAML)
    with pytest.raises(FormatError, match=r"2 YAML files have 'names': a\.yaml, b\.yaml"):
        read_all("yolo", tmp_path)
    with pytest.raises(FormatError, match="no such file or folder"):
        read_all("yolo", tmp_path / "nowhere")


FUZZED = f"0 0.5 0.5 0.25 0.5\n{QUAD}\n{POLYGON}\n"


def _changed(data: st.DataObject, text: str) -> bytes:
    content = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    return bytes(content)


@FUZZ
@given(data=st.data())
def test_any_changed_bytes_give_a_scene_or_our_error(tmp_path: Path, data: st.DataObject) -> None:
    what = data.draw(st.sampled_from(["rows", "yaml", "list"]))
    draw_picture(tmp_path / "images" / "val" / "a.jpg")
    config = YAML.replace("images/val", "val.txt") if what == "list" else YAML
    contents = {
        "labels/val/a.txt": _changed(data, FUZZED) if what == "rows" else FUZZED.encode(),
        "data.yaml": _changed(data, config) if what == "yaml" else config.encode(),
        "val.txt": _changed(data, "images/val/a.jpg\n./images/val/b.jpg\n"),
    }
    for name, content in contents.items():
        write_text(tmp_path / name, "").write_bytes(content)
    _read_or_refuse(tmp_path)


_NUMBERS = st.floats() | st.integers() | st.floats(-1, 2)


@FUZZ
@given(st.lists(st.lists(_NUMBERS, min_size=5, max_size=11), min_size=1, max_size=4))
def test_any_numbers_give_a_scene_or_our_error(tmp_path: Path, rows: list[list[float]]) -> None:
    text = "\n".join(f"{i % 2} " + " ".join(map(str, row[1:])) for i, row in enumerate(rows))
    draw_picture(tmp_path / "images" / "val" / "a.jpg")
    write_text(tmp_path / "labels" / "val" / "a.txt", text)
    write_text(tmp_path / "data.yaml", YAML)
    _read_or_refuse(tmp_path)


def _read_or_refuse(folder: Path) -> None:
    try:
        scenes, report = read_all("yolo", folder)
    except SoubenchError:
        return
    json.dumps(report.as_dict())
    assert report.objects == sum(len(scene.objects) for scene in scenes)
    for scene in scenes:
        for found in scene.objects:
            box = found.box_xyxy
            assert 0 <= box.x1 < box.x2 <= scene.width
            assert 0 <= box.y1 < box.y2 <= scene.height
            assert 0 < found.area_px <= scene.width * scene.height + 1e-6
            assert found.category in report.categories
