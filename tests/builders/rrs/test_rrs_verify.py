"""Verifying rrs: nothing to say of a build as it is, and something of every change."""

import copy
import json

import datasets
import pytest
from datasets import load_dataset

from soubench.builders.demo_rrs import write_demo_records
from soubench.builders.rrs.taxonomy import configs
from soubench.builders.rrs.verify import verify
from soubench.cli import main
from tests.builders.rrs.tiny_clip import write_tiny_clip


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Rows per config and the manifest of a build that was filtered by CLIP."""
    folder = tmp_path_factory.mktemp("rrs")
    clip = write_tiny_clip(folder / "tiny")
    records = write_demo_records(folder / "sites", sites=24, pairs=2)
    datasets.config.HF_DATASETS_CACHE = folder / "cache"
    assert main(["build", "rrs", f"--records={records}", f"--clip={clip}", "--workers=1"]) == 0
    (home,) = (folder / "cache" / "soubench" / "rrs").iterdir()
    tables = {
        name: load_dataset("rrs", name, split="test").remove_columns("images").to_list()
        for name in configs()
    }
    return tables, json.loads((home / "manifest.json").read_text())


def changed(tables, find, **columns):
    """Change the first row that fits in every config that has it."""
    (row_id, *_) = [row["id"] for row in tables["all"] if find(row)]
    found = copy.deepcopy(tables)
    for rows in found.values():
        for row in rows:
            if row["id"] == row_id:
                row.update({k: v(row[k]) if callable(v) else v for k, v in columns.items()})
    return found, row_id


def of(task):
    return lambda row: row["task"] == task


def evidence(**changes):
    return lambda old: old | changes


def test_a_build_as_it_is_has_no_problem(built):
    assert list(verify(*built)) == []


@pytest.mark.parametrize(
    ("find", "columns", "field"),
    [
        pytest.param(of("SU"), {"question": "What?"}, "fingerprint", id="question"),
        pytest.param(of("SU"), {"answer_index": lambda i: (i + 1) % 4}, "answer", id="letter"),
        pytest.param(
            of("UI"), {"options": lambda o: [f"{x} " if x == o[1] else o[1] for x in o]},
            "options", id="options alike",
        ),
        pytest.param(
            of("UI"), {"options": ["strolling", "resting", "a", "b"]}, "options", id="no pool"
        ),
        pytest.param(of("VG"), {"answer": "[1,2,3,4]"}, "answer", id="box"),
        pytest.param(of("VG"), {"box_xyxy": [1.0, 2.0, 900.0, 4.0]}, "box_xyxy", id="box outside"),
        pytest.param(of("RS"), {"size_hw": [640, 480]}, "answer", id="mask of another size"),
        pytest.param(of("OE"), {"answer": "maybe"}, "answer", id="neither yes nor no"),
        pytest.param(of("IC"), {"answer": "a picture"}, "answer", id="caption"),
        pytest.param(of("NR"), {"clean_id": "none"}, "clean_id", id="no clean row"),
        pytest.param(of("NR"), {"question": "What?"}, "question", id="not the clean question"),
        pytest.param(of("OR"), {"severity": 7}, "severity", id="severity"),
        pytest.param(
            of("OR"), {"evidence": evidence(occluded_xyxy=[[0.0, 0.0, 640.0, 480.0]])},
            "evidence", id="everything covered",
        ),
        pytest.param(of("SU"), {"corruption": "gaussian_noise"}, "fingerprint", id="corrupted SU"),
        pytest.param(of("HD"), {"sub_dimension": "perception-object"}, "sub_dimension", id="place"),
        pytest.param(of("TAI"), {"answer_type": "text"}, "answer_type", id="kind of answer"),
        pytest.param(of("CI"), {"task": "XY"}, "task", id="unknown task"),
    ],
)  # fmt: skip
def test_every_change_is_a_problem_of_its_field(built, find, columns, field):
    tables, manifest = built
    found, row_id = changed(tables, find, **columns)
    problems = list(verify(found, manifest))
    fields = {p.field for p in problems}
    assert field in fields
    assert "fingerprint" in fields
    # A corrupted row that was made of it is not what it was made of any more.
    made_of_it = {row["id"] for row in tables["all"] if row["clean_id"] == row_id}
    assert {p.row_id for p in problems if p.row_id} <= {row_id, *made_of_it}


def test_an_extreme_option_is_a_problem_without_any_model(built):
    tables, manifest = built
    row = next(r for r in tables["all"] if r["task"] == "SU")
    cosines = manifest["similarities"][
        manifest["pictures"][row["id"].rpartition("/")[0]][0]["sha256"]
    ]
    pool = manifest["head"]["pools"]["SU"]
    right = row["options"][row["answer_index"]]
    extreme = max((o for o in pool if o != right), key=cosines.get)
    options = [*row["options"]]
    options[(row["answer_index"] + 1) % 4] = extreme
    found, _ = changed(tables, lambda r: r["id"] == row["id"], options=options)
    assert any(p.field == "options" and extreme in p.message for p in verify(found, manifest))


def test_rows_that_are_gone_or_in_another_config_are_problems(built):
    tables, manifest = built
    fewer = {name: rows[1:] for name, rows in tables.items()}
    assert any(p.field == "fingerprint" for p in verify(fewer, manifest))
    assert any(p.field == "config" for p in verify(tables | {"vg": tables["su"]}, manifest))
    without = {name: rows for name, rows in tables.items() if name != "vg"}
    assert [p.field for p in verify(without, manifest)] == ["config"]
    assert [p.field for p in verify({"vg": tables["vg"]}, manifest)] == ["config"]


def test_a_manifest_that_lacks_a_picture_is_a_problem(built):
    tables, manifest = built
    fewer = manifest | {"pixels": {}}
    assert any(p.field == "fingerprint" for p in verify(tables, fewer))
