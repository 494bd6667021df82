"""A few drawn shapes to train on, as rows and as a build."""

import datasets
import pytest

from soubench.builders.shapes.build import ShapesOptions
from soubench.builders.shapes.sampler import SPLITS
from soubench.dataset_scripts.primitive_shapes.primitive_shapes import build_primitive_shapes


@pytest.fixture(scope="session")
def shapes_cache(tmp_path_factory):
    cache = tmp_path_factory.mktemp("shapes")
    sizes = dict.fromkeys(SPLITS, 1) | {"train": 24}
    build_primitive_shapes(ShapesOptions(pictures=sizes), cache_dir=cache)
    return cache


@pytest.fixture
def shapes(shapes_cache, monkeypatch):
    """The build where ``load_dataset`` and child processes find it."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", shapes_cache)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(shapes_cache))
    return shapes_cache
