"""Pascal VOC, and MAR20's two editions of it."""

import json
import math
from pathlib import Path

import numpy as np
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
SIZE = "<size><width>64</width><height>48</height><depth>3</depth></size>"


def _box(name: str, *sides: object, more: str = "") -> str:
    tags = zip(("xmin", "ymin", "xmax", "ymax"), sides, strict=True)
    box = "".join(f"<{tag}>{side}</{tag}>" for tag, side in tags)
    return f"<object><name>{name}</name>{more}<bndbox>{box}</bndbox></object>"


def _document(*objects: str, head: str = SIZE) -> str:
    return f"<annotation><filename>a.jpg</filename>{head}{''.join(objects)}</annotation>"


def _lay_out(folder: Path, text: str | bytes, *, listing: str = "a\n", **options) -> Path:
    draw_picture(folder / "JPEGImages" / "a.jpg", **options)
    write_text(folder / "ImageSets" / "Main" / "val.txt", listing)
    label = write_text(folder / "Annotations" / "a.xml", "")
    label.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def _read(folder: Path, text: str | bytes, **options) -> tuple[Scene, ReadReport]:
    (scene,), report = read_all("voc", _lay_out(folder, text, **options))
    return scene, report


def test_corners_count_from_1_and_are_inclusive(tmp_path: Path) -> None:
    scene, report = _read(
        tmp_path, _document(_box("dog", 1, 1, 64, 48), _box("cat", 10, 20, 12, 29))
    )
    assert (scene.image_id, scene.group_id, scene.source) == ("a", "a", "voc")
    assert [(o.category, o.box_xyxy, o.area_px, o.record_id) for o in scene.objects] == [
        ("dog", (0, 0, 64, 48), 64 * 48, "1"),
        ("cat", (9, 19, 12, 29), 30, "2"),
    ]
    assert (report.source, report.split, report.categories) == ("voc", "val", ("cat", "dog"))
    assert not report.dropped + report.repaired + report.ignored


def test_a_set_that_counts_from_0_is_clipped_and_counted(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, _document(_box("dog", 0, 0, 20, 10)))
    assert scene.objects[0].box_xyxy == (0, 0, 20, 10)
    assert report.repaired == {"clipped": 1}


@FUZZ
@given(st.integers(0, 62), st.integers(0, 46), st.data())
def test_box_covers_the_pixels_that_were_painted(
    tmp_path: Path, left: int, top: int, data: st.DataObject
) -> None:
    right, bottom = data.draw(st.integers(left + 1, 63)), data.draw(st.integers(top + 1, 47))
    painted = np.zeros((48, 64), dtype=bool)
    painted[top : bottom + 1, left : right + 1] = True
    rows, columns = np.nonzero(painted)
    sides = (columns.min() + 1, rows.min() + 1, columns.max() + 1, rows.max() + 1)
    scene, report = _read(tmp_path, _document(_box("dog", *sides)))
    (found,) = scene.objects
    x1, y1, x2, y2 = map(int, found.box_xyxy)
    assert painted[y1:y2, x1:x2].all()
    assert found.area_px == painted.sum()
    assert not report.repaired


