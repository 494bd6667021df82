"""RUOD."""

from pathlib import Path

from soubench.builders.sources import ruod
from tests.data import coco_document, draw_picture, read_all, record, write_json


def test_size_and_name_traps(tmp_path: Path) -> None:
    draw_picture(tmp_path / "train" / "000002.jpg", (640, 480))
    draw_picture(tmp_path / "train" / "000003.jpg", (640, 480))
    images = [
        {"id": 1, "file_name": "000002.JPG", "width": 480, "height": 640},
        {"id": 2, "file_name": "train\\000003.jpg", "width": 640, "height": 480},
        {"id": 3, "file_name": "000003.jpg", "width": "640", "height": "480"},
    ]
    annotations = [
        record(1, [600, 100, 30, 30], category=2),
        record(2, ["12", "40", "33", "20"], image=3, category=5, area="660", iscrowd="0"),
    ]
    document = coco_document(ruod.CATEGORIES, images=images, annotations=annotations)
    write_json(tmp_path / "annotations" / "instances_train.json", document)
    scenes, report = read_all("ruod", tmp_path, "train")
    assert [(s.image_id, s.width, s.height) for s in scenes] == [
        ("000002", 640, 480),
        ("000003", 640, 480),
    ]
    assert scenes[0].objects[0].box_xyxy == (600, 100, 630, 130)
    assert [(o.category, o.box_xyxy, o.area_px) for o in scenes[1].objects] == [
        ("fish", (12, 40, 45, 60), 660)
    ]
    assert report.repaired == {"size_transposed": 1, "duplicate_picture": 1}
    assert not report.dropped


def test_folders_of_the_original_archive_are_found(tmp_path: Path) -> None:
    draw_picture(tmp_path / "RUOD_pic" / "test" / "000001.jpg")
    document = coco_document(ruod.CATEGORIES, images=[{"id": 1, "file_name": "000001.jpg"}])
    write_json(tmp_path / "RUOD_ANN" / "instances_test.json", document)
    for root in (tmp_path, tmp_path / "RUOD_ANN"):
        scenes, _ = read_all("ruod", root, "test")
        assert [scene.image_id for scene in scenes] == ["000001"]
