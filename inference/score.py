"""Score a RUN folder, its shards, or a file of replies, and write what came of it.

``scores.json`` holds::

    soubench      version
    schema        1; keys are added, never renamed
    title         what stands in the title of every table
    run           description of the run as in run.json; of the first where there are several
    runs          all of them: one per config and split
    distractors   how the dataset drew them: paper, balanced, or null where that is not known
    replies_sha256  of the replies that were scored
    counts        asked, answered, missing, unknown (replies to ids that were not asked),
                  unparsed, errors
    errors        kind of error -> rows
    groups        one entry per score: table, column (task, split or measure), group, rotation
                  (0, 1, .. or circular), metric, measure, unit (share: 0 to 1; points: 0 to 100;
                  px, degrees, leaves), is_error (lower is better), average (rows: each weighs
                  the same; tasks: unweighted mean of tasks), value, low, high (95 % interval; null
                  where nothing can be said), n, clusters, unparsed_rate, error_rate
    letters       one entry per number of options: letters (letter, replied, right, right_replies),
                  n, unread, chi_square, p, recall_std

``scores.csv`` has the groups, ``scores.md`` the tables, ``verdicts.jsonl`` a line per row and
rotation with the fields of ``Verdict``.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub

from soubench.builders.errors import PictureError, RunError
from soubench.builders.publishing.dataset_cache import build_folder
from soubench.builders.publishing.export_folder import MANIFEST, is_export, load_manifest
from soubench.inference.breakdowns import (
    LetterBias,
    drop_tables,
    error_counts,
    letter_bias,
    letter_table,
    rate_table,
    size_tables,
)
from soubench.inference.chat import pictures_of
from soubench.inference.coordinates import BOX_FORMATS, Frame, convert_options, read_numbers
from soubench.inference.dataset_rows import LoadedRows, open_rows
from soubench.inference.layouts import Context, tables_of
from soubench.inference.predict import COLUMNS_READ, choose_rows
from soubench.inference.questions import question_of, rotations_of, subset_of
from soubench.inference.run_folder import (
    MAY_DIFFER_BETWEEN_SHARDS,
    REPLIES_FILE,
    Description,
    Reply,
    Size,
    first_difference,
    merge_runs,
    read_run,
)
from soubench.inference.scores import (
    Asked,
    Settings,
    Verdict,
    judge,
    kind_of,
    load_metric,
    right_share,
)
from soubench.inference.tables import Score, Table, render_markdown

SCHEMA = 1
SCORES_FILE = "scores.json"
VERDICTS_FILE = "verdicts.jsonl"
GROUP_COLUMNS = ("group_id", "plant_id", "image_id")
"""What groups of rows are known by; the first that is there counts, else each row is alone."""
MORE_COLUMNS = (
    "scenario",
    "dimension",
    "source",
    "size_hw",
    "box_xyxy",
    *GROUP_COLUMNS,
    "leaf_count",
    "clean_id",
    "severity",
)
MAY_DIFFER_BETWEEN_PARTS = MAY_DIFFER_BETWEEN_SHARDS | {
    "dataset.config",
    "dataset.split",
    "dataset.fingerprint",
    "model.context",
}
"""Runs of one model over several configs or splits of a dataset are scored into one table."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one run asked of one config and split, and what came.

    Attributes:
        description: As in ``run.json``.
        loaded: The rows.
        replies: The replies.
    """

    description: Description
    loaded: LoadedRows
    replies: Sequence[Reply]


@dataclass(frozen=True)
class Scored:
    """Everything that is known of a run once it is scored.

    Attributes:
        parts: What was scored.
        verdicts: One per row and rotation.
        distractors: How the dataset drew them; None where that is not known.
        unknown: Ids of replies that no row has.
        bleu: Task -> BLEU-1 to BLEU-4.
        notes: What a reader has to know, such as pictures that are not there.
        digest: Hash of the replies.
    """

    parts: Sequence[Part]
    verdicts: Sequence[Verdict]
    distractors: str | None
    unknown: Sequence[str]
    bleu: Mapping[str, Sequence[float]]
    notes: Sequence[str]
    digest: str

    @property
    def model(self) -> str:
        """Name of the model; the last folder of a local one."""
        name = str(self.parts[0].description["model"]["name"])
        return Path(name).name if Path(name).is_absolute() else name

    @cached_property
    def title(self) -> str:
        """Dataset, distractors, and how it was asked."""
        description = self.parts[0].description
        said = [
            self.parts[0].loaded.name,
            "+".join(dict.fromkeys(part.loaded.config for part in self.parts)),
            "+".join(dict.fromkeys(part.loaded.split for part in self.parts)),
        ]
        words = [" ".join(said)]
        if self.distractors:
            words.append(f"{self.distractors} distractors")
        if description.get("blind"):
            words.append("blind")
        if description.get("circular"):
            words.append("circular")
        if description.get("coords", "pixel") != "pixel":
            words.append(f"coords {description['coords']}")
        if description.get("limit") is not None:
            words.append(f"limit {description['limit']}")
        return ", ".join(words)

    def tables(self, *, published: bool = False) -> list[Table]:
        """Return the papers' tables, then letters, sizes, and what could not be read."""
        context = Context(self.title, self.model, published, self.bleu)
        tables = tables_of(self.verdicts, context)
        if self.letters:
            tables.append(letter_table(self.letters, self.title))
        tables += size_tables(self.verdicts, self.title)
        tables += drop_tables(self.verdicts, self.title)
        rates = rate_table(self.verdicts, self.title)
        return [*tables, rates] if rates is not None else tables

    @cached_property
    def letters(self) -> list[LetterBias]:
        """How letters were used, per number of options."""
        return letter_bias(self.verdicts)

    def counts(self) -> dict[str, int]:
        """Return how many rows were asked, answered, missing, ..."""
        return {
            "asked": len(self.verdicts),
            "answered": sum(v.error is None for v in self.verdicts),
            "missing": sum(v.error == "missing" for v in self.verdicts),
            "unknown": len(self.unknown),
            "unparsed": sum(v.unparsed for v in self.verdicts),
            "errors": sum(v.error is not None for v in self.verdicts),
        }

    def warnings(self) -> list[str]:
        """Say what is not as it should be, for a person."""
        counts = self.counts()
        said = list(self.notes)
        if counts["missing"]:
            example = next(v.id for v in self.verdicts if v.error == "missing")
            said.append(
                f"Rows without a reply: {counts['missing']} of {counts['asked']}, such as "
                f"{example}; they count as wrong."
            )
        if counts["unknown"]:
            said.append(
                f"Replies to ids that were not asked: {counts['unknown']}, such as "
                f"{self.unknown[0]}; they are not scored."
            )
        return said


