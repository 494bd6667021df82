"""rrs exported: what is loaded from the folder is what was built, and every change is seen."""

import copy
import json
import re
import shutil
from hashlib import sha256
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from PIL import Image
from pycocotools import mask as coco_mask

from soubench.builders.demo_rrs import write_demo_records
from soubench.builders.publishing.export import NAME_FEATURES
from soubench.builders.rrs.taxonomy import Task, configs
from soubench.cli import main
from soubench.dataset_scripts.rrs.rrs import FEATURES

RIGHT = "--i-have-the-right-to-redistribute"
SURVEY = "data/survey/test-00000-of-00001.parquet"
DEMO = "data/demo/test-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A build of four sources: two with open licenses, one of gray pictures without any."""
    home = tmp_path_factory.mktemp("rrs")
    path = write_demo_records(home / "sites", sites=6, pairs=2)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records[::2]:
        record |= {"source": "survey", "license": ""}
        gray = Path(record["images"][0]).with_suffix(".bmp")
        with Image.open(path.parent / record["images"][0]) as image:
            image.convert("L").save(path.parent / gray)
        record["images"][0] = str(gray)
    # Names of sources are the users' own.
    records[1] |= {"source": "..", "license": "CC BY 4.0"}
    records[3] |= {"source": "a/b *\N{SNOWMAN}", "license": "CC0-1.0"}
    path.write_text("\n".join(map(json.dumps, records)))
    datasets.config.HF_DATASETS_CACHE = home / "cache"
    options = [f"--records={path}", "--distractors=random", "--workers=1"]
    assert main(["build", "rrs", *options]) == 0
    assert main(["export", "rrs", str(home / "full"), RIGHT]) == 0
    assert main(["export", "rrs", str(home / "lean")]) == 0
    return home


@pytest.fixture(autouse=True)
def _cache(home):
    datasets.config.HF_DATASETS_CACHE = home / "cache"


def plain(rows):
    """Rows with the size and pixels of every picture."""
    return [
        row | {"images": [(i.size, i.convert("RGB").tobytes()) for i in row["images"] or ()]}
        for row in rows
    ]


@pytest.mark.parametrize("config", ["vg", "ci", "nr", "perception-object", "robustness", "all"])
def test_a_folder_gives_the_rows_and_pixels_of_the_cache(home, config):
    built = load_dataset("rrs", config, split="test")
    ours = load_dataset(str(home / "full"), config, split="test")
    assert ours.features == built.features == FEATURES
    assert ours.info.splits["test"].num_examples == len(built)
    expected = plain(built)
    assert plain(ours) == expected
    stream = load_dataset(str(home / "full"), config, split="test", streaming=True)
    assert plain(stream) == expected


def test_every_config_is_there_and_a_filter_of_the_same_files(home):
    names = datasets.get_dataset_config_names(str(home / "full"))
    assert sorted(names) == sorted(configs())
    card = (home / "full" / "README.md").read_text()
    for said in ("- task\n    - ==\n    - VG", "- sub_dimension\n    - ==\n    - robustness"):
        assert said in card
    data = [p.parent for p in (home / "full" / "data").rglob("*.parquet")]
    assert {p.parent.name for p in data} == {"data"}
    assert {p.name for p in data} == {"%2E%2E", "a%2Fb %2A%E2%98%83", "demo", "survey"}


def test_each_picture_is_stored_once(home):
    built = load_dataset("rrs", "all", split="test").data.column("images").to_pylist()
    distinct = {cell["path"] for row in built for cell in row}
    size = sum(Path(path).stat().st_size for path in distinct)
    stored = sum(path.stat().st_size for path in (home / "full" / "data").rglob("*.parquet"))
    assert stored <= 1.1 * size


def test_only_what_its_records_allow_goes_out_and_its_owner_puts_the_rest_in(
    home, tmp_path, capsys
):
    folder = shutil.copytree(home / "lean", tmp_path / "lean")
    for row in load_dataset(str(folder), "all", split="test"):
        withheld = row["source"] == "survey"
        assert (row["images"] is None) == withheld
        assert all((row[name] is not None) == withheld for name in NAME_FEATURES)
        if withheld and row["corruption"]:
            assert len(row["pixels_sha256"][0]) == 64
    assert main(["attach", str(folder), f"--pictures={home / 'sites'}"]) == 0
    # Three sites, and the two pictures of a pair.
    assert "data/survey/test: 5 pictures attached" in capsys.readouterr().out
    assert main(["verify", str(folder), "--pictures"]) == 0
    ours = load_dataset(str(folder), "all", split="test").remove_columns(list(NAME_FEATURES))
    assert plain(ours) == plain(load_dataset("rrs", "all", split="test"))


