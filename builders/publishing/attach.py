"""Put a receiver's own copies of the pictures into an export that came without them."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import datasets
import PIL
import pyarrow as pa
import pyarrow.parquet as pq

from soubench.builders.errors import PictureError, PublishError
from soubench.builders.images import PICTURE_SUFFIXES, inspect_picture
from soubench.builders.publishing.export import BUILD_MANIFEST, pixels_of_file, read_json
from soubench.builders.publishing.export_folder import (
    FileSet,
    load_manifest,
    may_be_recovered,
    refuse_several_builds,
    replacing,
    split_card,
    write_readme,
)
from soubench.builders.publishing.picture_parquet import (
    Embedded,
    PictureRows,
    by_picture,
    picture_column,
    read_row_groups,
    write_pictures,
)
from soubench.builders.publishing.picture_rights import rights_of_source
from soubench.builders.rrs.pictures import remake
from soubench.builders.sou.render import RenderJob, file_digest, file_stem, render
from soubench.builders.sou.subsets import Task

SHOWN = 5


@dataclass(slots=True)
class _Index:
    """The pictures below a folder, by name and by what they hold."""

    root: Path
    by_name: dict[str, list[Path]] = field(default_factory=dict)
    digests: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in sorted(self.root.rglob("*")):
            if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file():
                for name in {path.name, path.stem}:
                    self.by_name.setdefault(name, []).append(path)

    def digest(self, path: Path) -> str:
        if path not in self.digests:
            self.digests[path] = file_digest(path)
        return self.digests[path]

    def find(self, file_name: str, digest: str) -> list[Path]:
        """Return the files that may be the one wanted; renamed ones are found by their hash."""
        named = self.by_name.get(file_name, [])
        if not digest:
            return named
        right = [path for path in named if self.digest(path) == digest]
        if right or named:
            return right
        everything = {path for paths in self.by_name.values() for path in paths}
        return [path for path in sorted(everything) if self.digest(path) == digest][:1]


@dataclass(slots=True)
class _Outcome:
    """What became of the pictures of one file set."""

    attached: int = 0
    missing: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)


def attach_pictures(folder: Path, pictures: Path) -> dict[str, Any]:
    """Put pictures into an exported folder, as the build would have done.

    Pictures are found below ``pictures`` by file name or by hash and are checked; outlined and
    scaled copies are made anew. A subset is completed as a whole or left as it is, so that sources
    may be attached one after the other. The folder changes as a whole or not at all.

    Args:
        folder: A folder made by ``soubench export``.
        pictures: The folder of the sources, searched with all folders below it.

    Returns:
        ``attached``: files -> number of pictures; ``left``: files that still have none -> how
        many pictures are ``missing`` and how many ``differ``, with names.

    Raises:
        PublishError: Not an export, nothing to attach, no picture fits, or a subset would be left
            half done: the message names the pictures.
    """
    folder, pictures = folder.expanduser().resolve(), pictures.expanduser().resolve()
    if not may_be_recovered(folder):
        load_manifest(folder)
    if not pictures.is_dir():
        raise PublishError(f"{pictures}: expected a folder with pictures; there is none.")
    refuse_several_builds(folder)
    outcomes: dict[str, _Outcome] = {}
    with replacing(folder) as target:
        manifest = load_manifest(folder)
        todo = [s for s in manifest.sets if s.withheld]
        if not todo:
            raise PublishError(f"{folder}: no pictures are missing; there is nothing to attach.")
        index = _Index(pictures)
        schema = pq.read_schema(folder / todo[0].paths[0])
        key = manifest.version, read_json(folder / BUILD_MANIFEST)["head"].get("seed", 0)
        for s in manifest.sets:
            if s.withheld:
                outcome = outcomes[f"{s.folder}/{s.split}"] = _Outcome()
                with tempfile.TemporaryDirectory(dir=target) as scratch:
                    region = manifest.mode == "balanced"
                    maker = _Maker(index, region, key, Path(scratch), outcome)
                    groups = by_picture(read_row_groups(folder / path for path in s.paths))
                    written = write_pictures(
                        target / s.folder, s.split, (maker.make(g) for g in groups), schema
                    )
                _refuse_half(s, outcome, manifest.pillow, pictures)
                if outcome.attached:
                    s.take(written)
                    s.withheld = False
                    s.notice = _notice(s)
                    continue
                for file in written.files:
                    (target / s.folder / file.name).unlink()
            _copy(folder, target, s.paths)
        if not any(outcome.attached for outcome in outcomes.values()):
            reasons = "; ".join(_reason(name, o) for name, o in outcomes.items())
            raise PublishError(
                f"{pictures}: none of the pictures that {folder} lacks is there. {reasons}"
            )
        known = {"README.md", "export.json", "data"}
        for path in folder.iterdir():
            if path.name not in known:
                copy = shutil.copytree if path.is_dir() else shutil.copy2
                copy(path, target / path.name)
        info = datasets.DatasetInfo(
            features=datasets.Features.from_arrow_schema(schema), version=manifest.version
        )
        head, body = split_card((folder / "README.md").read_text(encoding="utf-8"))
        write_readme(target, head, body, manifest, info)
        manifest.save(target)
    return {
        "attached": {name: o.attached for name, o in outcomes.items() if o.attached},
        "left": {
            name: {"missing": o.missing, "differing": o.differing}
            for name, o in outcomes.items()
            if not o.attached
        },
    }


def _notice(s: FileSet) -> str:
    """Say what attached pictures mean for who wants to pass the folder on."""
    rights = rights_of_source(s.source, s.license)
    if rights.pictures_may_go:
        return rights.notice
    return (
        f"Pictures of {s.source} (license: {s.license}) were put in with `soubench attach`, for "
        "own use: do not pass this folder on without the right to redistribute them"
    )


def _copy(folder: Path, target: Path, paths: Sequence[str]) -> None:
    for path in paths:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / path, target / path)


def _refuse_half(s: FileSet, outcome: _Outcome, pillow: str, pictures: Path) -> None:
    if outcome.attached and (outcome.missing or outcome.differing):
        hint = (
            ""
            if pillow == PIL.__version__
            else (
                f" The export was made with Pillow {pillow}, and this is {PIL.__version__}, which "
                "may scale or decode differently."
            )
        )
        raise PublishError(
            f"{pictures}: only {outcome.attached} of the pictures of {s.source} fit, so nothing "
            f"was changed. {_reason(f'{s.folder}/{s.split}', outcome)}{hint}"
        )


def _reason(name: str, outcome: _Outcome) -> str:
    parts = [
        f"{len(names)} {what} ({', '.join(names[:SHOWN])}{', ..' if len(names) > SHOWN else ''})"
        for what, names in (
            ("missing", outcome.missing),
            ("not the picture that was used", outcome.differing),
        )
        if names
    ]
    return f"{name}: {', '.join(parts)}."


@dataclass(slots=True)
class _Maker:
    """Makes the pictures of one file set, one source picture at a time.

    Attributes:
        index: Where the source pictures are.
        region: The outline is around a region, not around the object itself.
        key: Version and seed of the build.
        scratch: Where pictures are made.
        outcome: What became of them.
    """

    index: _Index
    region: bool
    key: tuple[str, int]
    scratch: Path
    outcome: _Outcome

    def make(self, group: pa.Table) -> PictureRows:
        column = picture_column(group.schema)
        rows = group.drop_columns([column])
        if column == "images":
            return self._make_record(rows)
        wanted = rows.slice(0, 1).to_pylist()[0]
        name = wanted["file_name"]
        images: list[list[Embedded]] | None = None
        for source in self.index.find(name, wanted["sha256"]):
            images = self._made(rows, source)
            if images is not None:
                break
        if images is None:
            return self._left(rows, name)
        self.outcome.attached += 1
        return PictureRows(rows, images)

    def _left(self, rows: pa.Table, name: str) -> PictureRows:
        there = name in self.index.by_name
        (self.outcome.differing if there else self.outcome.missing).append(name)
        return PictureRows(rows, [()] * rows.num_rows)

    def _make_record(self, rows: pa.Table) -> PictureRows:
        """Make the pictures of the rows of a record, which all have the same sources."""
        wanted = rows.slice(0, 1).to_pylist()[0]
        sources: list[Path] = []
        for name, digest in zip(wanted["file_name"], wanted["sha256"], strict=True):
            found = self.index.find(name, digest)
            if not found:
                return self._left(rows, name)
            sources.append(found[0])
        images: list[list[Embedded]] = []
        try:
            for row in rows.to_pylist():
                images.append(self._remade(row, sources))
        except PictureError:
            return self._left(rows, wanted["file_name"][0])
        self.outcome.attached += len(sources)
        return PictureRows(rows, images)

    def _remade(self, row: dict[str, Any], sources: Sequence[Path]) -> list[Embedded]:
        """Make the pictures of a row anew.

        Raises:
            PictureError: One came out other than it was.
        """
        made = []
        for source, digest, pixels in zip(
            sources, row["sha256"], row["pixels_sha256"], strict=True
        ):
            if not pixels:
                data = source.read_bytes()
                if sha256(data).hexdigest() != digest:
                    raise PictureError("changed", f"{source} is not the picture that was used")
                made.append(Embedded(data, source.name))
                continue
            path = remake(row, source, self.key, self.scratch)
            if pixels_of_file(path) != pixels:
                raise PictureError("changed", f"{source} came out other than it was")
            made.append(Embedded(path.read_bytes(), path.name))
        return made

    def _made(self, rows: pa.Table, source: Path) -> list[list[Embedded]] | None:
        """Make the pictures of all rows; None if they are not those that were asked about."""
        first = rows.slice(0, 1).to_pylist()[0]
        try:
            # Whatever size the build took.
            info = inspect_picture(source, max_pixels=sys.maxsize)
        except PictureError:
            return None
        size_wh = (first["width"], first["height"])
        mark = next(self._marks(rows), None)
        done = render(
            RenderJob(
                source=source,
                folder=self.scratch,
                stem=file_stem(first.get("image_id") or source.stem),
                size_wh=None if (info.width, info.height) == size_wh else size_wh,
                mark=mark or (0, 0, 1, 1),
                region=self.region,
                max_pixels=max(info.width * info.height, 1),
            )
        )
        if done.reason:
            return None
        plain = source if done.plain is None else self.scratch / done.plain
        marked = self.scratch / done.marked
        tasks = rows["task"].to_pylist() if mark else [""] * rows.num_rows
        paths = [marked if task == Task.OL else plain for task in tasks]
        try:
            return self._checked(rows, paths, source)
        finally:
            for path in {plain, marked} - {source}:
                path.unlink(missing_ok=True)

    def _checked(
        self, rows: pa.Table, paths: Sequence[Path], source: Path
    ) -> list[list[Embedded]] | None:
        expected = set(zip(paths, rows["pixels_sha256"].to_pylist(), strict=True))
        if any(digest and pixels_of_file(path) != digest for path, digest in expected):
            return None
        read = {path: Embedded(path.read_bytes(), path.name) for path in set(paths)}
        wanted = rows["sha256"][0].as_py()
        # The very bytes that go in, should the file change while we work.
        if wanted and source in read and sha256(read[source].data).hexdigest() != wanted:
            return None
        return [[read[path]] for path in paths]

    @staticmethod
    def _marks(rows: pa.Table) -> Iterator[tuple[int, ...]]:
        if "evidence" in rows.column_names:
            for task, evidence in zip(
                rows["task"].to_pylist(), rows["evidence"].to_pylist(), strict=True
            ):
                if task == Task.OL:
                    yield tuple(evidence["mark"])
