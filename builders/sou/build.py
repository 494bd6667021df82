"""From annotation folders to the questions and pictures of a SOU dataset.

Order of work per subset: read scenes, find the targets of every picture (independent of all
others), sample, freeze the statistics, draw distractors, decode and mark the sampled pictures. A
picture that fails late gives its place to the next one in the sampling order, and the statistics
are frozen anew. Letters come last, over all subsets of the build.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

import PIL
from tqdm import tqdm

from soubench.builders.errors import BuildError, PublishError
from soubench.builders.images import MAX_PICTURE_PX
from soubench.builders.parallel import in_order
from soubench.builders.scene import EXAMPLES_PER_REASON, ReadReport
from soubench.builders.sou.fingerprint import fingerprint, objects_digest
from soubench.builders.sou.picture import SouPicture, prepare
from soubench.builders.sou.prompts import Prompts, load_prompts
from soubench.builders.sou.questions import (
    LETTERS,
    Asked,
    Candidate,
    Key,
    ask,
    assign_letters,
    candidate,
    sample_key,
    tasks_for,
)
from soubench.builders.sou.render import Rendered, RenderJob, file_stem, render
from soubench.builders.sou.subsets import Selection, Subset, Task
from soubench.builders.sou.tasks import Mode
from soubench.builders.sources import SOURCES


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """Where one source lies and which of its splits is read."""

    root: Path
    split: str


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a user may choose. Everything but ``workers`` is part of the fingerprint.

    Attributes:
        seed: Seed of every draw.
        mode: How distractors are drawn.
        pictures: Pictures per subset: a number, ``all``, or None for the subset's own number.
        workers: Processes that decode and mark pictures; changes no byte of the result.
        max_pixels: Larger pictures are refused.
        prompts: The words of the questions.
    """

    seed: int = 0
    mode: Mode = "paper"
    pictures: int | Literal["all"] | None = None
    workers: int = 1
    max_pixels: int = MAX_PICTURE_PX
    prompts: Prompts = field(default_factory=load_prompts)


class Apart(Protocol):
    """Says which pictures would leak into another dataset."""

    def by_group(self, subset: Subset, picture: SouPicture) -> str:
        """Return why a picture may not take part going by its group, or nothing."""

    def by_picture(self, subset: Subset, pictures: Sequence[SouPicture]) -> dict[str, str]:
        """Return image id -> reason for the sampled pictures that may not take part."""