@pytest.mark.parametrize("source", ["cache", "folder"])
@pytest.mark.parametrize("to", ["lmms-eval", "vlmevalkit"])
def test_a_folder_for_a_tool_says_what_the_records_state_of_their_pictures(
    home, tmp_path, capsys, source, to
):
    address = "rrs" if source == "cache" else home / "full"
    assert main(["export", str(address), str(tmp_path / to), f"--to={to}", "--config=su"]) == 0
    assert "the pictures of survey may not be passed on" in capsys.readouterr().out
    readme = (tmp_path / to / "README.md").read_text()
    assert "- survey: may not be passed on (license: none stated)." in readme
    assert "- demo: may be passed on (license: CC0-1.0)." in readme
    assert "- ..: may be passed on (license: CC BY 4.0)." in readme


def test_a_source_of_which_some_records_state_no_license_is_told_with_their_number(
    tmp_path, capsys
):
    path = write_demo_records(tmp_path / "sites", sites=4, pairs=0)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records[2]["license"] = " "
    path.write_text("\n".join(map(json.dumps, records)))
    datasets.config.HF_DATASETS_CACHE = tmp_path / "cache"
    assert main(["build", "rrs", f"--records={path}", "--distractors=random", "--workers=1"]) == 0
    said = "the pictures of demo (1 of 4 records state no license)"
    assert main(["export", "rrs", str(tmp_path / "plain")]) == 0
    assert f"Without {said}" in capsys.readouterr().out
    card = (tmp_path / "plain" / "README.md").read_text()
    assert "CC0-1.0, 1 of 4 records state no license" in card
    flags = ["--to=lmms-eval", "--config=su"]
    assert main(["export", "rrs", str(tmp_path / "tool"), *flags]) == 0
    assert said in capsys.readouterr().out


def test_the_card_shows_a_picture_of_each_task_with_the_answer_in_red(home):
    card = (home / "full" / "README.md").read_text()
    rows = {row["id"]: row for row in load_dataset("rrs", "all", split="test")}
    shown = re.findall(r"^### (\w+), [^`]+, `([^`]+)`\n\n!\[\1\]\((.+)\)$", card, re.MULTILINE)
    assert [task for task, *_ in shown] == [task.value for task in Task]
    assert card.count("## Examples") == 1
    for task, row_id, path in shown:
        row = rows[row_id]
        assert row["task"] == task
        with Image.open(home / "full" / path) as image:
            pixels = np.asarray(image.convert("RGB")).astype(int)
        width = row["size_hw"][1]
        assert pixels.shape[1] == 640
        if task in ("VG", "OR"):
            # The top edge of the right box, or of what is covered.
            boxes = [row["box_xyxy"]] if task == "VG" else row["evidence"]["occluded_xyxy"]
            x1, y1, x2, _ = np.asarray(boxes[0]) * (640 / width)
            assert (pixels[round(y1) + 1, round((x1 + x2) / 2)] - (255, 0, 0)).max() < 60
        if task == "RS":
            runs = json.loads(row["mask_rle"])
            mask = coco_mask.decode(runs | {"counts": runs["counts"].encode()}).astype(bool)
            assert mask.shape == pixels.shape[:2]
            plain_pixels = np.asarray(row["images"][0].convert("RGB")).astype(int)
            redder = (pixels - plain_pixels)[..., 0] > 40
            assert redder[mask].mean() > 0.7
            assert redder[~mask].mean() < 0.01


def test_the_card_shows_words_alone_where_no_picture_may_be_shown(home, tmp_path):
    assert main(["export", "rrs", str(tmp_path / "none"), "--pictures=none"]) == 0
    assert not (tmp_path / "none" / "examples").exists()
    card = (tmp_path / "none" / "README.md").read_text()
    assert card.count("The picture itself stays with its source.") == len(Task)
    assert "](examples/" not in card
    assert "> What type of scene does this image show?" in card


def test_attach_refuses_a_picture_that_was_changed(home, tmp_path, capsys):
    folder = shutil.copytree(home / "lean", tmp_path / "lean")
    sites = shutil.copytree(home / "sites", tmp_path / "sites")
    changed = next(sites.rglob("*.bmp"))
    changed.write_bytes(changed.read_bytes()[:-1] + b"\x7f")
    before = (folder / SURVEY).read_bytes()
    assert main(["attach", str(folder), f"--pictures={sites}"]) == 2
    assert f"not the picture that was used ({changed.name})" in capsys.readouterr().err
    assert (folder / SURVEY).read_bytes() == before


def test_no_path_of_the_machine_goes_out(home):
    for name in ("full", "lean"):
        for path in (home / name).rglob("*"):
            if path.is_file():
                assert str(home).encode() not in path.read_bytes(), path


@pytest.mark.parametrize("name", ["full", "lean"])
def test_exports_and_builds_hold_what_they_say(home, name, capsys):
    assert main(["verify", "rrs", "--pictures"]) == 0
    assert main(["verify", str(home / name), "--pictures"]) == 0
    assert capsys.readouterr().out.count("all is well") == 2


