"""SODA-A."""

from pathlib import Path

import pytest

from soubench.builders.errors import FormatError
from soubench.builders.sources import soda_a
from tests.data import draw_picture, read_all, write_json, write_text

QUAD = [10, 10, 30, 14, 28, 24, 8, 20]
REGION = [1, 1, 20, 1, 25, 10, 20, 20, 1, 20]


def _document(*annotations: object, size_wh: tuple[int, int] = (64, 48)) -> dict:
    return {
        "images": {"file_name": "00010.jpg", "width": size_wh[0], "height": size_wh[1]},
        "categories": [
            {"id": i, "name": name} for i, name in enumerate((*soda_a.CATEGORIES, "ignore"))
        ],
        "annotations": list(annotations),
    }


def _quad(record_id: int, poly: object, category: object = 2, **more: object) -> dict:
    return {"id": record_id, "category_id": category, "poly": poly, **more}


def _read(folder: Path, document: dict, *, orientation: int = 1):
    draw_picture(folder / "val" / "Images" / "00010.jpg", orientation=orientation)
    write_json(folder / "val" / "Annotations" / "00010.json", document)
    (scene,), report = read_all("soda-a", folder)
    return scene, report


def test_oriented_boxes_keep_their_corners_and_area(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, _document(_quad(0, QUAD), _quad(1, QUAD, "0")))
    assert (scene.image_id, scene.group_id) == ("00010", "00010")
    assert [found.category for found in scene.objects] == ["small-vehicle", "airplane"]
    found = scene.objects[0]
    assert found.quad_xy8 == tuple(QUAD)
    assert found.box_xyxy == (8, 10, 30, 24)
    # A parallelogram of the sides (20, 4) and (-2, 10): 20 × 10 + 4 × 2.
    assert found.area_px == 208
    assert not report.dropped + report.ignored + report.repaired


def test_only_ignore_regions_may_have_other_than_four_corners(tmp_path: Path) -> None:
    scene, report = _read(
        tmp_path,
        _document(
            _quad(0, REGION),
            _quad(1, REGION, 9),
            _quad(2, REGION, 4, ignore=1),
            _quad(3, QUAD, 9),
            _quad(4, QUAD, 4, ignore="1"),
        ),
    )
    assert [found.record_id for found in scene.objects] == ["1", "2", "3", "4"]
    assert all(found.ignore for found in scene.objects)
    # A square of 19 px a side and a triangle of 19 × 5 / 2 beside it.
    assert scene.objects[0].area_px == pytest.approx(361 + 47.5)
    assert scene.objects[0].quad_xy8 is None
    assert report.dropped == {"not_four_corners": 1}
    assert report.ignored == {"ignore_class": 2, "ignore_flag": 2}


@pytest.mark.parametrize("content", ["", '{"annotations": []}'])
def test_file_without_labels_is_a_scene_without_objects(tmp_path: Path, content: str) -> None:
    draw_picture(tmp_path / "val" / "Images" / "a.jpg")
    write_text(tmp_path / "val" / "Annotations" / "a.json", content)
    (scene,), report = read_all("soda-a", tmp_path)
    assert scene.objects == ()
    assert report.repaired == ({} if content else {"label_empty": 1})


def test_table_of_the_file_decides_and_the_documented_one_fills_in(tmp_path: Path) -> None:
    document = _document(_quad(0, QUAD, 1), _quad(1, REGION, 9))
    document["categories"] = [{"id": 1, "name": "Storage_Tank"}]
    scene, _ = _read(tmp_path, document)
    assert [found.category for found in scene.objects] == ["storage-tank", "ignore"]


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(_quad(1, [1, 2, 3, 4]), id="two-corners"),
        pytest.param(_quad(1, [*QUAD, 1]), id="odd-number"),
        pytest.param(_quad(1, None), id="null"),
        pytest.param(_quad(1, [[1, 2], [3, 4], [5, 6], [7, 8]]), id="pairs"),
        pytest.param(_quad(1, QUAD, None), id="no-category"),
        pytest.param(_quad(1, QUAD, ignore={}), id="object-as-flag"),
        pytest.param(5, id="number"),
    ],
)
def test_malformed_record_is_dropped_and_counted(tmp_path: Path, annotation: object) -> None:
    scene, report = _read(tmp_path, _document(_quad(0, QUAD), annotation))
    assert [found.record_id for found in scene.objects] == ["0"]
    assert report.dropped == {"malformed_record": 1}


def test_repeated_id_and_twin_are_counted(tmp_path: Path) -> None:
    scene, report = _read(
        tmp_path,
        _document(_quad(0, QUAD), _quad(0, REGION[:8]), _quad(5, QUAD), _quad(6, QUAD, 77)),
    )
    assert len(scene.objects) == 2
    assert report.repaired == {"duplicate_record_id": 1}
    assert report.dropped == {"duplicate_object": 1, "unknown_category": 1}


def test_label_made_on_the_unturned_picture_is_turned(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, _document(_quad(0, QUAD)), orientation=6)
    # Orientation 6: (x, y) -> (48 - y, x).
    assert scene.objects[0].quad_xy8 == (38, 10, 34, 30, 24, 28, 28, 8)
    assert report.repaired == {"exif_turned": 1}


def test_labels_of_another_set_are_refused_in_the_end(tmp_path: Path) -> None:
    document = _document(_quad(0, QUAD, 50))
    document["categories"] = [{"id": 50, "name": "dog"}]
    with pytest.raises(FormatError, match=r"1 of the 1 objects.*found 'dog'"):
        _read(tmp_path, document)


@pytest.mark.parametrize("content", ["[]", '{"shapes": []}', '{"annotations": 5}', '{"annotat'])
def test_file_of_another_form_is_refused_by_name(tmp_path: Path, content: str) -> None:
    draw_picture(tmp_path / "val" / "Images" / "a.jpg")
    write_text(tmp_path / "val" / "Annotations" / "a.json", content)
    with pytest.raises(FormatError, match=r"a\.json"):
        read_all("soda-a", tmp_path)


@pytest.mark.parametrize("layout", ["{}/val", "val/{}", "SODA-A/{}/val", "rawData/val/{}"])
def test_both_layouts_are_found(tmp_path: Path, layout: str) -> None:
    draw_picture(tmp_path / layout.format("Images") / "a.jpg")
    draw_picture(tmp_path / layout.format("Images").replace("val", "train") / "b.jpg")
    write_json(tmp_path / layout.format("Annotations") / "a.json", _document())
    write_json(tmp_path / layout.format("AnnsWoIgnore") / "a.json", _document())
    write_json(
        tmp_path / layout.format("Annotations").replace("val", "train") / "b.json", _document()
    )
    scenes, report = read_all("soda-a", tmp_path)
    assert [scene.image_id for scene in scenes] == ["a"]
    assert not report.dropped
