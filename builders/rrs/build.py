"""From records and label sets to the rows and pictures of the rare remote sensing benchmark.

Order of work: read records, decode every picture once, ask what its record carries and write the
corrupted copies (independent of all other records), freeze the pools of words, compare pictures
with them, draw distractors, give letters. Only pools and letters depend on more than one record.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import PIL
from PIL import Image
from tqdm import tqdm

from soubench.builders.errors import BuildError, FormatError, RecordError
from soubench.builders.images import MAX_PICTURE_PX, load_picture
from soubench.builders.keyed import KeyedRandom, keyed_hash
from soubench.builders.parallel import in_order
from soubench.builders.rrs.clip import DEFAULT_MODEL, Clip, Similarities
from soubench.builders.rrs.distractors import Choices, Distractors, Pools, draw_wrong
from soubench.builders.rrs.masks import mask_json
from soubench.builders.rrs.pictures import Corrupted, Picture, PrepareJob, prepare
from soubench.builders.rrs.prompts import Prompts, load_prompts
from soubench.builders.rrs.questions import Draft
from soubench.builders.rrs.record import FoundRecord, Record, Text, read_records
from soubench.builders.rrs.robustness import Corruption
from soubench.builders.rrs.scenes import records_of
from soubench.builders.rrs.taxonomy import LEAF_TASKS, Task
from soubench.builders.scene import ReadReport
from soubench.builders.sources import SOURCES

LETTERS = "ABCDE"
MIN_WAYS, MAX_WAYS = 2, len(LETTERS)
OPEN_TASKS = (Task.SC, Task.AR, Task.UI, Task.AI, Task.TAI)
"""Tasks whose options are the records' own words."""


@dataclass(frozen=True, slots=True)
class RrsOptions:
    """What a user may choose. Everything but ``workers`` is part of the fingerprint.

    Attributes:
        seed: Seed of every draw.
        distractors: How wrong options that are words are chosen.
        clip: CLIP model for ``sdfs``: a name on the Hub, or a local folder.
        similarities: The stored cosines of an earlier build, instead of a model.
        ways: Options of a multiple-choice question, 2 to 5.
        strict: The first bad record ends the build.
        limit: Pictures from the records and from each label set; None for all.
        north_up: North is at the top of every picture of the label sets.
        gsd_m: Name of a reader -> m per px of its pictures, where the labels do not say.
        hide_evidence: Occlusion may hide what the answer rests on.
        pools: A TOML file with further options.
        workers: Processes; changes no byte of the result.
        max_pixels: Larger pictures are refused.
        prompts: The words of the questions.
    """

    seed: int = 0
    distractors: Distractors = "sdfs"
    clip: str = DEFAULT_MODEL
    similarities: Path | None = None
    ways: int = 4
    strict: bool = False
    limit: int | None = None
    north_up: bool = False
    gsd_m: Mapping[str, float] = field(default_factory=dict)
    hide_evidence: bool = False
    pools: Path | None = None
    workers: int = 1
    max_pixels: int = MAX_PICTURE_PX
    prompts: Prompts = field(default_factory=load_prompts)


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """Where a label set lies and which of its splits is read."""

    root: Path
    split: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that takes no part."""

    record: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Site:
    """A record that takes part, with its pictures and questions."""

    record: Record
    pictures: tuple[Picture, ...]
    drafts: tuple[Draft, ...]
    corrupted: tuple[Corrupted, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        id: Record and task.
        task: The leaf task; NR or OR where the question is that of another row.
        site: Where it is from.
        draft: The question.
        options: All options in their order; empty where there are none.
        answer_index: Index of the right one; -1 where there are none.
        clean_id: The row that a corrupted one is made from.
        corruption: What is done to the picture.
    """

    id: str
    task: Task
    site: Site
    draft: Draft
    options: tuple[str, ...] = ()
    answer_index: int = -1
    clean_id: str = ""
    corruption: Corruption | None = None

    @property
    def answer(self) -> str:
        """A letter, ``yes`` or ``no``, a box, a mask or a text."""
        return LETTERS[self.answer_index] if self.options else self.draft.answer


