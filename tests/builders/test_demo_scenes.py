import csv
import hashlib
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from soubench.builders.demo_scenes import (
    FOLDERS,
    SPLITS,
    draw_picture,
    write_demo_source,
    write_demo_sources,
)
from soubench.builders.demo_scenes.draw import render
from soubench.builders.demo_scenes.worlds import LONER_CLEARANCE, WORLDS
from soubench.builders.errors import BuildError

SMALL_WH = (480, 400)
SMALL_PX2 = 1024
PICTURES = 12
# Classes without a drawing of their own: they mark areas.
AREA_CLASSES = {"ignore", "ignored-regions"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return write_demo_sources(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def scenes():
    return {name: [draw_picture(name, i) for i in range(PICTURES)] for name in FOLDERS}


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def area(made) -> int:
    x1, y1, x2, y2 = made.box_xyxy
    return (x2 - x1) * (y2 - y1)


def counted(picture):
    return [made for made in picture.objects if made.route is None]


def small(name, picture):
    """Small objects as a question set sees them: RUOD pictures are shrunk first."""
    if name == "ruod":
        return counted(picture)
    return [made for made in counted(picture) if area(made) <= SMALL_PX2]


def shared_area(one, other) -> int:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return max(0, across) * max(0, down)


# --- Writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FOLDERS)
def test_same_seed_gives_the_same_bytes_and_another_seed_others(name, tmp_path):
    runs = {
        run: write_demo_source(name, tmp_path / run, pictures=2, seed=seed, size_wh=SMALL_WH)
        for run, seed in (("one", 5), ("two", 5), ("other", 6))
    }
    one, two, other = (hashes(runs[run]) for run in ("one", "two", "other"))
    assert one == two
    assert one.keys() == other.keys()
    assert all(one[path] != other[path] for path in one)


@pytest.mark.parametrize("name", FOLDERS)
def test_more_pictures_keep_the_earlier_ones(name, tmp_path):
    few = hashes(write_demo_source(name, tmp_path / "few", pictures=2, size_wh=SMALL_WH))
    many = hashes(write_demo_source(name, tmp_path / "many", pictures=3, size_wh=SMALL_WH))
    # One label file per split grows; everything else stays.
    kept = [path for path in few if not path.endswith("v1.json")]
    kept = [path for path in kept if Path(path).name not in ("val.json", "instances_test.json")]
    assert len(kept) >= 2
    assert {path: many[path] for path in kept} == {path: few[path] for path in kept}


def test_folders_and_splits_are_named_for_every_source(demo):
    assert list(demo) == ["soda-d", "visdrone", "ai-tod", "soda-a", "ruod"]
    assert demo.keys() == WORLDS.keys() == SPLITS.keys()
    assert all(path.is_dir() and path.name == FOLDERS[name] for name, path in demo.items())


def test_existing_folder_is_never_overwritten(tmp_path):
    (tmp_path / "RUOD").mkdir()
    (tmp_path / "RUOD" / "mine.txt").write_text("real data")
    with pytest.raises(BuildError, match=r"RUOD.*choose another folder"):
        write_demo_source("ruod", tmp_path, pictures=1, size_wh=SMALL_WH)
    assert (tmp_path / "RUOD" / "mine.txt").read_text() == "real data"


def test_leftover_of_a_killed_run_is_replaced(tmp_path):
    stale = tmp_path / ".RUOD.incomplete" / "test" / "000099.jpg"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"half")
    folder = write_demo_source("ruod", tmp_path, pictures=1, size_wh=SMALL_WH)
    assert [path.name for path in (folder / "test").iterdir()] == ["000001.jpg"]
    assert [path.name for path in tmp_path.iterdir()] == ["RUOD"]


def test_wrong_requests_name_what_is_possible(tmp_path):
    with pytest.raises(BuildError, match="soda-d, visdrone, ai-tod, soda-a, ruod, got 'coco'"):
        write_demo_source("coco", tmp_path)
    with pytest.raises(BuildError, match="at least 1 picture"):
        write_demo_source("ruod", tmp_path, pictures=0)
    with pytest.raises(ValueError, match="at least 400 x 300"):
        draw_picture("ruod", 0, size_wh=(399, 300))


# --- Formats, read with plain json and csv --------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "labels", "images", "first_id", "keys"),
    [
        pytest.param("soda-d", "Annotations/val.json", "Images", 1, {"ignore"}, id="soda-d"),
        pytest.param("ai-tod", "annotations/aitod_val_v1.json", "images/val", 0,
                     {"iscrowd", "segmentation"}, id="ai-tod"),
        pytest.param("ruod", "annotations/instances_test.json", "test", 1,
                     {"iscrowd", "ignore", "segmentation"}, id="ruod"),
    ],
)  # fmt: skip
def test_one_json_per_split(demo, scenes, name, labels, images, first_id, keys):
    data = json.loads((demo[name] / labels).read_text())
    assert {record["name"] for record in data["categories"]} == set(WORLDS[name].categories)
    assert [record["id"] for record in data["categories"]] == [
        *range(1, len(WORLDS[name].categories) + 1)
    ]
    assert [record["id"] for record in data["images"]] == [*range(first_id, first_id + PICTURES)]
    assert [record["id"] for record in data["annotations"]] == [
        *range(first_id, first_id + len(data["annotations"]))
    ]
    names = {record["id"]: record["name"] for record in data["categories"]}
    listed = {record["file_name"] for record in data["images"]}
    assert listed == {path.name for path in (demo[name] / images).iterdir()}
    for record, picture in zip(data["images"], scenes[name], strict=True):
        with Image.open(demo[name] / images / record["file_name"]) as opened:
            assert opened.size == (record["width"], record["height"]) == WORLDS[name].size_wh
            assert opened.mode == "RGB"
            assert opened.format == ("PNG" if name == "ai-tod" else "JPEG")
        found = [row for row in data["annotations"] if row["image_id"] == record["id"]]
        assert len(found) == len(picture.objects)
        for row, made in zip(found, picture.objects, strict=True):
            assert row.keys() == {"id", "image_id", "category_id", "bbox", "area"} | keys
            x, y, width, height = row["bbox"]
            assert (x, y, x + width, y + height) == made.box_xyxy
            assert row["area"] == width * height
            assert names[row["category_id"]] == made.category
            assert all(type(side) is (float if name == "ai-tod" else int) for side in row["bbox"])


