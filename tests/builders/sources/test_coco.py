"""Generic COCO files, and what all COCO-like readers share."""

import json
from pathlib import Path

import numpy as np
import pytest
from pycocotools import mask as mask_tools

from soubench.builders.errors import FormatError
from soubench.builders.scene import Mask
from tests.data import coco_document, draw_picture, read_all, record, write_json, write_text

BOX = [10, 10, 5, 5]


def _read(folder: Path, document: dict, *, size_wh: tuple[int, int] = (64, 48)):
    """Read a document whose pictures a.jpg and b.jpg lie beside it."""
    for name in ("a.jpg", "b.jpg"):
        draw_picture(folder / "val" / name, size_wh)
    return read_all("coco", write_json(folder / "val" / "labels.json", document))


def _one(folder: Path, annotation: dict, **options):
    return _read(folder, coco_document(("ship",), annotations=[annotation]), **options)


def test_scene_says_what_the_file_says(tmp_path: Path) -> None:
    document = coco_document(("ship", "car"), annotations=[record(7, [1, 2, 3.5, 4], category=2)])
    scenes, report = _read(tmp_path, document)
    (scene,) = scenes
    assert (scene.image_id, scene.group_id, scene.source, scene.split) == ("a", "a", "coco", "val")
    assert (scene.width, scene.height) == (64, 48)
    assert scene.image_path == tmp_path / "val" / "a.jpg"
    (found,) = scene.objects
    assert (found.category, found.box_xyxy, found.record_id) == ("car", (1, 2, 4.5, 6), "7")
    assert (report.source, report.split, report.categories) == ("coco", "val", ("ship", "car"))
    assert (report.pictures, report.objects) == (1, 1)


def test_bom_crlf_nan_and_infinity(tmp_path: Path) -> None:
    draw_picture(tmp_path / "a.jpg")
    text = (
        '\ufeff{"images":[{"id":1,"file_name":"a.jpg","width":64,"height":48}],\r\n'
        '"categories":[{"id":1,"name":"ship"}],\r\n"annotations":['
        '{"id":1,"image_id":1,"category_id":1,"bbox":[10,10,NaN,5],"area":NaN,"iscrowd":0},\r\n'
        '{"id":2,"image_id":1,"category_id":1,"bbox":[10,10,5,5],"area":25,"iscrowd":0},\r\n'
        '{"id":3,"image_id":1,"category_id":1,"bbox":[10,10,Infinity,5],"iscrowd":0}]}'
    )
    scenes, report = read_all("coco", write_text(tmp_path / "x.json", text))
    assert [found.record_id for found in scenes[0].objects] == ["2"]
    assert report.dropped == {"not_finite": 2}


