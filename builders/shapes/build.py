"""The pictures and rows of primitive-shapes: one ordered pass over all configurations, then ink."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import PIL
from PIL import Image
from tqdm import tqdm

from soubench.builders.errors import BuildError
from soubench.builders.parallel import chunks, in_order
from soubench.builders.prompt_file import read_prompt_file
from soubench.builders.shapes.configuration import Configuration
from soubench.builders.shapes.draw import draw_picture
from soubench.builders.shapes.sampler import SPLITS, draw, unique
from soubench.builders.shapes.targets import FORMATS, attributes, target_order
from soubench.builders.shapes.tikz import PAGES_PER_RUN, check_installed, render_tikz

Renderer = Literal["pillow", "tikz"]
RENDERERS: tuple[Renderer, ...] = ("pillow", "tikz")
PNG_LEVEL = 6
PROMPT_FILE = "prompts_v1.toml"
PICTURES_PER_JOB = 100


@dataclass(frozen=True, slots=True)
class ShapesOptions:
    """What a user may choose. Everything but ``workers`` and ``keep_tex`` is in the fingerprint.

    Attributes:
        seed: Seed of every draw.
        renderer: ``pillow`` or ``tikz``.
        pictures: Split -> number of pictures; the paper's where a split is not named.
        workers: Processes.
        keep_tex: A folder for the ``.tex`` files of the TikZ renderer.
        prompt: A prompt file of the user's own.
    """

    seed: int = 0
    renderer: Renderer = "pillow"
    pictures: Mapping[str, int] | None = None
    workers: int = 1
    keep_tex: Path | None = None
    prompt: Path | None = None

    def sizes(self) -> dict[str, int]:
        """Return the number of pictures of each split, in the order of the splits."""
        chosen = self.pictures or {}
        return {name: chosen.get(name, rule.pictures) for name, rule in SPLITS.items()}


@dataclass(frozen=True, slots=True)
class ShapesBuild:
    """All configurations of a build, drawn.

    Attributes:
        options: What the user chose.
        version: Version of the dataset.
        questions: Output format -> question.
        configurations: Split -> its configurations, in the order of their rows.
        digests: Split -> SHA-256 of their picture files.
        head: What the fingerprint says of the build besides.
        fingerprint: SHA-256 of everything that is emitted, hexadecimal.
    """

    options: ShapesOptions
    version: str
    questions: Mapping[str, str]
    configurations: Mapping[str, Sequence[Configuration]]
    digests: Mapping[str, Sequence[str]]
    head: Mapping[str, Any]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class _SampleJob:
    version: str
    seed: int
    split: str
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _DrawJob:
    folder: Path
    first: int
    configurations: tuple[Configuration, ...]
    renderer: Renderer
    keep_tex: Path | None


def build_shapes(version: str, options: ShapesOptions, pictures_folder: Path) -> ShapesBuild:
    """Sample every split and draw every picture once, as ``<folder>/<split>/<index>.png``.

    Raises:
        BuildError: A rule cannot be met, a number is wrong, or the renderer is not installed.
    """
    sizes = options.sizes()
    unknown = set(options.pictures or {}) - set(SPLITS)
    if unknown or min(sizes.values()) < 1:
        raise BuildError(
            f"Expected a number of at least 1 for any of {', '.join(SPLITS)}; got "
            f"{dict(options.pictures or {})}."
        )
    if options.renderer == "tikz":
        check_installed()
    questions, prompt_digest = load_questions(options.prompt)
    sampled = _sample(version, options, sizes)
    digests = _draw(sampled, options, pictures_folder)
    head = {
        "version": version,
        "seed": options.seed,
        "renderer": options.renderer,
        "pillow": PIL.__version__,
        "prompts": prompt_digest,
    }
    md5s = {split: [c.md5() for c in found] for split, found in sampled.items()}
    digest = fingerprint(head, md5s, digests)
    return ShapesBuild(options, version, questions, sampled, digests, head, digest)


def fingerprint(
    head: Mapping[str, Any],
    md5s: Mapping[str, Sequence[str]],
    digests: Mapping[str, Sequence[str]],
) -> str:
    """Hash options, configurations and pictures.

    Args:
        head: Version, seed, renderer, Pillow, digest of the prompts.
        md5s: Split -> MD5 of its configurations, in the order of the rows.
        digests: Split -> SHA-256 of their picture files.

    Returns:
        64 hexadecimal digits.
    """
    digest = sha256(json.dumps(head, sort_keys=True).encode())
    for split, found in md5s.items():
        for md5, picture in zip(found, digests[split], strict=True):
            digest.update(f"{split} {md5} {picture}\n".encode())
    return digest.hexdigest()


def manifest(result: ShapesBuild) -> dict[str, Any]:
    """Say what a build is made of: ``fingerprint``, ``head`` and ``pictures``, hashes per split."""
    return {
        "fingerprint": result.fingerprint,
        "head": dict(result.head),
        "pictures": {split: list(found) for split, found in result.digests.items()},
    }


def load_questions(path: Path | None = None) -> tuple[dict[str, str], str]:
    """Return output format -> question, and the SHA-256 of the prompt file.

    Raises:
        FormatError: The file cannot be read, or lacks a question.
    """
    file = read_prompt_file(path or Path(str(files("soubench.builders.shapes") / PROMPT_FILE)))
    questions = file.table.get("questions")
    found = questions if isinstance(questions, dict) else {}
    checked = {
        name: file.text(f"[questions] {name}", found.get(name), PROMPT_FILE) for name in FORMATS
    }
    return checked, file.digest


def _sample(
    version: str, options: ShapesOptions, sizes: Mapping[str, int]
) -> dict[str, list[Configuration]]:
    jobs = [
        _SampleJob(version, options.seed, split, indices)
        for split, n in sizes.items()
        for indices in chunks(range(n), PICTURES_PER_JOB)
    ]

    def drawn() -> Iterator[tuple[str, int, Configuration]]:
        for job, found in zip(
            jobs, in_order(_sample_chunk, jobs, workers=options.workers), strict=True
        ):
            for index, configuration in zip(job.indices, found, strict=True):
                yield job.split, index, configuration

    sampled: dict[str, list[Configuration]] = {split: [] for split in sizes}
    total = sum(sizes.values())
    for split, _, configuration in tqdm(
        unique(version, options.seed, drawn()), total=total, desc="sampling", unit=" pictures"
    ):
        sampled[split].append(configuration)
    return sampled


def _sample_chunk(job: _SampleJob) -> list[Configuration]:
    return [draw(job.version, job.seed, job.split, i) for i in job.indices]


def _draw(
    sampled: Mapping[str, Sequence[Configuration]], options: ShapesOptions, folder: Path
) -> dict[str, list[str]]:
    """Draw everything; return the SHA-256 of each file, and refuse two that are equal."""
    size = PICTURES_PER_JOB if options.renderer == "pillow" else PAGES_PER_RUN
    jobs = [
        _DrawJob(folder / split, i * size, chunk, options.renderer, options.keep_tex)
        for split, configurations in sampled.items()
        for i, chunk in enumerate(chunks(configurations, size))
    ]
    for split in sampled:
        (folder / split).mkdir(parents=True, exist_ok=True)
    digests: dict[str, list[str]] = {split: [] for split in sampled}
    seen: dict[str, str] = {}
    total = sum(map(len, sampled.values()))
    with tqdm(total=total, desc="drawing", unit=" pictures") as bar:
        results = in_order(_draw_chunk, jobs, workers=options.workers)
        for job, found in zip(jobs, results, strict=True):
            for i, digest in enumerate(found, job.first):
                name = f"{job.folder.name}/{i:06d}.png"
                if digest in seen:
                    raise BuildError(
                        f"{name} and {seen[digest]} are the same picture though their "
                        "configurations differ: choose another --seed, and report this."
                    )
                seen[digest] = name
            digests[job.folder.name] += found
            bar.update(len(found))
    return digests


def _draw_chunk(job: _DrawJob) -> list[str]:
    images: Iterator[Image.Image]
    if job.renderer == "pillow":
        images = map(draw_picture, job.configurations)
    else:
        keep = None if job.keep_tex is None else job.keep_tex / f"{job.folder.name}_{job.first:06d}"
        images = render_tikz(job.configurations, keep_tex=keep)
    digests = []
    for i, image in enumerate(images, job.first):
        path = job.folder / f"{i:06d}.png"
        image.save(path, compress_level=PNG_LEVEL)
        digests.append(sha256(path.read_bytes()).hexdigest())
    return digests


def rows(
    result: ShapesBuild, output_format: str, split: str, pictures_folder: Path
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one config and split.

    Args:
        result: The build.
        output_format: ``sentence`` or ``tuple``.
        split: Name of the split.
        pictures_folder: Where ``<split>/<index>.png`` will lie.
    """
    write = FORMATS[output_format]
    for i, configuration in enumerate(result.configurations[split]):
        said = attributes(configuration)
        depths = target_order(configuration)
        yield {
            "id": f"{split}/{i:06d}",
            "image": {"path": str(pictures_folder / split / f"{i:06d}.png"), "bytes": None},
            "question": result.questions[output_format],
            "target": write(said),
            "shapes": {
                "shape": [a.shape for a in said],
                "color": [a.color for a in said],
                "quadrant": [a.quadrant for a in said],
                "center_xy": [list(a.center_xy) for a in said],
                "relative_position": [a.relative_position for a in said],
                "rotation": [a.rotation for a in said],
                "occluded": [a.occluded for a in said],
                "half_long": [configuration.shapes[d].half_long for d in depths],
                "half_short": [configuration.shapes[d].half_short for d in depths],
                "depth": depths,
            },
            "config_md5": configuration.md5(),
        }
