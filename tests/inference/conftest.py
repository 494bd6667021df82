"""Small builds, tiny models and a server that misbehaves, each made once."""

import json
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import datasets
import pytest

from soubench.builders.demo_scenes import write_demo_source
from soubench.builders.shapes.build import ShapesOptions
from soubench.builders.shapes.sampler import SPLITS
from soubench.builders.sou.build import BuildOptions
from soubench.dataset_scripts.primitive_shapes.primitive_shapes import build_primitive_shapes
from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa


@pytest.fixture(scope="session")
def small_cache(tmp_path_factory):
    """A cache with three aerial subsets of four pictures each and a few drawn shapes."""
    home = tmp_path_factory.mktemp("small")
    roots = {
        source: write_demo_source(source, home / source, pictures=4)
        for source in ("visdrone", "ai-tod", "soda-a")
    }
    build_sou_vqa("aerial", roots, BuildOptions(pictures="all"), cache_dir=home / "cache")
    shapes = ShapesOptions(pictures=dict.fromkeys(SPLITS, 3))
    build_primitive_shapes(shapes, cache_dir=home / "cache")
    return home / "cache"


@pytest.fixture
def built(small_cache, monkeypatch):
    """The small builds, where ``load_dataset`` and child processes find them."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", small_cache)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(small_cache))
    return small_cache


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory):
    """Return a function that gives the folder of a tiny model, made when first asked for."""
    from tests.inference.tiny_vlm import save_tiny_vlm

    made = {}

    def get(kind="llava", **options):
        key = (kind, *sorted(options.items()))
        if key not in made:
            made[key] = save_tiny_vlm(tmp_path_factory.mktemp(kind) / "model", kind, **options)
        return made[key]

    return get


class Stub:
    """A running stub server."""

    def __init__(self, process):
        self.process = process
        self.port = int(process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def stats(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats") as answer:
            return json.load(answer)


@pytest.fixture
def stub_server():
    """Return a context manager that runs a server with a plan, see ``stub_server.py``."""

    @contextmanager
    def run(**plan):
        script = Path(__file__).with_name("stub_server.py")
        process = subprocess.Popen(
            [sys.executable, str(script), json.dumps(plan)], stdout=subprocess.PIPE, text=True
        )
        try:
            yield Stub(process)
        finally:
            process.kill()
            process.communicate()

    return run