@pytest.mark.parametrize(
    ("sides", "reason"),
    [
        pytest.param((30, 30, 28, 36), "degenerate", id="inverted"),
        pytest.param((30, 30, 29, 36), "degenerate", id="inverted-by-one"),
        pytest.param((30, 30, 30, 36), "degenerate", id="equal"),
        pytest.param((90, 30, 99, 36), "outside_picture", id="outside"),
        pytest.param((30, 30, "", 36), "malformed_record", id="empty"),
        pytest.param((30, 30, "wide", 36), "malformed_record", id="word"),
        pytest.param((30, 30, "nan", 36), "malformed_record", id="nan"),
    ],
)
def test_box_that_is_none_is_dropped_with_its_reason(
    tmp_path: Path, sides: tuple, reason: str
) -> None:
    scene, report = _read(tmp_path, _document(_box("dog", 1, 1, 9, 9), _box("dog", *sides)))
    assert [found.record_id for found in scene.objects] == ["1"]
    assert report.dropped == {reason: 1}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param("<object/>", id="empty"),
        pytest.param("<object><name>dog</name></object>", id="no-box"),
        pytest.param(_box(" ", 1, 1, 9, 9), id="blank-name"),
        pytest.param(_box("dog", 1, 1, 9, 9).replace("name>", "label>"), id="no-name"),
        pytest.param(_box("dog", 1, 1, 9, 9, more="<difficult>x</difficult>"), id="difficult-word"),
        pytest.param(
            _box("dog", 1, 1, 9, 9, more="<bndbox><xmin>1</xmin></bndbox>"), id="two-boxes"
        ),
        pytest.param(
            "<object><name>dog</name><part><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax>"
            "<ymax>9</ymax></bndbox></part></object>",
            id="box-of-a-part-alone",
        ),
    ],
)
def test_object_of_another_form_is_dropped_and_counted(tmp_path: Path, record: str) -> None:
    scene, report = _read(tmp_path, _document(record))
    assert scene.objects == ()
    assert report.dropped == {"malformed_record": 1}
    assert report.examples["malformed_record"] == ["a.xml: object 1"]


def test_floats_any_order_and_missing_fields_are_fine(tmp_path: Path) -> None:
    text = _document(
        "<object><bndbox><ymax> 20.5 </ymax><xmin>2.25</xmin><xmax>9.5</xmax><ymin>3</ymin>"
        "</bndbox><truncated>0.4</truncated><name> traffic  light\n</name></object>"
    )
    scene, report = _read(tmp_path, text)
    (found,) = scene.objects
    assert (found.category, found.box_xyxy) == ("traffic light", (1.25, 2, 9.5, 20.5))
    assert not report.dropped


def test_boxes_of_parts_are_not_taken_for_objects(tmp_path: Path) -> None:
    part = "<part><name>head</name><bndbox><xmin>5</xmin><ymin>6</ymin></bndbox></part>"
    scene, report = _read(tmp_path, _document(_box("person", 4, 5, 6, 7, more=part)))
    assert [(o.category, o.box_xyxy) for o in scene.objects] == [("person", (3, 4, 6, 7))]
    assert report.categories == ("person",)


def test_difficult_objects_stay_and_do_not_count(tmp_path: Path) -> None:
    marks = [f"<difficult>{mark}</difficult>" for mark in ("1", "0", "")]
    boxes = [_box("dog", 1, 1, 10 + i, 9, more=mark) for i, mark in enumerate((*marks, ""))]
    scene, report = _read(tmp_path, _document(*boxes))
    assert [found.ignore for found in scene.objects] == [True, False, False, False]
    assert report.ignored == {"difficult": 1}


@pytest.mark.parametrize(
    ("head", "repaired"),
    [
        pytest.param("", {}, id="no-size"),
        pytest.param("<size><width>0</width><height>0</height></size>", {}, id="zero"),
        pytest.param("<size><width>x</width></size>", {}, id="no-number"),
        pytest.param(
            "<size><width>99</width><height>48</height></size>", {"size_mismatch": 1}, id="other"
        ),
        pytest.param(
            "<size><width>48</width><height>64</height></size>",
            {"size_transposed": 1},
            id="transposed",
        ),
    ],
)
def test_size_is_that_of_the_picture(tmp_path: Path, head: str, repaired: dict) -> None:
    scene, report = _read(tmp_path, _document(_box("dog", 1, 1, 9, 9), head=head))
    assert (scene.width, scene.height) == (64, 48)
    assert scene.objects[0].box_xyxy == (0, 0, 9, 9)
    assert report.repaired == repaired


def test_labels_made_on_the_unturned_picture_are_turned_with_it(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, _document(_box("dog", 1, 1, 10, 5)), orientation=6)
    assert (scene.width, scene.height) == (48, 64)
    assert scene.objects[0].box_xyxy == (43, 0, 48, 10)
    assert report.repaired == {"exif_turned": 1}


