"""Small builds with every kind of answer, and one to train on."""

import datasets
import pytest

from soubench.builders.demo_rrs import write_demo_records
from soubench.builders.demo_scenes import write_demo_source
from soubench.builders.rrs.build import RrsOptions
from soubench.cli import main
from soubench.dataset_scripts.rrs.rrs import build_rrs_dataset


@pytest.fixture(scope="session")
def training_cache(tmp_path_factory):
    """A cache with sou-train's VisDrone subset."""
    pytest.importorskip("imagehash", reason="near-duplicates need soubench[overlap]")
    home = tmp_path_factory.mktemp("training")
    root = write_demo_source("visdrone", home, pictures=2, train_pictures=6)
    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = home / "cache"
    try:
        flags = [f"--source=visdrone={root}", "--workers=1"]
        assert main(["build", "sou-train", "a-visdrone", *flags]) == 0
    finally:
        datasets.config.HF_DATASETS_CACHE = before
    return home / "cache"


@pytest.fixture
def training(training_cache, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", training_cache)
    return training_cache


@pytest.fixture(scope="session")
def rrs_cache(tmp_path_factory):
    """A cache with all tasks of rrs: every kind of answer, one and two pictures."""
    home = tmp_path_factory.mktemp("rrs")
    records = write_demo_records(home / "sites", sites=6, pairs=2)
    build_rrs_dataset(
        records, {}, RrsOptions(distractors="random", workers=1), cache_dir=home / "cache"
    )
    return home / "cache"


@pytest.fixture
def rrs(rrs_cache, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", rrs_cache)
    return rrs_cache