def test_visdrone_lines(demo, scenes):
    part = demo["visdrone"] / "VisDrone2019-DET-val"
    stems = sorted(path.stem for path in (part / "annotations").iterdir())
    assert stems == sorted(path.stem for path in (part / "images").iterdir())
    assert stems[:4] == [
        "0000001_00001_d_0000001",
        "0000001_00241_d_0000002",
        "0000001_00481_d_0000003",
        "0000002_00001_d_0000004",
    ]
    for stem, picture in zip(stems, scenes["visdrone"], strict=True):
        with Image.open(part / "images" / f"{stem}.jpg") as opened:
            assert (opened.format, opened.mode, opened.size) == ("JPEG", "RGB", (960, 540))
        text = (part / "annotations" / f"{stem}.txt").read_bytes().decode()
        rows = [[int(value) for value in row] for row in csv.reader(text.splitlines())]
        assert "\r" not in text
        assert len(rows) == len(picture.objects)
        for row, made in zip(rows, picture.objects, strict=True):
            x, y, width, height, score, category, _, _ = row
            assert (x, y, x + width, y + height) == made.box_xyxy
            assert WORLDS["visdrone"].categories[category] == made.category
            assert score == (made.route in (None, "covered"))


def test_soda_a_pairs(demo, scenes):
    pairs = sorted((demo["soda-a"] / "Annotations" / "val").iterdir())
    assert [path.name for path in pairs] == [f"{i:05d}.json" for i in range(1, PICTURES + 1)]
    for path, picture in zip(pairs, scenes["soda-a"], strict=True):
        with Image.open(demo["soda-a"] / "Images" / "val" / f"{path.stem}.jpg") as opened:
            assert (opened.format, opened.mode, opened.size) == ("JPEG", "RGB", (1200, 900))
        data = json.loads(path.read_text())
        assert [record["id"] for record in data["categories"]] == [*range(10)]
        assert data["categories"][-1]["name"] == "ignore"
        for row, made in zip(data["annotations"], picture.objects, strict=True):
            assert data["categories"][row["category_id"]]["name"] == made.category
            assert len(row["poly"]) == (10 if made.category == "ignore" else 8)


# --- What is drawn ------------------------------------------------------------------------------

DRAWINGS = [
    pytest.param(name, category, kind, id=f"{name}-{category}")
    for name, world in WORLDS.items()
    for category, kind in (world.kinds | dict(world.other)).items()
]


