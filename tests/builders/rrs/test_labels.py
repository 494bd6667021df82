"""rrs from label sets: what labels prove is asked, and nothing else."""

import json
import math
import random

import datasets
import pytest
from PIL import Image

from soubench.cli import main
from tests.builders.rrs import oracle
from tests.data import draw_picture, write_json, write_text

SIZE_WH = (240, 180)
CATEGORIES = ("ship", "storage-tank", "plane")
PICTURES = 40


def rectangle(rng):
    """Corners of a turned rectangle."""
    x, y, angle = rng.uniform(40, 200), rng.uniform(40, 140), rng.uniform(0, math.pi)
    length, width = rng.uniform(10, 39), rng.uniform(3, 12)
    along = (math.cos(angle) * length, math.sin(angle) * length)
    across = (-math.sin(angle) * width, math.cos(angle) * width)
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    return [(x, y)[k] + a * along[k] + b * across[k] for a, b in corners for k in (0, 1)]


def objects_of(rng, *, turned):
    """Random boxes with triangles in them as masks, or corners of rectangles and of triangles."""
    found = []
    for _ in range(rng.randint(0, 7)):
        w, h = rng.uniform(5, 60), rng.uniform(5, 40)
        x, y = rng.uniform(0, SIZE_WH[0] - w), rng.uniform(0, SIZE_WH[1] - h)
        if turned:
            flat = rectangle(rng) if rng.random() < 0.7 else [x, y, x + w, y + h, x, y + h, x, y]
            flat = [round(v, 1) for v in flat]
        else:
            flat = [x, y, x + w, y, x + w / 2, y + h]
        box = [min(flat[0::2]), min(flat[1::2]), max(flat[0::2]), max(flat[1::2])]
        found.append(
            {
                "category": rng.choice(CATEGORIES),
                "box_xyxy": box,
                **({"quad_xy8": flat} if turned else {"mask": {"polygons": [flat]}}),
            }
        )
    return found


def write_coco(root, pictures):
    (root / "annotations").mkdir(parents=True)
    annotations, images = [], []
    for i, (name, objects) in enumerate(pictures.items(), 1):
        draw_picture(root / "val" / f"{name}.jpg", SIZE_WH)
        images.append({"id": i, "file_name": f"{name}.jpg", "width": 240, "height": 180})
        for o in objects:
            x1, y1, x2, y2 = o["box_xyxy"]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": i,
                    "category_id": CATEGORIES.index(o["category"]) + 1,
                    "bbox": [x1, y1, x2 - x1, y2 - y1],
                    "segmentation": o["mask"]["polygons"],
                    "area": 1,
                    "iscrowd": o.get("iscrowd", 0),
                }
            )
    document = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": i, "name": name} for i, name in enumerate(CATEGORIES, 1)],
    }
    write_json(root / "annotations" / "instances_val.json", document)
    return root


def write_dota(root, pictures, header="imagesource:GoogleEarth\ngsd:0.5\n"):
    for name, objects in pictures.items():
        draw_picture(root / "val" / "images" / f"{name}.png", SIZE_WH)
        rows = [
            " ".join(map(str, o["quad_xy8"])) + f" {o['category']} {o.get('difficult', 0)}\n"
            for o in objects
        ]
        write_text(root / "val" / "labelTxt" / f"{name}.txt", header + "".join(rows))
    return root


def build(cache, *arguments):
    datasets.config.HF_DATASETS_CACHE = cache
    command = ["build", "rrs", "--distractors=random", "--workers=1", *map(str, arguments)]
    return main(command)


def rows_in(cache, config="all"):
    rows = datasets.load_dataset("rrs", config, split="test", cache_dir=str(cache))
    return rows.remove_columns("images").to_list()


def report_in(cache):
    (path,) = cache.glob("soubench/rrs/*/report.json")
    return json.loads(path.read_text())


def known(pictures, **fields):
    """What the labels say, as the oracle reads records."""
    return {
        name: {"objects": objects, "exhaustive": list(CATEGORIES), **fields}
        for name, objects in pictures.items()
    }


def check_all(rows, records, prefix):
    by_id = {row["id"]: row for row in rows}
    for row in rows:
        name = row["id"].rpartition("/")[0].removeprefix(prefix)
        oracle.check(row, records[name], SIZE_WH, by_id.get(row["clean_id"]))


def test_every_answer_from_a_coco_file_follows_from_its_labels(tmp_path):
    rng = random.Random(3)
    pictures = {f"p{i:02}": objects_of(rng, turned=False) for i in range(PICTURES)}
    root = write_coco(tmp_path / "set", pictures)
    assert build(tmp_path / "cache", f"--source=coco={root}") == 0
    rows = rows_in(tmp_path / "cache")
    check_all(rows, known(pictures), "coco/")
    tasks = {row["task"] for row in rows}
    assert tasks == {"OC", "VG", "OE", "RS", "RSI", "NR", "OR", "HD"}
    assert {row["source"] for row in rows} == {"coco"}
    told = report_in(tmp_path / "cache")["tasks"]
    assert told["DC"]["not_asked"] == told["AC"]["not_asked"] == {"gsd_not_given": PICTURES}
    assert told["API"]["not_asked"] == told["ASI"]["not_asked"] == {"north_not_declared": PICTURES}
    assert told["SU"]["not_asked"] == {"no_scene_label": PICTURES}
    configs = {p.name for p in (tmp_path / "cache" / "rrs").iterdir()}
    assert "vg" in configs
    assert not {"su", "reasoning-temporal"} & configs