def test_file_name_inside_that_is_another_is_noticed_and_not_used(tmp_path: Path) -> None:
    draw_picture(tmp_path / "JPEGImages" / "b.jpg", (9, 9))
    text = _document().replace("a.jpg", "b.jpg")
    scene, report = _read(tmp_path, text)
    assert scene.image_path.name == "a.jpg"
    assert report.repaired == {"filename_mismatch": 1}


@pytest.mark.parametrize(
    "inside", ["a.jpg", "a.xml", "a", "A.JPG", "sub\\a.png", "/home/me/a.jpg", ""]
)
def test_file_name_inside_may_be_spelled_in_many_ways(tmp_path: Path, inside: str) -> None:
    _, report = _read(tmp_path, _document().replace("a.jpg", inside))
    assert not report.repaired


def test_picture_without_objects_is_kept_whatever_the_encoding(tmp_path: Path) -> None:
    text = f'<?xml version="1.0" encoding="gb2312"?>\n{_document()}'.replace("a.jpg", "图a.jpg")
    scene, report = _read(tmp_path, text.encode("gb2312"))
    assert scene.objects == ()
    assert report.examples["filename_mismatch"] == ["a.xml names '\\u56fea.jpg'"]


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        ("gb2312", "gb18030"),
        ("GBK", "gb18030"),
        ("Big5", "big5"),
        ("Shift_JIS", "shift_jis"),
        ("euc-kr", "euc-kr"),
        ("UTF-8", "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("utf-16", "utf-16"),
    ],
)
def test_names_in_any_declared_encoding(tmp_path: Path, declared: str, written: str) -> None:
    name = "한국" if declared == "euc-kr" else "人"
    text = f"<?xml version='1.0' encoding='{declared}'?>{_document(_box(name, 1, 1, 9, 9))}"
    _, report = _read(tmp_path, text.encode(written))
    assert report.categories == (name,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            b'<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY x "aaaaaaaaaa"><!ENTITY y "&x;&x;&x;">'
            b"]>\n<annotation><filename>&y;.jpg</filename></annotation>",
            "document type",
            id="entity-bomb",
        ),
        pytest.param(
            b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><annotation/>', "document type", id="external"
        ),
        pytest.param(b"<annotation>&y;</annotation>", "not a whole XML", id="unknown-entity"),
        pytest.param(b"<annotation><object>", "not a whole XML", id="cut-off"),
        pytest.param(b"", "not a whole XML", id="zero-bytes"),
        pytest.param(b"{}", "not a whole XML", id="json"),
        pytest.param(b"<annotation/>\xff", "is not 'utf-8'", id="not-utf-8"),
        pytest.param(
            b"<?xml version='1.0' encoding='klingon'?><annotation/>", "'klingon'", id="no-encoding"
        ),
        pytest.param(
            b"<?xml version='1.0' encoding='hex'?><annotation/>", "'hex'", id="no-text-encoding"
        ),
        pytest.param(b"<html/>", "the root <annotation>, found 'html'", id="other-root"),
    ],
)
def test_file_of_another_form_is_refused_by_name(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(FormatError, match=r"a\.xml") as caught:
        _read(tmp_path, content)
    assert message in str(caught.value)


MAR20 = "<source><database>MAR20</database></source>" + SIZE


def test_mar20_names_are_read_in_any_case_and_the_file_by_its_own_name(tmp_path: Path) -> None:
    text = _document(_box("A2", 5, 7, 14, 16), _box("a13", 30, 30, 28, 36), head=MAR20)
    scene, report = _read(tmp_path, text.replace("a.jpg", "12.xml"))
    assert [(o.category, o.box_xyxy) for o in scene.objects] == [("A2", (4, 6, 14, 16))]
    assert report.categories == ("A13", "A2")
    assert report.dropped == {"degenerate": 1}
    assert report.repaired == {"filename_mismatch": 1, "category_spelling": 1}
    assert report.examples["category_spelling"] == ["a.xml: object 2: 'a13' is read as 'A13'"]


def test_mar20_class_that_it_does_not_have_is_refused(tmp_path: Path) -> None:
    text = _document(_box("A2", 5, 7, 14, 16), _box("A21", 10, 10, 20, 20), head=MAR20)
    with pytest.raises(FormatError, match=r"a\.xml: object 2: the class is 'A21'.*A1 to A20"):
        _read(tmp_path, text)


def test_class_names_of_other_sets_are_taken_as_they_are(tmp_path: Path) -> None:
    boxes = [_box(name, 1, 1, 9 + i, 9) for i, name in enumerate(("Car", "car", "car", "A21"))]
    scene, report = _read(tmp_path, _document(*boxes))
    assert [found.category for found in scene.objects] == ["car", "car", "car", "A21"]
    assert report.categories == ("A21", "car")
    assert report.repaired == {"category_spelling": 1}


CORNERS = {
    "x_left_top": 16.25,
    "y_left_top": 4.5,
    "x_right_top": 30.5,
    "y_right_top": 15.5,
    "x_right_bottom": 24,
    "y_right_bottom": 37.5,
    "x_left_bottom": 9.75,
    "y_left_bottom": 24,
}


def _oriented(name: str, values: dict, *, kind: str = "<type>robndbox</type>") -> str:
    inner = "".join(f"<{tag}>{value}</{tag}>" for tag, value in values.items())
    shape = f"<robndbox>{inner}</robndbox><angle>0</angle>"
    return f"<object>{kind}<name>{name}</name>{shape}</object>"


def test_oriented_boxes_in_both_forms_with_plain_boxes_between(tmp_path: Path) -> None:
    center = {"cx": 30.5, "cy": 20, "w": 20, "h": 10, "angle": 0.52}
    plain = _box("A3", 1, 1, 9, 9, more="<type>bndbox</type>")
    text = _document(_oriented("A2", CORNERS), plain, _oriented("A4", center))
    scene, report = _read(tmp_path, text)
    first, second, third = scene.objects
    assert first.quad_xy8 == tuple(CORNERS.values())
    assert (second.quad_xy8, second.box_xyxy) == (None, (0, 0, 9, 9))
    assert third.quad_xy8 is not None
    corners = np.reshape(third.quad_xy8, (4, 2))
    assert corners.mean(axis=0) == pytest.approx((30.5, 20))
    across, down = corners[1] - corners[0], corners[2] - corners[1]
    assert (np.hypot(*across), np.hypot(*down)) == pytest.approx((20, 10))
    # With y downwards an angle from x to y turns clockwise on the screen.
    assert math.atan2(across[1], across[0]) == pytest.approx(0.52)
    assert third.area_px == pytest.approx(200)
    assert not report.dropped + report.repaired


@FUZZ
@given(
    st.floats(15, 49), st.floats(15, 33), st.floats(2, 20), st.floats(2, 20), st.floats(-6.2, 6.2)
)
def test_center_form_agrees_with_a_turned_rectangle(
    tmp_path: Path, cx: float, cy: float, w: float, h: float, angle: float
) -> None:
    scene, _ = _read(
        tmp_path,
        _document(_oriented("A4", {"cx": cx, "cy": cy, "w": w, "h": h, "angle": repr(angle)})),
    )
    flat = shapely.box(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)
    expected = shapely.affinity.rotate(flat, angle, use_radians=True)
    (found,) = scene.objects
    quad = shapely.Polygon(np.reshape(found.quad_xy8, (4, 2)))
    assert quad.symmetric_difference(expected).area < 1e-6
    assert found.area_px == pytest.approx(w * h)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"cx": 9, "cy": 9, "w": 4, "h": 4}, "unsupported <robndbox>", id="no-angle"),
        pytest.param({"x1": 9, "y1": 9}, r"found \['x1', 'y1'\]", id="other-names"),
        pytest.param({}, r"found \[\]", id="empty"),
        pytest.param(
            {"cx": 9, "cy": 9, "w": 4, "h": 4, "angle": 30}, "angle in radians, found 30", id="deg"
        ),
    ],
)
def test_oriented_box_of_another_form_is_refused(
    tmp_path: Path, values: dict, message: str
) -> None:
    with pytest.raises(FormatError, match=r"a\.xml: object 1: .*" + message):
        _read(tmp_path, _document(_oriented("A2", values)))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param({**CORNERS, "y_left_top": "x"}, "malformed_record", id="word"),
        pytest.param(
            {"cx": 9, "cy": 9, "w": -4, "h": 4, "angle": 0}, "degenerate", id="negative-width"
        ),
    ],
)
def test_oriented_box_that_is_none_is_dropped(tmp_path: Path, values: dict, reason: str) -> None:
    scene, report = _read(tmp_path, _document(_oriented("A2", values)))
    assert scene.objects == ()
    assert report.dropped == {reason: 1}


