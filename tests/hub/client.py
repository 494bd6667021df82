"""What runs in a process of its own, with the test Hub as its Hub.

The libraries read their settings when they are first imported, and the other tests want them
offline. So a pool of one process runs the functions of this module; nothing heavy is imported
before ``start`` has set the environment.
"""

import contextlib
import hashlib
import io
import json
import os
import sys
from pathlib import Path
from unittest import mock

TOKEN = "hf_WriterOfTheTests"
READER = "hf_ReaderOfTheTests"
STRANGER = "hf_StrangerOfTheTests"


def environment(endpoint, home):
    """The settings of a client of the Hub, for this process or a new one."""
    return {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(home),
        "HF_TOKEN": TOKEN,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def start(endpoint, home):
    os.environ.update(environment(endpoint, home))
    # A new process takes over the parent's path, and with it the metrics that were loaded there.
    sys.path[:] = [path for path in sys.path if not Path(path, "evaluate_modules").is_dir()]
    import datasets
    import yaml

    datasets.config.USE_PARQUET_EXPORT = False
    datasets.utils.logging.set_verbosity_error()
    # Cards of 49 configs are parsed by several libraries, several times; only quicker.
    yaml.SafeLoader, yaml.SafeDumper = yaml.CSafeLoader, yaml.CSafeDumper


@contextlib.contextmanager
def cache_of(path):
    import datasets

    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = Path(path)
    try:
        yield
    finally:
        datasets.config.HF_DATASETS_CACHE = before


@contextlib.contextmanager
def offline():
    import datasets
    from huggingface_hub import constants

    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = False


def soubench(*arguments, cache, token=TOKEN, shard_bytes=None, xet=False):
    """Run a command; return status, what it printed, what it complained, how long it waited."""
    from huggingface_hub import constants

    from soubench.builders.publishing import picture_parquet
    from soubench.cli import main

    waits = []
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(cache_of(cache))
        stack.enter_context(mock.patch("time.sleep", waits.append))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(mock.patch.dict(os.environ, {"HF_TOKEN": token or ""}))
        stack.enter_context(mock.patch.object(constants, "HF_HUB_DISABLE_XET", not xet))
        if shard_bytes:
            stack.enter_context(mock.patch.object(picture_parquet, "SHARD_BYTES", shard_bytes))
            stack.enter_context(mock.patch.object(picture_parquet, "ROW_GROUP_BYTES", 1))
        status = main([str(argument) for argument in arguments])
    return status, out.getvalue(), err.getvalue(), waits


def digests(path, config, *, cache=None, built=False, token=TOKEN, **options):
    """Load a config; return its features, and split -> number of rows, hash of rows and pixels."""
    import datasets

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, {"HF_TOKEN": token or ""}))
        if cache is not None:
            stack.enter_context(cache_of(cache))
        if built:
            stack.enter_context(offline())
        loaded = datasets.load_dataset(path, config, **options)
        found = {split: _digest(rows) for split, rows in loaded.items()}
    features = next(iter(loaded.values())).features
    return json.dumps(features.to_dict(), sort_keys=True), found


def _digest(rows):
    digest, n, pictures = hashlib.sha256(), 0, 0
    for row in rows:
        if images := row.get("images") or [row["image"]] * (row.get("image") is not None):
            row["images" if "images" in row else "image"] = [
                [image.size, hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()]
                for image in images
            ]
            pictures += 1
        digest.update(json.dumps(row, sort_keys=True).encode())
        n += 1
    return n, pictures, digest.hexdigest()


def push_plainly(name, config, repo_id, as_config, *, cache):
    """What a user does who does not know `soubench push`."""
    import datasets

    with cache_of(cache):
        with offline():
            loaded = datasets.load_dataset(name, config)
        loaded.push_to_hub(repo_id, as_config)


def config_names(repo_id):
    import datasets

    return datasets.get_dataset_config_names(repo_id)


def download(repo_id, folder):
    from huggingface_hub import snapshot_download

    snapshot_download(repo_id, repo_type="dataset", local_dir=folder)


def check_card(repo_id, revision=None):
    """Run the checks of `DatasetCard`; return the data of its head."""
    from huggingface_hub import DatasetCard, hf_hub_download

    path = hf_hub_download(repo_id, "README.md", repo_type="dataset", revision=revision)
    card = DatasetCard.load(path)
    card.validate()
    return card.data.to_dict()


def run_python(code, *, cache=None, folder):
    """Run a snippet of a card in an empty folder; return its names as text."""
    names = {}
    with contextlib.chdir(folder), contextlib.ExitStack() as stack:
        if cache is not None:
            stack.enter_context(cache_of(cache))
        exec(code, names)
    return {name: str(value) for name, value in names.items() if not name.startswith("__")}


def export(name, folder, *, cache):
    from soubench.builders.publishing.export import export_dataset

    export_dataset(name, Path(folder), cache_dir=Path(cache), have_the_right=True)
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in Path(folder).rglob("*.parquet")
    }


