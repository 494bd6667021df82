"""AI-TOD, v1 and v2."""

from pathlib import Path

import pytest

from soubench.builders.errors import FormatError
from soubench.builders.sources import ai_tod
from tests.data import coco_document, draw_picture, read_all, record, write_json


def _document(name: str = "1141__0_600.png", *annotations: dict) -> dict:
    images = [{"id": 0, "file_name": name, "width": 64, "height": 48}]
    return coco_document(ai_tod.CATEGORIES, images=images, annotations=list(annotations))


@pytest.mark.parametrize(
    "name", ["aitod_val_v1.json", "small_val_v2_2.0.json", "aitodv2_val.json", "AI-TOD-val.json"]
)
def test_label_file_is_found_by_a_word_of_its_name(tmp_path: Path, name: str) -> None:
    draw_picture(tmp_path / "images" / "val" / "1141__0_600.png")
    document = _document("1141__0_600.png", record(0, [1.5, 2.25, 9.0, 8.0], image=0, category=6))
    write_json(tmp_path / "annotations" / name, document)
    write_json(tmp_path / "annotations" / "aitod_trainval_v1.json", document)
    (scene,), _ = read_all("ai-tod", tmp_path)
    assert (scene.image_id, scene.group_id) == ("1141__0_600", "1141")
    assert scene.objects[0].category == "vehicle"
    assert scene.objects[0].box_xyxy == (1.5, 2.25, 10.5, 10.25)


@pytest.mark.parametrize("split", ["train", "val"])
def test_trainval_is_neither_train_nor_val(tmp_path: Path, split: str) -> None:
    write_json(tmp_path / "annotations" / "aitod_trainval_v1.json", _document())
    with pytest.raises(FormatError, match=r"found annotations/aitod_trainval_v1\.json"):
        read_all("ai-tod", tmp_path, split)


def test_both_versions_are_listed_and_one_can_be_passed(tmp_path: Path) -> None:
    draw_picture(tmp_path / "images" / "val" / "1141__0_600.png")
    first = write_json(tmp_path / "annotations" / "aitod_val_v1.json", _document())
    write_json(tmp_path / "annotations" / "small_val_v2.json", _document())
    with pytest.raises(FormatError, match=r"aitod_val_v1\.json.*small_val_v2\.json.*JSON file"):
        read_all("ai-tod", tmp_path)
    assert len(read_all("ai-tod", first)[0]) == 1


def test_picture_that_is_in_trainval_too_is_taken_from_its_split(tmp_path: Path) -> None:
    for folder in ("trainval", "train"):
        draw_picture(tmp_path / "images" / folder / "a__0_0.png")
    draw_picture(tmp_path / "images" / "trainval" / "b__0_0.png")
    document = _document("a__0_0.png")
    document["images"].append({"id": 1, "file_name": "b__0_0.png"})
    write_json(tmp_path / "annotations" / "aitod_train_v1.json", document)
    scenes, report = read_all("ai-tod", tmp_path, "train")
    folders = [scene.image_path.parent.name for scene in scenes]
    assert folders == ["train", "trainval"]
    assert not report.dropped


def test_zero_width_boxes_leave_an_empty_scene(tmp_path: Path) -> None:
    draw_picture(tmp_path / "images" / "val" / "1141__0_600.png")
    document = _document("1141__0_600.png", record(0, [5, 5, 0, 8], image=0))
    write_json(tmp_path / "annotations" / "aitod_val_v2.json", document)
    scenes, report = read_all("ai-tod", tmp_path)
    assert [scene.objects for scene in scenes] == [()]
    assert report.dropped == {"degenerate": 1}
