"""soubench verify on builds and exported folders: each corrupted field is seen."""

import copy
import json
import re
import shutil
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from detection_sets import drawn_scenes, write_coco

from soubench.builders.demo_plants import write_demo_plants
from soubench.builders.demo_scenes import write_demo_source
from soubench.cli import main

RIGHT = "--i-have-the-right-to-redistribute"
CATEGORIES = ("ship", "plane", "car", "bridge")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Folders of exports, by name: one per dataset, and one of labels only."""
    import datasets

    home = tmp_path_factory.mktemp("verified")
    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = home / "cache"
    set_root = home / "set"
    write_coco(set_root, "train", drawn_scenes(3, CATEGORIES), CATEGORIES)
    write_coco(set_root, "val", drawn_scenes(2, CATEGORIES, first=9), CATEGORIES)
    visdrone = write_demo_source("visdrone", home, pictures=4, train_pictures=4)
    ruod = write_demo_source("ruod", home, pictures=3)
    plants = write_demo_plants(home / "plants")
    few = [f"--pictures={split}=3" for split in SHAPE_SPLITS]
    for arguments in (
        ["sou-vqa", "a-visdrone", f"--source=visdrone={visdrone}"],
        ["sou-train", "a-visdrone", f"--source=visdrone={visdrone}"],
        ["my-set", f"--source=coco={set_root}"],
        ["primitive-shapes", *few],
        ["plant-leaves", f"--source=plants={plants}"],
    ):
        assert main(["build", *arguments, "--workers=1"]) == 0, arguments
    folders = {}
    for name in ("sou-vqa", "sou-train", "my-set", "primitive-shapes", "plant-leaves"):
        assert main(["verify", name, "--pictures"]) == 0, name
        folders[name] = home / "exports" / name
        folders[name].parent.mkdir(exist_ok=True)
        assert main(["export", name, str(folders[name]), RIGHT]) == 0
    folders["labels-only"] = home / "exports" / "labels-only"
    assert main(["export", "my-set", str(folders["labels-only"]), "--pictures=none"]) == 0
    assert main(["build", "sou-vqa", "underwater", f"--source=ruod={ruod}", "--workers=1"]) == 0
    datasets.config.HF_DATASETS_CACHE = home / "cache"
    folders["scaled"] = home / "exports" / "scaled"
    (build,) = [p for p in (home / "cache/soubench/sou-vqa").iterdir() if "underwater" in _of(p)]
    fingerprint = f"--fingerprint={build.name}"
    assert main(["export", "sou-vqa", str(folders["scaled"]), "--pictures=none", fingerprint]) == 0
    yield folders
    datasets.config.HF_DATASETS_CACHE = before


SHAPE_SPLITS = (
    "train",
    "test",
    "od_composition",
    "od_spatial",
    "od_occlusion",
    "od_rotation",
    "od_size",
    "od_size_in_place",
)
NAMES = (
    "sou-vqa",
    "sou-train",
    "my-set",
    "primitive-shapes",
    "plant-leaves",
    "labels-only",
    "scaled",
)


def _of(build):
    return json.loads((build / "manifest.json").read_text())["pictures"]


@pytest.mark.parametrize("name", NAMES)
def test_exports_hold_what_they_say(name, exported, capsys):
    assert main(["verify", str(exported[name]), "--pictures"]) == 0
    assert "all is well" in capsys.readouterr().out


def change(folder, path, column, corrupt, config=""):
    """Change one cell of a Parquet file; ``corrupt`` gets the value of the config's first row."""
    table = pq.read_table(folder / path)
    values = table[column].to_pylist()
    row = table["config"].to_pylist().index(config) if config else 0
    values[row] = corrupt(copy.deepcopy(values[row]))
    index = table.column_names.index(column)
    field = table.schema.field(column)
    rewrite(folder, path, table.set_column(index, field, pa.array(values, field.type)))


