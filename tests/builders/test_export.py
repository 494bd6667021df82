"""Exported folders: what a stranger loads is what was built, and nothing more goes out."""

import re
import shutil
from functools import partial

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset

from soubench.builders.demo_plants import write_demo_plants
from soubench.builders.demo_scenes import FOLDERS, write_demo_sources
from soubench.builders.errors import PublishError
from soubench.builders.publishing import attach, export, picture_parquet
from soubench.builders.publishing.attach import attach_pictures
from soubench.builders.publishing.export import NAME_FEATURES, export_dataset
from soubench.builders.publishing.export_folder import load_manifest, replacing
from soubench.builders.shapes.build import ShapesOptions
from soubench.builders.shapes.sampler import SPLITS
from soubench.builders.sou.build import BuildOptions
from soubench.builders.sou.subsets import CONFIGS, SUBSETS
from soubench.dataset_scripts.plant_leaves.plant_leaves import build_plant_leaves
from soubench.dataset_scripts.primitive_shapes.primitive_shapes import build_primitive_shapes
from soubench.dataset_scripts.sou import FEATURES
from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa

PICTURES = 3
SHAPES = {"train": 5, "test": 4, "od_size": 2}
WITHHELD = {"soda-d", "visdrone", "ai-tod", "ruod"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Sources, and a cache with both datasets built."""
    home = tmp_path_factory.mktemp("export")
    roots = write_demo_sources(home / "sources", pictures=PICTURES)
    build_sou_vqa("all", roots, BuildOptions(mode="balanced"), cache_dir=home / "cache")
    none = dict.fromkeys(
        ("od_composition", "od_spatial", "od_occlusion", "od_rotation", "od_size_in_place"), 1
    )
    build_primitive_shapes(ShapesOptions(pictures=SHAPES | none), cache_dir=home / "cache")
    return home


@pytest.fixture(scope="module")
def full(home):
    """sou-vqa with all pictures."""
    report = export_dataset("sou-vqa", home / "full", cache_dir=home / "cache", have_the_right=True)
    return home / "full", report


@pytest.fixture(scope="module")
def lean(home):
    """sou-vqa as its sources allow it."""
    report = export_dataset("sou-vqa", home / "lean", cache_dir=home / "cache")
    return home / "lean", report


@pytest.fixture
def copy(lean, tmp_path):
    """A copy of the lean export that a test may change."""
    return shutil.copytree(lean[0], tmp_path / "copy")


def cached(home, name, config):
    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = home / "cache"
    try:
        return load_dataset(name, config)
    finally:
        datasets.config.HF_DATASETS_CACHE = before


def pixels(row):
    image = row["image"]
    return image and (image.size, image.convert("RGB").tobytes())


def plain_rows(loaded):
    columns = ["image", *(c for c in NAME_FEATURES if c in loaded.column_names)]
    return loaded.remove_columns(columns).to_list()


def assert_same(ours, theirs, *, look=True):
    assert list(ours) == list(theirs)
    for split in theirs:
        assert plain_rows(ours[split]) == plain_rows(theirs[split])
        if look:
            for a, b in zip(ours[split], theirs[split], strict=True):
                assert pixels(a) == pixels(b)


def tree(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_every_config_loads_from_the_folder_as_from_the_cache(home, full, tmp_path, monkeypatch):
    folder, report = full
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    built = {name for name in CONFIGS if (home / "cache" / "sou-vqa" / name).is_dir()}
    assert set(report["configs"]) == built
    assert len(built) == len(CONFIGS)
    # The card is parsed once per config; only quicker.
    monkeypatch.setattr(yaml, "SafeLoader", yaml.CSafeLoader)
    theirs = cached(home, "sou-vqa", "all")
    assert_same(load_dataset(f"./{moved.name}", "all"), theirs)
    expected = plain_rows(theirs["test"])
    for config in built:
        ours, selection = load_dataset(f"./{moved.name}", config), CONFIGS[config]
        assert ours["test"].features == FEATURES
        assert plain_rows(ours["test"]) == [
            row
            for row in expected
            if row["subset"] in selection.subsets and selection.task in (None, row["task"])
        ]


@pytest.mark.parametrize("config", ["aerial-ol", "underwater"])
def test_streams(home, full, config):
    stream = load_dataset(str(full[0]), config, split="test", streaming=True)
    assert stream.features == FEATURES
    theirs = cached(home, "sou-vqa", config)["test"]
    for ours, row in zip(stream, theirs, strict=True):
        assert pixels(ours) == pixels(row)
        assert {k: v for k, v in ours.items() if k != "image"} == {
            k: v for k, v in row.items() if k != "image"
        }


def test_each_picture_is_stored_once(full, home):
    folder, report = full
    data = cached(home, "sou-vqa", "all")["test"].data.column("image").to_pylist()
    paths = {cell["path"] for cell in data}
    distinct = sum(len(open(path, "rb").read()) for path in paths)  # noqa: SIM115, PTH123
    assert report["picture_bytes"] == distinct
    assert report["pictures"] == len(paths)
    files = sum(p.stat().st_size for p in (folder / "data").rglob("*.parquet"))
    assert report["parquet_bytes"] == files <= 1.1 * distinct


@pytest.mark.parametrize("which", ["full", "lean"])
def test_no_path_of_the_machine_goes_out(which, home, request):
    folder, _ = request.getfixturevalue(which)
    for name, data in tree(folder).items():
        assert str(home).encode() not in data, name
    for path in folder.rglob("*.parquet"):
        for cell in pq.read_table(path)["image"].to_pylist():
            assert cell is None or ("/" not in cell["path"] and cell["bytes"])


def test_only_what_a_source_allows_goes_out(lean, home):
    folder, report = lean
    assert set(report["withheld"]) == WITHHELD
    loaded = load_dataset(str(folder), "all", split="test")
    assert loaded.features == FEATURES | NAME_FEATURES
    for row in loaded:
        allowed = row["subset"] == "a-soda"
        assert (row["image"] is not None) == allowed
        assert (row["file_name"] is None) == allowed
        assert allowed or len(row["sha256"]) == 64
        # RUOD's pictures are scaled, so what is asked about is not the source's file.
        assert allowed or bool(row["pixels_sha256"]) == (row["subset"] == "underwater")
    assert_same(
        load_dataset(str(folder), "aerial-ce"), cached(home, "sou-vqa", "aerial-ce"), look=False
    )


def test_labels_only_on_request(home, tmp_path):
    report = export_dataset("sou-vqa", tmp_path / "out", cache_dir=home / "cache", pictures="none")
    assert report["pictures"] == report["picture_bytes"] == 0
    assert "soda-a" in report["withheld"]


def test_attached_pictures_are_those_of_the_build(copy, home):
    report = attach_pictures(copy, home / "sources")
    assert not report["left"]
    assert len(report["attached"]) == len(SUBSETS) - 1
    assert_same(load_dataset(str(copy), "all"), cached(home, "sou-vqa", "all"))
    head = yaml.safe_load((copy / "README.md").read_text().split("---\n")[1])
    sizes = {c["config_name"]: c["splits"][0]["num_bytes"] for c in head["dataset_info"]}
    assert sizes["all"] > sum(p.stat().st_size for p in (copy / "data").rglob("*.parquet"))
    with pytest.raises(PublishError, match="nothing to attach"):
        attach_pictures(copy, home / "sources")


@pytest.mark.parametrize("group", ["a-visdrone", "underwater"])
def test_attached_outlines_of_the_paper_mode(home, tmp_path, group):
    source = SUBSETS[group].source
    root = home / "sources" / FOLDERS[source]
    build_sou_vqa(group, {source: root}, BuildOptions(), cache_dir=tmp_path / "cache")
    export_dataset("sou-vqa", tmp_path / "out", cache_dir=tmp_path / "cache")
    assert attach_pictures(tmp_path / "out", root)["attached"] == {f"data/{group}/test": PICTURES}
    assert_same(load_dataset(str(tmp_path / "out"), group), cached(tmp_path, "sou-vqa", group))


def test_sources_may_be_attached_one_by_one_and_under_other_names(copy, home, tmp_path):
    for i, path in enumerate(sorted((home / "sources" / "VisDrone").rglob("*.jpg"))):
        (tmp_path / "mine" / str(i)).mkdir(parents=True)
        shutil.copy(path, tmp_path / "mine" / str(i) / "renamed.jpg")
    report = attach_pictures(copy, tmp_path / "mine")
    assert list(report["attached"]) == ["data/a-visdrone/test"]
    assert len(report["left"]["data/driving/test"]["missing"]) == PICTURES
    attach_pictures(copy, home / "sources")
    assert_same(load_dataset(str(copy), "all-ol"), cached(home, "sou-vqa", "all-ol"))


def test_a_missing_picture_is_named_and_nothing_changes(copy, home, tmp_path):
    sources = shutil.copytree(home / "sources", tmp_path / "sources")
    gone = sorted((sources / "VisDrone").rglob("*.jpg"))[0]
    gone.unlink()
    before = tree(copy)
    with pytest.raises(PublishError, match=rf"1 missing \({gone.name}\)"):
        attach_pictures(copy, sources)
    assert tree(copy) == before
    assert [p.name for p in tmp_path.iterdir() if "copy" in p.name] == ["copy"]


@pytest.mark.parametrize("source", ["VisDrone", "RUOD"])
def test_a_picture_that_differs_is_refused(copy, home, tmp_path, source):
    sources = shutil.copytree(home / "sources", tmp_path / "sources")
    first, second = sorted((sources / source).rglob("*.jpg"))[:2]
    shutil.copy(second, first)
    before = tree(copy)
    with pytest.raises(PublishError, match=rf"1 not the picture that was used \({first.stem}"):
        attach_pictures(copy, sources)
    assert tree(copy) == before


def test_a_corrupted_hash_is_refused(copy, home):
    path = copy / "data" / "a-visdrone" / "test-00000-of-00001.parquet"
    table = pq.read_table(path)
    wrong = pa.array(["0" * 64] * table.num_rows)
    pq.write_table(table.set_column(table.column_names.index("sha256"), "sha256", wrong), path)
    report = attach_pictures(copy, home / "sources")
    assert len(report["left"]["data/a-visdrone/test"]["differing"]) == PICTURES


def test_attach_refuses_what_is_no_export_and_strangers_pictures(copy, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(PublishError, match="made by soubench export"):
        attach_pictures(tmp_path / "empty", tmp_path)
    with pytest.raises(PublishError, match="none of the pictures"):
        attach_pictures(copy, tmp_path / "empty")


def test_large_sets_are_cut_into_shards_of_whole_pictures(home, tmp_path, monkeypatch):
    monkeypatch.setattr(picture_parquet, "SHARD_BYTES", 500_000)
    monkeypatch.setattr(picture_parquet, "ROW_GROUP_BYTES", 1)
    export_dataset("sou-vqa", tmp_path / "out", cache_dir=home / "cache", have_the_right=True)
    names = sorted(p.name for p in (tmp_path / "out/data/a-soda").iterdir())
    assert names == [f"test-{i:05d}-of-{len(names):05d}.parquet" for i in range(len(names))]
    assert len(names) == PICTURES
    assert_same(load_dataset(str(tmp_path / "out"), "all-ol"), cached(home, "sou-vqa", "all-ol"))


def test_primitive_shapes(home, tmp_path):
    folder = tmp_path / "shapes"
    report = export_dataset("primitive-shapes", folder, cache_dir=home / "cache")
    assert not report["withheld"]
    n = sum(SHAPES.values()) + 5
    assert report["pictures"] == n
    assert report["rows"] == 2 * n
    for config in ("sentence", "tuple"):
        theirs = cached(home, "primitive-shapes", config)
        ours = load_dataset(str(folder), config)
        for split in theirs:
            assert ours[split].features == theirs[split].features
        assert_same(ours, theirs)
    stream = load_dataset(str(folder), "tuple", split="od_size", streaming=True)
    assert [pixels(r) for r in stream] == [pixels(r) for r in theirs["od_size"]]
    assert (folder / "sheets" / "train.png").is_file()


def test_drawn_pictures_are_stored_once_for_both_configs(tmp_path):
    options = ShapesOptions(pictures=dict.fromkeys(SPLITS, 1) | {"train": 300})
    build_primitive_shapes(options, cache_dir=tmp_path / "cache")
    folder = tmp_path / "shapes"
    export_dataset("primitive-shapes", folder, cache_dir=tmp_path / "cache")
    drawn = tmp_path.glob("cache/soubench/primitive-shapes/*/pictures/train/*.png")
    distinct = sum(path.stat().st_size for path in drawn)
    (file,) = folder.glob("data/train-*.parquet")
    assert file.stat().st_size <= 1.1 * distinct


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    """The drawn plants, and a cache with plant-leaves built."""
    home = tmp_path_factory.mktemp("plants")
    build_plant_leaves(write_demo_plants(home / "sources"), cache_dir=home / "cache")
    return home


def test_plants(plants, tmp_path):
    folder = tmp_path / "plants"
    report = export_dataset("plant-leaves", folder, cache_dir=plants / "cache", have_the_right=True)
    assert report["parquet_bytes"] <= 1.1 * report["picture_bytes"]
    for config in ("sentence", "tuple"):
        theirs = cached(plants, "plant-leaves", config)
        assert_same(load_dataset(str(folder), config), theirs)
    stream = load_dataset(str(folder), "tuple", split="od_test", streaming=True)
    assert stream.features == theirs["od_test"].features
    assert [row["target"] for row in stream] == theirs["od_test"]["target"]


def test_labels_of_drawn_and_plant_pictures_and_their_pictures_later(home, plants, tmp_path):
    for name, cache, sources in (
        ("plant-leaves", plants / "cache", plants / "sources"),
        ("primitive-shapes", home / "cache", home / "cache" / "soubench" / "primitive-shapes"),
    ):
        folder = tmp_path / name
        report = export_dataset(name, folder, cache_dir=cache, pictures="none")
        assert report["pictures"] == report["picture_bytes"] == 0
        loaded = load_dataset(str(folder), "tuple")
        assert all(len(row["sha256"]) == 64 for split in loaded.values() for row in split)
        assert all(row["image"] is None for split in loaded.values() for row in split)
        assert not attach_pictures(folder, sources)["left"]
        for config in ("sentence", "tuple"):
            assert_same(load_dataset(str(folder), config), cached(cache.parent, name, config))


def test_scaled_pictures_are_made_of_originals_found_by_their_hash(copy, home, tmp_path):
    for i, path in enumerate(sorted((home / "sources" / "RUOD").rglob("*.jpg"))):
        (tmp_path / "mine" / str(i)).mkdir(parents=True)
        shutil.copy(path, tmp_path / "mine" / str(i) / "renamed.jpg")
    report = attach_pictures(copy, tmp_path / "mine")
    assert report["attached"] == {"data/underwater/test": PICTURES}
    theirs = cached(home, "sou-vqa", "underwater")
    assert_same(load_dataset(str(copy), "underwater"), theirs)


@pytest.mark.parametrize("command", ["export", "attach"])
def test_two_commands_do_not_write_one_folder_at_once(home, copy, command):
    act = {
        "export": partial(export_dataset, "sou-vqa", copy, cache_dir=home / "cache"),
        "attach": partial(attach_pictures, copy, home / "sources"),
    }
    before = tree(copy)
    with replacing(copy) as target:
        (target / "half").write_text("made")
        with pytest.raises(PublishError, match="being written by another soubench"):
            act[command]()
        assert (target / "half").is_file()
        shutil.copytree(copy, target, dirs_exist_ok=True)
        (target / "half").unlink()
    assert tree(copy) == before
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    act[command]()


def test_the_card_counts_what_is_there(lean):
    folder, report = lean
    text = (folder / "README.md").read_text()
    head = yaml.safe_load(text.split("---\n")[1])
    assert [c["config_name"] for c in head["configs"]] == report["configs"]
    infos = {c["config_name"]: c for c in head["dataset_info"]}
    assert infos["all"]["splits"][0]["num_examples"] == report["rows"]
    by_name = {c["config_name"]: c for c in head["configs"]}
    assert by_name["aerial-ce"]["filters"] == [["task", "==", "CE"]]
    assert by_name["aerial-ce"]["data_files"] == by_name["aerial"]["data_files"]
    assert len(list((folder / "examples").iterdir())) == 6
    for name in ("ce", "ol", "poi"):
        assert f"(examples/{name}.jpg)" in text
    assert "CC BY-NC 4.0: no commercial use" in text
    assert "```bibtex" in text
    assert "## Release notes" in text
    # As the paper's Table 1 adds up its subsets.
    rows = load_dataset(str(folder), "all-oc", split="test").remove_columns("image")
    names = {name for row in rows for name in row["objects"]["category"]}
    sums = f"{5 * PICTURES} |  | {report['rows']} | {len(names)} different | 100.00"
    assert f"| all |  |  | {sums} |" in text
    assert "`balanced` distractors (this build's)" in text


def test_the_card_says_on_whose_word_pictures_are_inside(full, lean, copy, home):
    stated = "who made this export stated the right to redistribute them"
    assert (
        f"Pictures of visdrone (license: none stated) are inside because {stated}"
        in (full[0] / "README.md").read_text()
    )
    text = (lean[0] / "README.md").read_text()
    assert stated not in text
    assert "do not pass this folder on" not in text
    attach_pictures(copy, home / "sources")
    text = (copy / "README.md").read_text()
    for source in WITHHELD:
        assert re.search(rf"Pictures of {source} .* put in with .*do not pass this folder on", text)
    assert "Pictures of soda-a" not in text


def test_a_foreign_folder_is_refused_and_an_export_replaced(home, full, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("dear")
    with pytest.raises(PublishError, match="not made by soubench export"):
        export_dataset("sou-vqa", mine, cache_dir=home / "cache")
    assert tree(tmp_path) == {(mine / "thesis.txt").relative_to(tmp_path): b"dear"}
    again = shutil.copytree(full[0], tmp_path / "again")
    (again / "data" / "stale.parquet").write_text("old")
    export_dataset("sou-vqa", again, cache_dir=home / "cache", have_the_right=True)
    assert tree(again) == tree(full[0])


@pytest.mark.parametrize("command", ["export", "attach"])
def test_a_failure_half_way_leaves_the_folder_as_it_was(home, copy, tmp_path, monkeypatch, command):
    calls = []

    def dies(*args, **kwargs):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return picture_parquet.write_pictures(*args, **kwargs)

    before = tree(copy)
    module = export if command == "export" else attach
    monkeypatch.setattr(module, "write_pictures", dies)
    act = {
        "export": partial(export_dataset, "sou-vqa", copy, cache_dir=home / "cache"),
        "attach": partial(attach_pictures, copy, home / "sources"),
    }
    with pytest.raises(KeyboardInterrupt):
        act[command]()
    assert tree(copy) == before
    assert [p.name for p in tmp_path.iterdir()] == ["copy"]


def test_what_a_kill_left_behind_is_put_right(home, copy, tmp_path):
    copy.rename(tmp_path / "copy.replaced")
    (tmp_path / "copy.incomplete").mkdir()
    assert attach_pictures(copy, home / "sources")["attached"]
    assert load_manifest(copy).dataset == "sou-vqa"
    assert [p.name for p in tmp_path.iterdir()] == ["copy"]


def test_unknown_or_ambiguous_builds_are_explained(home, tmp_path):
    with pytest.raises(PublishError, match=r"no build of it .* there is primitive-shapes, sou-vqa"):
        export_dataset("sou-vqo", tmp_path / "out", cache_dir=home / "cache")
    cache = shutil.copytree(home / "cache", tmp_path / "cache")
    (live,) = (cache / "sou-vqa" / "driving" / "1.0.0").iterdir()
    live.rename(live.with_name("f" * 64))
    (cache / "soubench" / "sou-vqa" / ("f" * 64)).mkdir()
    with pytest.raises(PublishError, match=r"found 2\. Say which .* f{16}: driving"):
        export_dataset("sou-vqa", tmp_path / "out", cache_dir=cache)


def test_a_source_that_has_moved_is_named(home, tmp_path):
    sources = home / "sources" / "VisDrone"
    sources.rename(tmp_path / "VisDrone")
    try:
        with pytest.raises(PublishError, match="no longer there"):
            export_dataset("sou-vqa", tmp_path / "out", cache_dir=home / "cache")
    finally:
        (tmp_path / "VisDrone").rename(sources)
    assert not (tmp_path / "out").exists()
