import json
import math
import random
import re
import shutil
import statistics
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soubench.builders.contact_sheet import (
    CROP_PX,
    LabelCard,
    class_color,
    label_sheet,
    window_of,
)
from soubench.builders.demo_scenes import SPLITS, draw_picture, write_demo_source
from soubench.builders.errors import BuildError, FormatError
from soubench.builders.inspection import inspect_source, inspection_text, size_bins
from soubench.builders.scene import Box, Scene, SceneObject
from soubench.builders.sources import SOURCES, Source

SIZE_WH = (480, 400)
PICTURES = 5
GROUND = (90, 90, 90)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    root = tmp_path_factory.mktemp("demo")
    return {
        name: write_demo_source(name, root, pictures=PICTURES, size_wh=SIZE_WH) for name in SPLITS
    }


def write_coco(folder: Path, boxes: dict[str, list[tuple]], size: int = 200) -> Path:
    """One gray picture per key; a box is (category, x, y, w, h) or has ``ignore`` behind it."""
    names = sorted({box[0] for made in boxes.values() for box in made}) or ["thing"]
    images, annotations = [], []
    (folder / "images").mkdir(parents=True)
    for i, (name, made) in enumerate(boxes.items(), start=1):
        Image.new("RGB", (size, size), GROUND).save(folder / "images" / f"{name}.png")
        images.append({"id": i, "file_name": f"{name}.png", "width": size, "height": size})
        annotations += [
            {"image_id": i, "category_id": names.index(category) + 1, "bbox": bbox,
             "iscrowd": int(bool(ignore)), "area": 1}
            for category, *bbox, ignore in ((*box, False) if len(box) == 5 else box for box in made)
        ]  # fmt: skip
    for i, record in enumerate(annotations, start=1):
        record["id"] = i
    document = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": i, "name": name} for i, name in enumerate(names, start=1)],
    }
    (folder / "annotations").mkdir()
    (folder / "annotations" / "instances_val.json").write_text(json.dumps(document))
    return folder


def quad_area(xy) -> float:
    points = list(zip(xy[0::2], xy[1::2], strict=True))
    sides = zip(points, [*points[1:], points[0]], strict=True)
    return abs(sum(x1 * y2 - y1 * x2 for (x1, y1), (x2, y2) in sides)) / 2


@pytest.mark.parametrize("name", SPLITS)
def test_counts_are_those_of_what_was_drawn(demo, name):
    data = inspect_source(name, demo[name], SPLITS[name])
    drawn = [draw_picture(name, i, size_wh=SIZE_WH) for i in range(PICTURES)]

    def area(made) -> float:
        x1, y1, x2, y2 = made.box_xyxy
        if name == "soda-a":
            return quad_area([round(value, 1) for value in made.quad_xy8])
        return (x2 - x1) * (y2 - y1)

    counted = [[made for made in picture.objects if made.route is None] for picture in drawn]
    flat = [made for picture in counted for made in picture]
    ignored = [made for picture in drawn for made in picture.objects if made.route is not None]
    per_class = Counter(made.category for made in flat)
    small_per_class = Counter(made.category for made in flat if area(made) <= 1024)
    assert data["pictures"] == PICTURES
    assert data["objects"] == {
        "counted": len(flat),
        "ignored": len(ignored),
        "small": small_per_class.total(),
    }
    classes = data["classes"]
    assert {key: made["objects"] for key, made in classes.items() if made["objects"]} == per_class
    assert {key: made["small"] for key, made in classes.items() if made["small"]} == small_per_class
    assert {key: made["pictures"] for key, made in classes.items() if made["pictures"]} == Counter(
        category for picture in counted for category in {made.category for made in picture}
    )
    assert sum(made["ignored"] for made in classes.values()) == len(ignored)
    numbers = [len(picture) for picture in counted]
    assert data["objects_per_picture"] == {
        "min": min(numbers),
        "median": statistics.median(numbers),
        "max": max(numbers),
    }
    assert data["picture_sizes"] == {"different": 1, "width": [480, 480], "height": [400, 400]}
    low = 0.0
    for made in data["size_bins"]:
        high = made["up_to_px2"] or math.inf
        assert made["objects"] == sum(low < area(o) <= high for o in flat), made
        low = high
    assert data["sheet"] is None