def rewrite(folder, path, table, *, also_hash=True):
    """Write a Parquet file anew and note it in export.json, so that only its rows are wrong."""
    pq.write_table(table, folder / path)
    data = (folder / path).read_bytes()
    noted = json.loads((folder / "export.json").read_text())
    for s in noted["sets"]:
        for file in s["files"]:
            if f"{s['folder']}/{file['name']}" == path:
                file["num_bytes"] = len(data)
                if also_hash:
                    file["sha256"] = sha256(data).hexdigest()
    (folder / "export.json").write_text(json.dumps(noted))


def edited(changes):
    return lambda value: value | {k: f(value[k]) for k, f in changes.items()}


def another_digit(text):
    return re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), text, count=1)


SET = "data/val/val-00000-of-00001.parquet"
TRAIN = "data/a-visdrone/train-00000-of-00001.parquet"
SHAPES = "data/test-00000-of-00001.parquet"
LEAVES = "data/train-00000-of-00001.parquet"
CONFIG_OF = {"primitive-shapes": ("sentence", "tuple"), "plant-leaves": ("sentence", "tuple")}
CHANGES = [
    ("my-set", SET, "id", lambda v: "x", "id"),
    ("my-set", SET, "scenario", lambda v: "sea", "scenario"),
    ("my-set", SET, "group_id", lambda v: "x", "group_id"),
    ("my-set", SET, "question", lambda v: v + "?", "question"),
    ("my-set", SET, "options", lambda v: [v[0], *v[:3]], "options"),
    ("my-set", SET, "answer", lambda v: (v + 1) % 4, "answer"),
    ("my-set", SET, "answer_text", lambda v: "77", "answer"),
    ("my-set", SET, "system_prompt", lambda v: v[1:], "system_prompt"),
    ("my-set", SET, "objects", edited({"category": lambda c: c[::-1]}), "objects"),
    ("my-set", SET, "evidence", edited({"objects": lambda o: o[1:]}), "evidence"),
    ("sou-train", TRAIN, "prompt", lambda v: v[::-1], "prompt"),
    ("sou-train", TRAIN, "completion", lambda v: v + v, "completion"),
    ("primitive-shapes", SHAPES, "id", lambda v: "x", "id"),
    ("primitive-shapes", SHAPES, "question", lambda v: v + "?", "question"),
    ("primitive-shapes", SHAPES, "target", lambda v: v.replace("left", "right", 1) + " ", "target"),
    ("primitive-shapes", SHAPES, "config_md5", lambda v: v[::-1], "config_md5"),
    *(
        ("primitive-shapes", SHAPES, "shapes", edited({key: f}), field)
        for key, f, field in (
            ("shape", lambda v: ["Hexagon", *v[1:]], "shapes"),
            ("color", lambda v: [{"Red": "Blue"}.get(v[0], "Red"), *v[1:]], "config_md5"),
            ("quadrant", lambda v: ["middle left", *v[1:]], "shapes"),
            ("center_xy", lambda v: [[v[0][0] + 1, v[0][1]], *v[1:]], "config_md5"),
            ("relative_position", lambda v: ["under Circle", *v[1:]], "shapes"),
            ("rotation", lambda v: [v[0] + 1, *v[1:]], ""),
            ("occluded", lambda v: [not v[0], *v[1:]], "shapes"),
            ("half_long", lambda v: [v[0] + 1, *v[1:]], ""),
            ("depth", lambda v: [9, *v[1:]], "shapes"),
        )
    ),
    ("plant-leaves", LEAVES, "id", lambda v: "x", "config"),
    ("plant-leaves", LEAVES, "question", lambda v: v + "?", "question"),
    ("plant-leaves", LEAVES, "leaf_count", lambda v: v + 1, "leaf_count"),
    ("plant-leaves", LEAVES, "centers_xy", lambda v: [[0, 0], *v], "leaf_count"),
    ("plant-leaves", LEAVES, "subset", lambda v: "Tobacco", "subset"),
    ("plant-leaves", LEAVES, "plant_id", lambda v: "x", "config"),
    ("plant-leaves", LEAVES, "target", another_digit, "target"),
    ("labels-only", SET, "file_name", lambda v: "x.png", "file_name"),
    ("labels-only", SET, "sha256", lambda v: "0" * 64, "sha256"),
    ("labels-only", SET, "width", lambda v: v + 1, "width"),
]