def test_images_without_sizes_and_annotations_are_scenes_without_objects(tmp_path: Path) -> None:
    images = [
        {"id": 1, "file_name": "a.jpg"},
        {"id": 2, "file_name": "b.jpg", "width": 0, "height": 0},
    ]
    document = coco_document(("ship",), images=images)
    del document["annotations"]
    scenes, report = _read(tmp_path, document)
    assert [(s.image_id, s.width, s.height, s.objects) for s in scenes] == [
        ("a", 64, 48, ()),
        ("b", 64, 48, ()),
    ]
    assert report.repaired == {"annotations_missing": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b'[{"image_id":1}]', "detection results, not a dataset", id="bare-list"),
        pytest.param(b'{"images":[{"id":1,"fi', "byte 19", id="cut-off"),
        pytest.param('{"ä":"ö", "images":['.encode(), "byte 22", id="cut-off-counted-in-bytes"),
        pytest.param(b'\xef\xbb\xbf{"images":[', "byte 14 of 14", id="cut-off-behind-a-bom"),
        pytest.param(b"", "byte 0 of 0", id="zero-bytes"),
        pytest.param(b'{"images": "\xff"}', "UTF-8", id="not-utf-8"),
        pytest.param('{"images":[]}'.encode("utf-16"), "UTF-8", id="utf-16"),
        pytest.param(b"[" * 100_000, "no label file needs", id="nested-without-end"),
        pytest.param(b'{"images":' + b"1" * 5000 + b"}", "no label file needs", id="long-number"),
        pytest.param(b"5", "expected a COCO-like object", id="number"),
        pytest.param(b'{"shapes": []}', "an object without 'images'", id="no-images"),
        pytest.param(
            b'{"images": [], "annotations": {"a": 1}}',
            "a list under 'annotations'",
            id="no-records",
        ),
        pytest.param(b'{"images": {}}', "expected a list under 'images'", id="images-no-list"),
        pytest.param(
            b'{"images": [], "annotations": [{}]}', "no usable 'categories'", id="no-table"
        ),
        pytest.param(
            b'{"images": [], "categories": 5}', "a list under 'categories'", id="table-no-list"
        ),
    ],
)
def test_file_of_another_form_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.json") as caught:
        read_all("coco", path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"bbox": [1, 2, 3]}, id="three-numbers"),
        pytest.param({"bbox": "1,2,3,4"}, id="text-box"),
        pytest.param({"bbox": None}, id="null-box"),
        pytest.param({"bbox": {"x": 1}}, id="object-box"),
        pytest.param({"bbox": [1, 2, "wide", 4]}, id="word-in-box"),
        pytest.param({"bbox": [1, 2, "NaN", 4]}, id="nan-as-text"),
        pytest.param({"bbox": [1, 2, True, 4]}, id="true-in-box"),
        pytest.param({"image_id": [1]}, id="list-as-image-id"),
        pytest.param({"image_id": None}, id="null-image-id"),
        pytest.param({"category_id": {}}, id="object-as-category"),
        pytest.param({"category_id": 1.5}, id="half-category"),
        pytest.param({"iscrowd": "maybe"}, id="unclear-crowd"),
        pytest.param({"ignore": [1]}, id="list-as-flag"),
    ],
)
def test_record_of_wrong_types_is_dropped_and_counted(tmp_path: Path, change: dict) -> None:
    document = coco_document(("ship",), annotations=[record(1, BOX), record(2, BOX) | change])
    scenes, report = _read(tmp_path, document)
    assert [found.record_id for found in scenes[0].objects] == ["1"]
    assert report.dropped == {"malformed_record": 1}


@pytest.mark.parametrize("junk", [None, 5, "text", [1]])
def test_records_that_are_no_objects_are_dropped_everywhere(tmp_path: Path, junk: object) -> None:
    document = coco_document(("ship",), annotations=[record(1, BOX)])
    for key in ("images", "categories", "annotations"):
        document[key].append(junk)
    scenes, report = _read(tmp_path, document)
    assert len(scenes[0].objects) == 1
    assert report.dropped == {"malformed_record": 3}


def test_missing_record_id_is_replaced_by_the_place(tmp_path: Path) -> None:
    annotation = record(None, BOX)
    del annotation["id"]
    scenes, _ = _one(tmp_path, annotation)
    assert scenes[0].objects[0].record_id == "annotations[0]"


def test_numbers_and_ids_may_be_text(tmp_path: Path) -> None:
    document = coco_document(
        ("ship",),
        annotations=[
            record("x", ["12", " 20.5", "3e1", "20"], image="1", category="1", iscrowd="0")
        ],
    )
    scenes, report = _read(tmp_path, document)
    assert scenes[0].objects[0].box_xyxy == (12, 20.5, 42, 40.5)
    assert not report.dropped


def test_text_ids_with_leading_zeros_are_not_numbers(tmp_path: Path) -> None:
    images = [{"id": "01", "file_name": "a.jpg"}, {"id": "1", "file_name": "b.jpg"}]
    document = coco_document(("ship",), images=images, annotations=[record(1, BOX, image=1)])
    scenes, _ = _read(tmp_path, document)
    assert [len(scene.objects) for scene in scenes] == [0, 1]


def test_crowd_and_ignore_objects_stay_and_do_not_count(tmp_path: Path) -> None:
    document = coco_document(
        ("ship",),
        annotations=[
            record(1, BOX, iscrowd=1),
            record(2, [1, 1, 5, 5], ignore=True),
            record(3, [2, 2, 5, 5], ignore="1"),
            record(4, [3, 3, 5, 5], iscrowd=0, ignore=0),
        ],
    )
    scenes, report = _read(tmp_path, document)
    assert [found.ignore for found in scenes[0].objects] == [True, True, True, False]
    assert report.ignored == {"crowd": 1, "ignore_flag": 2}


