"""From the folders of the plant set to rows of four splits in which no plant is seen twice.

The paper (001, A.2.2) leaves the combinations of subsets open. Three experiments make the walls:
Arabidopsis 2013 is learned from and tested on, Arabidopsis 2012 is the smaller shift (other
cameras, pots and more leaves), tobacco the larger one. Within Ara2013 whole genotypes go to
``test``, as nothing else in the files surely keeps a plant's pictures together. The stacks of
Ara2013 show plants of the same trays, and not of which genotype: they are left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import PIL
from PIL.PngImagePlugin import PngImageFile
from tqdm import tqdm

from soubench.builders.errors import BuildError, PictureError
from soubench.builders.images import MAX_PICTURE_PX, inspect_picture, load_picture
from soubench.builders.keyed import keyed_hash
from soubench.builders.parallel import in_order
from soubench.builders.plants.labels import Notice
from soubench.builders.plants.prompt import Prompt
from soubench.builders.plants.reader import (
    Outcome,
    PictureFiles,
    PlantPicture,
    Subset,
    count,
    find_pictures,
    read_picture,
    without_folder,
)
from soubench.builders.plants.targets import FORMATS, Center, in_order_of_reading
from soubench.builders.scene import ReadReport

SPLITS: Mapping[str, tuple[Subset, ...]] = {
    "train": (Subset.ARA2013,),
    "test": (Subset.ARA2013,),
    "od_test": (Subset.ARA2012, Subset.STACKS_ARA2012),
    "strong_od_test": (Subset.TOBACCO,),
}
"""Split -> the subsets that it is made of."""
LEFT_OUT = Subset.STACKS_ARA2013
GROUPS_PER_TEST_GROUP = 5
"""One genotype of five is tested on."""


@dataclass(frozen=True, slots=True)
class PlantRow:
    """One picture with its place in the dataset.

    Attributes:
        picture: The picture and its leaves.
        split: The split it belongs to.
        file: The picture as it is asked about: a file name in the pictures folder, or None if the
            source's own file serves.
        digest: SHA-256 of the source's picture file, hexadecimal.
    """

    picture: PlantPicture
    split: str
    file: str | None
    digest: str

    @property
    def centers(self) -> list[Center]:
        """The leaves' centers from top to bottom, then from left to right."""
        return in_order_of_reading(leaf.center for leaf in self.picture.leaves)


@dataclass(frozen=True, slots=True)
class PlantBuild:
    """A finished build.

    Attributes:
        version: Version of the dataset.
        seed: Seed of the split.
        prompt: The words of the question.
        read: What the reader met.
        left_out: Pictures that were found but take no part, by reason.
        test_groups: The groups of plants that ``test`` is made of.
        rows: Every row, by split, then by subset and name.
        fingerprint: SHA-256 of everything that is emitted, hexadecimal.
    """

    version: str
    seed: int
    prompt: Prompt
    read: ReadReport
    left_out: Mapping[str, int]
    test_groups: tuple[str, ...]
    rows: tuple[PlantRow, ...]
    fingerprint: str

    @property
    def splits(self) -> list[str]:
        """The splits that have rows, in their fixed order."""
        return [split for split in SPLITS if any(row.split == split for row in self.rows)]


@dataclass(frozen=True, slots=True)
class _Job:
    found: PictureFiles
    folder: Path
    max_pixels: int


@dataclass(frozen=True, slots=True)
class _Prepared:
    outcome: Outcome
    file: str | None = None
    digest: str = ""


def build(
    root: Path,
    version: str,
    prompt: Prompt,
    *,
    seed: int,
    workers: int,
    pictures_folder: Path,
    max_pixels: int = MAX_PICTURE_PX,
) -> PlantBuild:
    """Read the plant set, split it, and write the pictures that need converting.

    Args:
        root: The folder of the plant set.
        version: Version of the dataset, part of the key of the split.
        prompt: The words of the question.
        seed: Another seed tests on another genotype.
        workers: Processes that read pictures; changes no byte of the result.
        pictures_folder: New pictures go here.
        max_pixels: Larger pictures are dropped, in px.

    Raises:
        FormatError: The folder is not what the reader expects.
        BuildError: No picture can take part.
    """
    read = ReadReport(source="minervini", max_pixels=max_pixels)
    found = find_pictures(root, read)
    wanted = [files for files in found if files.subset is not LEFT_OUT]
    test_groups = choose_test_groups(
        {files.plant_id for files in wanted if files.subset in SPLITS["test"]}, version, seed
    )
    pictures_folder.mkdir(parents=True, exist_ok=True)
    jobs = [_Job(files, pictures_folder, max_pixels) for files in wanted]
    rows: list[PlantRow] = []
    seen: set[str] = set()
    prepared = in_order(_prepare, jobs, workers=min(workers, len(jobs)))
    for result in tqdm(prepared, total=len(jobs), desc="plants", unit=" pictures"):
        picture = result.outcome.picture
        if picture is not None and result.digest in seen:
            read.drop("duplicate_picture", f"{picture.subset}/{picture.name}")
            if result.file is not None:
                (pictures_folder / result.file).unlink()
            continue
        count(result.outcome, read)
        if picture is not None:
            seen.add(result.digest)
            split = _split_of(picture, test_groups)
            rows.append(PlantRow(picture, split, result.file, result.digest))
    if not rows:
        reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(read.dropped.items())) or "none"
        raise BuildError(
            f"{root}: no picture of the plant set can take part. {len(found)} labelled pictures "
            f"were found, {len(found) - len(wanted)} of them in {LEFT_OUT}, which takes no part; "
            f"dropped by reason: {reasons}. Check that the folder is complete."
        )
    rows.sort(key=lambda row: list(SPLITS).index(row.split))
    left_out = {"stack_may_show_a_train_plant": len(found) - len(wanted)}
    return PlantBuild(
        version=version,
        seed=seed,
        prompt=prompt,
        read=read,
        left_out={reason: n for reason, n in left_out.items() if n},
        test_groups=test_groups,
        rows=tuple(rows),
        fingerprint=_fingerprint(version, seed, prompt, rows),
    )