@pytest.mark.parametrize(("name", "path", "column", "corrupt", "field"), CHANGES)
def test_each_corrupted_field_is_seen(
    name, path, column, corrupt, field, exported, tmp_path, capsys
):
    for config in CONFIG_OF.get(name, ("",)):
        folder = shutil.copytree(exported[name], tmp_path / f"{name}-{config}")
        change(folder, path, column, corrupt, config)
        assert main(["verify", str(folder)]) == 2, config
        captured = capsys.readouterr()
        assert "does not hold what it says" in captured.err
        assert f": {field}" in captured.out
        assert ": files: " not in captured.out


@pytest.mark.parametrize("name", ["my-set", "primitive-shapes", "plant-leaves"])
def test_another_picture_is_seen_when_pictures_are_hashed(name, exported, tmp_path, capsys):
    folder = shutil.copytree(exported[name], tmp_path / name)
    path = sorted((folder / "data").rglob("*.parquet"))[0].relative_to(folder)
    change(folder, str(path), "image", edited({"bytes": lambda b: b + b"\0"}))
    assert main(["verify", str(folder)]) == 0
    assert main(["verify", str(folder), "--pictures"]) == 2
    assert "not the picture of the build" in capsys.readouterr().out


def test_cards_and_files_that_do_not_fit_are_seen(exported, tmp_path, capsys):
    folder = shutil.copytree(exported["my-set"], tmp_path / "a")
    card = folder / "README.md"
    card.write_text(card.read_text().replace("all-poi", "all-pio"))
    assert main(["verify", str(folder)]) == 2
    assert "card: configs of export.json" in capsys.readouterr().out
    folder = shutil.copytree(exported["my-set"], tmp_path / "b")
    shutil.copy(folder / SET, folder / "data/val/stray.parquet")
    assert main(["verify", str(folder)]) == 2
    assert "belongs to no config" in capsys.readouterr().out
    for damaged in (SET, "manifest.json", "README.md", "export.json"):
        folder = shutil.copytree(exported["my-set"], tmp_path / f"c-{len(damaged)}")
        assert (folder / damaged).is_file()
        (folder / damaged).write_bytes(b"{")
        assert main(["verify", str(folder)]) == 2
        said = capsys.readouterr()
        seen = "damaged" in said.out or "card: configs of export.json" in said.out
        assert damaged != SET or "bytes, there are 1" in said.out
        assert seen or "no folder made by soubench export" in said.err
    folder = shutil.copytree(exported["my-set"], tmp_path / "d")
    (folder / "manifest.json").unlink()
    assert main(["verify", str(folder)]) == 2
    assert "Build and export it again" in capsys.readouterr().out


def test_an_outlined_picture_that_was_changed_is_seen(exported, tmp_path, capsys):
    folder = shutil.copytree(exported["my-set"], tmp_path / "outlined")
    table = pq.read_table(folder / SET)
    row = table["task"].to_pylist().index("OL")
    images = table["image"].to_pylist()
    images[row]["bytes"] += b"\0"
    index = table.column_names.index("image")
    images = pa.array(images, table.schema.field("image").type)
    rewrite(folder, SET, table.set_column(index, "image", images), also_hash=False)
    assert main(["verify", str(folder)]) == 0
    assert main(["verify", str(folder), "--pictures"]) == 2
    assert f"{SET} is not the file that was written" in capsys.readouterr().out
    (folder / SET).unlink()
    assert main(["verify", str(folder)]) == 2
    assert f"{SET} is missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change_of", "said"),
    [
        pytest.param({"format": 99}, "a newer one made it. Update soubench", id="newer"),
        pytest.param({"format": None}, "was made by an older soubench", id="older"),
        pytest.param({"sets": [{}]}, "is damaged or was made by an older", id="damaged"),
    ],
)
def test_exports_of_other_versions_are_explained(change_of, said, exported, tmp_path, capsys):
    folder = shutil.copytree(exported["my-set"], tmp_path / "other")
    noted = json.loads((folder / "export.json").read_text()) | change_of
    if noted["format"] is None:
        del noted["format"]
        for s in noted["sets"]:
            s["files"] = [file["name"] for file in s["files"]]
    (folder / "export.json").write_text(json.dumps(noted))
    assert main(["verify", str(folder)]) == 2
    assert said in capsys.readouterr().out