@dataclass(slots=True)
class LeftOut:
    """Pictures that do not take part, by reason, with the first few as examples."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, where: str) -> None:
        """Count one picture."""
        self.counts[reason] += 1
        seen = self.examples.setdefault(reason, [])
        if len(seen) < EXAMPLES_PER_REASON:
            seen.append(where)


@dataclass(frozen=True, slots=True)
class SubsetBuild:
    """One subset, asked and rendered.

    Attributes:
        subset: Which one.
        split: The source's split that was read.
        read: What the reader met.
        left_out: Pictures that were read but do not take part.
        wanted: Pictures asked for; None for all.
        candidates: The sampled pictures, by image id.
        asked: Their questions and the statistics.
        rendered: Image id -> its files.
        system_prompt: P1 + P2.
    """

    subset: Subset
    split: str
    read: ReadReport
    left_out: LeftOut
    wanted: int | None
    candidates: tuple[Candidate, ...]
    asked: Asked
    rendered: Mapping[str, Rendered]
    system_prompt: str


@dataclass(frozen=True, slots=True)
class SouBuild:
    """All subsets of one build.

    Attributes:
        dataset: Name of the dataset.
        key: Version and seed.
        options: What the user chose.
        subsets: The subsets that have rows, in their fixed order.
        empty: Subsets that were asked for but have no row, with what became of their pictures.
        letters: Per subset: sub-task -> image id -> index of the right option.
        fingerprint: SHA-256 of everything that is emitted, hexadecimal.
    """

    dataset: str
    key: Key
    options: BuildOptions
    subsets: tuple[SubsetBuild, ...]
    empty: Mapping[str, tuple[ReadReport, LeftOut]]
    letters: tuple[Mapping[Task, Mapping[str, int]], ...]
    fingerprint: str = ""


def build(
    dataset: str,
    version: str,
    subsets: Sequence[Subset],
    folders: Mapping[str, SourceFolder],
    options: BuildOptions,
    *,
    pictures_folder: Path,
    apart: Apart | None = None,
) -> SouBuild:
    """Build the questions of ``subsets`` and write the pictures that they need.

    Args:
        dataset: Name of the dataset.
        version: Its version, part of every draw's key.
        subsets: What to build, in the fixed order of the dataset.
        folders: Subset name -> where its source lies, and which split is read.
        options: What the user chose.
        pictures_folder: New pictures go to ``<pictures_folder>/<subset>/``.
        apart: Leaves out what would leak into another dataset.

    Raises:
        FormatError: A source is not what its reader expects.
        BuildError: No picture of any subset can take part.
    """
    key = Key(version, options.seed)
    built: list[SubsetBuild] = []
    empty: dict[str, tuple[ReadReport, LeftOut]] = {}
    for subset in subsets:
        outcome = _build_subset(
            subset, folders[subset.name], options, key, pictures_folder / subset.name, apart
        )
        if isinstance(outcome, SubsetBuild):
            built.append(outcome)
        else:
            empty[subset.name] = outcome
    if not built:
        raise BuildError(
            "No picture can take part.\n" + "\n".join(map(explain_empty, empty.items()))
        )
    letters = tuple(assign_letters([b.asked.questions for b in built], key))
    unsigned = SouBuild(dataset, key, options, tuple(built), empty, letters)
    return replace(unsigned, fingerprint=_fingerprint(unsigned))


def explain_empty(item: tuple[str, tuple[ReadReport, LeftOut]]) -> str:
    """Say why a subset has no row."""
    name, (read, left_out) = item
    reasons = {**read.dropped, **left_out.counts}
    listed = ", ".join(f"{reason} {n}" for reason, n in sorted(reasons.items())) or "none"
    return (
        f"{name}: {read.pictures} pictures read from {read.source} ({read.split}), "
        f"none can carry the sub-tasks; left out by reason: {listed}."
    )


def _build_subset(
    subset: Subset,
    folder: SourceFolder,
    options: BuildOptions,
    key: Key,
    pictures_folder: Path,
    apart: Apart | None,
) -> SubsetBuild | tuple[ReadReport, LeftOut]:
    read = ReadReport(max_pixels=options.max_pixels)
    left_out = LeftOut()
    prepared: list[SouPicture] = []
    scenes = SOURCES[subset.source].read(folder.root.resolve(), folder.split, read)
    for scene in tqdm(scenes, desc=f"{subset.name}: reading", unit=" pictures"):
        picture = prepare(scene, subset)
        if isinstance(picture, str):
            left_out.add(picture, scene.image_id)
        else:
            prepared.append(picture)
    # Readers know all categories of a split only at its end.
    tasks = tasks_for(read.categories)
    lettered = [c for c in read.categories if c.upper() in set(LETTERS)]
    if lettered and Task.CR in tasks:
        raise BuildError(
            f"{subset.name}: there is a category {lettered[0]!r}, which as an option could not be "
            "told from an option's letter. Give it a longer name in the labels."
        )
    pool: list[Candidate] = []
    for picture in prepared:
        found: Candidate | str = apart.by_group(subset, picture) if apart else ""
        if not found:
            found = candidate(picture, options.mode, key, tasks)
        if isinstance(found, str):
            left_out.add(found, picture.image_id)
        else:
            pool.append(found)
    pool.sort(key=lambda c: sample_key(options.seed, c.picture))
    wanted = subset.pictures if options.pictures is None else options.pictures
    limit = None if wanted is None or wanted == "all" else int(wanted)

    rendered: dict[str, Rendered] = {}
    while True:
        sampled = pool[:limit]
        if not sampled:
            return read, left_out
        failed = apart.by_picture(subset, [c.picture for c in sampled]) if apart else {}
        if failed:
            pool = _without(pool, failed, left_out)
            continue
        asked = ask(sampled, read.categories, options.mode, key, small_area_px=subset.small_area_px)
        failed = dict(asked.unable)
        if not failed:
            todo = [c for c in sampled if c.picture.image_id not in rendered]
            for c, result in zip(
                todo, _render(todo, subset, options, pictures_folder), strict=True
            ):
                rendered[c.picture.image_id] = result
                if result.reason:
                    failed[c.picture.image_id] = result.reason
            failed |= _same_bytes(sampled, rendered, failed)
        if not failed:
            break
        messages = {image_id: result.message for image_id, result in rendered.items()}
        pool = _without(pool, failed, left_out, messages)
    return SubsetBuild(
        subset=subset,
        split=folder.split,
        read=read,
        left_out=left_out,
        wanted=limit,
        candidates=tuple(sorted(sampled, key=lambda c: c.picture.image_id)),
        asked=asked,
        rendered={c.picture.image_id: rendered[c.picture.image_id] for c in sampled},
        system_prompt=options.prompts.system(
            subset.source,
            read.categories,
            oriented=sampled[0].picture.oriented,
            small_area_px=subset.small_area_px,
        ),
    )


def _without(
    pool: Sequence[Candidate],
    failed: Mapping[str, str],
    left_out: LeftOut,
    messages: Mapping[str, str] = MappingProxyType({}),
) -> list[Candidate]:
    """Take pictures out of the pool, by reason; the next ones in the order take their places."""
    for image_id, reason in failed.items():
        left_out.add(reason, messages.get(image_id) or image_id)
    return [c for c in pool if c.picture.image_id not in failed]


def _render(
    candidates: Sequence[Candidate], subset: Subset, options: BuildOptions, folder: Path
) -> Iterator[Rendered]:
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        RenderJob(
            source=c.picture.image_path,
            folder=folder,
            stem=file_stem(c.picture.image_id),
            size_wh=(c.picture.width, c.picture.height) if c.picture.shrunk else None,
            mark=c.targets[Task.OL].mark,
            region=options.mode == "balanced",
            max_pixels=options.max_pixels,
        )
        for c in candidates
    ]
    try:
        yield from tqdm(
            in_order(render, jobs, workers=min(options.workers, len(jobs))),
            total=len(jobs),
            desc=f"{subset.name}: pictures",
            unit=" pictures",
        )
    except OSError as error:
        raise PublishError(
            f"{subset.name}: pictures cannot be written to {folder} ({error.strerror}). "
            "Make room there, or set HF_DATASETS_CACHE to another disk."
        ) from error


def _same_bytes(
    sampled: Sequence[Candidate], rendered: Mapping[str, Rendered], failed: Mapping[str, str]
) -> dict[str, str]:
    """Find pictures that are in the sample twice under two names; the later one goes."""
    seen: set[str] = set()
    again: dict[str, str] = {}
    for c in sampled:
        image_id = c.picture.image_id
        if image_id in failed:
            continue
        digest = rendered[image_id].digest
        if digest in seen:
            again[image_id] = "duplicate_picture"
        seen.add(digest)
    return again


def rows(result: SouBuild, selection: Selection, pictures_folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of one config, ordered by picture, then by sub-task.

    Args:
        result: The build.
        selection: Which subsets and sub-task.
        pictures_folder: Where ``<subset>/<file>`` of the rendered pictures will lie.
    """
    tasks = tuple(Task) if selection.task is None else (selection.task,)
    for b, letters in zip(result.subsets, result.letters, strict=True):
        if b.subset.name not in selection.subsets:
            continue
        asked = {
            task: {q.picture.image_id: q for q in b.asked.questions.get(task, ())} for task in tasks
        }
        for c in b.candidates:
            picture = c.picture
            files = b.rendered[picture.image_id]
            folder = pictures_folder / b.subset.name
            plain = picture.image_path if files.plain is None else folder / files.plain
            objects = objects_column(picture)
            for task in tasks:
                question = asked[task].get(picture.image_id)
                if question is None:
                    continue
                letter = letters[task][picture.image_id]
                target = question.target
                marked = folder / files.marked if task is Task.OL else plain
                yield {
                    "id": f"{b.subset.name}/{picture.image_id}/{task.lower()}",
                    "image": {"path": str(marked), "bytes": None},
                    "scenario": b.subset.scenario,
                    "subset": b.subset.name,
                    "image_id": picture.image_id,
                    "group_id": picture.group_id,
                    "task": task.value,
                    "question": result.options.prompts.question(task, target, result.options.mode),
                    "options": question.options(letter),
                    "answer": LETTERS[letter],
                    "answer_text": target.answer,
                    "system_prompt": b.system_prompt,
                    "objects": objects,
                    "evidence": {
                        "objects": list(target.objects),
                        "point_xy": list(target.point_xy or ()),
                        "direction": target.direction,
                        "category": target.category,
                        "mark": list(target.mark),
                    },
                }