def test_one_of_two_label_folders_has_to_be_chosen(tmp_path: Path) -> None:
    _lay_out(tmp_path, "")
    (tmp_path / "Annotations" / "a.xml").unlink()
    editions = {
        "Horizontal Bounding Boxes": _document(_box("A3", 1, 1, 9, 9)),
        "Oriented Bounding Boxes": _document(_oriented("A2", CORNERS)),
    }
    for name, text in editions.items():
        write_text(tmp_path / "Annotations" / name / "a.xml", text)
    with pytest.raises(FormatError, match=r"2 folders hold XML files: .*Horizontal.*pass the path"):
        read_all("voc", tmp_path)
    found = {
        name: read_all("voc", tmp_path / "Annotations" / name)[1].categories for name in editions
    }
    assert list(found.values()) == [("A3",), ("A2",)]
    for path in sorted((tmp_path / "Annotations" / "Oriented Bounding Boxes").iterdir()):
        path.unlink()
    assert read_all("voc", tmp_path)[1].categories == ("A3",)


@pytest.mark.parametrize(
    "root", [".", "VOC2007", "VOC2007/Annotations", "VOC2007/JPEGImages", "VOC2007/ImageSets"]
)
def test_set_is_found_wherever_the_user_points(tmp_path: Path, root: str) -> None:
    folder = _lay_out(tmp_path / "top" / "VOC2007", _document(_box("dog", 1, 1, 9, 9)))
    write_text(folder / "ImageSets" / "Main" / "dog_val.txt", "a 1\n")
    write_text(folder / "ImageSets" / "Layout" / "val.txt", "b\n")
    draw_picture(folder / "SegmentationClass" / "a.png")
    scenes, report = read_all("voc", tmp_path / "top" / root)
    assert [scene.image_path.name for scene in scenes] == ["a.jpg"]
    assert not report.dropped