def test_missing_and_swapped_rows_are_seen(exported, tmp_path, capsys):
    for name, path in (("my-set", SET), ("primitive-shapes", SHAPES), ("plant-leaves", LEAVES)):
        for i, order in enumerate(("missing", "swapped")):
            folder = shutil.copytree(exported[name], tmp_path / f"{name}-{i}")
            table = pq.read_table(folder / path)
            kept = list(range(table.num_rows))
            kept = kept[1:] if order == "missing" else [*kept[2:4], *kept[:2], *kept[4:]]
            rewrite(folder, path, table.take(kept))
            assert main(["verify", str(folder)]) == 2, (name, order)
            capsys.readouterr()


def test_a_folder_that_is_no_export_is_told_apart(tmp_path, capsys):
    assert main(["verify", str(tmp_path)]) == 2
    assert "is no folder made by soubench export" in capsys.readouterr().err


def rows_changed(folder, path, work):
    """Rewrite a Parquet file with ``work`` done to the list of its rows."""
    table = pq.read_table(folder / path)
    rows = table.to_pylist()
    rewrite(folder, path, pa.Table.from_pylist(work(rows), table.schema))


def swapped_letters(rows):
    """Exchange the letters of two rows, each with its options, so that both stay right."""
    a, b = (i for i, row in enumerate(rows) if row["task"] == "OC" and i < 12)
    for i, other in ((a, rows[b]["answer"]), (b, rows[a]["answer"])):
        options = rows[i]["options"]
        options.insert(other, options.pop(rows[i]["answer"]))
        rows[i]["answer"] = other
    return rows


def options_of_oc(rows, options):
    row = next(row for row in rows if row["task"] == "OC")
    wrong = [i for i in range(4) if i != row["answer"]]
    for i, option in zip(wrong, options, strict=True):
        row["options"][i] = option
    return rows


@pytest.mark.parametrize(
    ("work", "said"),
    [
        pytest.param(swapped_letters, "/oc: row: it is not that of the build", id="letters"),
        pytest.param(lambda rows: rows[1:], "/ce: missing: there is no such row", id="first gone"),
        pytest.param(lambda rows: rows[:-1], "/poi: missing: there is no such row", id="last gone"),
        pytest.param(
            lambda rows: [rows[0] | {"question": None}, *rows[1:]],
            "/ce: question",
            id="no question",
        ),
        pytest.param(
            lambda rows: [rows[0] | {"options": None}, *rows[1:]],
            "/ce: row: a cell is missing or of another form",
            id="no options",
        ),
        pytest.param(
            lambda rows: [rows[0] | {"answer": None}, *rows[1:]],
            "/ce: answer: expected one of ABCD, got None",
            id="no answer",
        ),
        pytest.param(
            lambda rows: [rows[0] | {"subset": "train"}, *rows[1:]],
            "/ce: id: the manifest knows no row of train",
            id="another subset",
        ),
        pytest.param(
            lambda rows: options_of_oc(rows, ["900", "901", "902"]),
            "/oc: options: '900' is no option of OC beside",
            id="options out of range",
        ),
    ],
)
def test_the_first_row_that_fails_is_named(work, said, exported, tmp_path, capsys):
    folder = shutil.copytree(exported["my-set"], tmp_path / "changed")
    rows_changed(folder, SET, work)
    assert main(["verify", str(folder)]) == 2
    assert said in capsys.readouterr().out