@pytest.mark.parametrize(("name", "category", "kind"), DRAWINGS)
@pytest.mark.parametrize("heading", [0.0, 37.0])
def test_box_is_tight_round_the_drawn_pixels(name, category, kind, heading):
    wide = sum(kind.length_px) / 2
    sprite = render(
        kind.drawing, (wide, wide * kind.aspect), random.Random(category), heading_deg=heading
    )
    for flat in ((255, 0, 255), (0, 255, 0)):
        before = Image.new("RGB", (120, 120), flat)
        after = before.copy()
        after.paste(sprite.image, (30, 20), sprite.image)
        width, height = sprite.image.size
        assert ImageChops.difference(before, after).getbbox() == (30, 20, 30 + width, 20 + height)
    # The turned rectangle bounds the same pixels, but for an antialiased edge, and for the corners
    # that a turned round thing leaves empty.
    xs, ys = sprite.quad_xy8[::2], sprite.quad_xy8[1::2]
    assert min(xs) <= 1
    assert min(ys) <= 1
    assert max(xs) >= sprite.image.width - 1
    assert max(ys) >= sprite.image.height - 1
    if not heading:
        hull = (min(xs), min(ys), max(xs), max(ys))
        assert hull == pytest.approx((0, 0, *sprite.image.size), abs=1)


@pytest.mark.parametrize("name", FOLDERS)
def test_every_object_lies_in_the_picture(name, scenes):
    width, height = WORLDS[name].size_wh
    for picture in scenes[name]:
        for made in picture.objects:
            x1, y1, x2, y2 = made.box_xyxy
            assert 0 <= x1 < x2 <= width
            assert 0 <= y1 < y2 <= height


@pytest.mark.parametrize("name", FOLDERS)
def test_every_category_occurs(name, scenes):
    seen = Counter(made.category for picture in scenes[name] for made in picture.objects)
    assert set(seen) == set(WORLDS[name].categories)
    evaluated = {made.category for picture in scenes[name] for made in counted(picture)}
    assert evaluated == set(WORLDS[name].kinds)


@pytest.mark.parametrize("name", FOLDERS)
def test_pictures_carry_questions(name, scenes):
    counts = [len(small(name, picture)) for picture in scenes[name]]
    assert min(counts) >= 4
    assert max(counts) >= 20
    assert len(set(counts)) >= 6
    kinds = [len({made.category for made in small(name, picture)}) for picture in scenes[name]]
    assert min(kinds) >= 2
    assert max(kinds) >= 6
    total = sum(len(counted(picture)) for picture in scenes[name])
    assert sum(counts) >= 0.7 * total


@pytest.mark.parametrize("name", FOLDERS)
def test_outermost_objects_are_unique(name, scenes):
    for picture in scenes[name]:
        boxes = [made.box_xyxy for made in counted(picture)]
        for side, pick in enumerate((min, min, max, max)):
            edges = [box[side] for box in boxes]
            assert edges.count(pick(edges)) == 1


@pytest.mark.parametrize("name", FOLDERS)
def test_one_object_stands_alone(name, scenes):
    for picture in scenes[name]:
        alone = 0
        for made in small(name, picture):
            x1, y1, x2, y2 = made.box_xyxy
            reach = LONER_CLEARANCE * max(x2 - x1, y2 - y1)
            around = (x1 - reach, y1 - reach, x2 + reach, y2 + reach)
            others = [other for other in picture.objects if other is not made]
            alone += not any(shared_area(around, other.box_xyxy) for other in others)
        assert alone


@pytest.mark.parametrize("name", FOLDERS)
def test_only_riders_overlap(name, scenes):
    for picture in scenes[name]:
        made = [one for one in picture.objects if one.route not in ("region", "covered")]
        for k, one in enumerate(made):
            for other in made[k + 1 :]:
                if shared_area(one.box_xyxy, other.box_xyxy):
                    assert "rider" in (one.category, other.category)


def test_every_route_of_not_counting_occurs(scenes):
    routes = {
        name: {made.route for picture in pictures for made in picture.objects} - {None}
        for name, pictures in scenes.items()
    }
    assert routes == {
        "soda-d": {"flag", "region"},
        "visdrone": {"flag", "region", "covered", "other"},
        "ai-tod": set(),
        "soda-a": {"region"},
        "ruod": set(),
    }
    for pictures in scenes.values():
        for picture in pictures:
            areas = [made.box_xyxy for made in picture.objects if made.route == "region"]
            for made in picture.objects:
                inside = sum(shared_area(made.box_xyxy, one) for one in areas)
                if made.route == "covered":
                    assert made.category not in AREA_CLASSES
                    assert inside >= area(made) / 2
                elif made.route != "region":
                    assert inside == 0


def test_ruod_stays_large_enough_when_shrunk(scenes):
    for picture in scenes["ruod"]:
        largest = max(area(made) for made in picture.objects)
        scale = min(1.0, (SMALL_PX2 / largest) ** 0.5)
        assert min(picture.image.size) * scale >= 233


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("size_wh", [(400, 300), (401, 700)])
def test_small_pictures_still_hold_a_scene(name, size_wh):
    for index in range(3):
        picture = draw_picture(name, index, seed=1, size_wh=size_wh)
        assert picture.image.size == size_wh
        assert len(counted(picture)) >= 3