def test_listed_names_may_have_blanks_dots_and_suffixes(tmp_path: Path) -> None:
    stems = ("a weird.name 1", "b", "C")
    for stem in stems:
        draw_picture(tmp_path / "JPEGImages" / f"{stem}.jpg")
        write_text(tmp_path / "Annotations" / f"{stem}.xml", _document())
    listing = "\ufeffc\r\n\r\n  a weird.name 1  \r\nb.jpg\r\nb\r\nlost\r\n"
    write_text(tmp_path / "ImageSets" / "Main" / "val.txt", listing)
    scenes, report = read_all("voc", tmp_path)
    assert [scene.image_id for scene in scenes] == ["C", "a weird.name 1", "b"]
    assert report.dropped == {"label_missing": 1}
    assert report.repaired == {"duplicate_picture": 1, "filename_mismatch": 3}
    assert report.examples["label_missing"] == ["val.txt:6: 'lost'"]


def test_label_without_picture_is_counted_and_none_at_all_refused(tmp_path: Path) -> None:
    write_text(tmp_path / "Annotations" / "b.xml", _document())
    _, report = _read(tmp_path, _document(), listing="a\nb\n")
    assert report.dropped == {"picture_missing": 1}
    write_text(tmp_path / "ImageSets" / "Main" / "val.txt", "b\nc\n")
    with pytest.raises(FormatError, match=r"none of the 2 picture\(s\) listed"):
        read_all("voc", tmp_path)


