"""Rare remote sensing: 20 leaf tasks, with configs per task, per sub-dimension, and for all.

``datasets`` runs no scripts from the Hub any more: ``soubench build rrs`` prepares these configs
into the local cache, where ``load_dataset("rrs", "vg")`` finds them by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Features, Image, List, Value

from soubench.builders.publishing.dataset_cache import build_folder, staging
from soubench.builders.rrs.build import (
    RrsOptions,
    SourceFolder,
    build_rrs,
    manifest,
    rows_of,
)
from soubench.builders.rrs.clip import SIMILARITIES_FILE
from soubench.builders.rrs.report import card_text, report, report_text, task_table
from soubench.builders.rrs.taxonomy import LEAF_TASKS, SUB_DIMENSIONS, configs
from soubench.dataset_scripts.prepared import (
    PreparedTables,
    datasets_cache,
    prepare_and_publish,
    write_card,
)

__all__ = ["FEATURES", "NAME", "VERSION", "Rrs", "build_rrs_dataset", "report_text"]

NAME = "rrs"
VERSION = "1.0.0"
PACKAGE = "soubench.dataset_scripts.rrs"
BATCH_ROWS = 1000
"""Rows hold paths of pictures, not bytes."""
TASKS_MARKER = "<!-- tasks -->"

FEATURES = Features(
    {
        "id": Value("string"),
        "images": List(Image()),
        "dimension": Value("string"),
        "sub_dimension": Value("string"),
        "task": Value("string"),
        "answer_type": Value("string"),
        "question": Value("string"),
        "options": List(Value("string")),
        "answer": Value("string"),
        "answer_index": Value("int32"),
        "references": List(Value("string")),
        "box_xyxy": List(Value("float64")),
        "mask_rle": Value("string"),
        "size_hw": List(Value("int32"), length=2),
        "clean_id": Value("string"),
        "corruption": Value("string"),
        "severity": Value("int32"),
        "evidence": {
            "text": Value("string"),
            "target": Value("string"),
            "pool": Value("string"),
            "also_true": List(Value("string")),
            "boxes_xyxy": List(List(Value("float64"), length=4)),
            "occluded_xyxy": List(List(Value("float64"), length=4)),
            "provenance": Value("string"),
            "human_verified": Value("bool"),
        },
        "source": Value("string"),
        "group_id": Value("string"),
    }
)


def _configs() -> list[datasets.BuilderConfig]:
    """Return a config per leaf task and sub-dimension, and one for all."""
    told = {leaf.config: leaf.title for leaf in LEAF_TASKS.values()}
    told |= {name: sub.title for name, sub in SUB_DIMENSIONS.items()}
    return [
        datasets.BuilderConfig(
            name=name, version=VERSION, description=told.get(name, "All 20 leaf tasks")
        )
        for name in configs()
    ]


class Rrs(PreparedTables):
    """One split, ``test``, in 28 configs."""

    NAME = NAME
    PACKAGE = PACKAGE
    VERSION = datasets.Version(VERSION)
    FEATURES = FEATURES
    BUILDER_CONFIGS = _configs()


def _tables(table: pa.Table, tasks: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of some leaf tasks, some at a time."""
    chosen = table.filter(pc.is_in(table["task"], pa.array(list(tasks), pa.string())))
    for batch in chosen.to_batches(max_chunksize=BATCH_ROWS):
        yield pa.Table.from_batches([batch])


def build_rrs_dataset(
    records: Path | None,
    folders: Mapping[str, SourceFolder],
    options: RrsOptions,
    *,
    cache_dir: Path | None = None,
) -> dict[str, Any]:
    """Build all rows and put every config that has any into the datasets cache.

    Args:
        records: A file of records or a folder of them.
        folders: Name of a reader -> the label set that it reads.
        options: What the user chose.
        cache_dir: The datasets cache; by default that of ``datasets``.

    Returns:
        The report, see ``soubench.builders.rrs.report.report``, with ``configs`` (names that can be
        loaded), ``report_file`` and ``folder`` (which holds the card) added.

    Raises:
        FormatError: Records or labels are not what their reader expects.
        BuildError: An option makes no sense, CLIP is not there, or no row is left.
        PublishError: The cache cannot be written.
    """
    cache = datasets_cache(cache_dir)
    with staging(cache) as staged:
        pictures = staged / "build" / "pictures"
        result = build_rrs(VERSION, records, folders, options, pictures)
        data = report(result)
        final = build_folder(cache, NAME, result.fingerprint) / "pictures"
        there = {row.task for row in result.rows}
        # 28 configs select from the same rows, which become Arrow once.
        table = pa.Table.from_pylist(list(rows_of(result, final)), schema=FEATURES.arrow_schema)
        named = {
            name: {"test": partial(_tables, table, tasks)}
            for name, tasks in configs().items()
            if there.intersection(tasks)
        }
        shown = [picture.path(pictures) for site in result.sites for picture in site.pictures]
        write_card(PACKAGE, staged / "build", {"test": shown}, card_text(data))
        card = staged / "build" / "README.md"
        text = card.read_text(encoding="utf-8").replace(TASKS_MARKER, "\n".join(task_table()))
        card.write_text(text, encoding="utf-8")
        for name in ("CITATION.bib", "RELEASE_NOTES.md"):
            (staged / "build" / name).write_bytes((files(PACKAGE) / name).read_bytes())
        if result.similarities is not None:
            result.similarities.save(staged / "build" / SIMILARITIES_FILE)
        return prepare_and_publish(
            Rrs,
            named,
            data,
            report_text(data),
            manifest=manifest(result),
            fingerprint=result.fingerprint,
            staged=staged,
            cache=cache,
            replaced=configs(),
        )