def score_runs(
    paths: Sequence[Path], *, dataset: str | None = None, settings: Settings | None = None
) -> Scored:
    """Score runs.

    Args:
        paths: RUN folders: one run, all shards of one, or runs of the same model over several
            configs or splits of a dataset.
        dataset: Where the rows are, if not where the run found them.
        settings: How replies are read; boxes by default in the format that the run asked for.

    Raises:
        RunError: A run cannot be read, the runs do not belong together, or the rows are not the
            ones that were asked.
    """
    parts = []
    for members in _shards_together(paths):
        description, replies = merge_runs(members)
        parts.append(_part(description, replies, dataset, members[0]))
    _check_parts(paths, [part.description for part in parts])
    used = settings or Settings()
    if used.box_format is None:
        used = replace(used, box_format=parts[0].description.get("box_format"))
    return _score(parts, used, replies_digest(paths))


def score_replies(
    replies: Sequence[Reply],
    loaded: LoadedRows,
    *,
    model: str,
    settings: Settings | None = None,
    digest: str = "",
) -> Scored:
    """Score replies that no run of ours made.

    Args:
        replies: At most one per row.
        loaded: The rows; one without a reply is wrong.
        model: Name for tables.
        settings: How replies are read.
        digest: Hash of where they came from.

    Raises:
        RunError: Not one id of the replies is one of the rows.
    """
    used = settings or Settings()
    description: Description = {
        "soubench": version("soubench"),
        "dataset": {
            "name": loaded.name,
            "config": loaded.config,
            "split": loaded.split,
            "source": loaded.source,
            "fingerprint": loaded.fingerprint,
            "rows": len(loaded.rows),
        },
        "model": {"name": model, "backend": "file", "revision": None, "parameters": None},
        "prompt": None,
        "decoding": {},
        "coords": "pixel",
        "box_format": used.box_format or BOX_FORMATS["pixel"],
        "circular": False,
        "blind": False,
        "limit": None,
        "seed": 0,
        "shard": "0/1",
    }
    part = Part(description, loaded, replies)
    known = set(loaded.columns()["id"][:])
    if replies and not any(reply.id in known for reply in replies):
        raise RunError(
            f"{model}: none of the {len(replies)} ids is one of {loaded.name}, {loaded.config}, "
            f"{loaded.split}: expected ids such as {next(iter(known), '(none)')!r}, found "
            f"{replies[0].id!r}. Choose the config and split that were answered, or another "
            "--id-column."
        )
    return _score([part], used, digest)


