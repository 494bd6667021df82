"""Rows by name and by folder: one build has one fingerprint, and errors say what there is."""

import shutil
import socket
from pathlib import Path

import datasets
import pytest
from PIL import Image

from soubench.builders.demo_scenes import write_demo_source
from soubench.builders.errors import RunError
from soubench.builders.publishing.export import export_dataset
from soubench.builders.sou.build import BuildOptions
from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa
from soubench.inference.dataset_rows import open_rows
from soubench.inference.questions import question_of


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A small a-visdrone in a cache of its own, and its sources."""
    home = tmp_path_factory.mktemp("built")
    root = write_demo_source("visdrone", home / "visdrone", pictures=3)
    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = home / "cache"
    report = build_sou_vqa("a-visdrone", {"visdrone": root}, BuildOptions(pictures="all"))
    yield report, root
    datasets.config.HF_DATASETS_CACHE = before


def test_a_build_is_opened_by_name_without_the_network(built, monkeypatch):
    def no_network(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    loaded = open_rows("sou-vqa", "a-visdrone", None)
    assert (loaded.name, loaded.config, loaded.split) == ("sou-vqa", "a-visdrone", "test")
    assert loaded.fingerprint == built[0]["fingerprint"]
    assert len(loaded.rows) == 18
    assert loaded.picture_columns == ("image",)
    assert loaded.rows[0]["image"].size == (960, 540)
    assert set(loaded.undecoded()[0]["image"]) == {"path", "bytes"}
    assert "image" not in loaded.columns()[0]
    loaded.check_pictures()
    assert question_of(loaded.columns()[0]).answer in "ABCD"


def test_an_exported_folder_is_the_same_build(built, tmp_path):
    export_dataset("sou-vqa", tmp_path / "exported", have_the_right=True)
    named = open_rows("sou-vqa", "a-visdrone-oc", None)
    folder = open_rows(str(tmp_path / "exported"), "a-visdrone-oc", "test")
    assert folder.fingerprint == named.fingerprint
    assert (folder.name, folder.config) == (named.name, named.config)
    assert folder.rows["id"][:] == named.rows["id"][:]
    folder.check_pictures()


def test_rows_without_pictures_are_told_how_to_get_them(built, tmp_path):
    export_dataset("sou-vqa", tmp_path / "bare", pictures="none")
    loaded = open_rows(str(tmp_path / "bare"), "a-visdrone", None)
    with pytest.raises(RunError, match="soubench attach"):
        loaded.check_pictures()


def test_moved_pictures_are_noticed(built, tmp_path):
    loaded = open_rows("sou-vqa", "a-visdrone", None)
    moved = Path(tmp_path / "elsewhere")
    shutil.move(built[1], moved)
    try:
        with pytest.raises(RunError, match=r"is not there any more\. Put the folder .*visdrone"):
            loaded.check_pictures()
    finally:
        shutil.move(moved, built[1])


@pytest.mark.parametrize(
    ("dataset", "config", "split", "says"),
    [
        ("sou-vqa", "aerial", None, "configs that are built .*a-visdrone-ce.*got 'aerial'"),
        ("sou-vqa", None, None, "none was given"),
        ("sou-vqa", "a-visdrone", "train", "no split 'train'. Choose one of test"),
        ("sou-vqaa", "aerial", None, "found none. Build it"),
        ("./sou-vqa", "aerial", None, "there is no such folder"),
    ],
)
def test_what_is_not_there_is_an_error_that_lists_what_is(built, dataset, config, split, says):
    with pytest.raises(RunError, match=says):
        open_rows(dataset, config, split)


def write_parquet(folder, split="validation", **columns):
    folder.mkdir(exist_ok=True)
    rows = {"question": ["Q1", "Q2"], "options": [["x", "y"]] * 2, "answer": ["A", "B"], **columns}
    datasets.Dataset.from_dict(rows).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return folder


def test_an_id_that_is_missing_is_told(tmp_path):
    folder = write_parquet(tmp_path / "mine", id=["a", None])
    with pytest.raises(RunError, match="in every row; the one at index 1 has none"):
        open_rows(str(folder), None, None)


@pytest.mark.parametrize("pictures", [[], None], ids=["empty", "null"])
def test_a_row_without_any_of_its_pictures_is_noticed(pictures, tmp_path):
    folder = write_parquet(tmp_path / "mine", images=[[Image.new("RGB", (8, 8))], pictures])
    with pytest.raises(RunError, match="without their pictures, such as validation-000001"):
        open_rows(str(folder), None, None).check_pictures()


def test_any_folder_with_the_columns_will_do(tmp_path):
    folder = write_parquet(tmp_path / "mine")
    loaded = open_rows(str(folder), None, None)
    assert (loaded.name, loaded.config, loaded.split) == ("mine", "default", "validation")
    assert loaded.rows["id"][:] == ["validation-000000", "validation-000001"]
    assert [question_of(row).answer for row in loaded.rows] == ["A", "B"]
    moved = write_parquet(tmp_path / "copy")
    assert open_rows(str(moved), None, None).fingerprint == loaded.fingerprint
    other = write_parquet(tmp_path / "other", answer=["B", "B"])
    assert open_rows(str(other), None, None).fingerprint != loaded.fingerprint


def test_of_two_splits_one_must_be_named(tmp_path):
    folder = write_parquet(tmp_path / "mine", "train")
    write_parquet(folder, "validation")
    with pytest.raises(RunError, match="one of train, validation"):
        open_rows(str(folder), None, None)
    write_parquet(folder, "test")
    assert open_rows(str(folder), None, None).split == "test"


def test_ids_must_differ(tmp_path):
    folder = write_parquet(tmp_path / "mine", id=[7, 7])
    with pytest.raises(RunError, match="'7' occurs several times"):
        open_rows(str(folder), None, None)