def test_every_answer_from_dota_follows_from_its_labels(tmp_path):
    rng = random.Random(4)
    pictures = {f"P{i:04}": objects_of(rng, turned=True) for i in range(PICTURES)}
    root = write_dota(tmp_path / "set", pictures)
    assert build(tmp_path / "cache", f"--source=dota={root}", "--north-up") == 0
    rows = rows_in(tmp_path / "cache")
    # Categories of DOTA are the names that occur.
    check_all(rows, known(pictures, north_deg=0, gsd_m=0.5), "dota/")
    counts = {task: sum(row["task"] == task for row in rows) for task in ("API", "ASI", "DC", "AC")}
    assert min(counts.values()) > 5
    # Corners prove the area of the rectangle, not that of what is in it.
    assert all("smallest rectangle around" in r["question"] for r in rows if r["task"] == "AC")


def test_the_ground_sample_distance_is_the_label_files_own(tmp_path):
    ship = {"category": "ship", "quad_xy8": [10, 10, 110, 10, 110, 30, 10, 30]}
    for header, name, asked in (
        ("gsd:0.25\n", "P1", True),
        ("gsd:null\n", "P1", False),
        ("", "P1", False),
        ("gsd:0.25\n", "P1__1__0___0", True),
        # The tile is half as large as the picture that the number was said of.
        ("gsd:0.25\n", "P1__0.5__0___0", False),
    ):
        root = write_dota(tmp_path / f"{len(header)}{name}", {name: [ship]}, header)
        cache = root / "cache"
        assert build(cache, f"--source=dota={root}") == 0
        rows = [row for row in rows_in(cache) if row["task"] == "DC"]
        assert bool(rows) == asked
        for row in rows:
            assert "60 m of ground from left to right and 45 m" in row["question"]
            assert row["options"][row["answer_index"]] == "25 m"  # 100 px of 0.25 m


def test_what_a_source_does_not_count_leaves_its_category_open(tmp_path):
    ship = {"category": "ship", "quad_xy8": [10, 10, 40, 10, 40, 20, 10, 20]}
    hard = ship | {"quad_xy8": [90, 90, 99, 90, 99, 99, 90, 99], "difficult": 1}
    plane = {"category": "plane", "quad_xy8": [150, 100, 180, 100, 180, 120, 150, 120]}
    root = write_dota(tmp_path / "set", {"P1": [ship, hard, plane], "P2": [ship]})
    assert build(tmp_path / "cache", f"--source=dota={root}") == 0
    rows = [row for row in rows_in(tmp_path / "cache") if row["id"].startswith("dota/P1/")]
    about = {row["task"]: row["evidence"]["target"] for row in rows}
    # There may be two ships: neither "the only ship" nor their number is known.
    assert about["OC"] == "plane"
    assert about["VG"] == "the only plane"
    assert "RSI" not in about
    assert "OE" not in about  # and no category is known to be absent
    other = {r["task"] for r in rows_in(tmp_path / "cache") if r["id"].startswith("dota/P2/")}
    assert {"OC", "VG", "OE", "HD"} <= other


def test_a_crowd_leaves_its_category_open(tmp_path):
    flat = [10, 10, 60, 10, 60, 40]
    ship = {"category": "ship", "box_xyxy": [10, 10, 60, 40], "mask": {"polygons": [flat]}}
    root = write_coco(tmp_path / "set", {"p": [ship, ship | {"iscrowd": 1}], "q": [ship]})
    assert build(tmp_path / "cache", f"--source=coco={root}") == 0
    rows = rows_in(tmp_path / "cache")
    assert {row["id"] for row in rows if row["task"] in ("OC", "VG")} == {"coco/q/oc", "coco/q/vg"}


def test_a_mask_that_leaves_its_box_is_no_mask(tmp_path):
    ship = {
        "category": "ship",
        "box_xyxy": [10, 10, 30, 20],
        "mask": {"polygons": [[10, 10, 60, 10, 60, 40]]},
    }
    root = write_coco(tmp_path / "set", {"p": [ship]})
    assert build(tmp_path / "cache", f"--source=coco={root}") == 0
    assert "RS" not in {row["task"] for row in rows_in(tmp_path / "cache")}
    assert report_in(tmp_path / "cache")["sources"][0]["repaired"] == {"mask_off_its_box": 1}


