"""Verification finds nothing in a good build, and something in each field that is corrupted."""

import copy
import json
import shutil
from pathlib import Path

import datasets
import pyarrow as pa
import pytest

from soubench.builders.demo_scenes import write_demo_source
from soubench.builders.sou.build import BuildOptions
from soubench.builders.sou.prompts import load_prompts
from soubench.builders.sou.verify import verify
from soubench.cli import main
from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa

PROMPTS = load_prompts()


@pytest.fixture(scope="module", params=["paper", "balanced"])
def built(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    roots = {
        name: write_demo_source(name, folder / name, pictures=6)
        for name in ("visdrone", "ai-tod", "soda-a")
    }
    options = BuildOptions(mode=request.param)
    report = build_sou_vqa("aerial", roots, options, cache_dir=folder / "cache")
    manifest = json.loads(Path(report["folder"], "manifest.json").read_text())
    (path,) = (folder / "cache/sou-vqa/aerial").rglob("*.arrow")
    rows = datasets.Dataset.from_file(str(path)).remove_columns("image").to_list()
    return folder / "cache", rows, manifest


def problems(rows, manifest):
    return list(verify(rows, manifest, PROMPTS))


def test_a_good_build_has_no_problem(built):
    _, rows, manifest = built
    assert problems(rows, manifest) == []


def first(rows, task):
    return next(row for row in rows if row["task"] == task)


def wrong_box(row):
    row["objects"]["box_xyxy"][0] = [v + 1 for v in row["objects"]["box_xyxy"][0]]


def other_letter(row):
    row["answer"] = (row["answer"] + 1) % 4


def equal_options(row):
    wrong = [i for i in range(4) if i != row["answer"]]
    row["options"][wrong[0]] = row["options"][wrong[1]]


def other_answer(row):
    row["answer_text"] = str(int(row["answer_text"]) + 1)
    row["options"][row["answer"]] = row["answer_text"]


def moved_point(row):
    row["evidence"]["point_xy"] = [0, 0]


def moved_mark(row):
    row["evidence"]["mark"] = [v + 40 for v in row["evidence"]["mark"]]


CORRUPTIONS = [
    pytest.param("OC", lambda r: r.update(id="x"), "id", id="id"),
    pytest.param("OC", lambda r: r.update(scenario="driving"), "scenario", id="scenario"),
    pytest.param("OC", lambda r: r.update(subset="a-soda"), "id", id="subset"),
    pytest.param("OC", lambda r: r.update(image_id="nobody"), "id", id="image_id"),
    pytest.param("OC", lambda r: r.update(group_id="nobody"), "group_id", id="group_id"),
    pytest.param("OC", lambda r: r.update(task="SCC"), "id", id="task"),
    pytest.param("OC", lambda r: r.update(task="XX"), "id", id="unknown task"),
    pytest.param("OC", lambda r: r.update(question="How many?"), "question", id="question"),
    pytest.param("POI", lambda r: r.update(question="Who?"), "question", id="poi question"),
    pytest.param("CE", lambda r: r.update(system_prompt=""), "system_prompt", id="system_prompt"),
    pytest.param("OC", equal_options, "options", id="equal options"),
    pytest.param(
        "CR", lambda r: r["options"].__setitem__(0, "cat"), "options", id="strange option"
    ),
    pytest.param("OC", other_letter, "answer", id="letter"),
    pytest.param("OC", other_answer, "answer_text", id="answer_text"),
    pytest.param("CE", wrong_box, "objects", id="box"),
    pytest.param(
        "CE", lambda r: r["objects"]["category"].__setitem__(0, "cat"), "objects", id="category"
    ),
    pytest.param(
        "CE", lambda r: r["objects"]["area_px"].__setitem__(0, 2000.0), "objects", id="area"
    ),
    pytest.param("OC", lambda r: r["evidence"]["objects"].pop(), "evidence", id="proof"),
    pytest.param(
        "CE", lambda r: r["evidence"].update(objects=[999]), "evidence", id="proof out of range"
    ),
    pytest.param("CR", moved_point, "evidence", id="point"),
    pytest.param("OL", moved_mark, "evidence", id="mark"),
    pytest.param(
        "POI", lambda r: r["evidence"].update(direction="inmost"), "evidence", id="direction"
    ),
    pytest.param(
        "SCC", lambda r: r["evidence"].update(category="cat"), "evidence", id="asked category"
    ),
]


@pytest.mark.parametrize(("task", "corrupt", "field"), CORRUPTIONS)
def test_each_corrupted_field_is_found_in_its_row_and_in_the_fingerprint(
    built, task, corrupt, field
):
    _, rows, manifest = built
    rows = copy.deepcopy(rows)
    row = first(rows, task)
    row_id = row["id"]
    corrupt(row)
    found = problems(rows, manifest)
    assert (found[0].row_id, found[0].field) == (row["id"], field), found[:3]
    assert row["id"] == "x" or row["id"] == row_id
    assert found[-1].field == "fingerprint"


def test_lost_pictures_and_rows_of_small_configs_are_found(built, capsys, tmp_path):
    cache, _, _ = built
    copied = tmp_path / "cache"
    shutil.copytree(cache, copied)
    datasets.config.HF_DATASETS_CACHE = copied
    (small,) = (copied / "sou-vqa/a-aitod-ce").rglob("*.arrow")
    (other,) = (copied / "sou-vqa/a-aitod-oc").rglob("*.arrow")
    shutil.copyfile(other, small)
    assert main(["verify", "sou-vqa"]) == 2
    assert "the rows of a-aitod-ce, test, are not those of" in capsys.readouterr().out
    lost = next(cache.rglob("*.ol.jpg"))
    content = lost.read_bytes()
    lost.unlink()
    assert main(["verify", "sou-vqa"]) == 2
    assert f"there is no file {lost}" in capsys.readouterr().out
    lost.write_bytes(content)


def test_missing_repeated_and_reordered_rows_are_found(built):
    _, rows, manifest = built
    for changed in (rows[1:], [*rows, rows[0]], rows[::-1]):
        assert "fingerprint" in {p.field for p in problems(changed, manifest)}
    assert problems([*rows, rows[0]], manifest)[0].message == "this id has come before"


def test_unbalanced_letters_are_found(built):
    _, rows, manifest = built
    rows = copy.deepcopy(rows)
    for row in rows:
        answer = row["options"].pop(row["answer"])
        row["options"].insert(0, answer)
        row["answer"] = 0
    assert {p.field for p in problems(rows, manifest)} == {"answer", "fingerprint"}


def test_the_command_says_what_is_wrong(built, capsys, tmp_path):
    cache, rows, _ = built
    copied = tmp_path / "cache"
    shutil.copytree(cache, copied)
    datasets.config.HF_DATASETS_CACHE = copied
    assert main(["verify", "sou-vqa"]) == 0
    assert f"{len(rows)} rows, all is well" in capsys.readouterr().out
    assert main(["verify", "sou-vqa", "--pictures"]) == 0
    (path,) = (copied / "sou-vqa/aerial").rglob("*.arrow")
    table = datasets.Dataset.from_file(str(path)).data.table
    ids = table["id"].to_pylist()
    ids[3] = "changed"
    table = table.set_column(0, "id", pa.array(ids))
    path.unlink()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert main(["verify", "sou-vqa"]) == 2
    captured = capsys.readouterr()
    assert "changed: id: expected" in captured.out
    assert "does not hold what it says" in captured.err
    (task,) = (copied / "sou-vqa/a-soda-ol").rglob("*.arrow")
    for damage in (b"", task.read_bytes()[:-200], b"x" * 5000):
        task.write_bytes(damage)
        assert main(["verify", "sou-vqa"]) == 2
        assert "damaged or missing" in capsys.readouterr().out
    (described,) = copied.rglob("manifest.json")
    for damage in ("{", "{}", "[]", '{"head": {}, "pictures": {}, "fingerprint": ""}'):
        described.write_text(damage)
        assert main(["verify", "sou-vqa"]) == 2
        assert "damaged" in capsys.readouterr().out
    datasets.config.HF_DATASETS_CACHE = tmp_path / "empty"
    assert main(["verify", "sou-vqa"]) == 2
    assert "is not built" in capsys.readouterr().err
