"""VisDrone-DET."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soubench.builders.errors import FormatError
from soubench.builders.sources.visdrone import covered_shares
from tests.data import draw_picture, read_all, write_text

STEM = "0000006_00159_d_0000001"
SPLIT_FOLDER = "VisDrone2019-DET-val"


def _read(folder: Path, text: str, *, size_wh: tuple[int, int] = (500, 400)):
    draw_picture(folder / SPLIT_FOLDER / "images" / f"{STEM}.jpg", size_wh)
    write_text(folder / SPLIT_FOLDER / "annotations" / f"{STEM}.txt", text)
    (scene,), report = read_all("visdrone", folder)
    return scene, report


def test_rows_become_objects_of_a_scene_grouped_by_sequence(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, "10,20,30,40,1,4,0,0\n1,2,3,4,1,10,1,2\n")
    assert (scene.image_id, scene.group_id) == (STEM, "0000006")
    assert [(o.category, o.box_xyxy, o.record_id) for o in scene.objects] == [
        ("car", (10, 20, 40, 60), "1"),
        ("motor", (1, 2, 4, 6), "2"),
    ]
    assert not report.dropped + report.ignored + report.repaired


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "120,80,15,22,1,4,0,0,\n140,82,9,21,1,1,0,1,\n200,150,12,12,1,10,0,2,",
            id="trailing-comma",
        ),
        pytest.param(
            "\ufeff120,80,15,22,1,4,0,0\r\n\r\n 140, 82, 9, 21, 1, 1, 0, 1 \r\n   \r\n"
            "200,150,12,12,1,10,0,2",
            id="bom-crlf-blank-lines-padding",
        ),
        pytest.param(
            "120,80,15,22,1,4,0,0\r140,82,9,21,1,1,0,1\r200,150,12,12,1,10,0,2", id="bare-cr"
        ),
    ],
)
def test_harmless_spellings_read_the_same(tmp_path: Path, text: str) -> None:
    scene, report = _read(tmp_path, text)
    assert [(o.category, o.ignore) for o in scene.objects] == [
        ("car", False),
        ("pedestrian", False),
        ("motor", False),
    ]
    assert not report.dropped


def test_zero_size_rows_are_dropped_with_a_reason(tmp_path: Path) -> None:
    scene, report = _read(
        tmp_path,
        "120,80,15,22,1,4,0,0\n300,90,4,0,1,4,0,0\n310,95,0,6,1,5,0,0\n"
        "340,99,11,0,0,0,0,0\n400,120,-5,9,1,6,0,0\n",
    )
    assert len(scene.objects) == 1
    assert report.dropped == {"degenerate": 4}
    assert report.examples["degenerate"][0] == f"{STEM}: record 2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("3 0.4375 0.5625 0.03125 0.0625\n", ":1: .*YOLO", id="yolo-rows"),
        pytest.param(
            "1,2,3,4,1,4,0,0\n120.5,80.25,15.0,22.75,0.873,4,-1,-1\n",
            ":2: the score is 0.873.*detection results",
            id="detection-results",
        ),
        pytest.param("1,2,3,4,1,4\n", ":1: expected 8 fields.*found 6", id="too-few"),
        pytest.param("1,2,3,4,1,4,0,0,9\n", ":1: expected 8 fields.*found 9", id="too-many"),
        pytest.param("1,0,1,2,3,4,1,4,0,0\n", "video sets", id="video-rows"),
        pytest.param("1,2,3,4,1,4,0,0,,\n", "found 10", id="two-trailing-commas"),
        pytest.param("1,2,,4,1,4,0,0\n", ":1: expected 8 numbers", id="empty-field"),
        pytest.param("x,y,w,h,score,category,a,b\n", ":1: expected 8 numbers", id="header"),
        pytest.param("1,2,3,4,nan,4,0,0\n", "the score is nan", id="nan-score"),
        pytest.param("1,2,3,4,1,4.5,0,0\n", "expected a class 0 to 11", id="half-class"),
        pytest.param("1,2,3,4,1,inf,0,0\n", "expected a class 0 to 11", id="infinite-class"),
    ],
)
def test_line_of_another_form_is_refused_with_file_and_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(FormatError, match=f"{STEM}.txt{message}" if message[0] == ":" else message):
        _read(tmp_path, text)


def test_labels_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    draw_picture(tmp_path / SPLIT_FOLDER / "images" / f"{STEM}.jpg")
    label = write_text(tmp_path / SPLIT_FOLDER / "annotations" / f"{STEM}.txt", "")
    label.write_bytes(b"1,2,3,4,1,4,0,0\n\xff")
    with pytest.raises(FormatError, match="offset 16"):
        read_all("visdrone", tmp_path)


def test_score_0_and_classes_0_and_11_stay_and_do_not_count(tmp_path: Path) -> None:
    scene, report = _read(
        tmp_path,
        "0,0,60,40,0,0,0,0\n100,100,9,9,0,4,0,0\n120,100,9,9,1,11,0,0\n"
        "140,100,9,9,0,11,0,0\n160,100,9,9,1,4,0,0\n180,100,9,9,1,12,0,0\n",
    )
    assert [(o.category, o.ignore) for o in scene.objects] == [
        ("ignored regions", True),
        ("car", True),
        ("others", True),
        ("others", True),
        ("car", False),
    ]
    assert report.ignored == {"ignore_class": 3, "score_zero": 1}
    assert report.dropped == {"unknown_category": 1}


@pytest.mark.parametrize(
    ("regions", "ignored"),
    [
        pytest.param(["100,100,10,20"], True, id="exactly-half"),
        pytest.param(["100,100,9,20"], False, id="less-than-half"),
        pytest.param(["100,100,6,20", "104,100,6,20"], True, id="two-that-overlap"),
        pytest.param(["100,100,6,20", "100,100,6,20"], False, id="one-twice-counts-once"),
        pytest.param(["0,0,500,400"], True, id="all-of-it"),
        pytest.param(["120,100,50,20"], False, id="beside-it"),
        pytest.param(["100,100,0,20", "100,100,20,-5"], False, id="regions-without-area"),
    ],
)
def test_object_half_in_ignored_regions_does_not_count(
    tmp_path: Path, regions: list[str], ignored: bool
) -> None:
    rows = [*(f"{region},0,0,0,0" for region in regions), "100,100,20,20,1,4,0,0"]
    scene, report = _read(tmp_path, "\n".join(rows))
    assert scene.objects[-1].category == "car"
    assert scene.objects[-1].ignore is ignored
    assert report.ignored["ignore_region"] == ignored


_SIDES = st.integers(1, 30)
_BOXES = st.lists(
    st.tuples(st.integers(-5, 40), st.integers(-5, 40), _SIDES, _SIDES), min_size=1, max_size=12
)


@settings(max_examples=200)
@given(_BOXES, _BOXES)
def test_covered_share_is_that_of_painted_pixels(
    boxes: list[tuple[int, ...]], regions: list[tuple[int, ...]]
) -> None:
    canvas = np.zeros((90, 90))
    for x, y, w, h in regions:
        canvas[y + 10 : y + 10 + h, x + 10 : x + 10 + w] = 1
    expected = [canvas[y + 10 : y + 10 + h, x + 10 : x + 10 + w].mean() for x, y, w, h in boxes]
    found = covered_shares(np.array(boxes, dtype=float), np.array(regions, dtype=float))
    assert found == pytest.approx(expected, abs=1e-12)


def test_label_or_picture_without_its_partner_is_counted(tmp_path: Path) -> None:
    draw_picture(tmp_path / SPLIT_FOLDER / "images" / "9999_unlabelled.jpg")
    write_text(tmp_path / SPLIT_FOLDER / "annotations" / "9999_lost.txt", "")
    _, report = _read(tmp_path, "")
    assert report.dropped == {"label_missing": 1, "picture_missing": 1}
    assert report.examples["label_missing"] == ["9999_unlabelled.jpg"]
    assert report.examples["picture_missing"] == ["9999_lost"]


def test_empty_label_file_is_a_scene_without_objects(tmp_path: Path) -> None:
    scene, report = _read(tmp_path, "")
    assert scene.objects == ()
    assert not report.dropped


@pytest.mark.parametrize(
    ("layout", "root"),
    [
        pytest.param("VisDrone2019-DET-val/{}", ".", id="archive-from-above"),
        pytest.param("VisDrone2019-DET-val/{}", "VisDrone2019-DET-val", id="archive-itself"),
        pytest.param(
            "VisDrone2019-DET-val/{}", "VisDrone2019-DET-val/annotations", id="label-folder"
        ),
        pytest.param("VisDrone2019-DET-val/{}", "VisDrone2019-DET-val/images", id="picture-folder"),
        pytest.param(
            "VisDrone2019-DET-val/VisDrone2019-DET-val/{}",
            "VisDrone2019-DET-val",
            id="nested-twice",
        ),
        pytest.param("val/{}", ".", id="split-folders"),
        pytest.param("{}/val", ".", id="folders-by-role"),
        pytest.param("{}/val", "annotations/val", id="split-of-the-label-folder"),
        pytest.param("mine/{}", "mine", id="renamed"),
    ],
)
def test_split_is_found_wherever_the_user_points(tmp_path: Path, layout: str, root: str) -> None:
    draw_picture(tmp_path / "top" / layout.format("images") / f"{STEM}.JPG")
    write_text(tmp_path / "top" / layout.format("annotations") / f"{STEM}.txt", "")
    scenes, report = read_all("visdrone", tmp_path / "top" / root)
    assert [scene.image_id for scene in scenes] == [STEM]
    assert not report.dropped


def test_other_split_is_refused_with_what_was_found(tmp_path: Path) -> None:
    _read(tmp_path, "")
    with pytest.raises(
        FormatError, match=r"split 'train'.*found label folders VisDrone2019-DET-val"
    ):
        read_all("visdrone", tmp_path, "train")
    with pytest.raises(FormatError, match="no such file or folder"):
        read_all("visdrone", tmp_path / "nowhere", "val")


def test_two_label_folders_that_fit_are_listed(tmp_path: Path) -> None:
    _read(tmp_path, "")
    write_text(tmp_path / "VisDrone2019-VID-val" / "annotations" / "a.txt", "")
    with pytest.raises(FormatError, match="2 label folders fit"):
        read_all("visdrone", tmp_path)


def test_labels_without_any_picture_are_an_error(tmp_path: Path) -> None:
    write_text(tmp_path / SPLIT_FOLDER / "annotations" / "a.txt", "")
    with pytest.raises(FormatError, match=r"1 label file\(s\) and none of their pictures"):
        read_all("visdrone", tmp_path)


def test_scenes_come_by_stem_one_after_the_other(tmp_path: Path) -> None:
    for stem in ("b_1", "a_2", "a_1"):
        draw_picture(tmp_path / "val" / "images" / f"{stem}.jpg")
        write_text(tmp_path / "val" / "annotations" / f"{stem}.txt", "")
    scenes, _ = read_all("visdrone", tmp_path)
    assert [(s.image_id, s.group_id) for s in scenes] == [("a_1", "a"), ("a_2", "a"), ("b_1", "b")]