def test_missing_list_is_refused_with_the_lists_that_are_there(tmp_path: Path) -> None:
    _lay_out(tmp_path, _document())
    with pytest.raises(FormatError, match=r"ImageSets/Main/train\.txt.*found ImageSets/Main/val"):
        read_all("voc", tmp_path, "train")


@pytest.mark.parametrize("split", ["val", "train", "anything"])
def test_set_without_lists_is_one_split_of_any_name_with_a_notice(
    tmp_path: Path, split: str
) -> None:
    for stem in ("b", "a"):
        draw_picture(tmp_path / "JPEGImages" / f"{stem}.jpg")
        write_text(tmp_path / "Annotations" / f"{stem}.xml", _document(_box("dog", 1, 1, 9, 9)))
    write_text(tmp_path / "Annotations" / "lost.xml", _document())
    draw_picture(tmp_path / "JPEGImages" / "bare.jpg")
    scenes, report = read_all("voc", tmp_path, split)
    assert [(scene.image_id, scene.split) for scene in scenes] == [("a", split), ("b", split)]
    assert report.dropped == {"picture_missing": 1, "label_missing": 1}
    assert report.repaired["split_not_listed"] == 1


def test_set_without_lists_and_pictures_is_refused(tmp_path: Path) -> None:
    write_text(tmp_path / "Annotations" / "a.xml", _document())
    with pytest.raises(FormatError, match=r"none of the 1 XML file\(s\) has a picture"):
        read_all("voc", tmp_path)


def test_folder_of_another_form_is_refused_with_what_is_there(tmp_path: Path) -> None:
    draw_picture(tmp_path / "train" / "a.jpg")
    with pytest.raises(
        FormatError, match=r"found no XML file in a folder 'Annotations', but train"
    ):
        read_all("voc", tmp_path)
    with pytest.raises(FormatError, match="no such folder"):
        read_all("voc", tmp_path / "nowhere")


FUZZED = _document(
    _box("dog", 1, 1, 20, 9, more="<difficult>0</difficult>"),
    _oriented("cat", CORNERS),
    _oriented("cat", {"cx": 30, "cy": 20, "w": 20, "h": 10, "angle": 0.5}),
    head=f"<source><database>x</database></source>{SIZE}",
)


@FUZZ
@given(data=st.data())
def test_any_changed_bytes_give_a_scene_or_our_error(tmp_path: Path, data: st.DataObject) -> None:
    declaration = data.draw(st.sampled_from(["", "<?xml version='1.0' encoding='gb2312'?>"]))
    content = bytearray((declaration + FUZZED).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    _read_or_refuse(_lay_out(tmp_path, bytes(content)))


_VALUES = (
    st.floats() | st.integers() | st.floats(-10, 80) | st.integers(-3, 70) | st.text(max_size=3)
)


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 16), _VALUES)))
def test_any_value_gives_a_scene_or_our_error(
    tmp_path: Path, changes: list[tuple[int, object]]
) -> None:
    values: list[object] = [1, 1, 20, 9, *CORNERS.values(), 30, 20, 20, 10, 0.5]
    for place, value in changes:
        values[place] = str(value).encode("utf-8", "replace").decode()
    oriented = dict(zip(CORNERS, values[4:12], strict=True))
    center = dict(zip(("cx", "cy", "w", "h", "angle"), values[12:], strict=True))
    text = _document(_box("dog", *values[:4]), _oriented("cat", oriented), _oriented("x", center))
    _read_or_refuse(_lay_out(tmp_path, text))


@FUZZ
@given(st.binary(max_size=20))
def test_any_list_gives_a_scene_or_our_error(tmp_path: Path, content: bytes) -> None:
    _lay_out(tmp_path, FUZZED)
    (tmp_path / "ImageSets" / "Main" / "val.txt").write_bytes(content + b"\na\n")
    _read_or_refuse(tmp_path)


def _read_or_refuse(folder: Path) -> None:
    try:
        scenes, report = read_all("voc", folder)
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
