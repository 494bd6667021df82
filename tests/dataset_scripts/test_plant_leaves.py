"""plant-leaves as its user meets it: the build function, then ``load_dataset`` by name."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from math import floor
from pathlib import Path

import datasets
import numpy as np
import pytest
from datasets import load_dataset
from PIL import Image

from soubench.builders.demo_plants import write_demo_plants
from soubench.builders.errors import BuildError, FormatError
from soubench.builders.plants.build import choose_test_groups
from soubench.builders.plants.targets import parse
from soubench.dataset_scripts.plant_leaves.plant_leaves import (
    FEATURES,
    build_plant_leaves,
    report_text,
)

SPLITS = ["train", "test", "od_test", "strong_od_test"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_demo_plants(tmp_path_factory.mktemp("plants"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory, root):
    path = tmp_path_factory.mktemp("cache")
    report = build_plant_leaves(root, cache_dir=path)
    return path, report


def rows_of(config, cache):
    loaded = load_dataset("plant-leaves", config, cache_dir=str(cache))
    return {split: loaded[split].remove_columns("image").to_list() for split in loaded}


def test_loads_by_name_in_a_fresh_process_from_another_folder(cache, tmp_path):
    code = (
        "from datasets import load_dataset\n"
        "for config in ('sentence', 'tuple'):\n"
        "    loaded = load_dataset('plant-leaves', config)\n"
        "    print(list(loaded), loaded['test'][0]['image'].mode, loaded['test'].version)\n"
    )
    env = os.environ | {"HF_DATASETS_CACHE": str(cache[0]), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{SPLITS} RGB 1.0.0"] * 2


def test_features_splits_and_subsets(cache):
    for config in ("sentence", "tuple"):
        loaded = load_dataset("plant-leaves", config, cache_dir=str(cache[0]))
        assert list(loaded) == SPLITS
        assert loaded["train"].features == FEATURES
        assert loaded["train"].num_rows + loaded["test"].num_rows == 12
        subsets = {split: Counter(loaded[split]["subset"]) for split in loaded}
        assert set(subsets["train"]) == set(subsets["test"]) == {"ara2013-canon"}
        assert subsets["od_test"] == {"ara2012": 12, "stacks-ara2012": 4}
        assert subsets["strong_od_test"] == {"tobacco": 6}


def test_no_plant_and_no_picture_is_in_two_splits(cache):
    rows = rows_of("sentence", cache[0])
    for column in ("plant_id", "id"):
        of = {split: {row[column] for row in rows[split]} for split in SPLITS}
        assert sum(len(values) for values in of.values()) == len(set().union(*of.values()))
    (held_out,) = {row["plant_id"] for row in rows["test"]}
    assert cache[1]["test_groups"] == [held_out]
    assert len({row["plant_id"] for row in rows["train"]}) == 4


def test_targets_parse_back_and_both_configs_agree(cache):
    sentences, tuples = rows_of("sentence", cache[0]), rows_of("tuple", cache[0])
    for split in SPLITS:
        for row, other in zip(sentences[split], tuples[split], strict=True):
            assert [list(c) for c in parse(row["target"], "sentence")] == row["centers_xy"]
            assert [list(c) for c in parse(other["target"], "tuple")] == row["centers_xy"]
            assert row["leaf_count"] == len(row["centers_xy"])
            assert {**row, "target": ""} == {**other, "target": ""}
            assert row["question"] == (
                "For the given plant image predict the number of leaves and the center of the "
                "leaves"
            )


def label_of(root, row):
    folder = {
        "ara2012": "Plant/Ara2012",
        "ara2013-canon": "Plant/Ara2013-Canon",
        "tobacco": "Plant/Tobacco",
        "stacks-ara2012": "Stacks/Ara2012",
    }[row["subset"]]
    stem = root / folder / row["id"].partition("/")[2]
    with Image.open(f"{stem}_label.png") as image:
        assert image.mode == "P"
        return np.asarray(image), Path(f"{stem}_bbox.csv").read_text()


def test_counts_and_centers_follow_from_the_label_pictures(cache, root):
    """The slow way: from the pixels alone where a leaf's box is upright, nearly so elsewhere."""
    upright = 0
    for rows in rows_of("sentence", cache[0]).values():
        for row in rows:
            label, text = label_of(root, row)
            ids = set(label.ravel().tolist()) - {0}
            assert row["leaf_count"] == len(ids)
            centers = row["centers_xy"]
            assert centers == sorted(centers, key=lambda c: (c[1], c[0]))
            left = [tuple(c) for c in centers]
            for line in text.splitlines():
                leaf_id, *corners = map(int, line.split(","))
                ys, xs = np.nonzero(label == leaf_id)
                if len(set(corners[0::2])) == len(set(corners[1::2])) == 2:
                    upright += 1
                    center = (
                        floor((xs.min() + xs.max()) / 2 + 0.5),
                        floor((ys.min() + ys.max()) / 2 + 0.5),
                    )
                    assert center in left
                    left.remove(center)
                else:
                    # The smallest rectangle around a shape has its middle near the shape's.
                    near = min(left, key=lambda c: abs(c[0] - xs.mean()) + abs(c[1] - ys.mean()))
                    assert abs(near[0] - xs.mean()) + abs(near[1] - ys.mean()) < 0.4 * (
                        np.ptp(xs) + np.ptp(ys)
                    )
    assert upright >= 10