def replies_digest(paths: Sequence[Path]) -> str:
    """Hash the replies of runs, to tell whether scores are up to date."""
    digest = sha256()
    for path in paths:
        file = path / REPLIES_FILE
        digest.update(file.read_bytes() if file.exists() else b"")
    return digest.hexdigest()


def _shards_together(paths: Sequence[Path]) -> list[list[Path]]:
    groups: list[tuple[Description, list[Path]]] = []
    for path in paths:
        description, _ = read_run(path)
        for other, members in groups:
            if first_difference(other, description, MAY_DIFFER_BETWEEN_SHARDS) is None:
                members.append(path)
                break
        else:
            groups.append((description, [path]))
    return [members for _, members in groups]


def _check_parts(paths: Sequence[Path], descriptions: Sequence[Description]) -> None:
    first = descriptions[0]
    for other in descriptions[1:]:
        found = first_difference(first, other, MAY_DIFFER_BETWEEN_PARTS)
        if found is not None:
            name, one, another = found
            raise RunError(
                f"expected shards of one run, or runs of one model over several configs or splits "
                f"of one dataset; {', '.join(map(str, paths[:3]))} differ in {name}: {one!r} and "
                f"{another!r}. Score them one by one, and see soubench compare."
            )


def _part(
    description: Description, replies: Sequence[Reply], dataset: str | None, path: Path
) -> Part:
    asked = description["dataset"]
    source = dataset or asked.get("source") or asked["name"]
    loaded = open_rows(source, asked.get("config"), asked.get("split"))
    if loaded.fingerprint != asked.get("fingerprint"):
        raise RunError(
            f"{path}: expected the rows that were asked, fingerprint "
            f"{str(asked.get('fingerprint'))[:16]}.., found {loaded.fingerprint[:16]}.. at "
            f"{loaded.source}. Build the dataset as it was, or say where it is with --dataset."
        )
    return Part(description, loaded, replies)


def _score(parts: Sequence[Part], settings: Settings, digest: str) -> Scored:
    verdicts: list[Verdict] = []
    unknown: list[str] = []
    notes: list[str] = []
    captions: dict[str, list[Asked]] = {}
    for part in parts:
        rows = _Rows(part, settings)
        asked = rows.asked()
        unknown += rows.unknown()
        notes += rows.notes
        for a, kind, judged in judge(asked, settings):
            verdict = rows.verdict(a, kind, judged.values, judged.parsed, judged.is_unparsed)
            verdicts.append(verdict)
            if kind == "text":
                captions.setdefault(verdict.task, []).append(a)
    ids = {(v.id, v.rotation) for v in verdicts}
    if len(ids) != len(verdicts):
        raise RunError(
            "the runs asked some rows twice. Give configs and splits that have no row in common."
        )
    bleu = {task: _bleu(members) for task, members in captions.items()}
    modes = sorted({mode for part in parts if (mode := distractors_of(part.loaded))})
    if len(modes) > 1:
        raise RunError(
            f"the runs are over datasets with different distractors ({', '.join(modes)}), which "
            "must not stand in one table. Score them one by one."
        )
    return Scored(parts, verdicts, modes[0] if modes else None, unknown, bleu, notes, digest)


