"""Scored runs, put together by the build whose rows they answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soubench.builders.errors import RunError
from soubench.inference.compare import read_scored
from soubench.inference.dataset_rows import LoadedRows, open_rows
from soubench.inference.run_folder import Description
from soubench.inference.scores import Verdict

Part = tuple[str, str]
"""Config and split."""


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
        """What ``run.json`` said; of the first run, where several were scored together."""
        return dict(self.scores["run"])

    @property
    def model(self) -> str:
        """Name of the model; the last folder of a local one."""
        name = str(self.description["model"]["name"])
        return Path(name).name if Path(name).is_absolute() else name

    @property
    def parameters(self) -> int | None:
        """Number of the model's parameters, where known."""
        found = self.description["model"].get("parameters")
        return int(found) if found else None

    @property
    def marks(self) -> tuple[str, ...]:
        """What must not be overlooked beside a score of this run."""
        return marks_of_run(self.description)


@dataclass(frozen=True, slots=True)
class Section:
    """Runs that answered rows of the same build.

    Attributes:
        name: Dataset, configs and splits.
        dataset: Name of the dataset.
        fingerprints: Of the build.
        distractors: How they were drawn; None where there are none.
        parts: The rows by config and split.
        runs: The runs, in the order in which they were given.
    """

    name: str
    dataset: str
    fingerprints: tuple[str, ...]
    distractors: str | None
    parts: Mapping[Part, LoadedRows]
    runs: Sequence[ScoredRun]

    @property
    def rows_differ(self) -> bool:
        """Whether the runs answered different rows."""
        asked = [{(v.id, v.question_sha256) for v in run.verdicts} for run in self.runs]
        return any(one != asked[0] for one in asked[1:])


def marks_of_run(description: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what sets a run apart from a plain one: blind, circular, frame, limit, shard."""
    marks = []
    if description.get("blind"):
        marks.append("blind")
    if description.get("circular"):
        marks.append("circular")
    if description.get("coords", "pixel") != "pixel":
        marks.append(f"coords {description['coords']}")
    if description.get("limit") is not None:
        marks.append(f"limit {description['limit']}")
    if str(description.get("shard", "0/1")) != "0/1":
        marks.append(f"shard {description['shard']}")
    return tuple(marks)


def read_runs(paths: Sequence[Path]) -> list[ScoredRun]:
    """Read scored runs; what is not scored yet, or no longer is, is scored first.

    Args:
        paths: RUN folders, or where ``soubench score`` wrote.

    Raises:
        RunError: A folder is neither, is damaged, or is given twice.
    """
    resolved = [path.resolve() for path in paths]
    twice = next((path for path in resolved if resolved.count(path) > 1), None)
    if twice is not None:
        raise RunError(f"{twice} is given twice. Give each run once.")
    found = (read_scored(path) for path in paths)
    return [ScoredRun(one.path, "", one.scores, one.verdicts) for one in found]


def sections_of(runs: Sequence[ScoredRun], dataset: str | None = None) -> list[Section]:
    """Put runs over the same build together, and open its rows.

    Scores over different builds must not stand in one table: pictures, options or letters differ.

    Args:
        runs: The runs, in order.
        dataset: Where the rows are, if not where the runs found them; for runs over one dataset.

    Raises:
        RunError: The rows are not there, or are not those that were asked.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[ScoredRun]] = {}
    for run in runs:
        asked = [described["dataset"] for described in run.scores["runs"]]
        fingerprints = tuple(sorted({str(one["fingerprint"]) for one in asked}))
        groups.setdefault((str(asked[0]["name"]), fingerprints), []).append(run)
    names = {name for name, _ in groups}
    if dataset is not None and len(names) > 1:
        raise RunError(
            f"--dataset {dataset}: the runs are over {', '.join(sorted(names))}, and this is one."
        )
    sections: list[Section] = []
    for (name, fingerprints), members in groups.items():
        parts: dict[Part, LoadedRows] = {}
        for run in members:
            for described in run.scores["runs"]:
                asked = described["dataset"]
                part = (str(asked["config"]), str(asked["split"]))
                if part not in parts:
                    parts[part] = _open(run, asked, dataset)
        words = [name, "+".join(dict.fromkeys(c for c, _ in parts))]
        words.append("+".join(dict.fromkeys(s for _, s in parts)))
        title = " ".join(words)
        if any(s.name == title for s in sections):
            title = f"{title}, build {fingerprints[0][:8]}"
        distractors = members[0].scores.get("distractors")
        named = _named(members)
        sections.append(Section(title, name, fingerprints, distractors, parts, named))
    return sections


def _open(run: ScoredRun, asked: Mapping[str, Any], dataset: str | None) -> LoadedRows:
    source = dataset or asked.get("source") or asked["name"]
    loaded = open_rows(source, asked["config"], asked["split"])
    if loaded.fingerprint != asked["fingerprint"]:
        raise RunError(
            f"{run.path}: expected the rows that were asked, fingerprint "
            f"{str(asked['fingerprint'])[:16]}.., found {loaded.fingerprint[:16]}.. at "
            f"{loaded.source}. Build the dataset as it was, or say where it is with --dataset."
        )
    return loaded


def _named(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Name runs by their models with marks, and by their folders where that is not enough."""
    plain = [f"{run.model} ({', '.join(run.marks)})" if run.marks else run.model for run in runs]
    folders = [f"{name} [{run.path.name}]" for name, run in zip(plain, runs, strict=True)]
    named = [
        name if plain.count(name) == 1 else folder
        for name, folder in zip(plain, folders, strict=True)
    ]
    return [
        # Folders of the same name, too, must not become one model.
        ScoredRun(
            run.path,
            name if named.count(name) == 1 else f"{name[:-1]}, {i + 1}]",
            run.scores,
            run.verdicts,
        )
        for i, (run, name) in enumerate(zip(runs, named, strict=True))
    ]
