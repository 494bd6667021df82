"""plant-leaves as its user meets it: the build function, then ``load_dataset`` by name."""

import json
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
from huggingface_hub import DatasetCard
from PIL import Image

from soubench.builders.demo_plants import write_demo_plants
from soubench.builders.errors import BuildError, FormatError
from soubench.builders.plants.build import choose_test_groups
from soubench.builders.plants.prompt import load_prompt
from soubench.builders.plants.report import REASONS, card_text
from soubench.builders.plants.targets import parse
from soubench.dataset_scripts.plant_leaves.plant_leaves import (
    FEATURES,
    VERSION,
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


def test_golden_rows(cache):
    """Rows may change only with the version: RELEASE_NOTES.md says what changed."""
    golden = json.loads(Path(__file__).with_name("golden_plant_leaves.json").read_text())
    rows = [
        [split, row["id"], row["plant_id"], row["target"]]
        for split, of_split in rows_of("sentence", cache[0]).items()
        for row in of_split
    ]
    assert rows == golden["rows"]
    questions = {
        row["question"] for of_split in rows_of("tuple", cache[0]).values() for row in of_split
    }
    assert questions == {golden["question"]}
    tuples = {split: rows[0]["target"] for split, rows in rows_of("tuple", cache[0]).items()}
    assert tuples == golden["first_tuples"]


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


@pytest.mark.parametrize(("seed", "held_out"), [(0, "ein2"), (1, "pgm")])
def test_the_genotype_that_a_seed_holds_out_is_fixed(root, tmp_path, seed, held_out):
    genotypes = [f"ara2013-canon/{name}" for name in ("ein2", "pgm", "Col-0", "ctr", "adh1")]
    assert choose_test_groups(genotypes, "1.0.0", seed) == (f"ara2013-canon/{held_out}",)
    report = build_plant_leaves(root / "Plant/Ara2013-Canon", seed=seed, cache_dir=tmp_path)
    assert report["test_groups"] == [f"ara2013-canon/{held_out}"]
    rows = rows_of("sentence", tmp_path)
    assert {row["plant_id"] for row in rows["test"]} == {f"ara2013-canon/{held_out}"}
    # The version is part of the key, too.
    assert {choose_test_groups(genotypes, f"{i}.0.0", seed) for i in range(40)} == {
        (genotype,) for genotype in genotypes
    }


def test_the_report_counts_what_was_read_and_what_was_left_out(cache):
    report = cache[1]
    assert report["left_out"] == {"stack_may_show_a_train_plant": 4}
    assert report["read"]["pictures"] == 34
    assert sum(split["pictures"] for split in report["splits"].values()) == 34
    assert report["configs"] == ["sentence", "tuple"]
    assert report["splits"]["od_test"]["plants"] == 13
    text = report_text(report)
    assert "od_test" in text
    assert "4 × stack_may_show_a_train_plant: picture of a stack of Ara2013" in text
    assert Path(report["report_file"]).is_file()


def test_the_report_says_in_words_that_a_copy_is_partial(root, tmp_path):
    copy = tmp_path / root.name
    shutil.copytree(root / "Plant/Ara2012", copy / "Plant/Ara2012")
    for path in (copy / "Plant/Ara2012").glob("*_plant00[2-9]_*"):
        path.unlink()
    report = build_plant_leaves(copy, cache_dir=tmp_path / "cache")
    assert report["read"]["repaired"] == {"counted_plant_without_files": 8}
    for text in (report_text(report), card_text(report)):
        assert "line of a Leaf_counts.csv for a plant whose files are not here" in text
    assert (
        "  8 × counted_plant_without_files: line of a Leaf_counts.csv for a plant whose files are "
        "not here, as in a partial copy (such as ara2012/Leaf_counts.csv ara2012_plant002, "
    ) in report_text(report)


def card_of(report):
    card = DatasetCard.load(Path(report["folder"]) / "README.md")
    assert card.data.pretty_name == "Plant leaves"
    assert card.data.license == "other"
    assert card.data.language == ["en"]
    assert card.data.task_categories == ["visual-question-answering", "image-to-text"]
    assert card.data.size_categories == ["n<1K"]
    return card.text


def test_the_numbers_in_the_card_are_those_of_the_build(cache, root, tmp_path):
    part = build_plant_leaves(root / "Plant/Ara2013-Canon", seed=1, cache_dir=tmp_path)
    for place, report in ((cache[0], cache[1]), (tmp_path, part)):
        text = card_of(report)
        assert card_text(report) in text
        assert "<!-- this build -->" not in text
        for split, rows in rows_of("sentence", place).items():
            for subset in {row["subset"] for row in rows}:
                counts = [row["leaf_count"] for row in rows if row["subset"] == subset]
                plants = {row["plant_id"] for row in rows if row["subset"] == subset}
                assert (
                    f"| `{split}` | `{subset}` | {len(counts)} | {len(plants)} | {sum(counts)} "
                    f"| {min(counts)}-{max(counts)} | {sum(counts) / len(counts):.1f} |"
                ) in text
        assert f"seed {report['seed']}, " in text
        assert f"Held out for `test`: `{report['test_groups'][0]}`." in text
        assert report["fingerprint"] in text
        first = report["splits"]["train"]["example"]["id"]
        for config in ("sentence", "tuple"):
            row = rows_of(config, place)["train"][0]
            assert row["id"] == first
            assert f"- `{config}`: `{row['target']}`" in text
            assert f"Every row asks: `{row['question']}`" in text
    assert "| left out | 4 | `stack_may_show_a_train_plant`: " in card_of(cache[1])
    assert "Without a picture in this build: `od_test`, `strong_od_test`." in card_of(part)
    assert "| nothing | 0 | |" in card_of(part)


def test_what_the_card_says_without_a_build_holds_for_every_build(cache):
    text = card_of(cache[1]).replace(card_text(cache[1]), "")
    for number in ("126", "39 ", "172", "62", "165", "2448", "5–13", "11–20", "2–13", "ein2"):
        assert number not in text
    folder = Path(cache[1]["folder"])
    assert (folder / "CITATION.bib").read_text().strip() in text
    assert VERSION in (folder / "RELEASE_NOTES.md").read_text()
    assert "[RELEASE_NOTES.md](RELEASE_NOTES.md)" in text
    for reason in ("label_and_boxes_disagree", "box_too_large", "box_off_its_leaf"):
        assert f"`{reason}`" in text
        assert reason in REASONS


def test_a_prompt_of_ones_own_is_in_the_rows_and_in_the_card(root, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('question = "How many leaves, and where?"')
    report = build_plant_leaves(
        root / "Plant/Tobacco", prompt=load_prompt(path), cache_dir=tmp_path / "cache"
    )
    rows = rows_of("tuple", tmp_path / "cache")["strong_od_test"]
    assert {row["question"] for row in rows} == {"How many leaves, and where?"}
    text = card_of(report)
    assert "Every row asks: `How many leaves, and where?`" in text
    assert "For the given plant image" not in text


def test_shifted_boxes_of_drawn_plants_are_found(root, tmp_path):
    """Most drawn leaves are turned, and some box of a picture betrays even 1 px."""
    for i, (dx, dy) in enumerate([(1, 0), (0, -1), (2, 2)]):
        copy = tmp_path / f"{i}" / "Plant/Ara2012"
        shutil.copytree(root / "Plant/Ara2012", copy)
        for path in copy.glob("*_bbox.csv"):
            lines = [list(map(int, line.split(","))) for line in path.read_text().splitlines()]
            for line in lines:
                line[1::2] = [x + dx for x in line[1::2]]
                line[2::2] = [y + dy for y in line[2::2]]
            path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
        with pytest.raises(BuildError, match=r"dropped by reason: box_off_its_leaf \d+"):
            build_plant_leaves(tmp_path / f"{i}", cache_dir=tmp_path / "cache")


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
