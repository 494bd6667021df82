"""soubench overlap finds what two datasets share, whatever they are, and says what it cannot."""

import csv
import re
import shutil
from hashlib import sha256
from itertools import product

import datasets
import imagehash
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from soubench.builders.demo_plants.write import write_demo_plants
from soubench.builders.demo_scenes import write_demo_sources
from soubench.builders.near_duplicates import FLAT
from soubench.builders.overlap import Picture, PictureSet, compare
from soubench.builders.publishing.export import export_dataset, pixels_of_file
from soubench.builders.shapes.sampler import SPLITS
from soubench.builders.sou.build import BuildOptions
from soubench.cli import main
from soubench.dataset_scripts.detection.detection import build_detection
from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa
from tests.data import coco_document, record, write_json

PICTURES = 2


def noise(seed, size_wh=(160, 120)):
    small = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(small).resize(size_wh, Image.Resampling.BICUBIC)


def folder_of(folder, pictures):
    """Save pictures by file name."""
    folder.mkdir(parents=True)
    for name, image in pictures.items():
        image.save(folder / name, **({"quality": 60} if name.endswith(".jpg") else {}))
    return folder


def overlap(capsys, *args, workers=1):
    """Run the command; return its status, output, and errors."""
    status = main(["overlap", *map(str, args), f"--workers={workers}"])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def pairs(capsys, tmp_path, *args, workers=1):
    """Run the command; return what it wrote as {(kind, a, b): distance}."""
    out = tmp_path / "pairs.csv"
    status, text, _ = overlap(capsys, *args, "--out", out, workers=workers)
    with out.open(encoding="utf-8", newline="") as file:
        found = {(r["kind"], r["a"], r["b"]): r["distance"] for r in csv.DictReader(file)}
    assert status == bool(found), text
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Sources, a cache with sou-vqa, and two exports of it."""
    home = tmp_path_factory.mktemp("overlap")
    roots = write_demo_sources(home / "sources", pictures=PICTURES)
    build_sou_vqa("all", roots, BuildOptions(), cache_dir=home / "cache")
    for name, right in (("full", True), ("lean", False)):
        export_dataset("sou-vqa", home / name, cache_dir=home / "cache", have_the_right=right)
    return home


@pytest.fixture
def built(home, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", home / "cache")
    return home


def test_folders_share_files_pixels_and_looks_and_the_rest_is_apart(capsys, tmp_path):
    image = noise(0)
    a = folder_of(tmp_path / "a", {"same.png": image, "other.png": noise(1), "alone.png": noise(2)})
    b = folder_of(tmp_path / "b", {"other.bmp": noise(1), "like.jpg": image, "new.png": noise(3)})
    shutil.copy(a / "same.png", b / "copy.png")
    distance = imagehash.phash(image) - imagehash.phash(Image.open(b / "like.jpg"))
    assert distance <= 4
    assert pairs(capsys, tmp_path, a, b) == {
        ("file", "same.png", "copy.png"): "",
        ("pixels", "other.png", "other.bmp"): "",
        ("near", "same.png", "like.jpg"): str(distance),
    }
    status, text, _ = overlap(capsys, a, b)
    assert status == 1
    assert "Same file: 1 pairs" in text
    assert "Same pixels only: 1 pairs" in text
    assert f"1 pairs of 1 and 1 pictures: 1 at distance {distance}" in text
    assert f"has no group ids\n{a} and {b} overlap." in text.replace("have", "has")


def test_disjoint_sets_end_with_status_0(capsys, tmp_path):
    a = folder_of(tmp_path / "a", {"a.png": noise(0)})
    b = folder_of(tmp_path / "b", {"b.png": noise(1)})
    status, text, _ = overlap(capsys, a, b)
    assert status == 0
    assert text.endswith(f"{a} and {b} share nothing.\n")


def test_the_distance_is_the_bound(capsys, tmp_path):
    image = noise(0)
    a = folder_of(tmp_path / "a", {"a.png": image})
    b = folder_of(tmp_path / "b", {"b.png": noise(1)})
    distance = imagehash.phash(image) - imagehash.phash(noise(1))
    key = ("near", "a.png", "b.png")
    for bits in (distance - 1, distance, 64):
        expected = {key: str(distance)} if bits >= distance else {}
        assert pairs(capsys, tmp_path, a, b, f"--max-distance={bits}") == expected


def test_pictures_of_one_color_are_the_same_by_pixels_only(capsys, tmp_path):
    white, black = (Image.new("RGB", (40, 30), color) for color in ("white", "black"))
    a = folder_of(tmp_path / "a", {"white.png": white, "x.png": noise(0)})
    b = folder_of(tmp_path / "b", {"white.bmp": white, "black.png": black})
    assert pairs(capsys, tmp_path, a, b) == {("pixels", "white.png", "white.bmp"): ""}
    _, text, _ = overlap(capsys, a, b)
    assert f"Note: {b}: 2 pictures of one color, compared by file and pixels only" in text


def test_damaged_pictures_are_counted_by_reason(capsys, tmp_path):
    a = folder_of(tmp_path / "a", {"a.png": noise(0), "empty.jpg": noise(1), "cut.png": noise(2)})
    (a / "empty.jpg").write_bytes(b"")
    (a / "cut.png").write_bytes((a / "cut.png").read_bytes()[:200])
    b = folder_of(tmp_path / "b", {"b.png": noise(1)})
    status, text, _ = overlap(capsys, a, b)
    assert status == 2
    assert "1 pictures compared by file alone, picture_empty: empty.jpg" in text
    assert "1 pictures compared by file alone, picture_truncated: cut.png" in text
    assert "share nothing that could be compared" in text
    (b / "copy.png").write_bytes((a / "cut.png").read_bytes())
    (b / "empty.png").write_bytes(b"")
    assert pairs(capsys, tmp_path, a, b) == {("file", "cut.png", "copy.png"): ""}


def test_larger_pictures_are_compared_by_choice(capsys, tmp_path):
    a = folder_of(tmp_path / "a", {"a.png": noise(0), "small.png": noise(2, (20, 20))})
    b = folder_of(tmp_path / "b", {"b.bmp": noise(0), "small.bmp": noise(3, (20, 20))})
    status, text, _ = overlap(capsys, a, b, "--max-pixels=1000")
    assert status == 2
    assert "1 pictures compared by file alone, picture_too_large: a.png" in text
    status, text, _ = overlap(capsys, a, b, "--max-pixels=20000")
    assert status == 1
    assert "Same pixels only: 1 pairs" in text


@pytest.mark.parametrize(
    ("b", "message"),
    [
        pytest.param("no-such-set", "on the Hub, that can be loaded", id="unknown name"),
        pytest.param("./no-such-folder", "there is no such folder", id="unknown folder"),
        pytest.param("a:b:c:d", r"expected NAME\[:CONFIG\[:SPLIT\]\]", id="too many parts"),
        pytest.param("", r"expected NAME\[:CONFIG\[:SPLIT\]\]", id="no name"),
        pytest.param("empty", "empty: expected a folder", id="empty folder"),
        pytest.param("damaged", "none of its pictures can be read", id="all damaged"),
        pytest.param("./a", "both ./a, which shares all with itself", id="A == B"),
        pytest.param("a:all", "without configs and splits", id="config of a folder"),
        pytest.param("texts", "expected a column of pictures", id="no pictures"),
        pytest.param("norows", "it has no rows", id="no rows"),
        pytest.param("texts:other", "there is no config 'other'", id="unknown config"),
        pytest.param("texts:default:val", "there is no split 'val'", id="unknown split"),
    ],
)
def test_what_cannot_be_compared_is_an_error(capsys, tmp_path, monkeypatch, b, message):
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "a", {"a.png": noise(0)})
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/a.png").write_bytes(b"no picture")
    for name, rows in (("texts", ["x"]), ("norows", [])):
        (tmp_path / name).mkdir()
        features = datasets.Features({"text": datasets.Value("string")})
        made = datasets.Dataset.from_dict({"text": rows}, features=features)
        made.to_parquet(tmp_path / name / "train.parquet")
    assert main(["overlap", "./a", b]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert errors[-1].startswith("soubench: error: ")
    assert re.search(message, errors[-1])


def test_a_folder_for_the_output_must_be_there(capsys, tmp_path):
    a, b = (folder_of(tmp_path / n, {"x.png": noise(0)}) for n in ("a", "b"))
    status, _, errors = overlap(capsys, a, b, "--out", tmp_path / "no/where.csv")
    assert status == 2
    assert "there is no folder" in errors


def test_any_dataset_of_pictures_is_read(capsys, tmp_path):
    """Parquet with one picture a row, with lists, with paths; and imagefolder with metadata."""
    plain = folder_of(tmp_path / "plain", {f"{i}.png": noise(i) for i in range(4)})
    paths = [str(plain / f"{i}.png") for i in range(4)]
    one = datasets.Dataset.from_dict({"picture": paths[:2], "id": ["p", "q"]})
    one = one.cast_column("picture", datasets.Image())
    lists = datasets.Dataset.from_dict({"images": [paths[1:3], [], paths[:1]]})
    lists = lists.cast_column("images", datasets.List(datasets.Image()))
    for name, made in (("one", one), ("lists", lists)):
        (tmp_path / name).mkdir()
        made.to_parquet(tmp_path / name / "train.parquet")
    listed = shutil.copytree(plain, tmp_path / "listed")
    (listed / "metadata.jsonl").write_text(
        "".join(f'{{"file_name": "{i}.png", "group_id": "g{i}"}}\n' for i in (0, 3))
    )
    assert pairs(capsys, tmp_path, tmp_path / "one", plain) == {
        ("file", "p", "0.png"): "",
        ("file", "q", "1.png"): "",
    }
    found = pairs(capsys, tmp_path, tmp_path / "lists", plain)
    assert {b for _, _, b in found} == {"0.png", "1.png", "2.png"}
    assert "1 rows have neither" in overlap(capsys, tmp_path / "lists", plain)[1]
    found = pairs(capsys, tmp_path, listed, plain)
    assert {b for _, _, b in found} == {"0.png", "3.png"}


def test_rows_without_pictures_are_compared_by_what_hashes_they_have(capsys, tmp_path):
    plain = folder_of(tmp_path / "plain", {f"{i}.png": noise(i) for i in range(3)})
    digest = sha256((plain / "0.png").read_bytes()).hexdigest()
    hashed = {
        "image": [None] * 4,
        "id": ["file", "pixels", "none", "junk"],
        "sha256": [digest, "", None, "unknown"],
        "pixels_sha256": ["", pixels_of_file(plain / "1.png"), "", None],
    }
    made = datasets.Dataset.from_dict(hashed).cast_column("image", datasets.Image())
    (tmp_path / "rows").mkdir()
    made.to_parquet(tmp_path / "rows/train.parquet")
    assert pairs(capsys, tmp_path, tmp_path / "rows", plain) == {
        ("file", "file", "0.png"): "",
        ("pixels", "pixels", "1.png"): "",
    }
    _, text, _ = overlap(capsys, tmp_path / "rows", plain)
    assert "2 rows have neither a picture nor a hash of one" in text
    assert "2 pictures are known by hash only, near-duplicates cannot be found" in text


def test_a_build_its_export_and_its_sources_are_the_same(capsys, tmp_path, built):
    everything = 5 * PICTURES
    with_export = pairs(capsys, tmp_path, "sou-vqa", built / "full")
    assert [kind for kind, _, _ in with_export].count("file") == everything
    assert {kind for kind, _, _ in with_export} == {"file", "group"}
    sources = pairs(capsys, tmp_path, "sou-vqa", built / "sources")
    assert [kind for kind, _, _ in sources].count("file") == everything
    _, text, _ = overlap(capsys, "sou-vqa", built / "sources")
    assert f"{everything} different pictures" in text
    assert f"({everything} outlined copies left aside)" in text


def test_subsets_share_nothing_though_they_use_the_same_group_ids(capsys, built):
    """SODA-D and SODA-A number their pictures alike."""
    status, text, _ = overlap(capsys, "sou-vqa:driving", built / "full:a-soda")
    assert status == 0
    assert f"{PICTURES} groups" in text


def test_configs_and_splits_are_chosen_alike_everywhere(capsys, tmp_path, built):
    for name in ("sou-vqa", built / "full"):
        found = pairs(capsys, tmp_path, f"{name}:a-soda-ce:test", built / "sources")
        assert len(found) == PICTURES
        assert all(a.startswith("a-soda/") for _, a, _ in found)


def test_outlined_copies_stand_in_where_the_plain_pictures_are_not(capsys, tmp_path, built):
    rows = datasets.load_dataset("sou-vqa", "a-soda-ol", split="test")
    copies = tmp_path / "copies"
    copies.mkdir()
    for cell in rows.cast_column("image", datasets.Image(decode=False))["image"]:
        shutil.copy(cell["path"], copies)
    found = pairs(capsys, tmp_path, copies, "sou-vqa:a-soda")
    assert [kind for kind, _, _ in found] == ["near"] * PICTURES
    # The build knows the source's file of each copy, too.
    found = pairs(capsys, tmp_path, "sou-vqa:a-soda-ol", built / "sources/SODA-A", "--no-groups")
    assert [kind for kind, _, _ in found] == ["file"] * PICTURES


def test_an_export_without_pictures_is_compared_by_its_hashes(capsys, tmp_path, built):
    found = pairs(capsys, tmp_path, built / "lean", built / "full", "--no-groups")
    assert len(found) == 5 * PICTURES
    assert {kind for kind, _, _ in found} <= {"file", "pixels"}
    _, text, _ = overlap(capsys, built / "lean", built / "full")
    withheld = 4 * PICTURES
    assert f"{withheld} pictures are known by hash only, near-duplicates cannot be found" in text


def test_workers_change_nothing(capsys, tmp_path, built):
    a = folder_of(tmp_path / "a", {f"{i}.png": noise(i) for i in range(20)})
    b = folder_of(tmp_path / "b", {f"{i}.jpg": noise(i) for i in range(10, 30)})
    assert pairs(capsys, tmp_path, a, b, workers=2) == pairs(capsys, tmp_path, a, b)
    assert len(pairs(capsys, tmp_path, a, b)) >= 10


def test_groups_are_of_one_source_or_of_unknown_ones(capsys, tmp_path, home):
    """VisDrone under two names; two sets in a format that names no set."""
    cache, visdrone = tmp_path / "cache", home / "sources/VisDrone"
    build_detection("my-set", "visdrone", visdrone, BuildOptions(), splits=["val"], cache_dir=cache)
    build_sou_vqa("a-visdrone", {"visdrone": visdrone}, BuildOptions(), cache_dir=cache)
    for name in ("one", "two"):
        images = [{"id": 7, "file_name": "7.png", "width": 160, "height": 120}]
        boxes = [record(i, [9 * i, 9, 8, 8], image=7) for i in range(1, 9)]
        document = coco_document(("x",), images=images, annotations=boxes)
        write_json(tmp_path / name / "annotations/instances_val.json", document)
        folder_of(tmp_path / name / "val", {"7.png": noise(len(name) + ord(name[0]))})
        build_detection(name, "coco", tmp_path / name, BuildOptions(), cache_dir=cache)
    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = cache
    try:
        shared = pairs(capsys, tmp_path, "my-set", "sou-vqa")
        unknown = pairs(capsys, tmp_path, "one", "two")
        none = pairs(capsys, tmp_path, "one", "two", "--no-groups")
        status, text, _ = overlap(capsys, "one", "sou-vqa")
    finally:
        datasets.config.HF_DATASETS_CACHE = before
    assert ("group", "visdrone/0000001", "visdrone/0000001") in shared
    assert list(unknown) == [("group", "7", "7")]
    assert none == {}
    assert status == 0
    assert "one does not say which source its pictures come from, and sou-vqa does" in text


def test_splits_of_drawn_and_of_plant_pictures_share_nothing(capsys, tmp_path, empty_cache):
    source = write_demo_plants(tmp_path / "plants")
    assert main(["build", "plant-leaves", f"--source=plants={source}", "--workers=1"]) == 0
    few = [f"--pictures={split}=3" for split in SPLITS]
    assert main(["build", "primitive-shapes", *few, "--workers=1"]) == 0
    for name in ("plant-leaves", "primitive-shapes"):
        assert overlap(capsys, f"{name}::train", f"{name}::test")[0] == 0
    found = pairs(capsys, tmp_path, "plant-leaves::train", source)
    assert {kind for kind, _, _ in found} == {"file"}
    # Plants are groups: both configs have the same ones.
    found = pairs(capsys, tmp_path, "plant-leaves:sentence:train", "plant-leaves:tuple:train")
    assert {kind for kind, _, _ in found} == {"file", "group"}


pictures = st.lists(
    st.builds(
        Picture,
        st.just(""),
        st.frozensets(st.sampled_from("abcd"), max_size=2),
        st.sampled_from(["", "p", "q", "r"]),
        st.one_of(st.none(), st.sampled_from([FLAT, 1, 3, 0xFF, 0x1FF])),
    ),
    max_size=8,
)


@given(pictures, pictures, st.integers(0, 9))
def test_counts_are_those_of_comparing_all_pairs(a, b, max_distance):
    expected = {"file": [], "pixels": [], "near": []}
    for (i, x), (j, y) in product(enumerate(a), enumerate(b)):
        hashed = None not in (x.phash, y.phash) and FLAT not in (x.phash, y.phash)
        if x.files & y.files:
            expected["file"].append((i, j))
        elif x.pixels and x.pixels == y.pixels:
            expected["pixels"].append((i, j))
        elif hashed and (x.phash ^ y.phash).bit_count() <= max_distance:
            expected["near"].append((i, j, (x.phash ^ y.phash).bit_count()))
    found = compare(PictureSet("A", a), PictureSet("B", b), max_distance=max_distance)
    near = expected["near"]
    assert sorted(found.near) == near
    assert [d for _, _, d in found.near] == sorted(d for _, _, d in near)
    assert len(found.near) == len(near)
    assert found.near.distances == {d: [n[2] for n in near].count(d) for d in {n[2] for n in near}}
    assert found.near.pictures_a == len({i for i, _, _ in near})
    assert found.near.pictures_b == len({j for _, j, _ in near})
    assert (len(found.files), len(found.pixels)) == tuple(
        len(expected[kind]) for kind in ("file", "pixels")
    )
    assert found.disjoint == (not any(expected.values()))