def choose_test_groups(groups: Iterable[str], version: str, seed: int) -> tuple[str, ...]:
    """Choose the groups of plants to test on: one of five, by the smallest keyed hashes.

    At least one, unless there is only one group, which is then for training.
    """
    ranked = sorted(groups, key=lambda group: (keyed_hash("test", version, seed, group), group))
    wanted = max(1, len(ranked) // GROUPS_PER_TEST_GROUP) if len(ranked) > 1 else 0
    return tuple(sorted(ranked[:wanted]))


def _split_of(picture: PlantPicture, test_groups: Sequence[str]) -> str:
    if picture.subset in SPLITS["test"]:
        return "test" if picture.plant_id in test_groups else "train"
    return next(split for split, subsets in SPLITS.items() if picture.subset in subsets)


def _prepare(job: _Job) -> _Prepared:
    """Read one picture's labels, decode it in full, and convert it if it is not plain RGB."""
    outcome = read_picture(job.found, max_pixels=job.max_pixels)
    picture = outcome.picture
    if picture is None:
        return _Prepared(outcome)
    notices = outcome.notices
    try:
        info = inspect_picture(picture.image_path, max_pixels=job.max_pixels)
        image = load_picture(picture.image_path, max_pixels=job.max_pixels)
    except PictureError as error:
        where = f"{job.found.where}: {without_folder(error, job.found)}"
        return _Prepared(Outcome(None, (*notices, Notice("drop", error.reason, where))))
    file: str | None = None
    if not info.plain:
        reason = "picture_converted"
        if info.format == "PNG" and info.mode == "RGBA":
            # Repackaged copies carry an alpha channel that means nothing: what it hides is plant.
            with PngImageFile(picture.image_path) as source:
                image = source.convert("RGB")
            reason = "alpha_dropped"
        file = f"{picture.subset}-{quote(picture.name, safe='')}.png"
        image.save(job.folder / file)
        notices = (*notices, Notice("repair", reason, job.found.where))
    digest = sha256(picture.image_path.read_bytes()).hexdigest()
    return _Prepared(Outcome(picture, notices), file, digest)


def rows(
    result: PlantBuild, output_format: str, split: str, pictures_folder: Path
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one config and split, by subset and name.

    Args:
        result: The build.
        output_format: ``sentence`` or ``tuple``.
        split: One of the splits.
        pictures_folder: Where the converted pictures will lie.
    """
    for row in result.rows:
        if row.split == split:
            path = row.picture.image_path if row.file is None else pictures_folder / row.file
            yield {
                "image": {"path": str(path), "bytes": None},
                **_columns(row, result.prompt),
                "target": FORMATS[output_format](row.centers),
            }


def _columns(row: PlantRow, prompt: Prompt) -> dict[str, Any]:
    centers = row.centers
    return {
        "id": f"{row.picture.subset}/{row.picture.name}",
        "question": prompt.question,
        "leaf_count": len(centers),
        "centers_xy": [list(center) for center in centers],
        "subset": row.picture.subset.value,
        "plant_id": row.picture.plant_id,
    }


def _fingerprint(version: str, seed: int, prompt: Prompt, rows: Sequence[PlantRow]) -> str:
    """Hash what is emitted: options, the bytes of the source pictures, and every row.

    Paths are left out, so that the same data elsewhere on disk has the same fingerprint.
    """
    return fingerprint(
        _head(version, seed, prompt),
        (
            _columns(row, prompt)
            | {"split": row.split, "picture": row.digest}
            | {name: write(row.centers) for name, write in FORMATS.items()}
            for row in rows
        ),
    )


def _head(version: str, seed: int, prompt: Prompt) -> dict[str, Any]:
    return {
        "dataset": "plant-leaves",
        "version": version,
        "seed": seed,
        "prompt": prompt.digest,
        "pillow": PIL.__version__,
    }


def fingerprint(head: Mapping[str, Any], emitted: Iterable[Mapping[str, Any]]) -> str:
    """Hash options and rows.

    Args:
        head: Dataset, version, seed, digest of the prompt, Pillow.
        emitted: Per row ``id``, ``question``, ``leaf_count``, ``centers_xy``, ``subset``,
            ``plant_id``, ``split``, ``picture`` (SHA-256 of the source's file), and the target in
            each format.

    Returns:
        64 hexadecimal digits.
    """
    digest = sha256(_canonical(head))
    for row in emitted:
        digest.update(_canonical(row))
    return digest.hexdigest()


def manifest(result: PlantBuild) -> dict[str, Any]:
    """Say what a build is made of.

    Returns:
        ``fingerprint``, ``head`` and ``pictures``: row id -> ``file_name`` and ``sha256`` of the
        source's picture, and ``as_is``: it is asked about as that file.
    """
    return {
        "fingerprint": result.fingerprint,
        "head": _head(result.version, result.seed, result.prompt),
        "pictures": {
            _columns(row, result.prompt)["id"]: {
                "file_name": row.picture.image_path.name,
                "sha256": row.digest,
                "as_is": row.file is None,
            }
            for row in result.rows
        },
    }


def _canonical(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