def test_categories_are_looked_up_by_id_in_the_order_of_ids(tmp_path: Path) -> None:
    document = coco_document((), annotations=[record(1, BOX, category=0)])
    document["categories"] = [
        {"id": 90, "name": "car"},
        {"id": 0, "name": "ship"},
        {"id": 7, "name": " traffic  light "},
    ]
    scenes, report = _read(tmp_path, document)
    assert report.categories == ("ship", "traffic light", "car")
    assert scenes[0].objects[0].category == "ship"


@pytest.mark.parametrize(("first", "other"), [("ship", "Ship"), ("Traffic_Sign", "traffic-sign")])
def test_two_categories_of_one_name_are_merged_with_a_notice(
    tmp_path: Path, first: str, other: str
) -> None:
    document = coco_document(
        (first, other, "car"),
        annotations=[record(1, BOX), record(2, [1, 1, 5, 5], category=2)],
    )
    scenes, report = _read(tmp_path, document)
    assert report.categories == (first, "car")
    assert [found.category for found in scenes[0].objects] == [first, first]
    assert report.repaired == {"duplicate_category": 1}
    (notice,) = report.examples["duplicate_category"]
    assert notice.endswith(f"id 2, {other!r}, is read as {first!r}")


def test_one_category_id_with_two_names_is_refused(tmp_path: Path) -> None:
    document = coco_document(("ship",))
    document["categories"].append({"id": 1, "name": "car"})
    with pytest.raises(FormatError, match="'ship' and 'car'"):
        _read(tmp_path, document)


def test_unknown_category_and_unknown_image_are_counted_with_the_id(tmp_path: Path) -> None:
    document = coco_document(
        ("ship",),
        annotations=[record(1, BOX), record(2, BOX, category=9), record(3, BOX, image=77)],
    )
    scenes, report = _read(tmp_path, document)
    assert len(scenes[0].objects) == 1
    assert report.dropped == {"unknown_category": 1, "unknown_image": 1}
    assert "9" in report.examples["unknown_category"][0]
    assert "77" in report.examples["unknown_image"][0]


def test_file_whose_categories_are_all_unknown_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"Expected ship; found id 5"):
        _one(tmp_path, record(1, BOX, category=5))


def test_repeated_record_id_is_kept_and_counted(tmp_path: Path) -> None:
    document = coco_document(("ship",), annotations=[record(1, BOX), record(1, [1, 1, 5, 5])])
    scenes, report = _read(tmp_path, document)
    assert len(scenes[0].objects) == 2
    assert report.repaired == {"duplicate_record_id": 1}


def test_picture_listed_twice_is_one_scene_with_the_objects_of_both(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "./A.JPG"}]
    document = coco_document(
        ("ship",),
        images=images,
        annotations=[record(2, [1, 1, 5, 5], image=2), record(1, BOX, image=1)],
    )
    scenes, report = _read(tmp_path, document)
    assert [[found.record_id for found in scene.objects] for scene in scenes] == [["2", "1"]]
    assert report.repaired == {"duplicate_picture": 1}


def test_image_id_of_two_pictures_is_dropped_with_both(tmp_path: Path) -> None:
    images = [
        {"id": 1, "file_name": "a.jpg"},
        {"id": 1, "file_name": "b.jpg"},
        {"id": 2, "file_name": "b.jpg"},
    ]
    scenes, report = _read(
        tmp_path, coco_document(("ship",), images=images, annotations=[record(1, BOX)])
    )
    assert [(scene.image_id, scene.objects) for scene in scenes] == [("b", ())]
    assert report.dropped == {"duplicate_image_id": 2}


def test_missing_pictures_are_counted_by_name(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "nowhere.jpg"}]
    document = coco_document(("ship",), images=images, annotations=[record(1, BOX, image=2)])
    scenes, report = _read(tmp_path, document)
    assert [scene.image_id for scene in scenes] == ["a"]
    assert report.dropped == {"picture_missing": 1}
    assert "nowhere.jpg" in report.examples["picture_missing"][0]


def test_no_picture_at_all_is_an_error_that_says_where_it_looked(tmp_path: Path) -> None:
    path = write_json(tmp_path / "ann" / "x.json", coco_document(("ship",)))
    with pytest.raises(FormatError, match=r"names 1 picture") as caught:
        read_all("coco", path)
    assert str(tmp_path / "ann") in str(caught.value)


