"""rrs as its user meets it: the command, then ``load_dataset`` by name."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pytest
from datasets import load_dataset
from huggingface_hub import DatasetCard
from PIL import Image

from soubench.builders.demo_rrs import write_demo_records
from soubench.builders.rrs.taxonomy import SUB_DIMENSIONS, Task, configs
from soubench.cli import main
from soubench.dataset_scripts.rrs.rrs import FEATURES, VERSION
from tests.builders.rrs import oracle

SITES, PAIRS = 24, 4


def build(records, *arguments, workers=1):
    return main(
        ["build", "rrs", f"--records={records}", f"--workers={workers}", *map(str, arguments)]
    )


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return write_demo_records(tmp_path_factory.mktemp("sites"), sites=SITES, pairs=PAIRS)


@pytest.fixture(scope="module")
def cache(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("cache")
    datasets.config.HF_DATASETS_CACHE = path
    assert build(records, "--distractors=random") == 0
    return path


@pytest.fixture
def by_id(records):
    return {r["id"]: r for r in map(json.loads, records.read_text().splitlines())}


def rows_of(cache, config="all"):
    rows = load_dataset("rrs", config, split="test", cache_dir=str(cache))
    return rows.cast_column("images", datasets.List(datasets.Image(decode=False))).to_list()


def record_of(row):
    return row["id"].rpartition("/")[0]


def home_of(cache):
    (folder,) = (cache / "soubench" / "rrs").iterdir()
    return folder


def test_loads_by_name_in_a_fresh_process_from_another_folder(cache, tmp_path):
    code = (
        "from datasets import load_dataset\n"
        "for config in ('vg', 'perception-object', 'all'):\n"
        "    rows = load_dataset('rrs', config, split='test')\n"
        "    print(config, len(rows), sorted(set(rows['task'])), rows[0]['images'][0].mode)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"HF_DATASETS_CACHE": str(cache), "HF_HUB_OFFLINE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    vg, objects, everything = done.stdout.splitlines()
    assert vg == f"vg {SITES} ['VG'] RGB"
    assert objects == f"perception-object {7 * SITES} ['AR', 'OC', 'OE', 'VG'] RGB"
    assert all(f"'{task}'" in everything for task in Task)


def test_every_config_holds_its_tasks_and_no_others(cache):
    everything = rows_of(cache)
    assert {row["task"] for row in everything} == set(Task)
    for name, tasks in configs().items():
        rows = load_dataset("rrs", name, split="test", cache_dir=str(cache))
        assert rows.features == FEATURES
        assert rows["id"][:] == [row["id"] for row in everything if row["task"] in tasks]


def test_every_answer_follows_from_its_record(cache, by_id):
    rows = {row["id"]: row for row in rows_of(cache)}
    assert len(rows) > 18 * SITES
    for row in rows.values():
        record = by_id[record_of(row)]
        oracle.check(row, record, (640, 480), rows.get(row["clean_id"]))
        assert row["source"] == "demo"
        assert len(row["images"]) == (2 if row["task"] == "CI" else 1)
        sub = SUB_DIMENSIONS[row["sub_dimension"]]
        assert row["dimension"] == sub.dimension


def test_pictures_are_the_records_own_or_upright_rgb(cache, by_id, records):
    for row in rows_of(cache):
        paths = [Path(image["path"]) for image in row["images"]]
        if row["corruption"]:
            (path,) = paths
            assert path.is_relative_to(home_of(cache))
            with Image.open(path) as image:
                assert (image.format, image.mode, image.size) == ("PNG", "RGB", (640, 480))
        else:
            own = [records.parent / name for name in by_id[record_of(row)]["images"]]
            assert paths == own


def test_letters_are_balanced_and_yes_is_as_frequent_as_no(cache):
    rows = [row for row in rows_of(cache) if row["task"] not in ("NR", "OR")]
    for name, tasks in configs().items():
        for n in (3, 4):
            members = [r for r in rows if len(r["options"]) == n and r["task"] in tasks]
            counts = Counter(row["answer"] for row in members)
            every = [counts[letter] for letter in "ABCD"[:n]]
            assert max(every) - min(every) <= 1, (name, n)
    for task in ("OE", "HD"):
        counts = Counter(row["answer"] for row in rows if row["task"] == task)
        # Two facilities are said to be absent of each.
        assert counts == {"yes": 2 * SITES, "no": 2 * SITES}


def test_occlusion_covers_its_share_and_leaves_half_of_each_box(cache):
    clean_pictures = {row["id"]: row["images"][0]["path"] for row in rows_of(cache)}
    seen = 0
    for row in rows_of(cache, "or"):
        share = (0.05, 0.10, 0.20, 0.30, 0.40)[row["severity"] - 1]
        covered = np.zeros((480, 640), bool)
        for x1, y1, x2, y2 in row["evidence"]["occluded_xyxy"]:
            covered[int(y1) : int(y2), int(x1) : int(x2)] = True
        assert covered.mean() == pytest.approx(share, rel=0.03)
        with (
            Image.open(row["images"][0]["path"]) as made,
            Image.open(clean_pictures[row["clean_id"]]) as clean,
        ):
            pixels, before = np.asarray(made), np.asarray(clean.convert("RGB"))
        assert (pixels[covered] == 127).all()
        assert (pixels[~covered] == before[~covered]).all()
        for x1, y1, x2, y2 in row["evidence"]["boxes_xyxy"]:
            inside = covered[round(y1) : round(y2), round(x1) : round(x2)]
            assert inside.mean() <= 0.55  # half, and the pixels on the border
            seen += 1
    assert seen


def test_workers_change_nothing_and_seeds_do(cache, records, tmp_path):
    datasets.config.HF_DATASETS_CACHE = tmp_path / "two"
    assert build(records, "--distractors=random", workers=2) == 0
    assert home_of(tmp_path / "two").name == home_of(cache).name
    ours, theirs = (
        {p.name: p.read_bytes() for p in home_of(c).glob("pictures/*")}
        for c in (cache, tmp_path / "two")
    )
    assert ours == theirs
    assert len(ours) == 2 * SITES
    keep = [
        {k: v for k, v in row.items() if k != "images"}
        for c in (cache, tmp_path / "two")
        for row in rows_of(c)
    ]
    half = len(keep) // 2
    assert keep[:half] == keep[half:]
    datasets.config.HF_DATASETS_CACHE = tmp_path / "other"
    assert build(records, "--distractors=random", "--seed=1") == 0
    assert home_of(tmp_path / "other").name != home_of(cache).name


def test_a_record_more_changes_letters_and_nothing_else(cache, records, tmp_path):
    lines = records.read_text().splitlines()
    fewer = tmp_path / "records.jsonl"
    fewer.write_text("\n".join(lines[:11] + lines[12:]))
    (tmp_path / "pictures").symlink_to(records.parent / "pictures")
    datasets.config.HF_DATASETS_CACHE = tmp_path / "cache"
    assert build(fewer, "--distractors=random") == 0
    before = {row["id"]: row for row in rows_of(cache)}
    for row in rows_of(tmp_path / "cache"):
        other = before[row["id"]]
        for column in set(row) - {"images", "options", "answer", "answer_index"}:
            assert row[column] == other[column], (row["id"], column)
        # All words occur in other records, too: the pools are the same.
        assert sorted(row["options"]) == sorted(other["options"])
        assert oracle.right(row) == oracle.right(other)


def test_golden_rows(cache):
    """Rows may change only with the version: RELEASE_NOTES.md says what changed."""
    rows = rows_of(cache)
    golden = Path(__file__).with_name("golden_rrs.json")
    first = {}
    for row in rows:
        first.setdefault(row["task"], [row["id"], row["question"], row["options"], row["answer"]])
    assert {"version": VERSION, "rows": len(rows), "first": first} == json.loads(
        golden.read_text(encoding="utf-8")
    )


def test_card_tells_of_this_build(cache):
    card = DatasetCard.load(home_of(cache) / "README.md")
    report = json.loads((home_of(cache) / "report.json").read_text())
    assert "<!--" not in card.text
    assert f"rrs: {len(rows_of(cache))}" in card.text
    for task in Task:
        assert f"{task.value} " in card.text
        assert report["tasks"][task]["rows"] == len(rows_of(cache, task.lower()))
    assert "CC0-1.0" in card.text
    assert "SDFS was not used" in card.text
    assert sum(report["formats"].values()) == report["rows"]
    text = (home_of(cache) / "report.txt").read_text()
    for task in Task:
        baselines = report["blind_baselines"][task]
        assert (not baselines) == (task in (Task.IC, Task.RS))
    right, n = report["blind_baselines"]["HD"]["constant-yes"]
    assert [right, n] == [
        sum(row["answer"] == "yes" for row in rows_of(cache, "hd")),
        len(rows_of(cache, "hd")),
    ]
    line = next(li for li in card.text.splitlines() if li.startswith("| HD | "))
    assert f" {100 * right / n:.1f} |" in line
    assert f"constant-yes {100 * right / n:.1f}" in text
    assert "Not measured: IC, RS" in card.text
    first = {row["task"]: row for row in reversed(rows_of(cache))}
    for task, row in first.items():
        (line,) = [
            li for li in card.text.splitlines() if li.startswith(f"| {task} | `{row['id']}`")
        ]
        assert row["question"] in line
        assert all(option in line for option in row["options"])
    assert report["human_verified"] == report["rows"]
    with Image.open(home_of(cache) / "sheets" / "test.png") as sheet:
        assert sheet.width > 500


def test_without_clip_the_message_says_what_to_do(records, tmp_path, capsys):
    datasets.config.HF_DATASETS_CACHE = tmp_path
    assert build(records, f"--clip={tmp_path / 'none'}") == 2
    said = capsys.readouterr().err
    for advice in ("--clip", "--similarities", "--distractors random"):
        assert advice in said
    assert not (tmp_path / "rrs").exists()
    # What is wrong with the records is said first.
    assert build(tmp_path / "none.jsonl", f"--clip={tmp_path / 'none'}") == 2
    assert "none.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--ways=6"], "2 to 5", id="too many options"),
        pytest.param(["--source=nothing=x"], "nothing", id="unknown format"),
        pytest.param(["--split=coco=val"], "--split", id="split without source"),
        pytest.param(["--clip=x"], "--distractors sdfs", id="clip for random draws"),
        pytest.param(
            ["--distractors=sdfs", "--clip=x", "--similarities=y"],
            "give one of the two",
            id="a model and what one said",
        ),
    ],
)
def test_wrong_options_get_one_clear_message(records, arguments, says, tmp_path, capsys):
    datasets.config.HF_DATASETS_CACHE = tmp_path
    assert build(records, "--distractors=random", *arguments) == 2
    assert says in capsys.readouterr().err


def test_nothing_to_ask_about_is_said(tmp_path, capsys):
    datasets.config.HF_DATASETS_CACHE = tmp_path
    assert main(["build", "rrs", "--distractors=random"]) == 2
    assert "--records" in capsys.readouterr().err
    assert build(tmp_path / "none.jsonl", "--distractors=random") == 2
    assert "none.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("ways", [2, 3, 5])
def test_ways_sets_the_number_of_options(records, ways, tmp_path):
    datasets.config.HF_DATASETS_CACHE = tmp_path
    assert build(records, "--distractors=random", f"--ways={ways}", "--limit=8") == 0
    sizes = {task: set() for task in Task}
    for row in rows_of(tmp_path):
        if row["options"]:
            sizes[row["task"]].add(len(row["options"]))
    for task in ("SU", "OC", "RSI", "ASI", "DC", "AC"):
        assert sizes[task] == {ways}
    # Four axes, four seasons: there is no fifth.
    assert sizes["API"] == {min(ways, 4)}


def test_covered_pictures_answer_no_as_readily_as_yes(cache):
    """What "yes" rests on stays in sight, and as much of the picture of its "no"."""
    rows = rows_of(cache)
    claims = {}
    for row in rows:
        if row["task"] == "OE":
            record = row["id"].rpartition("/")[0]
            claims.setdefault((record, row["answer"]), []).append(row)
    covered = [row for row in rows if row["task"] == "OR" and row["answer"] == "no"]
    assert covered
    for row in covered:
        record = row["id"].rpartition("/")[0]
        place = [no["id"] for no in claims[record, "no"]].index(row["clean_id"])
        for box in claims[record, "yes"][place]["evidence"]["boxes_xyxy"]:
            x1, y1, x2, y2 = box
            hidden = sum(
                max(0, min(x2, c) - max(x1, a)) * max(0, min(y2, d) - max(y1, b))
                for a, b, c, d in row["evidence"]["occluded_xyxy"]
            )
            assert hidden <= (x2 - x1) * (y2 - y1) / 2