def test_records_and_label_sets_make_one_dataset(tmp_path, capsys):
    rng = random.Random(5)
    root = write_coco(tmp_path / "set", {f"p{i}": objects_of(rng, turned=False) for i in range(6)})
    Image.new("RGB", SIZE_WH).save(tmp_path / "a.png")
    scene = {"scene": {"type": "port"}, "images": ["a.png"]}
    lines = [{"id": "mine", **scene}, {"id": "coco/p0", **scene}]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    arguments = (f"--records={tmp_path / 'r.jsonl'}", f"--source=coco={root}")
    assert build(tmp_path / "cache", *arguments) == 0
    rows = rows_in(tmp_path / "cache")
    assert {row["source"] for row in rows} == {"coco", "records"}
    assert report_in(tmp_path / "cache")["records"]["left_out"] == {"duplicate_id": 1}
    assert build(tmp_path / "strict", *arguments, "--strict") == 2
    assert "coco/p0" in capsys.readouterr().err


def test_the_limit_holds_for_each_origin_and_is_the_same_sample_every_time(tmp_path):
    rng = random.Random(6)
    pictures = {f"p{i:02}": objects_of(rng, turned=False) for i in range(20)}
    root = write_coco(tmp_path / "set", pictures)
    found = []
    for cache in ("one", "two"):
        assert build(tmp_path / cache, f"--source=coco={root}", "--limit=5") == 0
        found.append({row["group_id"] for row in rows_in(tmp_path / cache)})
        assert report_in(tmp_path / cache)["records"]["read"] == 5
    assert found[0] == found[1]


def test_declared_ground_sample_distance_holds_where_labels_say_none(tmp_path):
    ship = {"category": "ship", "box_xyxy": [10, 10, 60, 40]}
    ship["mask"] = {"polygons": [[10, 10, 60, 10, 60, 40, 10, 40]]}
    root = write_coco(tmp_path / "set", {"p": [ship]})
    asked = {}
    for gsd in ("", "1", "2"):
        options = [f"--gsd=coco={gsd}"] if gsd else []
        assert build(tmp_path / f"cache{gsd}", f"--source=coco={root}", *options) == 0
        asked[gsd] = {row["task"]: row for row in rows_in(tmp_path / f"cache{gsd}")}
    assert "AC" not in asked[""]
    for gsd in ("1", "2"):
        row = asked[gsd]["AC"]
        # 50 by 30 px.
        assert row["options"][row["answer_index"]] == f"{50 * 30 * float(gsd) ** 2:.0f} m²"
        assert f"{SIZE_WH[0] * float(gsd):g} m of ground" in row["question"]


@pytest.mark.parametrize("gsd", ["coco=fine", "coco=0", "coco=-1", "coco=nan", "dota=1", "coco"])
def test_a_ground_sample_distance_that_makes_no_sense_is_told(tmp_path, gsd, capsys):
    root = write_coco(tmp_path / "set", {"p": []})
    assert build(tmp_path / "cache", f"--source=coco={root}", f"--gsd={gsd}") == 2
    assert "--gsd" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["nowhere", "set/annotations/none"])
def test_a_folder_that_is_not_there_is_named(tmp_path, missing, capsys):
    assert build(tmp_path / "cache", f"--source=coco={tmp_path / missing}") == 2
    assert missing in capsys.readouterr().err


@pytest.mark.parametrize(
    "lost",
    [
        {"bbox": [90, 90, 20, 0]},
        {"bbox": [90, 90, 20]},
        {"category_id": 99},
    ],
)
def test_a_label_that_could_not_be_read_leaves_its_picture_open(tmp_path, lost):
    ship = {"category": "ship", "box_xyxy": [10, 10, 60, 40]}
    ship["mask"] = {"polygons": [[10, 10, 60, 10, 60, 40, 10, 40]]}
    root = write_coco(tmp_path / "set", {"p": [ship, ship], "q": [ship]})
    path = root / "annotations" / "instances_val.json"
    document = json.loads(path.read_text())
    document["annotations"][1] |= lost
    path.write_text(json.dumps(document))
    assert build(tmp_path / "cache", f"--source=coco={root}") == 0
    rows = rows_in(tmp_path / "cache")
    assert {row["id"] for row in rows if row["task"] in ("OC", "OE", "HD")} == {
        *("coco/q/oc", "coco/q/oe", "coco/q/oe-2", "coco/q/hd", "coco/q/hd-2")
    }


def test_what_the_edge_cuts_is_not_measured(tmp_path):
    cut = {"category": "ship", "quad_xy8": [180, 10, 300, 10, 300, 30, 180, 30]}
    whole = {"category": "plane", "quad_xy8": [10, 100, 110, 100, 110, 120, 10, 120]}
    root = write_dota(tmp_path / "set", {"P1": [cut], "P2": [whole], "P3": [cut, whole]})
    assert build(tmp_path / "cache", f"--source=dota={root}", "--north-up") == 0
    measured = {"DC", "AC", "API"}
    rows = [row for row in rows_in(tmp_path / "cache") if row["task"] in measured]
    assert {row["id"].split("/")[1] for row in rows} == {"P2", "P3"}
    assert all("plane" in row["question"] for row in rows)
    lengths = {row["options"][row["answer_index"]] for row in rows if row["task"] == "DC"}
    assert lengths == {"50 m"}  # 100 px of 0.5 m