def test_stated_types_and_numbers_that_are_not_the_builds_are_seen(exported, tmp_path, capsys):
    folder = shutil.copytree(exported["my-set"], tmp_path / "names")
    card = folder / "README.md"
    text = card.read_text()
    card.write_text(text.replace("'0': A", "'0': B", 1).replace("'1': B", "'1': A", 1))
    assert main(["verify", str(folder)]) == 2
    assert "features of answer: all" in capsys.readouterr().out
    card.write_text(text.replace("num_examples: 12", "num_examples: 99", 1))
    assert main(["verify", str(folder)]) == 2
    assert "splits: all: " in capsys.readouterr().out
    card.write_text(text)
    table = pq.read_table(folder / SET)
    about = json.loads(table.schema.metadata[b"huggingface"])
    about["info"]["features"]["answer"]["names"] = list("BADC")
    metadata = {b"huggingface": json.dumps(about).encode()}
    rewrite(folder, SET, table.replace_schema_metadata(metadata))
    assert main(["verify", str(folder)]) == 2
    assert f"features: {SET}: they are not those of the build" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"width": 401}, "fingerprint: expected", id="width"),
        pytest.param({"file_name": "x.png"}, "fingerprint: expected", id="file_name"),
    ],
)
def test_a_changed_manifest_is_seen(changed, said, exported, tmp_path, capsys):
    folder = shutil.copytree(exported["my-set"], tmp_path / "manifest")
    described = json.loads((folder / "manifest.json").read_text())
    picture = next(iter(described["pictures"]["val"].values()))
    picture |= changed
    (folder / "manifest.json").write_text(json.dumps(described))
    assert main(["verify", str(folder)]) == 2
    assert said in capsys.readouterr().out
    described["pictures"]["val"]["ghost"] = dict(picture)
    (folder / "manifest.json").write_text(json.dumps(described))
    assert main(["verify", str(folder)]) == 2
    assert "val/ghost: missing: no row asks about this picture" in capsys.readouterr().out


@pytest.fixture
def built_set(tmp_path, empty_cache):
    """The cache with a build of two pictures, and its folder of pictures."""
    write_coco(tmp_path / "set", "val", drawn_scenes(2, CATEGORIES), CATEGORIES)
    assert main(["build", "my-set", f"--source=coco={tmp_path / 'set'}", "--workers=1"]) == 0
    (folder,) = (empty_cache / "soubench" / "my-set").iterdir()
    return empty_cache / "my-set", folder


