"""Finding label files and pictures."""

import os
from pathlib import Path

import pytest

from soubench.builders.errors import FormatError, PictureError
from soubench.builders.sources._files import Files, PictureIndex, names_split
from tests.data import coco_document, draw_picture, read_all, write_json


def _find(root: Path, name: str, split: str = "val") -> str:
    found = PictureIndex(Files.below(root), split).find(name)
    return found.relative_to(root).as_posix()


@pytest.mark.parametrize(
    ("name", "split", "expected"),
    [
        ("instances_val2017", "val", True),
        ("aitod_trainval_v1", "train", False),
        ("aitod_trainval_v1", "trainval", True),
        ("VisDrone2019-DET-test-dev", "test-dev", True),
        ("VisDrone2019-DET-test-challenge", "test-dev", False),
        ("valid", "val", True),
        ("evaluation", "val", False),
        ("anything", "", False),
    ],
)
def test_split_is_a_word_of_its_own(name: str, split: str, expected: bool) -> None:
    assert names_split(name, split) is expected


@pytest.mark.parametrize(
    ("present", "name", "expected"),
    [
        pytest.param(["Images/a.jpg"], "a.jpg", "Images/a.jpg", id="base-name"),
        pytest.param(["Images/a.JPG"], "IMAGES\\A.jpg", "Images/a.JPG", id="case-and-slash"),
        pytest.param(["x/a.jpg", "y/a.jpg"], "y/a.jpg", "y/a.jpg", id="relative-path"),
        pytest.param(["a.jpg", "thumbs/a.jpg"], "a.jpg", "a.jpg", id="exact-path-first"),
        pytest.param(["d/x/a.jpg", "d/y/a.jpg"], "/home/me/y/a.jpg", "d/y/a.jpg", id="absolute"),
        pytest.param(["train/a.jpg", "val/a.jpg"], "a.jpg", "val/a.jpg", id="folder-of-the-split"),
        pytest.param(["trainval/a.jpg", "val/b.jpg"], "a.jpg", "trainval/a.jpg", id="trainval"),
        pytest.param(["train/a.jpg"], "a.jpg", "train/a.jpg", id="no-folder-of-the-split"),
        pytest.param(["a.jpg", "A.jpg"], "A.jpg", "A.jpg", id="exact-case-decides"),
        pytest.param(["é.jpg"], "e\u0301.jpg", "é.jpg", id="decomposed-accent"),
    ],
)
def test_picture_is_found(tmp_path: Path, present: list[str], name: str, expected: str) -> None:
    for path in present:
        draw_picture(tmp_path / path)
    assert _find(tmp_path, name) == expected


@pytest.mark.parametrize(
    ("present", "name", "reason"),
    [
        pytest.param(["x/a.jpg", "y/a.jpg"], "a.jpg", "picture_ambiguous", id="two-folders"),
        pytest.param(["a.jpg"], "b.jpg", "picture_missing", id="other-name"),
        pytest.param(["._a.jpg", ".cache/a.jpg"], "a.jpg", "picture_missing", id="hidden"),
        pytest.param(["__MACOSX/a.jpg"], "a.jpg", "picture_missing", id="left-by-macos"),
        pytest.param(
            ["val/b.jpg", "train/a.jpg"], "a.jpg", "picture_missing", id="only-in-another-split"
        ),
        pytest.param(["val/a.jpg"], "train/a.jpg", "picture_missing", id="label-says-other-split"),
        pytest.param(["a.jpg"], "..", "picture_missing", id="no-name"),
    ],
)
def test_picture_that_cannot_be_told_is_refused(
    tmp_path: Path, present: list[str], name: str, reason: str
) -> None:
    for path in present:
        draw_picture(tmp_path / path)
    with pytest.raises(PictureError) as caught:
        _find(tmp_path, name)
    assert caught.value.reason == reason


def test_linked_folders_are_followed_and_rings_end(tmp_path: Path) -> None:
    draw_picture(tmp_path / "far" / "a.jpg")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "images").symlink_to(tmp_path / "far")
    (tmp_path / "far" / "ring").symlink_to(tmp_path / "set")
    assert _find(tmp_path / "set", "a.jpg") == "images/a.jpg"