def change(folder, path, column, corrupt, row=0):
    """Change a cell of a Parquet file, and note the new file as if it were the one written."""
    table = pq.read_table(folder / path)
    values = table[column].to_pylist()
    values[row] = corrupt(copy.deepcopy(values[row]))
    field = table.schema.field(column)
    index = table.column_names.index(column)
    pq.write_table(table.set_column(index, field, pa.array(values, field.type)), folder / path)
    data = (folder / path).read_bytes()
    noted = json.loads((folder / "export.json").read_text())
    for s in noted["sets"]:
        if path.startswith(f"{s['folder']}/"):
            s["files"][0] |= {"num_bytes": len(data), "sha256": sha256(data).hexdigest()}
    (folder / "export.json").write_text(json.dumps(noted))


CHANGES = {
    "id": lambda v: f"{v}x",
    "dimension": lambda v: f"{v}x",
    "sub_dimension": lambda v: f"{v}x",
    "task": lambda v: "IC",
    "answer_type": lambda v: "text",
    "question": lambda v: f"{v}?",
    "options": lambda v: v[::-1],
    "answer": lambda v: "ABCDA"["ABCD".index(v) + 1],
    "answer_index": lambda v: (v + 1) % 4,
    "references": lambda v: [*v, "x"],
    "box_xyxy": lambda v: [0.0, 0.0, 1.0, 1.0],
    "mask_rle": lambda v: f"{v}x",
    "size_hw": lambda v: v[::-1],
    "clean_id": lambda v: "x",
    "corruption": lambda v: "occlusion",
    "severity": lambda v: v + 1,
    "evidence": lambda v: v | {"text": "x"},
    "source": lambda v: "x",
    "group_id": lambda v: "x",
}


def test_changes_are_of_every_column():
    assert set(CHANGES) == set(FEATURES) - {"images"}


@pytest.mark.parametrize("column", CHANGES)
def test_each_corrupted_column_is_seen(home, column, tmp_path, capsys):
    folder = shutil.copytree(home / "full", tmp_path / "full")
    rows = pq.read_table(folder / DEMO, columns=["task"])["task"].to_pylist()
    change(folder, DEMO, column, CHANGES[column], rows.index("SU"))
    assert main(["verify", str(folder)]) == 2
    said = capsys.readouterr()
    assert "does not hold what it says" in said.err
    assert ": fingerprint: " in said.out
    assert ": files: " not in said.out


@pytest.mark.parametrize("column", ["file_name", "sha256"])
def test_another_name_of_a_picture_is_seen(home, column, tmp_path, capsys):
    folder = shutil.copytree(home / "lean", tmp_path / "lean")
    change(folder, SURVEY, column, lambda names: ["0" * 64] * len(names))
    assert main(["verify", str(folder)]) == 2
    assert f": {column}: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("corrupt", "says"),
    [
        pytest.param(
            lambda of: [of[0] | {"bytes": of[0]["bytes"] + b"\0"}],
            "not the picture of the build",
            id="another",
        ),
        pytest.param(lambda of: of + of, "expected 1 pictures, got 2", id="one more"),
        pytest.param(lambda of: [], "the picture is not in the file", id="none"),
    ],
)
def test_other_pictures_are_seen_when_pictures_are_hashed(home, corrupt, says, tmp_path, capsys):
    folder = shutil.copytree(home / "full", tmp_path / "full")
    rows = pq.read_table(folder / DEMO, columns=["task"])["task"].to_pylist()
    change(folder, DEMO, "images", corrupt, rows.index("SU"))
    assert main(["verify", str(folder)]) == 0
    assert main(["verify", str(folder), "--pictures"]) == 2
    said = capsys.readouterr().out
    assert ": images: " in said
    assert says in said


def test_a_picture_that_changed_or_is_gone_since_the_build_is_seen(home, tmp_path, capsys):
    path = next((home / "sites").rglob("*.png"))
    kept = shutil.copy(path, tmp_path)
    try:
        path.write_bytes(path.read_bytes() + b"\0")
        assert main(["verify", "rrs"]) == 0
        assert main(["verify", "rrs", "--pictures"]) == 2
        assert f": images: {path} " in capsys.readouterr().out
        path.unlink()
        assert main(["verify", "rrs"]) == 2
        assert f"there is no file {path}" in capsys.readouterr().out
    finally:
        shutil.move(kept, path)


def test_pictures_that_are_only_named_are_compared_with_those_that_are_there(home, tmp_path):
    found = tmp_path / "shared.csv"
    pictures = home / "sites" / "pictures"
    assert main(["overlap", str(home / "lean"), str(pictures), f"--out={found}"]) == 1
    gray = [path.name for path in pictures.glob("*.bmp")]
    assert gray
    assert all(name in found.read_text() for name in gray)


def test_a_corrupted_copy_that_was_exchanged_is_named(home, tmp_path, capsys):
    folder = shutil.copytree(home / "full", tmp_path / "exchanged")
    found = pq.read_table(folder / DEMO, columns=["id", "task", "images"]).to_pylist()
    noisy = [i for i, row in enumerate(found) if row["task"] in ("NR", "OR")]
    change(folder, DEMO, "images", lambda _: found[noisy[1]]["images"], noisy[0])
    assert main(["verify", str(folder), "--pictures"]) == 2
    row_id = found[noisy[0]]["id"]
    assert f"{row_id}: images: it is not the picture of the build" in capsys.readouterr().out