@dataclass(frozen=True, slots=True)
class RrsBuild:
    """A finished build.

    Attributes:
        version: Version of the dataset.
        options: What the user chose.
        records_read: Number of records that were read, bad ones included.
        refused: The records that take no part.
        reads: What the readers of label sets met.
        rows: All rows, by source, by record, then in the order of the taxonomy.
        unable: (task, reason) -> how often a question could not be asked.
        pools: The option pools.
        choices: What the draws of distractors met.
        similarities: The cosines that distractors were filtered by; None for random ones.
        pixels: Row id -> SHA-256 of the pixels of its corrupted picture.
        head: What the fingerprint says of the build besides rows and pictures.
        fingerprint: SHA-256 of everything that is emitted, hexadecimal.
    """

    version: str
    options: RrsOptions
    records_read: int
    refused: tuple[Refused, ...]
    reads: tuple[ReadReport, ...]
    rows: tuple[Row, ...]
    unable: Mapping[tuple[Task, str], int]
    pools: Pools
    choices: Choices
    similarities: Similarities | None
    pixels: Mapping[str, str]
    head: Mapping[str, Any]
    fingerprint: str

    @property
    def sites(self) -> list[Site]:
        """The records that have rows, in their order."""
        found = {row.site.record.id: row.site for row in self.rows}
        return list(found.values())


def build_rrs(
    version: str,
    records: Path | None,
    folders: Mapping[str, SourceFolder],
    options: RrsOptions,
    pictures_folder: Path,
) -> RrsBuild:
    """Build all rows, and write the pictures that have to be converted or corrupted.

    Args:
        version: Version of the dataset, part of every draw's key.
        records: A file of records or a folder of them.
        folders: Name of a reader -> the label set that it reads.
        options: What the user chose.
        pictures_folder: New pictures go here.

    Raises:
        FormatError: Records or labels are not what their reader expects; with ``strict``, a
            `RecordError` for the first bad record.
        BuildError: An option makes no sense, CLIP is not there, or no row is left.
    """
    _check(records, folders, options)
    own_pools = load_pools(options.pools) if options.pools is not None else {}
    refused: list[Refused] = []
    found, reads = _read(records, folders, options, refused)
    n_read = len(found) + len(refused)
    filter_by = None
    if options.distractors == "sdfs":
        # Before the pictures: a missing model should not show after an hour.
        filter_by = (
            Similarities.load(options.similarities)
            if options.similarities is not None
            else Clip(options.clip)
        )
    pictures_folder.mkdir(parents=True, exist_ok=True)
    sites, unable = _prepare(found, version, options, pictures_folder, refused)
    if not sites:
        raise BuildError(
            f"No record can take part: {n_read} read, {len(refused)} left out."
            + "".join(f"\n  {r.reason}: {r.message}" for r in refused[:3])
        )
    pools = Pools.freeze((d for site in sites for d in site.drafts), own_pools)
    sites = [replace(site, drafts=tuple(map(pools.spelled, site.drafts))) for site in sites]
    similarities = _similarities(filter_by, sites, pools, options)
    choices = Choices()
    clean = _clean_rows(sites, pools, similarities, version, options, choices, unable)
    rows = _with_letters(clean, version, options.seed)
    pixels = _add_corrupted(rows, sites, pictures_folder, unable)
    order = {task: i for i, task in enumerate(Task)}
    rows.sort(key=lambda row: (row.site.record.source, row.site.record.id, order[row.task]))
    if not rows:
        raise BuildError("No record carries a question: see the record format and its fields.")
    head = {
        "dataset": "rrs",
        "version": version,
        "seed": options.seed,
        "distractors": options.distractors,
        "similarities": similarities.digest() if similarities is not None else None,
        "ways": options.ways,
        "limit": options.limit,
        "north_up": options.north_up,
        "gsd_m": dict(options.gsd_m),
        "hide_evidence": options.hide_evidence,
        "pools": pools.as_dict(),
        "prompts": options.prompts.digest,
        "pillow": PIL.__version__,
    }
    digest = fingerprint(head, map(columns, rows), _digests(rows, pixels))
    return RrsBuild(
        version=version,
        options=options,
        records_read=n_read,
        refused=tuple(refused),
        reads=tuple(reads),
        rows=tuple(rows),
        unable=unable,
        pools=pools,
        choices=choices,
        similarities=similarities,
        pixels=pixels,
        head=head,
        fingerprint=digest,
    )