def test_pictures_are_referenced_where_they_lie(cache, root):
    loaded = load_dataset("plant-leaves", "tuple", split="train", cache_dir=str(cache[0]))
    for row in loaded.cast_column("image", datasets.Image(decode=False)):
        assert Path(row["image"]["path"]).is_relative_to(root)
        assert row["image"]["bytes"] is None


def test_workers_and_order_on_disk_change_nothing(cache, root, tmp_path):
    copy = tmp_path / "Set" / root.name
    paths = sorted((p for p in root.rglob("*") if p.is_file()), key=lambda p: p.name[::-1])
    for path in reversed(paths):
        place = copy / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    report = build_plant_leaves(tmp_path / "Set", workers=2, cache_dir=tmp_path / "cache")
    assert report["fingerprint"] == cache[1]["fingerprint"]
    without_places = report | {key: cache[1][key] for key in ("report_file", "folder")}
    assert without_places == cache[1]
    assert rows_of("tuple", tmp_path / "cache") == rows_of("tuple", cache[0])


def test_the_seed_chooses_the_genotype_and_nothing_else_matters():
    groups = ["a", "b", "c", "d", "e"]
    chosen = {choose_test_groups(groups, "1.0.0", seed) for seed in range(40)}
    assert chosen == {(group,) for group in groups}
    assert choose_test_groups(groups[::-1], "1.0.0", 3) == choose_test_groups(groups, "1.0.0", 3)
    assert len(choose_test_groups(map(str, range(11)), "1.0.0", 0)) == 2
    assert len(choose_test_groups(["a", "b"], "1.0.0", 0)) == 1
    assert choose_test_groups(["a"], "1.0.0", 0) == ()
    assert choose_test_groups([], "1.0.0", 0) == ()


def test_the_report_counts_what_was_read_and_what_was_left_out(cache):
    report = cache[1]
    assert report["left_out"] == {"stack_may_show_a_train_plant": 4}
    assert report["read"]["pictures"] == 34
    assert sum(split["pictures"] for split in report["splits"].values()) == 34
    assert report["configs"] == ["sentence", "tuple"]
    assert report["splits"]["od_test"]["plants"] == 13
    text = report_text(report)
    assert "od_test" in text
    assert "stack_may_show_a_train_plant 4" in text
    assert Path(report["report_file"]).is_file()