@pytest.mark.parametrize(
    ("source", "areas", "expected"),
    [
        pytest.param(
            "soda-d", (1, 144, 145, 400, 401, 1024, 1025, 2000, 2001), [2, 2, 2, 2, 1], id="SODA"
        ),
        pytest.param("soda-a", (144, 144.5), [1, 1, 0, 0, 0], id="SODA with turned boxes"),
        pytest.param("ai-tod", (64, 65, 256, 257, 1024, 1025), [1, 2, 2, 1], id="AI-TOD"),
        pytest.param("voc", (1024, 1025, 9216, 9217), [1, 2, 1], id="COCO's for the others"),
    ],
)
def test_bins_include_their_upper_border(source, areas, expected, monkeypatch):
    made = tuple(SceneObject("thing", Box(0, 0, area, 1), area) for area in areas)
    left_out = SceneObject("thing", Box(0, 0, 5, 1), 5, ignore=True)

    def read(root, split, report):
        report.categories = ("thing",)
        yield Scene(root, "a", "a", 9999, 10, (*made, left_out), source, split)

    monkeypatch.setitem(SOURCES, source, Source(source, read, None))
    data = inspect_source(source, Path("x"), "val")
    assert [made["objects"] for made in data["size_bins"]] == expected
    assert [made["name"] for made in data["size_bins"]] == [b.name for b in size_bins(source)]


def test_small_area_counts_what_is_equal(tmp_path):
    root = write_coco(tmp_path, {"a": [("car", 5, 5, 10, 10), ("car", 30, 30, 10, 11)]})
    assert inspect_source("coco", root, "val", small_area_px=100)["objects"]["small"] == 1
    assert inspect_source("coco", root, "val", small_area_px=110)["objects"]["small"] == 2


def holes(sheet: np.ndarray, color: tuple[int, int, int]) -> list[tuple[int, int, int, int]]:
    """Find the gray rectangles that lie right inside lines of a color: x, y, width, height."""
    line = (sheet == color).all(axis=2)
    ground = (sheet == GROUND).all(axis=2)
    found = []
    corners = line[:-1, 1:] & line[1:, :-1] & line[:-1, :-1] & ground[1:, 1:]
    for y, x in zip(*np.nonzero(corners), strict=True):
        y, x = y + 1, x + 1
        width = int(np.argmin(ground[y, x:]))
        height = int(np.argmin(ground[y:, x]))
        if line[y, x + width] and line[y + height, x]:
            found.append((int(x), int(y), width, height))
    return found


@pytest.mark.parametrize(
    ("wh", "zoom"),
    [
        pytest.param((12, 9), 8, id="tiny"),
        pytest.param((20, 22), 6, id="smaller"),
        pytest.param((32, 32), 4, id="small"),
        pytest.param((44, 10), 3, id="long"),
        pytest.param((60, 50), 2, id="larger"),
    ],
)
def test_lines_lie_just_outside_of_an_enlarged_box(tmp_path, wh, zoom):
    root = write_coco(tmp_path / "in", {"a": [("car", 90, 83, *wh)]})
    data = inspect_source("coco", root, "val", out=tmp_path)
    sheet = np.asarray(Image.open(data["sheet"]))
    found = {(width, height) for _, _, width, height in holes(sheet, class_color(0))}
    assert (wh[0] * zoom, wh[1] * zoom) in found


def test_lines_lie_just_outside_of_a_box_in_the_whole_picture(tmp_path):
    # 200 px fit 240 px at their own scale, so that every pixel is where it was.
    root = write_coco(tmp_path / "in", {"a": [("car", 9, 9, 8, 8), ("bus", 150, 110, 21, 14)]})
    sheet = np.asarray(Image.open(inspect_source("coco", root, "val", out=tmp_path)["sheet"]))
    assert (21, 14) in {(w, h) for *_, w, h in holes(sheet, class_color(0))}


def test_a_turned_box_is_drawn_around_its_corners(tmp_path):
    path = tmp_path / "a.png"
    Image.new("RGB", (200, 200), GROUND).save(path)
    quad = (100.0, 85.0, 115.0, 100.0, 100.0, 115.0, 85.0, 100.0)
    made = SceneObject("ship", Box(85, 85, 115, 115), 450, quad_xy8=quad)
    scene = Scene(path, "a", "a", 200, 200, (made,), "soda-a", "val")
    sheet = np.asarray(
        label_sheet([LabelCard(scene, "", (made,))], title="", categories=["ship"], counts={}).image
    )
    window = window_of(made.box_xyxy, (200, 200))
    assert window.scale == 4
    ground = (sheet == GROUND).all(axis=2)
    # The first enlarged crop is the first stretch of CROP_PX columns behind the whole picture's.
    y, x = np.argwhere(ground[:, 386:])[0]
    crop = sheet[y : y + CROP_PX, 386 + x : 386 + x + CROP_PX]
    line = (crop == class_color(0)).all(axis=2)
    ys, xs = np.nonzero(line)
    distance = (abs(xs + 0.5 - 120) + abs(ys + 0.5 - 120)) / math.sqrt(2)
    # The side lies 15 px × sqrt 2 / 2 × 4 from the middle.
    assert distance.min() >= 15 * 4 / math.sqrt(2) - 0.75
    assert distance.max() <= 15 * 4 / math.sqrt(2) + 3
    assert line.sum() > 4 * 60