def test_pictures_of_a_build_that_were_changed_or_exchanged_are_seen(built_set, capsys):
    prepared, folder = built_set
    outlined = min((folder / "pictures" / "val").glob("*.ol.png"))
    outlined.write_bytes(outlined.read_bytes() + b"\0")
    assert main(["verify", "my-set"]) == 0
    assert main(["verify", "my-set", "--pictures"]) == 2
    assert f"/ol: image: {outlined} is not the picture of the build" in capsys.readouterr().out
    outlined.write_bytes(outlined.read_bytes()[:-1])
    (small,) = (prepared / "all-poi").rglob("*.arrow")
    table = pa.ipc.open_stream(small.read_bytes()).read_all()
    images = table["image"].to_pylist()
    images = pa.array(images[::-1], table.schema.field("image").type)
    table = table.set_column(table.column_names.index("image"), "image", images)
    with pa.OSFile(str(small), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert main(["verify", "my-set"]) == 2
    assert "/poi: image: all-poi and all have different pictures" in capsys.readouterr().out


def test_what_a_build_lost_or_says_wrongly_is_seen(built_set, capsys):
    prepared, _ = built_set
    (info,) = (prepared / "all-oc").rglob("dataset_info.json")
    stated = json.loads(info.read_text())
    stated["features"]["answer"]["names"] = list("DCBA")
    info.write_text(json.dumps(stated))
    assert main(["verify", "my-set"]) == 2
    assert "features of answer: all-oc: expected" in capsys.readouterr().out
    shutil.rmtree(prepared / "all-oc")
    assert main(["verify", "my-set"]) == 2
    assert "config: all-oc is missing" in capsys.readouterr().out


def test_the_fingerprint_may_be_demanded_and_other_words_are_said(built_set, capsys):
    _, folder = built_set
    assert main(["verify", "my-set", "--fingerprint", folder.name[:12]]) == 0
    assert f"my-set, {folder.name[:16]}: " in capsys.readouterr().out
    assert main(["verify", "my-set", "--fingerprint", "0" * 16]) == 2
    assert "no build of the fingerprint 0000" in capsys.readouterr().err
    from soubench.builders.sou import prompts

    own = folder.parent / "own.toml"
    own.write_text((prompts.files(prompts.__package__) / prompts.PROMPT_FILE).read_text() + "\n")
    assert main(["verify", "my-set", "--prompt", str(own)]) == 0
    assert "the words of its questions were not derived anew" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "path", "column", "corrupt", "row"),
    [
        ("plant-leaves", LEAVES, "id", lambda v: f"{v}x", 0),
        ("plant-leaves", LEAVES, "plant_id", lambda v: "x", 0),
        ("primitive-shapes", SHAPES, "shapes", edited({"half_long": lambda v: [1, *v[1:]]}), 2),
    ],
)
def test_every_dataset_names_the_row(name, path, column, corrupt, row, exported, tmp_path, capsys):
    folder = shutil.copytree(exported[name], tmp_path / "changed")
    table = pq.read_table(folder / path)
    cells = table[column].to_pylist()
    cells[row] = corrupt(copy.deepcopy(cells[row]))
    index, field = table.column_names.index(column), table.schema.field(column)
    rewrite(folder, path, table.set_column(index, field, pa.array(cells, field.type)))
    assert main(["verify", str(folder)]) == 2
    row_id = pq.read_table(folder / path)["id"][row].as_py()
    assert f"  {row_id}: " in capsys.readouterr().out


def test_rows_in_another_order_are_named(exported, tmp_path, capsys):
    for name, path in (("my-set", SET), ("primitive-shapes", SHAPES), ("plant-leaves", LEAVES)):
        folder = shutil.copytree(exported[name], tmp_path / name)
        table = pq.read_table(folder / path)
        rewrite(folder, path, table.take([2, 3, 0, 1, *range(4, table.num_rows)]))
        assert main(["verify", str(folder)]) == 2
        assert "it comes again, or too late" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["dataset", "mode"])
def test_an_export_that_calls_itself_something_else_is_seen(key, exported, tmp_path, capsys):
    folder = shutil.copytree(exported["my-set"], tmp_path / "other")
    noted = json.loads((folder / "export.json").read_text())
    (folder / "export.json").write_text(json.dumps(noted | {key: "balanced"}))
    assert main(["verify", str(folder)]) == 2
    assert f"{key}: export.json says 'balanced'" in capsys.readouterr().out


def test_bytes_beside_the_path_of_a_cached_picture_are_seen(built_set, capsys):
    prepared, _ = built_set
    (file,) = (prepared / "all-ol").rglob("*.arrow")
    table = pa.ipc.open_stream(file.read_bytes()).read_all()
    images = [cell | {"bytes": b"another"} for cell in table["image"].to_pylist()]
    images = pa.array(images, table.schema.field("image").type)
    table = table.set_column(table.column_names.index("image"), "image", images)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert main(["verify", "my-set"]) == 2
    assert "/ol: image: expected the path of its picture alone" in capsys.readouterr().out
