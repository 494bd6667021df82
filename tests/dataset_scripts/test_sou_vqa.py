"""sou-vqa as its user meets it: the command, then ``load_dataset`` by name."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from math import ceil, floor, sqrt
from pathlib import Path

import datasets
import psutil
import pytest
from datasets import load_dataset
from oracle import area, read
from PIL import Image

from soubench.builders.demo_scenes import write_demo_source, write_demo_sources
from soubench.builders.sou.subsets import CONFIGS, GROUPS, SUBSETS
from soubench.cli import main
from soubench.dataset_scripts.sou import FEATURES

PICTURES = 6


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    return write_demo_sources(tmp_path_factory.mktemp("sources"), pictures=PICTURES)


def sources(roots, *names):
    return [f"--source={name}={roots[name]}" for name in names or roots]


def use_cache(path):
    """Let this process build into and load from ``path``, as HF_DATASETS_CACHE does at start."""
    datasets.config.HF_DATASETS_CACHE = path


@pytest.fixture(scope="module")
def cache(tmp_path_factory, roots):
    """All 49 configs, built once."""
    path = tmp_path_factory.mktemp("cache")
    use_cache(path)
    assert main(["build", "sou-vqa", "all", *sources(roots), "--workers=1"]) == 0
    return path


@pytest.fixture
def fresh(empty_cache):
    return empty_cache


def rows_of(config, cache, *, pictures=False):
    use_cache(cache)
    loaded = load_dataset("sou-vqa", config, split="test")
    return list(loaded) if pictures else loaded.remove_columns("image").to_list()


def live(cache, config):
    """The folders of a config that hold data; stubs of replaced builds do not."""
    return [f.parent for f in (cache / "sou-vqa" / config / "1.0.0").glob("*/*.arrow")]


def digest_of(cache, config="all"):
    (folder,) = live(cache, config)
    return folder.name


def test_all_49_configs_load_by_name_from_any_folder(cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use_cache(cache)
    assert len(CONFIGS) == 49
    for name, selection in CONFIGS.items():
        loaded = load_dataset("sou-vqa", name)
        assert list(loaded) == ["test"]
        tasks = 1 if selection.task else 6
        assert loaded["test"].num_rows == PICTURES * len(selection.subsets) * tasks
        assert loaded["test"].features == FEATURES


def test_loads_in_a_fresh_process_plain_and_streaming(cache, tmp_path):
    code = (
        "from datasets import load_dataset\n"
        "plain = load_dataset('sou-vqa', 'aerial-ol', split='test')\n"
        "stream = load_dataset('sou-vqa', 'aerial-ol', split='test', streaming=True)\n"
        "assert [r['id'] for r in stream] == plain['id'][:]\n"
        "print(plain[0]['image'].mode, plain.version)\n"
    )
    env = os.environ | {"HF_DATASETS_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["RGB", "1.0.0"]


def test_task_configs_are_the_rows_of_their_task(cache):
    everything = rows_of("all", cache)
    for name in ("driving-ce", "a-soda-ol", "underwater-poi", "aerial-cr", "all-scc"):
        selection = CONFIGS[name]
        expected = [
            r
            for r in everything
            if r["task"] == selection.task and r["subset"] in selection.subsets
        ]
        assert rows_of(name, cache) == expected


def test_ids_are_unique_and_rows_ordered_by_picture(cache):
    rows = rows_of("all", cache)
    assert len({r["id"] for r in rows}) == len(rows)
    pictures = [(r["subset"], r["image_id"]) for r in rows]
    runs = [p for i, p in enumerate(pictures) if i == 0 or pictures[i - 1] != p]
    assert len(runs) == len(set(runs))


def test_letters_are_balanced_in_every_config(cache):
    for name in CONFIGS:
        counts = Counter(r["answer"] for r in rows_of(name, cache))
        assert max(counts[i] for i in range(4)) - min(counts[i] for i in range(4)) <= 1


@pytest.mark.parametrize("subset", SUBSETS)
def test_every_answer_follows_from_the_source_annotation(cache, roots, subset):
    source = SUBSETS[subset].source
    labels = read(source, roots[source])
    rows = rows_of(subset, cache, pictures=True)
    assert {r["image_id"] for r in rows} == set(labels)
    for row in rows:
        label = labels[row["image_id"]]
        scale = 1.0
        if subset == "underwater":
            scale = min(1.0, sqrt(1024 / label.largest_area))
        size = tuple(floor(side * scale) for side in label.size)
        assert row["image"].size == size
        stretch = (size[0] / label.size[0], size[1] / label.size[1])
        small = [
            (name, [v * stretch[i % 2] for i, v in enumerate(corners)])
            for name, corners in label.objects
            if area(corners) * stretch[0] * stretch[1] <= 1024 + 1e-6
        ]
        boxes = [
            (name, (min(c[0::2]), min(c[1::2]), max(c[0::2]), max(c[1::2]))) for name, c in small
        ]
        counts = Counter(name for name, _ in small)
        evidence, answer = row["evidence"], row["answer_text"]
        assert row["options"][row["answer"]] == answer
        order = sorted(range(len(small)), key=lambda i: boxes[i][1])
        small, boxes = [small[i] for i in order], [boxes[i] for i in order]
        assert row["objects"]["category"] == [name for name, _ in small]
        if row["task"] == "CE":
            assert answer == str(len(counts))
        elif row["task"] == "OC":
            assert answer == str(len(small))
        elif row["task"] == "SCC":
            assert f"category {evidence['category']} " in row["question"]
            assert answer == str(counts[evidence["category"]])
        elif row["task"] == "CR":
            x, y = evidence["point_xy"]
            assert f"[{x},{y}]" in row["question"]
            here = {
                name
                for name, (x1, y1, x2, y2) in boxes
                if x1 < x + 1 and x2 > x and y1 < y + 1 and y2 > y
            }
            assert here == {answer}
        elif row["task"] == "POI":
            side = ["leftmost", "topmost", "rightmost", "bottommost"].index(evidence["direction"])
            sign = 1 if side < 2 else -1
            assert evidence["direction"] in row["question"]
            assert min(boxes, key=lambda o: sign * o[1][side])[0] == answer
        else:
            corners = small[evidence["objects"][0]][1]
            if subset == "a-soda":
                expected = [floor(v + 0.5) for v in corners]
            else:
                expected = [*map(floor, corners[:2]), *map(ceil, corners[2:])]
            assert answer == "[" + ",".join(map(str, expected)) + "]"


def test_location_pictures_differ_from_the_plain_ones_by_the_outline_only(cache):
    for subset in ("a-aitod", "underwater"):
        rows = rows_of(subset, cache, pictures=True)
        plain = {r["image_id"]: r["image"] for r in rows if r["task"] == "CE"}
        for row in (r for r in rows if r["task"] == "OL"):
            x1, y1, x2, y2 = row["evidence"]["mark"]
            marked, before = row["image"].convert("RGB"), plain[row["image_id"]].convert("RGB")
            red, green, _ = marked.getpixel((x1, (y1 + y2) // 2))
            assert red > 200
            assert green < 80
            # 5 px on the outline: from 2 px outside to 2 px inside. Nothing else has changed,
            # exactly for PNG, but for JPEG's rounding where the copy is a JPEG.
            difference = [
                (x, y)
                for x in range(0, marked.width, 3)
                for y in range(0, marked.height, 3)
                if not (x1 - 2 <= x < x2 + 2 and y1 - 2 <= y < y2 + 2)
                and max(
                    abs(a - b)
                    for a, b in zip(marked.getpixel((x, y)), before.getpixel((x, y)), strict=True)
                )
                > (0 if subset == "a-aitod" else 60)
            ]
            assert len(difference) <= (0 if subset == "a-aitod" else marked.width)


def test_plain_pictures_are_referenced_where_they_lie(cache, roots):
    use_cache(cache)
    loaded = load_dataset("sou-vqa", "a-visdrone-ce", split="test").cast_column(
        "image", datasets.Image(decode=False)
    )
    assert all(Path(r["image"]["path"]).is_relative_to(roots["visdrone"]) for r in loaded)
    assert all(r["image"]["bytes"] is None for r in loaded)


def test_location_copies_are_jpeg_95_without_subsampling_from_jpeg_and_png_from_png(cache):
    use_cache(cache)
    formats = {}
    for config in ("driving-ol", "a-aitod-ol"):
        loaded = load_dataset("sou-vqa", config, split="test")
        formats[config] = {(r["image"].format, len(r["image"].getbands())) for r in loaded}
        if config == "driving-ol":
            image = loaded[0]["image"]
            assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3
            assert max(image.quantization[0]) <= 16
    assert formats == {"driving-ol": {("JPEG", 3)}, "a-aitod-ol": {("PNG", 3)}}


def test_workers_and_order_on_disk_change_nothing(cache, roots, fresh, tmp_path):
    """The same labels elsewhere, copied in another order, other JSON order, two workers."""
    elsewhere = {}
    for name, root in roots.items():
        target = tmp_path / "copy" / root.name
        for path in sorted(root.rglob("*"), key=lambda p: p.name[::-1], reverse=True):
            if path.is_file():
                place = target / path.relative_to(root)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        elsewhere[name] = target
    path = elsewhere["ai-tod"] / "annotations/aitod_val_v1.json"
    table = json.loads(path.read_text())
    table["images"].reverse()
    table["annotations"].reverse()
    path.write_text(json.dumps(table))
    assert main(["build", "sou-vqa", "all", *sources(elsewhere), "--workers=2"]) == 0
    assert digest_of(fresh) == digest_of(cache)
    assert rows_of("all", fresh) == rows_of("all", cache)


def test_golden_rows(fresh, tmp_path):
    """Rows may change only with the version: RELEASE_NOTES.md says what changed."""
    root = write_demo_source("visdrone", tmp_path / "visdrone", pictures=3)
    assert main(["build", "sou-vqa", "a-visdrone", f"--source=visdrone={root}"]) == 0
    rows = rows_of("a-visdrone", fresh)
    golden = json.loads(Path(__file__).with_name("golden_a_visdrone.json").read_text())
    assert [[r["task"], r["options"], r["answer"]] for r in rows] == golden


def test_sampling_takes_the_same_pictures_first(roots, fresh):
    seen = []
    for limit in (1, 2, 4):
        main(["build", "sou-vqa", "driving", *sources(roots, "soda-d"), f"--limit={limit}"])
        seen.append({r["image_id"] for r in rows_of("driving", fresh)})
    assert [len(s) for s in seen] == [1, 2, 4]
    assert seen[0] < seen[1] < seen[2]
    main(["build", "sou-vqa", "driving", *sources(roots, "soda-d"), "--limit=4", "--seed=5"])
    assert {r["image_id"] for r in rows_of("driving", fresh)} != seen[2]


def test_a_rebuild_with_other_options_takes_over_even_after_a_map(roots, fresh):
    build = ["build", "sou-vqa", "aerial", *sources(roots, "visdrone", "ai-tod", "soda-a")]
    assert main([*build, "--limit=3"]) == 0
    load_dataset("sou-vqa", "aerial", split="test").map(lambda r: {"n": len(r["options"])})
    assert main([*build, "--limit=2", "--distractors=balanced", "--seed=3"]) == 0
    rows = load_dataset("sou-vqa", "aerial", split="test")
    assert len({(r["subset"], r["image_id"]) for r in rows}) == 6
    assert len(live(fresh, "aerial")) == 1
    # The pictures of the replaced build are gone, those of the new one are there.
    assert [f.name for f in (fresh / "soubench" / "sou-vqa").iterdir()] == [
        digest_of(fresh, "aerial")
    ]
    assert rows[0]["image"].size


def test_a_map_on_an_object_loaded_before_the_rebuild_harms_nothing(roots, fresh):
    build = ["build", "sou-vqa", "driving", *sources(roots, "soda-d")]
    assert main([*build, "--limit=3"]) == 0
    old = load_dataset("sou-vqa", "driving", split="test")
    assert main([*build, "--limit=2"]) == 0
    mapped = old.map(lambda r: {"n": len(r["options"])}, remove_columns="image")
    assert len(mapped) == 18
    assert len(load_dataset("sou-vqa", "driving", split="test")) == 12
    # The stub of the replaced build gives way when that build is made again.
    assert main([*build, "--limit=3"]) == 0
    assert len(load_dataset("sou-vqa", "driving", split="test")) == 18


def test_a_rebuild_after_the_sources_moved_points_to_the_new_place(tmp_path, fresh):
    root = write_demo_source("visdrone", tmp_path / "a", pictures=2)
    build = ["build", "sou-vqa", "a-visdrone", "--workers=1"]
    assert main([*build, f"--source=visdrone={root}"]) == 0
    # A path of equal length: names and sizes of all files stay the same.
    moved = (tmp_path / "a").rename(tmp_path / "b") / root.relative_to(tmp_path / "a")
    assert main([*build, f"--source=visdrone={moved}"]) == 0
    rows = load_dataset("sou-vqa", "a-visdrone", split="test")
    assert all(r["image"].size for r in rows)


def test_configs_that_lose_their_rows_are_retired_with_a_warning(tmp_path, roots, fresh, capsys):
    names = ("visdrone", "ai-tod", "soda-a")
    assert main(["build", "sou-vqa", "aerial", *sources(roots, *names)]) == 0
    empty = tmp_path / "empty"
    shutil.copytree(roots["ai-tod"], empty)
    (path,) = empty.rglob("*.json")
    table = json.loads(path.read_text())
    path.write_text(json.dumps(table | {"annotations": []}))
    args = [*sources(roots, "visdrone", "soda-a"), f"--source=ai-tod={empty}"]
    assert main(["build", "sou-vqa", "aerial", *args]) == 0
    assert "warning: a-aitod" in capsys.readouterr().err
    assert {r["subset"] for r in rows_of("aerial", fresh)} == {"a-visdrone", "a-soda"}
    with pytest.raises(ValueError, match="Available configs"):
        load_dataset("sou-vqa", "a-aitod")


def test_a_source_of_another_dataset_is_refused(roots, fresh, capsys):
    """AI-TOD and SODA-D have one category name in common: vehicle."""
    message = fails(capsys, "driving", f"--source=soda-d={roots['ai-tod']}")
    assert "of a category that this source lacks" in message


def test_the_card_of_a_build_has_its_own_numbers(cache):
    (card,) = (cache / "soubench" / "sou-vqa").glob("*/README.md")
    text = card.read_text()
    assert "\n# SOU-VQA, paper distractors\n" in text
    assert f"| `driving` | {' | '.join([str(PICTURES)] * 6)} |" in text
    assert "### Blind baselines, `balanced` distractors" in text
    assert "| `a-visdrone` | not counted | ignore_region |" in text
    assert "<!--" not in text


def test_long_names_in_other_scripts_are_no_trouble(tmp_path, fresh):
    root = write_demo_source("ai-tod", tmp_path / "a", pictures=1)
    (picture,) = (root / "images/val").iterdir()
    name = "無" * 60 + ".png"
    picture.rename(picture.with_name(name))
    (path,) = root.rglob("*.json")
    table = json.loads(path.read_text())
    table["images"][0]["file_name"] = name
    path.write_text(json.dumps(table))
    assert main(["build", "sou-vqa", "a-aitod", f"--source=ai-tod={root}"]) == 0
    assert load_dataset("sou-vqa", "a-aitod-ol", split="test")[0]["image"].size == (800, 800)


@pytest.mark.slow
def test_workers_end_with_a_killed_build(roots, fresh):
    build = ["build", "sou-vqa", "all", *sources(roots), "--workers=2"]
    killed = run(*build, cache=fresh)
    parent = psutil.Process(killed.pid)
    deadline = time.monotonic() + 60
    while len(parent.children()) < 3 and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = parent.children()
    assert workers
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive


def test_building_one_scenario_leaves_the_others(roots, fresh):
    assert main(["build", "sou-vqa", "driving", *sources(roots, "soda-d")]) == 0
    assert main(["build", "sou-vqa", "underwater", *sources(roots, "ruod")]) == 0
    assert load_dataset("sou-vqa", "driving-ol", split="test")[0]["image"].size
    assert load_dataset("sou-vqa", "underwater-ol", split="test")[0]["image"].size
    with pytest.raises(ValueError, match="Available configs in the cache"):
        load_dataset("sou-vqa", "all")


def run(*args, cache, **options):
    env = os.environ | {"HF_DATASETS_CACHE": str(cache)}
    command = [sys.executable, "-m", "soubench", *map(str, args)]
    return subprocess.Popen(
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


@pytest.mark.slow
def test_a_killed_build_harms_nothing_and_is_cleaned_up(roots, fresh, tmp_path):
    build = ["build", "sou-vqa", "a-aitod", *sources(roots, "ai-tod"), "--workers=1"]
    assert main([*build, "--limit=2"]) == 0
    before = rows_of("a-aitod", fresh)
    killed = run(*build, "--seed=9", cache=fresh)
    staged = fresh / "soubench" / "staging"
    deadline = time.monotonic() + 60
    while not list(staged.rglob("*.png")) and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert list(staged.rglob("*.png"))
    assert rows_of("a-aitod", fresh) == before
    assert main([*build, "--seed=9"]) == 0
    assert list(staged.iterdir()) == []
    assert len(rows_of("a-aitod", fresh)) == 6 * PICTURES


@pytest.mark.slow
def test_two_builds_at_once_both_end_well(roots, fresh):
    build = ["build", "sou-vqa", "a-visdrone", *sources(roots, "visdrone"), "--workers=1"]
    running = [run(*build, f"--seed={seed}", cache=fresh) for seed in (1, 1, 2)]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert len(rows_of("a-visdrone", fresh)) == 6 * PICTURES
    assert len(live(fresh, "a-visdrone")) == 1
    assert len(list((fresh / "soubench/sou-vqa").iterdir())) == 1
    assert list((fresh / "soubench/staging").iterdir()) == []


def fails(capsys, *args):
    assert main(["build", "sou-vqa", *map(str, args)]) == 2
    return capsys.readouterr().err


def test_a_missing_source_is_named_with_its_flag(capsys, roots):
    message = fails(capsys, "aerial", *sources(roots, "visdrone"))
    assert "--source ai-tod=DIR --source soda-a=DIR" in message


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(["space"], "driving, aerial, underwater, all", id="unknown config"),
        pytest.param(["aerial-ce"], "aerial", id="a sub-task is built with its config"),
        pytest.param(["driving", "--source", "soda-d"], "NAME=VALUE", id="no equals sign"),
        pytest.param(
            ["driving", "--source=soda-d=/nowhere"], "/nowhere", id="folder does not exist"
        ),
        pytest.param(
            ["driving", "--source=soda-d=.", "--source=Ruod=."], "no use for it", id="not needed"
        ),
        pytest.param(
            ["driving", "--source=soda-d=a", "--source=soda-d=b"], "twice", id="given twice"
        ),
        pytest.param(["driving", "--source=SODA=a"], "no use for it", id="misspelled source"),
        pytest.param(
            ["driving", "--source=soda-d=.", "--prompt=none.toml"], "none.toml", id="no prompt file"
        ),
    ],
)
def test_wrong_calls_get_one_clear_message(capsys, args, expected):
    message = fails(capsys, *args)
    assert "soubench: error: " in message
    assert expected in message
    assert "Traceback" not in message


def test_another_split_is_read_on_demand(capsys, roots, fresh):
    message = fails(capsys, "driving", *sources(roots, "soda-d"), "--split=soda-d=train")
    assert "train" in message


def test_pictures_that_fail_late_give_their_place_to_others(tmp_path, fresh, capsys):
    root = write_demo_source("ai-tod", tmp_path / "a", pictures=5)
    pictures = sorted((root / "images/val").iterdir())
    # Broken in the middle, whole at both ends: only decoding in full can tell.
    data = bytearray(pictures[0].read_bytes())
    data[len(data) // 2] ^= 0xFF
    pictures[0].write_bytes(data)
    shutil.copyfile(pictures[1], pictures[2])
    assert main(["build", "sou-vqa", "a-aitod", f"--source=ai-tod={root}", "--limit=3"]) == 0
    output = capsys.readouterr().out
    kept = {r["image_id"] for r in rows_of("a-aitod", fresh)}
    assert len(kept) == 3
    assert pictures[0].stem not in kept
    assert not {pictures[1].stem, pictures[2].stem} <= kept
    assert "duplicate_picture 1" in output
    assert "picture_" in output


def test_odd_pictures_are_converted_once(tmp_path, fresh):
    """EXIF-turned, CMYK, palette with transparency, 16-bit: each is asked as upright RGB."""
    root = write_demo_source("visdrone", tmp_path / "v", pictures=4)
    first, second, third, fourth = sorted((root / "VisDrone2019-DET-val/images").iterdir())
    with Image.open(first) as image:
        exif = Image.Exif()
        exif[0x0112] = 3
        image.rotate(180).save(first, exif=exif, quality=95)
    with Image.open(second) as image:
        image.convert("CMYK").save(second, quality=95)
    with Image.open(third) as image:
        image.quantize(64).save(third.with_suffix(".png"), transparency=0)
        third.unlink()
    with Image.open(fourth) as image:
        image.convert("L").save(fourth)
    assert main(["build", "sou-vqa", "a-visdrone", f"--source=visdrone={root}"]) == 0
    rows = load_dataset("sou-vqa", "a-visdrone", split="test")
    assert len(rows) == 24
    assert {r["image"].mode for r in rows} == {"RGB"}
    assert {r["image"].getexif().get(0x0112, 1) for r in rows} == {1}
    assert {r["image"].size for r in rows} == {(960, 540)}


def test_loading_after_the_sources_moved_names_the_folder(tmp_path, fresh):
    root = write_demo_source("visdrone", tmp_path / "v", pictures=2)
    assert main(["build", "sou-vqa", "a-visdrone", f"--source=visdrone={root}"]) == 0
    root.rename(tmp_path / "moved")
    rows = load_dataset("sou-vqa", "a-visdrone-ce", split="test")
    with pytest.raises(FileNotFoundError, match=str(root)):
        rows[0]


def test_a_subset_without_any_row_is_said_and_an_empty_build_fails(tmp_path, fresh, capsys):
    small = write_demo_source("ruod", tmp_path / "r", pictures=2)
    for path in (small / "test").iterdir():
        with Image.open(path) as image:
            image.crop((0, 0, 200, 200)).save(path)
    message = fails(capsys, "underwater", f"--source=ruod={small}")
    assert "picture_side_too_short 2" in message
    assert not (fresh / "sou-vqa").exists()


def test_the_pixel_limit_holds_for_reading_and_decoding(roots, fresh, capsys):
    build = ["driving", *sources(roots, "soda-d"), "--workers=1"]
    message = fails(capsys, *build, f"--max-pixels={1280 * 720 - 1}")
    assert f"picture_too_large {PICTURES}" in message
    assert main(["build", "sou-vqa", *build, f"--max-pixels={1280 * 720}"]) == 0


def test_own_prompts_replace_the_words_and_change_the_fingerprint(tmp_path, roots, fresh):
    from importlib.resources import files

    text = (files("soubench.builders.sou") / "prompts_v1.toml").read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(text.replace("How many small objects are there", "Count the small objects"))
    build = ["build", "sou-vqa", "driving", *sources(roots, "soda-d"), "--limit=2"]
    main(build)
    first = digest_of(fresh, "driving")
    main([*build, f"--prompt={own}"])
    assert digest_of(fresh, "driving") != first
    questions = {r["question"] for r in rows_of("driving-oc", fresh)}
    assert questions == {"Count the small objects in this image?"}


def test_configs_of_a_group_are_those_that_it_completes(cache):
    assert {len(GROUPS[g]) for g in GROUPS} == {1, 3, 5}
    folders = {p.name for p in (cache / "sou-vqa").iterdir()}
    assert folders == set(CONFIGS)