def _bleu(asked: Sequence[Asked]) -> list[float]:
    result = load_metric("caption_scores").compute(
        predictions=[a.text for a in asked],
        references=[list(a.question.references) for a in asked],
        scores=["bleu"],
    )
    return [result[f"bleu{n}"] for n in range(1, 5)]


def distractors_of(loaded: LoadedRows) -> str | None:
    """Return how a dataset drew its distractors, as its build or export says; None if not told."""
    folder = Path(loaded.source).expanduser()
    if is_export(folder):
        return load_manifest(folder).mode or None
    cache = Path(datasets.config.HF_DATASETS_CACHE).expanduser()
    report = build_folder(cache, loaded.name, loaded.fingerprint) / "report.json"
    try:
        if not report.exists() and "/" in loaded.source and not folder.exists():
            found = huggingface_hub.hf_hub_download(loaded.source, MANIFEST, repo_type="dataset")
            report = Path(found)
        said = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # The Hub's errors are OSErrors or ValueErrors: no such file, no network, no such id.
        return None
    mode = said.get("mode") if isinstance(said, dict) else None
    return str(mode) if mode else None


class _Rows:
    """The rows of a part, as far as scoring needs them."""

    def __init__(self, part: Part, settings: Settings) -> None:
        self.part = part
        self.settings = settings
        self.notes: list[str] = []
        self._has_noted_sizes = False
        rows = part.loaded.rows
        wanted = (*COLUMNS_READ, *MORE_COLUMNS)
        light = rows.select_columns([name for name in wanted if name in rows.column_names])
        self._light: list[dict[str, Any]] = light.to_list()
        # Whether there are shapes says what kind the texts are; what they hold does not matter.
        if "shapes" in rows.column_names:
            for row in self._light:
                row["shapes"] = None
        self._areas = _object_areas(rows, self._light)
        description = part.description
        self._chosen = choose_rows(self._light, description.get("limit"), description["seed"])
        self._note_left_out(description.get("limit"))
        self._place = {str(row["id"]): i for i, row in enumerate(self._light)}
        self._sizes: dict[object, Size | None] = {}

    def _note_left_out(self, limit: int | None) -> None:
        """Say which subsets have no row in averages that are named as if they had."""
        chosen = {subset_of(self._light[i]) for i in self._chosen}
        out = [s for s in dict.fromkeys(map(subset_of, self._light)) if s not in chosen]
        if out:
            self.notes.append(
                f"{self.part.loaded.config}, {self.part.loaded.split}: the limit of {limit} rows "
                f"left out all rows of {', '.join(out)}; averages over subsets are of the others."
            )

    def keys(self) -> list[tuple[int, int]]:
        """Return (index, rotation) of everything that was asked."""
        circular = self.part.description.get("circular")
        return [
            (i, rotation)
            for i in self._chosen
            for rotation in range(rotations_of(self._light[i]) if circular else 1)
        ]

    def unknown(self) -> list[str]:
        """Return ids of replies that were not asked for."""
        asked = {(str(self._light[i]["id"]), rotation) for i, rotation in self.keys()}
        return [reply.id for reply in self.part.replies if reply.key not in asked]

    def asked(self) -> list[Asked]:
        """Put every question and its reply together."""
        replies = {reply.key: reply for reply in self.part.replies}
        coords = self.part.description.get("coords", "pixel")
        made = []
        for i, rotation in self.keys():
            row = self._light[i]
            question = question_of(row, rotation=rotation)
            reply = replies.get((question.id, rotation))
            size = None
            if kind_of(question, row) == "box":
                size = self._size(i)
            if coords != "pixel" and question.options and read_numbers(question.options[0]):
                size = self._size(i)
                fed = _first(reply.picture_wh) if reply is not None else None
                if coords != "model-pixel" or fed is not None:
                    frame = Frame(coords, size, fed)
                    options = convert_options(question.options, frame)
                    question = replace(question, options=options)
            made.append(Asked(row, question, reply, size))
        return made

    def verdict(
        self,
        asked: Asked,
        kind: str,
        values: Mapping[str, float | None],
        parsed: str,
        is_unparsed: bool,
    ) -> Verdict:
        """Write down what came of one reply."""
        row, question, error = asked.row, asked.question, asked.error
        place = self._place[question.id]
        area = self._areas[place]
        return Verdict(
            id=question.id,
            rotation=question.rotation,
            config=self.part.loaded.config,
            split=self.part.loaded.split,
            scenario=str(row.get("scenario") or row.get("dimension") or ""),
            subset=subset_of(row),
            task=str(row.get("task") or kind),
            group_id=_group(row),
            kind=kind,
            question_sha256=_digest(row, question.answer_text),
            reply=None if error is not None else asked.text,
            parsed=parsed,
            answer=question.answer,
            right=right_share(kind, values),
            # A row without a reply is an error, and not unparsed as well.
            unparsed=is_unparsed and error is None,
            error=error,
            object_area_px=area,
            model_area_px=None if area is None else self._model_area(place, area, asked.reply),
            values=values,
            options=len(question.options),
            clean_id=str(row.get("clean_id") or ""),
            corruption=str(row.get("corruption") or ""),
            severity=int(row.get("severity") or 0),
        )

    def _model_area(self, place: int, area: float, reply: Reply | None) -> float | None:
        fed = _first(reply.picture_wh) if reply is not None else None
        if fed is None:
            return None
        try:
            width, height = self._size(place)
        except RunError as error:
            if not self._has_noted_sizes:
                self._has_noted_sizes = True
                self.notes.append(f"Sizes after the model's resize are left out: {error}")
            return None
        return area * fed[0] * fed[1] / (width * height)

    def _size(self, place: int) -> Size:
        """Return the size of a row's first picture in px, from its header."""
        row = self._light[place]
        if row.get("size_hw"):
            height, width = row["size_hw"]
            return int(width), int(height)
        # Questions about one picture share its size, also where some of them mark an object in it.
        key: object = place
        if row.get("image_id") and row.get("subset"):
            key = (row["subset"], row["image_id"])
        if key not in self._sizes:
            self._sizes[key] = self._read_size(place)
        size = self._sizes[key]
        if size is None:
            raise RunError(
                f"{row['id']}: the size of its picture is needed, and there is none. Put the "
                "pictures in with soubench attach."
            )
        return size

    def _read_size(self, place: int) -> Size | None:
        columns = self.part.loaded.picture_columns
        if not columns:
            return None
        try:
            pictures = pictures_of(self._stored[place], list(columns))
            return pictures[0].size_wh if pictures else None
        except PictureError as error:
            raise RunError(f"{self._light[place]['id']}: {error}") from error

    @cached_property
    def _stored(self) -> datasets.Dataset:
        loaded = self.part.loaded
        return loaded.undecoded().select_columns(list(loaded.picture_columns))