def test_odd_pictures_are_converted_once_and_copies_dropped(root, tmp_path):
    copy = tmp_path / root.name
    shutil.copytree(root, copy)
    folder = copy / "Plant/Ara2012"
    first, second, third, fourth = sorted(folder.glob("*_rgb.png"))[:4]
    with Image.open(first) as image:
        plain = np.asarray(image)
        clear = image.convert("RGBA")
    clear.putalpha(Image.new("L", clear.size, 0))
    clear.save(first)
    with Image.open(second) as image:
        image.quantize(64).save(second)
    for kind in ("rgb.png", "label.png", "bbox.csv"):
        shutil.copyfile(str(third)[:-7] + kind, str(fourth)[:-7] + kind)
    (folder / "Leaf_counts.csv").unlink()
    (folder / "ara2012_plant004_centers.png").unlink()
    report = build_plant_leaves(copy, cache_dir=tmp_path / "cache")
    assert report["read"]["repaired"] == {"alpha_dropped": 1, "picture_converted": 1}
    assert report["read"]["dropped"] == {"duplicate_picture": 1}
    rows = load_dataset("plant-leaves", "sentence", split="od_test", cache_dir=tmp_path / "cache")
    assert {row["image"].mode for row in rows} == {"RGB"}
    # What lies under a meaningless alpha channel is plant.
    assert (np.asarray(rows[0]["image"]) == plain).all()


def test_a_part_of_the_set_gives_the_splits_it_can(root, tmp_path):
    report = build_plant_leaves(root / "Plant" / "Tobacco", cache_dir=tmp_path)
    assert list(report["splits"]) == ["strong_od_test"]
    assert report["empty_splits"] == SPLITS[:3]
    assert list(rows_of("tuple", tmp_path)) == ["strong_od_test"]


def test_a_failed_build_leaves_the_older_one(cache, root, tmp_path):
    copy = tmp_path / root.name
    shutil.copytree(root, copy)
    build_plant_leaves(copy, cache_dir=tmp_path / "cache")
    with (copy / "Plant/Tobacco/Leaf_counts.csv").open("a") as file:
        file.write("tobacco_plant001,\n")
    with pytest.raises(FormatError, match=r"Leaf_counts\.csv:7"):
        build_plant_leaves(copy, cache_dir=tmp_path / "cache")
    assert rows_of("tuple", tmp_path / "cache") == rows_of("tuple", cache[0])
    assert list((tmp_path / "cache/soubench/staging").iterdir()) == []


def test_nothing_to_build_from_is_said(root, tmp_path):
    with pytest.raises(BuildError, match="takes no part"):
        build_plant_leaves(root / "Stacks/Ara2013-Canon", cache_dir=tmp_path)
    with pytest.raises(FormatError, match="no such folder"):
        build_plant_leaves(tmp_path / "none", cache_dir=tmp_path)


def test_the_demo_is_the_same_for_a_seed_and_never_overwrites(root, tmp_path):
    again = write_demo_plants(tmp_path)
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    assert files == sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
    assert all((root / name).read_bytes() == (again / name).read_bytes() for name in files)
    with pytest.raises(BuildError, match="but it is there"):
        write_demo_plants(tmp_path)
    other = write_demo_plants(tmp_path / "other", seed=1)
    name = "Plant/Tobacco/tobacco_plant001_rgb.png"
    assert (other / name).read_bytes() != (root / name).read_bytes()


def test_demo_stacks_keep_leaf_ids_while_the_plant_grows(root):
    counts = []
    for folder in (root / "Stacks/Ara2012/stack_01", root / "Stacks/Ara2013-Canon/stack_01"):
        ids, areas = [], []
        for path in sorted(folder.glob("*_label.png")):
            with Image.open(path) as image:
                label = np.asarray(image)
            ids.append(set(np.unique(label).tolist()) - {0})
            areas.append(np.count_nonzero(label))
        assert areas == sorted(areas)
        assert all(len(a & b) > len(a) / 2 for a, b in pairwise(ids))
        counts.append([len(i) for i in ids])
    assert all(c[-1] > c[0] for c in counts)