def test_unreadable_picture_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 3, "file_name": "cut.jpg"}]
    whole = draw_picture(tmp_path / "val" / "a.jpg").read_bytes()
    (tmp_path / "val" / "cut.jpg").write_bytes(whole[:-20])
    scenes, report = _read(tmp_path, coco_document(("ship",), images=images))
    assert [scene.image_id for scene in scenes] == ["a"]
    assert report.dropped == {"picture_truncated": 1}


def test_suffix_that_does_not_fit_the_content_is_noticed(tmp_path: Path) -> None:
    draw_picture(tmp_path / "c.png").rename(tmp_path / "c.jpg")
    document = coco_document(("ship",), images=[{"id": 1, "file_name": "c.jpg"}])
    scenes, report = read_all("coco", write_json(tmp_path / "x.json", document))
    assert len(scenes) == 1
    assert report.repaired == {"picture_suffix": 1}


def test_order_of_pictures_in_file_and_on_disk_does_not_matter(tmp_path: Path) -> None:
    results = []
    for run, order in enumerate((1, -1)):
        folder = tmp_path / str(run)
        names = ["b.jpg", "c.jpg", "a.jpg"][::order]
        for name in names:
            draw_picture(folder / name)
        images = [{"id": name, "file_name": name} for name in names]
        path = write_json(folder / "x.json", coco_document(("ship",), images=images))
        results.append([scene.image_id for scene in read_all("coco", path)[0]])
    assert results[0] == results[1] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("file_name", "image_id"),
    [
        pytest.param("./sub/a.jpg", "sub/a", id="relative"),
        pytest.param("sub\\a.jpg", "sub/a", id="back-slash"),
        pytest.param("/home/someone/sub/a.jpg", "a", id="absolute"),
        pytest.param("C:\\data\\sub\\a.jpg", "a", id="drive"),
        pytest.param("../../sub/a.jpg", "sub/a", id="dots-do-not-leave-the-folder"),
    ],
)
def test_image_id_is_the_relative_path_without_suffix(
    tmp_path: Path, file_name: str, image_id: str
) -> None:
    draw_picture(tmp_path / "sub" / "a.jpg")
    document = coco_document(("ship",), images=[{"id": 1, "file_name": file_name}])
    scenes, _ = read_all("coco", write_json(tmp_path / "x.json", document))
    assert [scene.image_id for scene in scenes] == [image_id]


def test_pictures_that_would_share_an_id_keep_their_suffix(tmp_path: Path) -> None:
    draw_picture(tmp_path / "a.jpg")
    draw_picture(tmp_path / "a.png")
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "a.png"}]
    path = write_json(tmp_path / "x.json", coco_document(("ship",), images=images))
    scenes, report = read_all("coco", path)
    assert [scene.image_id for scene in scenes] == ["a.jpg", "a.png"]
    assert report.repaired == {"image_id_shared": 2}


def _pixels(mask: Mask) -> int:
    height, width = mask.size_hw
    if mask.rle_counts is None:
        coded = mask_tools.merge(mask_tools.frPyObjects(list(mask.polygons), height, width))
    elif isinstance(mask.rle_counts, str):
        coded = {"size": [height, width], "counts": mask.rle_counts.encode()}
    else:
        coded = mask_tools.frPyObjects(
            {"size": [height, width], "counts": list(mask.rle_counts)}, height, width
        )
    return int(mask_tools.area(coded))


RECTANGLE = [2, 2, 6, 2, 6, 5, 2, 5]