def objects_column(picture: SouPicture) -> dict[str, list[Any]]:
    """Return the ``objects`` column: every small object, as a struct of lists."""
    return {
        "category": list(picture.categories),
        "box_xyxy": picture.boxes_xyxy.tolist(),
        "quad_xy8": [] if picture.quads_xy8 is None else picture.quads_xy8.tolist(),
        # GEOS versions may differ in the last bits of a clipped quad's area.
        "area_px": [round(area, 6) for area in picture.areas_px.tolist()],
    }


def _fingerprint(result: SouBuild) -> str:
    everything = Selection(tuple(b.subset.name for b in result.subsets))
    pictures = {
        (b.subset.name, c.picture.image_id): _described(b, c)
        for b in result.subsets
        for c in b.candidates
    }
    return fingerprint(fingerprint_head(result), rows(result, everything, Path()), pictures)


def fingerprint_head(result: SouBuild) -> dict[str, Any]:
    """Return what the fingerprint says of a build besides its rows and pictures."""
    return {
        "dataset": result.dataset,
        "version": result.key.version,
        "seed": result.key.seed,
        "mode": result.options.mode,
        "prompts": result.options.prompts.digest,
        "pillow": PIL.__version__,
        "subsets": [
            {
                "name": b.subset.name,
                "scenario": b.subset.scenario,
                "source": b.subset.source,
                "split": b.split,
                "statistics": b.asked.statistics.as_dict(),
            }
            for b in result.subsets
        ],
    }


