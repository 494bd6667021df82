"""Scored runs as ``soubench score`` leaves them, put together by the rows that they answer."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soubench.builders.errors import RunError
from soubench.inference.dataset_rows import LoadedRows, open_rows
from soubench.inference.run_folder import Description

SCORES_FILE = "scores.json"
VERDICTS_FILE = "verdicts.jsonl"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of ``verdicts.jsonl``: what came of one row and rotation.

    Attributes:
        id: The row.
        rotation: By how many places its options were rotated.
        scenario: Of the row; empty where it has none.
        subset: Of the row; empty where it has none.
        task: Of the row; empty where it has none.
        group_id: What the row's picture belongs together with.
        reply: What the model said; None after an error.
        parsed: What was read from it; None where that was nothing.
        right: Share right from 0 to 1, or the value of the task's metric.
        unparsed: Whether nothing could be read from the reply.
        error: Why there is no reply.
        object_area_px: Area of the object that was asked about in px², where there is one.
        model_area_px: The same after the model's own resize, where known.
    """

    id: str
    rotation: int
    scenario: str
    subset: str
    task: str
    group_id: str
    reply: str | None
    parsed: Any
    right: float
    unparsed: bool
    error: str | None
    object_area_px: float | None
    model_area_px: float | None


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run with its scores.

    Attributes:
        path: Where its scores lie.
        name: The model, with what sets this run apart from plain ones.
        scores: What ``scores.json`` holds.
        verdicts: What came of each row.
    """

    path: Path
    name: str
    scores: Mapping[str, Any]
    verdicts: Sequence[Verdict]

    @property
    def description(self) -> Description:
        """What ``run.json`` said of the run."""
        return dict(self.scores["run"])

    @property
    def model(self) -> str:
        """Name of the model."""
        model = str((self.description.get("model") or {}).get("name") or self.path.name)
        # The folder of a local model says enough; its whole path says too much.
        return Path(model).name if Path(model).is_absolute() else model

    @property
    def marks(self) -> tuple[str, ...]:
        """What must not be overlooked beside a score of this run."""
        return marks_of_run(self.description)


@dataclass(frozen=True, slots=True)
class Section:
    """Runs that answered rows of the same build.

    Attributes:
        name: Dataset, config and split.
        dataset: What ``run.json`` says of it.
        loaded: The rows.
        runs: The runs, in the order in which they were given.
    """

    name: str
    dataset: Mapping[str, Any]
    loaded: LoadedRows
    runs: list[ScoredRun] = field(default_factory=list)

    @property
    def rows_differ(self) -> bool:
        """Whether the runs answered different rows."""
        asked = [{(v.id, v.rotation) for v in run.verdicts} for run in self.runs]
        return any(one != asked[0] for one in asked[1:])


def read_scored(path: Path) -> ScoredRun:
    """Read what ``soubench score`` wrote.

    Args:
        path: The RUN folder, or the folder that was given to ``soubench score --out``.

    Raises:
        RunError: The run was not scored, or a file of it is damaged.
    """
    scores = _read_json(path / SCORES_FILE, path)
    return ScoredRun(path, "", scores, tuple(_read_verdicts(path / VERDICTS_FILE)))


def _read_json(file: Path, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(
            f"{path}: expected a scored run with a {SCORES_FILE}. Run soubench score {path} first."
        ) from error
    except (OSError, ValueError) as error:
        raise RunError(f"{file}: the scores cannot be read ({error}). Score the run again.") from (
            error
        )
    return data if isinstance(data, dict) else {}


def _read_verdicts(file: Path) -> Iterable[Verdict]:
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise RunError(
            f"{file}: the verdicts cannot be read ({error.strerror}). Score the run again."
        ) from error
    for number, line in enumerate(lines, 1):
        try:
            data = json.loads(line)
            yield Verdict(**{name: data.get(name) for name in Verdict.__slots__})
        except (ValueError, AttributeError) as error:
            raise RunError(
                f"{file}, line {number}: expected a verdict as JSON, found {line[:60]!r} "
                f"({error}). Score the run again."
            ) from error


def marks_of_run(description: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what sets a run apart from a plain one: blind, circular, frame, shard, limit."""
    marks = []
    if description.get("blind"):
        marks.append("blind")
    if description.get("circular"):
        marks.append("circular")
    if description.get("coords") not in (None, "pixel"):
        marks.append(f"coords {description['coords']}")
    if description.get("limit") is not None:
        marks.append(f"{description['limit']:,} rows")
    if str(description.get("shard", "0/1")) != "0/1":
        marks.append(f"shard {description['shard']}")
    return tuple(marks)


def named(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Name runs by their models, with marks; by their folders too where that is not enough."""
    plain = []
    for run in runs:
        plain.append(f"{run.model} ({', '.join(run.marks)})" if run.marks else run.model)
    return [
        ScoredRun(
            run.path,
            name if plain.count(name) == 1 else f"{name} [{run.path.name}]",
            run.scores,
            run.verdicts,
        )
        for run, name in zip(runs, plain, strict=True)
    ]


def sections_of(runs: Sequence[ScoredRun], dataset: str | None = None) -> list[Section]:
    """Put runs over the same build together, and open its rows.

    Scores over different builds must not stand in one table: pictures, options or letters differ.

    Args:
        runs: The runs, in order.
        dataset: Where the rows are, if not where ``run.json`` says; for runs over one dataset.

    Raises:
        RunError: The rows are not there, or are not those that were asked.
    """
    groups: dict[tuple[str, ...], list[ScoredRun]] = {}
    for run in runs:
        described = run.description["dataset"]
        key = tuple(str(described[name]) for name in ("name", "config", "split", "fingerprint"))
        groups.setdefault(key, []).append(run)
    if dataset is not None and len(groups) > 1:
        raise RunError(
            f"--dataset {dataset}: the runs are over {len(groups)} datasets, and this is one."
        )
    sections = []
    for (name, config, split, fingerprint), members in groups.items():
        described = members[0].description["dataset"]
        loaded = open_rows(dataset or described.get("source") or name, config, split)
        if loaded.fingerprint != fingerprint:
            raise RunError(
                f"{members[0].path}: expected the rows that were asked, fingerprint "
                f"{fingerprint[:16]}.., found {loaded.fingerprint[:16]}.. at {loaded.source}. "
                "Build the dataset as it was, or say where it is with --dataset."
            )
        title = " ".join(part for part in (name, config, split) if part)
        same = [s for s in sections if s.name == title]
        title = f"{title} ({fingerprint[:8]})" if same else title
        sections.append(Section(title, described, loaded, named(members)))
    return sections