def _check(records: Path | None, folders: Mapping[str, SourceFolder], options: RrsOptions) -> None:
    if records is None and not folders:
        raise BuildError(
            "rrs needs something to ask about: --records FILE_OR_DIR, or --source FORMAT=DIR, or "
            "both. For a look without either: soubench demo rrs."
        )
    unknown = [name for name in folders if name not in SOURCES]
    if unknown:
        raise BuildError(f"--source expects any of {', '.join(SOURCES)}; got {unknown[0]!r}.")
    for name, gsd_m in options.gsd_m.items():
        if name not in folders or not 0 < gsd_m < inf:
            raise BuildError(
                "--gsd expects the m per px of a label set that --source names, such as "
                f"coco=0.5; got {name}={gsd_m}."
            )
    if not MIN_WAYS <= options.ways <= MAX_WAYS:
        raise BuildError(
            f"--ways expects a number of options from {MIN_WAYS} to {MAX_WAYS}, got {options.ways}."
        )


def load_pools(path: Path) -> dict[str, dict[str, list[str]]]:
    """Read further options: tables of tasks, with a list for each aspect or type of scene.

    Raises:
        FormatError: The file cannot be read, or names something else.
    """
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{path}: expected a file of option pools in TOML, but {error}."
        ) from error
    try:
        given = msgspec.convert(table, dict[str, list[Text] | dict[str, list[Text]]])
        unknown = next((task for task in given if task not in OPEN_TASKS), None)
        problem = f"{unknown!r} is none of them" if unknown is not None else ""
    except msgspec.ValidationError as error:
        problem = str(error)
    if problem:
        raise FormatError(
            f"{path}: expected lists of texts for {', '.join(OPEN_TASKS)}, or a table of such "
            'lists by aspect or scene type, as UI = ["training"] or [TAI] season = ["winter"]; '
            f"{problem}."
        )
    return {
        task: {
            part: [" ".join(word.split()) for word in words]
            for part, words in ({"": parts} if isinstance(parts, list) else parts).items()
        }
        for task, parts in given.items()
    }


def _read(
    records: Path | None,
    folders: Mapping[str, SourceFolder],
    options: RrsOptions,
    refused: list[Refused],
) -> tuple[list[FoundRecord], list[ReadReport]]:
    """Read everything; with a limit, keep the smallest keyed hashes of each origin."""

    def refuse(name: str, error: RecordError) -> None:
        if options.strict:
            raise error
        refused.append(Refused(name, error.reason, str(error)))

    found: list[FoundRecord] = []
    if records is not None:
        found += _sample(read_records(records.resolve(), refuse), options)
    reads: list[ReadReport] = []
    ids = {f.record.id for f in found}
    for name, folder in folders.items():
        report = ReadReport(max_pixels=options.max_pixels)
        # Readers know all categories of a split only at its end.
        scenes = list(SOURCES[name].read(folder.root.resolve(), folder.split, report))
        labelled = records_of(
            scenes, report, north_up=options.north_up, gsd_m=options.gsd_m.get(name)
        )
        for one in _sample(labelled, options):
            if one.record.id in ids:
                refuse(
                    one.record.id,
                    RecordError(
                        "duplicate_id", f"{one.where}: a record has the id {one.record.id!r}, too"
                    ),
                )
            else:
                found.append(one)
        reads.append(report)
    return sorted(found, key=lambda f: f.record.id), reads


def _sample(found: Iterable[FoundRecord], options: RrsOptions) -> list[FoundRecord]:
    ranked = list(found)
    if options.limit is None:
        return ranked
    ranked.sort(key=lambda f: (keyed_hash("sample", options.seed, f.record.id), f.record.id))
    return ranked[: options.limit]


def _prepare(
    found: Sequence[FoundRecord],
    version: str,
    options: RrsOptions,
    folder: Path,
    refused: list[Refused],
) -> tuple[list[Site], Counter[tuple[Task, str]]]:
    key = (version, options.seed)
    jobs = [
        PrepareJob(
            f,
            folder,
            options.prompts,
            options.ways,
            key,
            options.hide_evidence,
            options.max_pixels,
        )
        for f in found
    ]
    sites: list[Site] = []
    unable: Counter[tuple[Task, str]] = Counter()
    prepared = in_order(prepare, jobs, workers=min(options.workers, max(1, len(jobs))))
    bar = tqdm(prepared, total=len(jobs), desc="rrs: records", unit=" records")
    for f, result in zip(found, bar, strict=True):
        if result.reason:
            if options.strict:
                raise RecordError(result.reason, result.message)
            refused.append(Refused(f.record.id, result.reason, result.message))
            continue
        unable.update(result.unable)
        sites.append(Site(f.record, result.pictures, result.drafts, result.corrupted))
    return sites, unable