# Builds


def build_sou_vqa(home):
    from soubench.builders.demo_scenes import write_demo_sources
    from soubench.builders.sou.build import BuildOptions
    from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa as build

    roots = write_demo_sources(home / "sources", pictures=3)
    build("all", roots, BuildOptions(pictures=2), cache_dir=home / "cache")
    # Another build, of one scenario: with other rows under the names of the first.
    one = {"soda-d": roots["soda-d"]}
    build("driving", one, BuildOptions(pictures=3, seed=7), cache_dir=home / "driving")


def build_sou_train(home):
    from soubench.builders.demo_scenes import write_demo_source
    from soubench.builders.sou.build import BuildOptions
    from soubench.dataset_scripts.sou_train.sou_train import build_sou_train as build

    root = write_demo_source("visdrone", home / "training", pictures=2, train_pictures=2)
    build("a-visdrone", {"visdrone": root}, BuildOptions(), cache_dir=home / "cache")


def build_my_set(home):
    sys.path.append(str(Path(__file__).parents[1] / "dataset_scripts"))
    from detection_sets import drawn_scenes, write_coco

    from soubench.builders.sou.build import BuildOptions
    from soubench.dataset_scripts.detection.detection import build_detection

    categories = ("ship", "plane", "car", "bridge")
    for i, split in enumerate(("train", "val")):
        write_coco(home / "coco", split, drawn_scenes(3, categories, first=50 * i), categories)
    build_detection(
        "my-set", "coco", home / "coco", BuildOptions(pictures="all"), cache_dir=home / "cache"
    )


def build_primitive_shapes(home):
    from soubench.builders.shapes.build import ShapesOptions
    from soubench.builders.shapes.sampler import SPLITS
    from soubench.dataset_scripts.primitive_shapes.primitive_shapes import (
        build_primitive_shapes as build,
    )

    pictures = dict.fromkeys(SPLITS, 1) | {"train": 3}
    build(ShapesOptions(pictures=pictures), cache_dir=home / "cache")


def build_plant_leaves(home):
    from soubench.builders.demo_plants import write_demo_plants
    from soubench.dataset_scripts.plant_leaves.plant_leaves import build_plant_leaves as build

    build(write_demo_plants(home / "plants"), cache_dir=home / "cache")


def build_rrs(home):
    from soubench.builders.demo_rrs import write_demo_records
    from soubench.builders.rrs.build import RrsOptions
    from soubench.dataset_scripts.rrs.rrs import build_rrs_dataset as build

    records = write_demo_records(home / "sites", sites=6, pairs=1)
    build(records, {}, RrsOptions(distractors="random"), cache_dir=home / "cache")


BUILDS = (
    build_sou_vqa,
    build_sou_train,
    build_my_set,
    build_primitive_shapes,
    build_plant_leaves,
    build_rrs,
)


def build_all(home):
    import datasets

    datasets.disable_progress_bars()
    with contextlib.redirect_stderr(io.StringIO()):
        for build in BUILDS:
            build(home)


def xet_hashes(contents, folder):
    """Return SHA-256 -> the hash that hf_xet has for a content."""
    import hf_xet

    paths = {digest: Path(folder) / digest for digest in contents}
    for digest, path in paths.items():
        path.write_bytes(contents[digest])
    files = hf_xet.hash_files([str(path) for path in paths.values()])
    return {digest: file.hash for digest, file in zip(paths, files, strict=True)}


# Spaces


def run_app(folder):
    """Start an app of a Space without Gradio; return the number of its outputs, and what it said.

    Gradio itself is not among what the tests need; what the app asks of it is.
    """
    import runpy
    from types import SimpleNamespace

    apps = []

    def interface(fn, inputs, outputs, **more):
        apps.append(SimpleNamespace(fn=fn, inputs=inputs, outputs=outputs))
        return apps[-1]

    def widget(value=None, **more):
        return SimpleNamespace(value=value)

    widgets = dict.fromkeys(
        ("Textbox", "Number", "JSON", "Label", "Image", "Dropdown", "Slider"), widget
    )
    sys.modules["gradio"] = SimpleNamespace(Interface=interface, **widgets)
    try:
        runpy.run_path(str(Path(folder) / "app.py"))
        (app,) = apps
        said = app.fn(*(given.value for given in app.inputs))
    finally:
        del sys.modules["gradio"]
    outputs = app.outputs if isinstance(app.outputs, list) else [app.outputs]
    values = list(said) if len(outputs) > 1 else [said]
    return len(outputs), [str(value) for value in values]


def unmet(requirements):
    """Return the lines of a ``requirements.txt`` that this environment does not meet."""
    from importlib.metadata import PackageNotFoundError, version

    from packaging.requirements import Requirement

    missing = []
    for line in requirements.splitlines():
        if line.startswith("#"):
            continue
        needed = Requirement(line)
        try:
            if version(needed.name) not in needed.specifier:
                missing.append(line)
        except PackageNotFoundError:
            missing.append(line)
    return missing