def manifest(result: SouBuild) -> dict[str, Any]:
    """Say what pictures a build is made of, without any path.

    Returns:
        ``fingerprint``, ``head`` (see ``fingerprint_head``) and ``pictures``: subset -> image id ->
        ``file_name`` and ``sha256`` of the source picture, ``as_is`` (it is asked about as that
        file, neither scaled nor converted), ``width`` and ``height`` in px as it is asked about,
        ``group_id``, ``plain_sha256`` and ``marked_sha256`` (of the files that the build made:
        scaled or converted, or empty; outlined), and ``objects_sha256``.
    """
    return {
        "fingerprint": result.fingerprint,
        "head": fingerprint_head(result),
        "pictures": {
            b.subset.name: {c.picture.image_id: _described(b, c) for c in b.candidates}
            for b in result.subsets
        },
    }


def _described(b: SubsetBuild, c: Candidate) -> dict[str, Any]:
    files = b.rendered[c.picture.image_id]
    return {
        "file_name": c.picture.image_path.name,
        "sha256": files.digest,
        "as_is": files.plain is None,
        "width": c.picture.width,
        "height": c.picture.height,
        "group_id": c.picture.group_id,
        "plain_sha256": files.plain_digest,
        "marked_sha256": files.marked_digest,
        "objects_sha256": objects_digest(objects_column(c.picture)),
    }