def test_unreadable_folder_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    draw_picture(tmp_path / "a.jpg")
    scandir = os.scandir

    def closed(folder: Path) -> object:
        # What everyone but root meets in a folder without read permission.
        if Path(folder).name == "closed":
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", closed)
    assert _find(tmp_path, "a.jpg") == "a.jpg"


def _set(folder: Path, label: str, picture: str) -> None:
    name = Path(picture).name
    document = coco_document(("ship",), images=[{"id": 1, "file_name": name}])
    write_json(folder / label, document)
    draw_picture(folder / picture)


@pytest.mark.parametrize(
    ("label", "picture", "root"),
    [
        pytest.param("annotations/instances_val2017.json", "val2017/a.jpg", ".", id="coco"),
        pytest.param(
            "annotations/instances_val2017.json",
            "images/val2017/a.jpg",
            "images/val2017",
            id="split",
        ),
        pytest.param("annotations/val.json", "images/a.jpg", "images", id="picture-folder"),
        pytest.param("annotations/val.json", "images/a.jpg", "annotations", id="label-folder"),
        pytest.param("valid/_annotations.coco.json", "valid/a.jpg", ".", id="roboflow"),
        pytest.param("valid/_annotations.coco.json", "valid/a.jpg", "valid", id="roboflow-split"),
        pytest.param("one/two/val.json", "one/images/a.jpg", ".", id="deeper"),
        pytest.param("annotations/x.json", "images/a.jpg", "annotations/x.json", id="file"),
    ],
)
def test_coco_set_is_found_wherever_the_user_points(
    tmp_path: Path, label: str, picture: str, root: str
) -> None:
    _set(tmp_path / "top", label, picture)
    scenes, _ = read_all("coco", tmp_path / "top" / root)
    assert [scene.image_id for scene in scenes] == ["a"]


def test_instances_are_preferred_to_captions_and_keypoints(tmp_path: Path) -> None:
    _set(tmp_path, "annotations/instances_val.json", "val/a.jpg")
    for other in ("captions_val", "person_keypoints_val"):
        write_json(tmp_path / "annotations" / f"{other}.json", [])
    assert len(read_all("coco", tmp_path)[0]) == 1


def test_sets_side_by_side_are_told_apart_by_the_folder(tmp_path: Path) -> None:
    for folder in ("SODA-D", "other"):
        document = coco_document(("people",), images=[{"id": 1, "file_name": "00001.jpg"}])
        write_json(tmp_path / folder / "Annotations" / "val.json", document)
        draw_picture(tmp_path / folder / "Images" / "00001.jpg")
    (scene,), _ = read_all("soda-d", tmp_path)
    assert scene.image_path == tmp_path / "SODA-D" / "Images" / "00001.jpg"


def test_several_files_that_fit_are_listed(tmp_path: Path) -> None:
    for name in ("a_val", "b_val"):
        write_json(tmp_path / f"{name}.json", {})
    with pytest.raises(FormatError, match=r"2 JSON files fit.*a_val\.json, b_val\.json.*Pass"):
        read_all("coco", tmp_path)


def test_nothing_that_fits_says_what_was_looked_for_and_found(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"split 'val'.*found no JSON file"):
        read_all("coco", tmp_path)
    for place in range(9):
        write_json(tmp_path / f"{place}.json", {})
    with pytest.raises(FormatError, match=r"0\.json, 1\.json, 2\.json, … 3 more …, 6\.json"):
        read_all("coco", tmp_path)
    with pytest.raises(FormatError, match="no such file or folder"):
        read_all("coco", tmp_path / "nowhere")


def test_folder_with_a_split_among_other_words_is_not_left(tmp_path: Path) -> None:
    _set(tmp_path, "val.json", "val/a.jpg")
    inner = tmp_path / "my val data 3"
    inner.mkdir()
    with pytest.raises(FormatError, match="found no JSON file"):
        read_all("coco", inner)