def test_objects_that_do_not_count_are_dashed(tmp_path):
    boxes = [("car", 20, 20, 30, 30), ("bus", 120, 120, 30, 30, True)]
    root = write_coco(tmp_path / "in", {"a": boxes})
    data = inspect_source("coco", root, "val", out=tmp_path)
    assert data["classes"]["bus"] == {"objects": 0, "small": 0, "ignored": 1, "pictures": 0}
    sheet = np.asarray(Image.open(data["sheet"]))
    below_legend = sheet[110:]
    assert not (below_legend == class_color(0)).all(axis=2).any()
    assert (below_legend == class_color(1)).all(axis=2).any()
    assert (below_legend == (222, 222, 222)).all(axis=2).sum() > 40


def test_categories_shown_least_are_enlarged_first(tmp_path):
    many = [("car", 5 + 9 * i, 20, 6, 6) for i in range(20)]
    root = write_coco(
        tmp_path / "in", {"a": [*many, ("bus", 20, 150, 9, 9), ("van", 150, 150, 9, 9)]}
    )
    sheet = np.asarray(Image.open(inspect_source("coco", root, "val", out=tmp_path)["sheet"]))
    for i in range(3):
        assert any(width > 40 for _, _, width, _ in holes(sheet, class_color(i)))


def shuffled_copy(root: Path, to: Path) -> Path:
    """The same files made in another order, the records of the labels shuffled."""
    rng = random.Random(3)
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    rng.shuffle(paths)
    for path in paths:
        copy = to / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        if path.suffix == ".json":
            document = json.loads(path.read_text())
            for value in document.values():
                if isinstance(value, list) and value and "name" not in value[0]:
                    rng.shuffle(value)
            copy.write_text(json.dumps(document))
        if path.suffix == ".txt":
            lines = path.read_text().splitlines()
            rng.shuffle(lines)
            copy.write_text("\n".join(lines))
    return to


@pytest.mark.parametrize("name", SPLITS)
def test_order_on_disk_changes_nothing(demo, name, tmp_path):
    other = shuffled_copy(demo[name], tmp_path / "copy")
    first, second = (
        inspect_source(name, root, SPLITS[name], out=tmp_path / out, pictures=3)
        for root, out in ((demo[name], "1"), (other, "2"))
    )
    sheets = [Path(data.pop("sheet")) for data in (first, second)]
    for data in (first, second):
        del data["read"]["examples"]  # The first ones in the file, which differ.
    assert first == second
    assert sheets[0].read_bytes() == sheets[1].read_bytes()
    assert [path.name for path in sheets[0].parent.iterdir()] == [f"{name}-{SPLITS[name]}.png"]
    assert len(first["sampled"]) == 3


def test_sample_follows_the_seed_and_prefers_pictures_with_objects(tmp_path):
    boxes = {f"p{i}": [("car", 50, 50, 20, 20)] if i % 2 else [] for i in range(12)}
    root = write_coco(tmp_path / "in", boxes)
    samples = [
        inspect_source("coco", root, "val", out=tmp_path, pictures=4, seed=seed)["sampled"]
        for seed in range(4)
    ]
    assert len({tuple(sample) for sample in samples}) > 1
    assert all(int(name[1:]) % 2 for sample in samples for name in sample)
    data = inspect_source("coco", root, "val", out=tmp_path, pictures=50)
    assert data["sampled"] == sorted(boxes)
    assert data["pictures_without_objects"] == 6
    assert "pictures without an object: 6" in inspection_text(data)


@pytest.mark.parametrize("pictures", [0, 1, 2])
def test_any_number_of_pictures_gives_a_sheet_and_the_same_counts(demo, pictures, tmp_path):
    data = inspect_source("ai-tod", demo["ai-tod"], "val", out=tmp_path, pictures=pictures)
    assert Image.open(data["sheet"]).size > (100, 100)
    assert len(data["sampled"]) == pictures
    assert data["pictures"] == PICTURES


def test_faults_show_with_their_reasons(tmp_path):
    boxes = [
        ("car", 10, 10, 20, 20),
        ("car", 10, 10, 20, 20),
        ("car", 190, 190, 30, 30),
        ("car", 60, 60, 0, 5),
    ]
    root = write_coco(tmp_path / "in", {"a": boxes, "b": boxes[:1], "c": boxes[:1]})
    (root / "images" / "b.png").write_bytes(b"")
    data = inspect_source("coco", root, "val", out=tmp_path)
    read = data["read"]
    assert read["dropped"] == {"degenerate": 1, "duplicate_object": 1, "picture_empty": 1}
    assert read["repaired"] == {"clipped": 1}
    text = inspection_text(data)
    for reason in (*read["dropped"], *read["repaired"]):
        assert f"  {reason} 1: {read['examples'][reason][0]}" in text
    assert data["pictures"] == 2


