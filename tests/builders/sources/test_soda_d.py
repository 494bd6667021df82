"""SODA-D."""

from pathlib import Path

import pytest

from soubench.builders.errors import FormatError
from soubench.builders.sources import soda_d
from tests.data import coco_document, draw_picture, read_all, record, write_json

NAMES = (*soda_d.CATEGORIES, "ignore")


def _read(folder: Path, document: dict):
    draw_picture(folder / "Images" / "00001.jpg")
    draw_picture(folder / "Images" / "00002.jpg")
    write_json(folder / "Annotations" / "val.json", document)
    return read_all("soda-d", folder)


def _document(*annotations: dict) -> dict:
    images = [{"id": i, "file_name": f"0000{i}.jpg", "width": 64, "height": 48} for i in (1, 2)]
    return coco_document(NAMES, images=images, annotations=list(annotations))


def test_flag_and_class_10_both_mark_what_does_not_count(tmp_path: Path) -> None:
    scenes, report = _read(
        tmp_path,
        _document(
            record(1, [10, 10, 20, 18], category=5, ignore=0),
            record(2, [30, 12, 22, 20], category=5, ignore=1),
            record(3, [1, 1, 20, 9], category=10, ignore=1),
            record(4, [2, 2, 15, 9], category=10, ignore=0),
            record(5, [5, 2, 9, 14], category=7),
            record(6, [7, 9, 12, 15], category=9, ignore=False),
            record(7, [8, 9, 12, 15], category=9, ignore="1"),
            record(8, [9, 9, 12, 15], category=9, ignore=True),
        ),
    )
    assert [found.record_id for found in scenes[0].objects if not found.ignore] == ["1", "5", "6"]
    assert len(scenes[0].objects) == 8
    assert [(scene.image_id, len(scene.objects)) for scene in scenes] == [
        ("00001", 8),
        ("00002", 0),
    ]
    assert report.ignored == {"ignore_flag": 3, "ignore_class": 2}
    assert report.categories == soda_d.CATEGORIES


def test_class_10_is_known_without_an_entry_in_the_table(tmp_path: Path) -> None:
    document = _document(record(1, [1, 1, 9, 9], category=10), record(2, [1, 1, 9, 9], category=1))
    document["categories"].pop()
    scenes, report = _read(tmp_path, document)
    assert [(found.category, found.ignore) for found in scenes[0].objects] == [
        ("ignore", True),
        ("people", False),
    ]
    assert report.ignored == {"ignore_class": 1}


def test_table_that_starts_at_0_and_spells_names_otherwise_is_followed(tmp_path: Path) -> None:
    document = _document(record(1, [1, 1, 9, 9], category=5))
    document["categories"] = [
        {"id": i, "name": name.replace("-", " ").title()} for i, name in enumerate(NAMES)
    ]
    scenes, _ = _read(tmp_path, document)
    assert [found.category for found in scenes[0].objects] == ["traffic-sign"]


def test_category_that_soda_d_does_not_have_is_counted_by_name(tmp_path: Path) -> None:
    document = _document(record(1, [1, 1, 9, 9]), record(2, [1, 1, 9, 9], category=11))
    document["categories"].append({"id": 11, "name": "dog"})
    scenes, report = _read(tmp_path, document)
    assert len(scenes[0].objects) == 1
    assert report.dropped == {"unwanted_category": 1}
    assert "dog" in report.examples["unwanted_category"][0]


def test_labels_of_another_set_are_refused_with_both_lists_of_names(tmp_path: Path) -> None:
    document = coco_document(
        ("dog", "cat"),
        images=[{"id": 1, "file_name": "00001.jpg"}],
        annotations=[record(1, [1, 1, 9, 9], category=2)],
    )
    with pytest.raises(FormatError, match=r"Expected people, rider.*found 'cat'"):
        _read(tmp_path, document)