@pytest.mark.parametrize(
    ("segmentation", "pixels", "notice"),
    [
        pytest.param([RECTANGLE], 12, None, id="polygon"),
        pytest.param(RECTANGLE, 12, "flat_polygon", id="flat-list"),
        pytest.param([], 0, None, id="empty"),
        pytest.param(None, 0, None, id="null"),
        pytest.param([[4, 3]], 0, "invalid_polygon", id="one-point"),
        pytest.param([[2, 2, 6, 5]], 0, "invalid_polygon", id="two-points"),
        pytest.param([[2, 2, 6, 5, 1, 1, 4]], 0, "invalid_polygon", id="odd-numbers"),
        pytest.param([RECTANGLE, [4, 3]], 12, "invalid_polygon", id="one-part-damaged"),
        pytest.param([RECTANGLE, [10, 2, 14, 2, 14, 5, 10, 5]], 24, None, id="two-parts"),
        pytest.param({"counts": [0, 20, 180], "size": [10, 20]}, 20, None, id="run-lengths"),
        pytest.param({"counts": "0d0d5", "size": [10, 20]}, 20, None, id="compressed"),
        pytest.param(
            {"counts": [0, 20, 80], "size": [10, 10]}, 0, "mask_size_mismatch", id="other-size"
        ),
    ],
)
def test_segmentation_shapes(
    tmp_path: Path, segmentation: object, pixels: int, notice: str | None
) -> None:
    scenes, report = _one(
        tmp_path, record(1, [0, 0, 4, 3], segmentation=segmentation), size_wh=(20, 10)
    )
    mask = scenes[0].objects[0].mask
    assert (0 if mask is None else _pixels(mask)) == pixels
    assert mask is None or mask.size_hw == (10, 20)
    repaired = {**report.repaired}
    repaired.pop("size_mismatch", None)
    assert repaired == ({notice: 1} if notice else {})


@pytest.mark.parametrize(
    "segmentation",
    [
        pytest.param({"counts": [0, 20, 100], "size": [10, 20]}, id="runs-too-short"),
        pytest.param({"counts": [0, -20, 220], "size": [10, 20]}, id="negative-run"),
        pytest.param({"counts": "0d", "size": [10, 20]}, id="compressed-too-short"),
        pytest.param({"counts": "0d0d5€", "size": [10, 20]}, id="foreign-character"),
        pytest.param({"counts": "o" * 40, "size": [10, 20]}, id="number-without-end"),
        pytest.param({"counts": None, "size": [10, 20]}, id="no-runs"),
        pytest.param({"counts": [200], "size": [10]}, id="size-of-one"),
        pytest.param({"counts": [200], "size": [10, "x"]}, id="size-no-number"),
        pytest.param({}, id="empty-object"),
        pytest.param("polygon", id="text"),
        pytest.param(5, id="number"),
    ],
)
def test_record_with_a_broken_run_length_mask_is_dropped(
    tmp_path: Path, segmentation: object
) -> None:
    scenes, report = _one(
        tmp_path, record(1, [0, 0, 4, 3], segmentation=segmentation), size_wh=(20, 10)
    )
    assert scenes[0].objects == ()
    assert report.dropped == {"malformed_mask": 1}


def test_compressed_run_lengths_are_checked_with_the_coders_own_code(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for density in (0.0, 0.02, 0.5, 1.0):
        bitmap = np.asfortranarray((rng.random((48, 64)) < density).astype(np.uint8))
        coded = mask_tools.encode(bitmap)["counts"].decode()
        segmentation = {"counts": coded, "size": [48, 64]}
        scenes, report = _one(tmp_path, record(1, BOX, segmentation=segmentation))
        assert not report.dropped
        mask = scenes[0].objects[0].mask
        assert mask is not None
        assert _pixels(mask) == bitmap.sum()


def test_unused_keys_are_not_kept_in_memory(tmp_path: Path) -> None:
    document = coco_document(("ship",), annotations=[record(1, BOX, attributes={"bbox": 5})])
    document["info"] = {"images": 3, "deep": [[[{}]]]}
    scenes, report = _read(tmp_path, json.loads(json.dumps(document)))
    assert len(scenes[0].objects) == 1
    assert not report.dropped


def test_pictures_of_a_sibling_dataset_are_not_taken(tmp_path: Path) -> None:
    draw_picture(tmp_path / "others" / "a.jpg")
    document = coco_document(("ship",), annotations=[record(1, BOX)])
    label = write_json(tmp_path / "mine" / "val.json", document)
    for root in (label, label.parent):
        with pytest.raises(FormatError, match="none was found below"):
            read_all("coco", root)


@pytest.mark.parametrize("folder", ["annotations", "COCO_Labels", "val"])
def test_pictures_beside_a_folder_of_label_files_are_taken(tmp_path: Path, folder: str) -> None:
    picture = draw_picture(tmp_path / "images" / "a.jpg")
    document = coco_document(("ship",), annotations=[record(1, BOX)])
    label = write_json(tmp_path / folder / "val.json", document)
    for root in (label, label.parent):
        scenes, _ = read_all("coco", root)
        assert [scene.image_path for scene in scenes] == [picture]