def test_a_split_whose_pictures_are_all_dropped_is_reported(tmp_path):
    root = write_coco(tmp_path / "in", {"a": [("car", 10, 10, 20, 20)]})
    data = inspect_source("coco", root, "val", out=tmp_path, max_pixels=100)
    assert data["read"]["dropped"] == {"picture_too_large": 1}
    assert data["objects_per_picture"] is None
    assert "picture_too_large 1" in inspection_text(data)
    assert Path(data["sheet"]).is_file()


def test_pixels_that_cannot_be_read_are_named_on_the_sheet(tmp_path):
    root = write_coco(tmp_path / "in", {"a": [("car", 10, 10, 20, 20)]})
    path = root / "images" / "a.png"
    raw = bytearray(path.read_bytes())
    start = raw.index(b"IDAT") + 8
    raw[start : start + 12] = bytes(12)  # The end marker is there: the reader takes it as whole.
    path.write_bytes(bytes(raw))
    data = inspect_source("coco", root, "val", out=tmp_path)
    assert list(data["unreadable"]) == data["sampled"] == ["a"]
    assert data["unreadable"]["a"].startswith("picture_")
    assert "Not shown, its pixels cannot be read: a (picture_" in inspection_text(data)


@pytest.mark.parametrize(
    ("box", "size"),
    [
        pytest.param(Box(0, 0, 5, 5), (300, 300), id="corner"),
        pytest.param(Box(290, 295, 300, 300), (300, 300), id="far corner"),
        pytest.param(Box(0, 0, 4000, 20), (4000, 50), id="longer than a crop"),
        pytest.param(Box(2, 2, 6, 6), (8, 8), id="picture smaller than the cut-out"),
        pytest.param(Box(100.5, 100.5, 101.75, 102), (300, 300), id="broken numbers"),
    ],
)
def test_cut_outs_hold_their_box(box, size):
    window = window_of(box, size)
    assert window.holds(box)
    for start, length in ((window.x, size[0]), (window.y, size[1])):
        if window.side <= length:
            assert 0 <= start <= length - window.side


def test_colors_differ_even_for_many_categories():
    assert len({class_color(i) for i in range(91)}) == 91


def test_names_in_any_script_are_drawn(tmp_path):
    category = "船" * 40 + "\n" + "x" * 200
    root = write_coco(tmp_path / "in", {"ü" * 60: [(category, 10, 10, 20, 20)]})
    data = inspect_source("coco", root, "val", out=tmp_path)
    # One card and its margins: no name makes the sheet wider.
    assert Image.open(data["sheet"]).width == 2 * 20 + 360 + 3 * (6 + CROP_PX)


def test_text_says_what_the_data_says(demo, tmp_path):
    data = inspect_source("visdrone", demo["visdrone"], "val", out=tmp_path)
    text = inspection_text(data)
    for name, made in data["classes"].items():
        numbers = [made[key] for key in ("objects", "small", "ignored", "pictures")]
        assert re.search(rf"^{name} +" + " +".join(map(str, numbers)) + "$", text, re.MULTILINE)
    for reason, n in data["read"]["ignored"].items():
        assert f"  {reason} {n}: " in text
    assert data["sheet"] in text
    assert json.loads(json.dumps(data)) == data


def test_ruod_says_that_its_pictures_are_shrunk_in_questions(demo):
    text = inspection_text(inspect_source("ruod", demo["ruod"], "test"))
    assert "The published test split has 4,200 pictures, 5 read." in text
    assert "shrink each picture until its largest object is small" in text


def test_soda_d_says_which_pictures_questions_leave_out(demo):
    notes = inspect_source("soda-d", demo["soda-d"], "val")["notes"]
    assert notes == [
        "sou-vqa and sou-train leave out pictures over 6,000,000 px; they are counted here."
    ]


def test_a_set_of_the_users_own_has_no_notes(tmp_path):
    root = write_coco(tmp_path / "in", {"a": [("car", 10, 10, 20, 20)]})
    data = inspect_source("coco", root, "val")
    assert data["notes"] == []
    assert inspection_text(data).endswith("Nothing was dropped, set aside or changed.")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        pytest.param("kitti", {}, r"expected a source of soda-d, .*'kitti'", id="source"),
        pytest.param("coco", {"pictures": -1}, "at least 0, got -1", id="pictures"),
        pytest.param("coco", {"small_area_px": float("nan")}, "got nan", id="area"),
    ],
)
def test_wrong_options_are_refused(tmp_path, source, options, message):
    with pytest.raises(BuildError, match=message):
        inspect_source(source, tmp_path, "val", **options)


def test_an_unknown_folder_is_the_readers_error(tmp_path):
    with pytest.raises(FormatError):
        inspect_source("coco", tmp_path / "none", "val", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