def _similarities(
    filter_by: Clip | Similarities | None, sites: Sequence[Site], pools: Pools, options: RrsOptions
) -> Similarities | None:
    """Compare every picture with the options of its pools, each picture once."""
    if filter_by is None:
        return None
    wanted: dict[str, dict[str, None]] = {}
    files: dict[str, Path] = {}
    for site in sites:
        picture = site.pictures[-1]
        for draft in site.drafts:
            if draft.pool:
                files.setdefault(picture.digest, picture.source)
                asked = wanted.setdefault(picture.digest, {})
                asked |= dict.fromkeys((draft.answer, *pools.wrong(draft, options.ways - 1)))
    compared = {digest: sorted(asked) for digest, asked in wanted.items()}
    if isinstance(filter_by, Similarities):
        # Only what this build uses goes into its fingerprint.
        kept = {
            digest: {option: filter_by.of(digest)(option) for option in asked}
            for digest, asked in compared.items()
        }
        return Similarities(filter_by.model, kept)

    def load(digest: str) -> Image.Image:
        return load_picture(files[digest], max_pixels=options.max_pixels)

    found = Similarities(filter_by.name)
    compare = filter_by.similarities(list(compared), load, compared)
    for digest, cosines in tqdm(
        compare, total=len(compared), desc="rrs: CLIP", unit=" pictures", disable=not compared
    ):
        found.by_picture[digest] = cosines
    return found


def _clean_rows(
    sites: Sequence[Site],
    pools: Pools,
    similarities: Similarities | None,
    version: str,
    options: RrsOptions,
    choices: Choices,
    unable: Counter[tuple[Task, str]],
) -> list[Row]:
    """Draw the distractors of every question; the right option stands first for now."""
    rows: list[Row] = []
    for site in sites:
        record = site.record
        similarity = None
        if similarities is not None:
            similarity = similarities.of(site.pictures[-1].digest)
        for row_id, draft in zip(_row_ids(site), site.drafts, strict=True):
            if draft.answer_type != "mcq":
                rows.append(Row(row_id, draft.task, site, draft))
                continue
            rng = KeyedRandom(version, options.seed, record.source, row_id, "distractors")
            wrong = draw_wrong(draft, pools, options.ways, rng, similarity, choices)
            if wrong:
                rows.append(Row(row_id, draft.task, site, draft, (draft.answer, *wrong), 0))
            else:
                unable[draft.task, "pool_has_no_other_word"] += 1
    return rows


def _row_ids(site: Site) -> list[str]:
    """Return the row id of each question of a record; the second of a task has a 2 behind it."""
    numbers: Counter[Task] = Counter()
    ids = []
    for draft in site.drafts:
        numbers[draft.task] += 1
        n = numbers[draft.task]
        ids.append(f"{site.record.id}/{draft.task.lower()}" + (f"-{n}" if n > 1 else ""))
    return ids


def _with_letters(rows: Sequence[Row], version: str, seed: int) -> list[Row]:
    """Balance the letters: of each task and number of options, and over the tasks together.

    Rows are ranked by a keyed hash; the letter is (rank + offset) mod the number of options, with
    the offset chained over the tasks in the order of the taxonomy, so that any run of tasks (a
    sub-dimension, a dimension, all) differs by at most one row a letter.
    """
    groups: dict[tuple[int, int], list[Row]] = {}
    done: list[Row] = [row for row in rows if not row.options]
    tasks = list(Task)
    for row in rows:
        if row.options:
            groups.setdefault((len(row.options), tasks.index(row.task)), []).append(row)
    offsets: Counter[int] = Counter()
    for (n, _), members in sorted(groups.items(), key=lambda item: item[0]):
        members.sort(key=lambda row: (keyed_hash(version, seed, row.id, "letter"), row.id))
        for rank, row in enumerate(members):
            index = (rank + offsets[n]) % n
            right, *wrong = row.options
            ordered = (*wrong[:index], right, *wrong[index:])
            done.append(Row(row.id, row.task, row.site, row.draft, ordered, index))
        offsets[n] += len(members)
    return done