def _first(sizes: Sequence[Size] | None) -> Size | None:
    return sizes[0] if sizes else None


def _object_areas(rows: datasets.Dataset, light: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Return the area of the object that each question is about, where there is exactly one."""
    areas: list[float | None] = []
    listed: Sequence[Sequence[float]] = [()] * len(light)
    if "objects" in rows.column_names:
        flat = rows.select_columns(["objects"]).flatten()
        if "objects.area_px" in flat.column_names:
            listed = flat["objects.area_px"][:]
    for row, of_picture in zip(light, listed, strict=True):
        evidence = row.get("evidence")
        shown = evidence.get("objects") if isinstance(evidence, Mapping) else None
        box = row.get("box_xyxy")
        area = None
        if shown is not None and len(shown) == 1 and shown[0] < len(of_picture):
            area = float(of_picture[shown[0]])
        elif box and len(box) == 4:
            area = float(max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1]))
        areas.append(area)
    return areas


def _group(row: Mapping[str, Any]) -> str:
    """Return what a row belongs together with, its source in front: ids repeat between sources."""
    group = next((row[name] for name in GROUP_COLUMNS if row.get(name)), None)
    if group is None:
        return str(row["id"])
    source = row.get("source") or row.get("subset") or ""
    return f"{source}/{group}" if source else str(group)


def _digest(row: Mapping[str, Any], answer: str) -> str:
    said = [row.get("question"), row.get("options"), answer]
    return sha256(json.dumps(said, ensure_ascii=True).encode("ascii")).hexdigest()[:16]


def groups_of(tables: Sequence[Table]) -> Iterator[dict[str, Any]]:
    """Yield every score of the tables as it stands in ``scores.json``."""
    for table in tables:
        for line in table.lines:
            for column, cell in zip(table.columns, line.cells, strict=True):
                if isinstance(cell, Score):
                    yield {"table": table.name, "column": column, **line.keys, **asdict(cell)}


def write_scores(scored: Scored, tables: Sequence[Table], out: Path) -> list[Path]:
    """Write ``scores.json``, ``scores.csv``, ``scores.md`` and ``verdicts.jsonl``.

    The same replies give the same bytes. Each file takes its place as a whole.

    Args:
        scored: What to write.
        tables: Its tables.
        out: The folder; made if need be.

    Returns:
        The files.
    """
    groups = list(groups_of(tables))
    descriptions = [part.description for part in scored.parts]
    scores = {
        "soubench": version("soubench"),
        "schema": SCHEMA,
        "title": scored.title,
        "run": descriptions[0],
        "runs": descriptions,
        "distractors": scored.distractors,
        "replies_sha256": scored.digest,
        "counts": scored.counts(),
        "errors": error_counts(scored.verdicts),
        "groups": groups,
        "letters": [
            asdict(bias) | {"letters": [use._asdict() for use in bias.letters]}
            for bias in scored.letters
        ],
        "bleu": scored.bleu,
    }
    lines = [json.dumps(asdict(v), ensure_ascii=True) for v in scored.verdicts]
    written = {
        VERDICTS_FILE: "".join(f"{line}\n" for line in lines),
        "scores.csv": _csv(groups),
        "scores.md": markdown(scored, tables),
        # Last: where it is, the others are, too.
        SCORES_FILE: json.dumps(scores, indent=1, ensure_ascii=True) + "\n",
    }
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in written.items():
        temporary = out / f"{name}.incomplete"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(out / name)
        paths.append(out / name)
    return paths


def markdown(scored: Scored, tables: Sequence[Table]) -> str:
    """Write the tables in Markdown."""
    description = scored.parts[0].description
    model = description["model"]
    head = [f"## {scored.model}: {scored.title}", ""]
    revision = f", revision {model['revision']}" if model.get("revision") else ""
    head.append(f"{model.get('backend')}{revision}. {_told(scored.counts())}")
    head += [f"- {warning}" for warning in scored.warnings()]
    return "\n".join([*head, "", *map(render_markdown, tables)])


def _told(counts: Mapping[str, int]) -> str:
    return (
        f"{counts['asked']} asked, {counts['answered']} answered, {counts['unparsed']} unparsed, "
        f"{counts['errors']} errors (of these {counts['missing']} without any reply)."
    )


def summary(scored: Scored) -> str:
    """Say in one line how many rows were asked, answered and read."""
    return _told(scored.counts())


def _csv(groups: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for group in groups for name in group))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(groups)
    return file.getvalue()