def _add_corrupted(
    rows: list[Row], sites: Sequence[Site], folder: Path, unable: Counter[tuple[Task, str]]
) -> dict[str, str]:
    """Add the rows whose pictures were corrupted; return row id -> digest of the pixels."""
    clean = {row.id: row for row in rows}
    digests: dict[str, str] = {}
    for site in sites:
        ids = _row_ids(site)
        for corrupted in site.corrupted:
            task, corruption = corrupted.planned.task, corrupted.planned.corruption
            row = clean.get(ids[corrupted.planned.draft])
            if row is None:
                # Its pool turned out to have no wrong option.
                unable[task, "pool_has_no_other_word"] += 1
                (folder / corruption.file).unlink()
                continue
            row_id = f"{site.record.id}/{task.lower()}"
            digests[row_id] = corrupted.pixels_digest
            rows.append(
                Row(
                    row_id,
                    task,
                    site,
                    row.draft,
                    row.options,
                    row.answer_index,
                    row.id,
                    corruption,
                )
            )
    return digests


def columns(row: Row) -> dict[str, Any]:
    """Return a row's columns but for its pictures."""
    draft, corruption, leaf = row.draft, row.corruption, LEAF_TASKS[row.task]
    width, height = row.site.pictures[-1].size_wh
    evidence = draft.evidence
    return {
        "id": row.id,
        "dimension": leaf.sub_dimension.dimension,
        "sub_dimension": leaf.sub_dimension.name,
        "task": row.task.value,
        "answer_type": draft.answer_type,
        "question": draft.question,
        "options": list(row.options),
        "answer": row.answer,
        "answer_index": row.answer_index,
        "references": list(draft.references),
        "box_xyxy": list(draft.box_xyxy),
        "mask_rle": "" if draft.mask is None else mask_json(draft.mask),
        "size_hw": [height, width],
        "clean_id": row.clean_id,
        "corruption": "" if corruption is None else corruption.kind,
        "severity": 0 if corruption is None else corruption.severity,
        "evidence": {
            "text": evidence.text,
            "target": draft.target,
            "pool": "/".join(draft.pool),
            "also_true": sorted(draft.also_true),
            "boxes_xyxy": [list(box) for box in evidence.boxes_xyxy],
            "occluded_xyxy": [
                list(map(float, r)) for r in (corruption.rectangles if corruption else ())
            ],
            "provenance": evidence.provenance,
            "human_verified": evidence.human_verified,
        },
        "source": row.site.record.source,
        "group_id": row.site.record.group_id or row.site.record.id,
    }


def rows_of(result: RrsBuild, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield all rows, in their order.

    Args:
        result: The build.
        folder: Where the pictures that were written will lie.
    """
    for row in result.rows:
        paths = [picture.path(folder) for picture in row.site.pictures]
        if row.corruption is not None:
            paths = [folder / row.corruption.file]
        yield {"images": [{"path": str(p), "bytes": None} for p in paths], **columns(row)}


def _digests(rows: Sequence[Row], pixels: Mapping[str, str]) -> Iterator[list[str]]:
    for row in rows:
        sources = [picture.digest for picture in row.site.pictures]
        yield [*sources, pixels[row.id]] if row.corruption is not None else sources


def fingerprint(
    head: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    pictures: Iterable[Sequence[str]],
) -> str:
    """Hash options, pools, rows and pictures; paths are left out.

    Args:
        head: What the build says of itself.
        rows: Columns of every row but for its pictures, in order.
        pictures: Per row the SHA-256 of its sources' files, and of a corrupted copy's pixels.

    Returns:
        64 hexadecimal digits.
    """
    digest = sha256(_canonical(head))
    for row, hashes in zip(rows, pictures, strict=True):
        digest.update(_canonical({"row": row, "pictures": list(hashes)}))
    return digest.hexdigest()


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def manifest(result: RrsBuild) -> dict[str, Any]:
    """Say what a build is made of.

    Returns:
        ``fingerprint``; ``head``; ``pictures``: record id -> per picture ``file_name`` and
        ``sha256`` of the source's file, and ``as_is``: it is asked about as that file; ``pixels``:
        row id -> SHA-256 of size and pixels of its corrupted picture; ``similarities``: SHA-256 of
        a picture -> option -> cosine, or null.
    """
    return {
        "fingerprint": result.fingerprint,
        "head": dict(result.head),
        "pictures": {
            site.record.id: [
                {
                    "file_name": picture.source.name,
                    "sha256": picture.digest,
                    "as_is": picture.file is None,
                }
                for picture in site.pictures
            ]
            for site in result.sites
        },
        "pixels": dict(result.pixels),
        "similarities": None if result.similarities is None else result.similarities.by_picture,
    }
