"""Find label files and pictures below the folder that a user points at."""

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from soubench.builders.errors import FormatError, PictureError, SplitError
from soubench.builders.images import PICTURE_SUFFIXES
from soubench.builders.scene import ReadReport

_SPELLINGS = {"val": ("val", "valid", "validation"), "train": ("train", "training")}
_SPLIT_WORDS = frozenset(
    {"train", "training", "val", "valid", "validation", "test", "trainval", "minival"}
)
_LABEL_WORDS = frozenset(
    {"ann", "anns", "annotation", "annotations", "json", "jsons", "label", "labels"}
)
_ROLE_FOLDERS = frozenset({"images", "annotations", "labels", "jpegimages", "labeltxt", "annfiles"})


@dataclass(frozen=True, slots=True)
class Files:
    """Every file below a folder, listed once.

    Attributes:
        root: The folder.
        paths: Paths relative to it, sorted; hidden files and folders are left out.
    """

    root: Path
    paths: tuple[PurePosixPath, ...]

    @classmethod
    def below(cls, root: Path) -> "Files":
        """List a folder; linked folders are followed, unreadable ones are left out."""
        return cls(root, tuple(sorted(_walk(root, PurePosixPath(), set()))))

    def with_suffix(self, suffixes: Iterable[str]) -> tuple[PurePosixPath, ...]:
        """Return the files with one of these lower-case suffixes, whatever their case."""
        wanted = frozenset(suffixes)
        return tuple(path for path in self.paths if path.suffix.lower() in wanted)

    def inside(self, folder: PurePosixPath) -> "Files":
        """Return the files below a folder, which is given relative to the root."""
        depth = len(folder.parts)
        return Files(
            self.root / folder,
            tuple(
                PurePosixPath(*path.parts[depth:])
                for path in self.paths
                if path.parts[:depth] == folder.parts and len(path.parts) > depth
            ),
        )


def _walk(
    folder: Path, relative: PurePosixPath, seen: set[tuple[int, int]]
) -> Iterator[PurePosixPath]:
    try:
        status = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    if (status.st_dev, status.st_ino) in seen:
        return
    seen.add((status.st_dev, status.st_ino))
    for entry in entries:
        # "._a.jpg" and "__MACOSX" are what macOS archives leave behind.
        if entry.name.startswith(".") or entry.name == "__MACOSX":
            continue
        try:
            is_folder = entry.is_dir()
        except OSError:
            continue
        if is_folder:
            yield from _walk(folder / entry.name, relative / entry.name, seen)
        else:
            yield relative / entry.name


def name_words(name: str) -> list[str]:
    """Split a file or folder name into lower-case words and numbers."""
    return re.findall(r"[a-z]+|\d+", name.casefold())


def names_split(name: str, split: str) -> bool:
    """Say whether a name has the split as a word of its own (``trainval`` is not ``train``)."""
    words = name_words(name)
    return any(
        words[i : i + len(wanted)] == wanted
        for wanted in _spellings(split)
        for i in range(len(words) - len(wanted) + 1)
    )


def _spellings(split: str) -> list[list[str]]:
    spelled = _SPELLINGS.get(split.casefold(), (split,))
    return [words for words in map(name_words, spelled) if words]


def _ends_with_split(name: str, split: str) -> bool:
    """Say whether the last word of a name is the split, as in ``VisDrone2019-DET-val``."""
    words = [word for word in name_words(name) if not word.isdigit()]
    return any(words[-len(wanted) :] == wanted for wanted in _spellings(split))


def _is_split(name: str, split: str) -> bool:
    """Say whether a name is the split and nothing else, as in ``val2017``."""
    return [word for word in name_words(name) if not word.isdigit()] in _spellings(split)


def _split_words(folders: Iterable[str]) -> set[str]:
    return {word for folder in folders for word in name_words(folder)} & _SPLIT_WORDS


def fold_name(text: str) -> str:
    """Return what two spellings of a file name have in common: no case, accents composed."""
    return unicodedata.normalize("NFC", text).casefold()


def label_parts(name: str) -> tuple[str, ...]:
    """Split a file name out of a label into its parts, whichever slashes it was written with."""
    parts = name.replace("\\", "/").split("/")
    return tuple(part for part in parts if part not in ("", ".", ".."))


class PictureIndex:
    """The pictures below a folder, found by relative path, base name or stem.

    Case and the kind of slash do not matter. Of several pictures of one base name the one whose
    folders agree best with the label's is taken, then the one in the split's folder. Where the
    folder of the wanted split exists, pictures in the folder of another split are not taken.
    """

    def __init__(self, files: Files, split: str) -> None:
        self.root = files.root
        self._paths = files.with_suffix(PICTURE_SUFFIXES)
        self._split = split
        self._by_name: dict[str, list[PurePosixPath]] = {}
        self._by_stem: dict[str, list[PurePosixPath]] = {}
        for path in self._paths:
            self._by_name.setdefault(fold_name(path.name), []).append(path)
            self._by_stem.setdefault(fold_name(path.stem), []).append(path)
        folders = {path.parent for path in self._paths}
        self._named_splits = {folder: _split_words(folder.parts) for folder in folders}
        self._split_folders = {folder for folder in folders if self._in_split_folder(folder)}
        self._has_split_folder = bool(self._split_folders)

    def find(self, name: str) -> Path:
        """Return the picture that a label file names.

        Args:
            name: The ``file_name`` of the label, relative or not.

        Raises:
            PictureError: With the reason ``picture_missing`` or ``picture_ambiguous``.
        """
        parts = label_parts(name)
        named = self._by_name.get(fold_name(parts[-1]), []) if parts else []
        return self._choose(named, parts, name)

    def find_stem(self, stem: str) -> Path:
        """Return the picture with this stem; raises as `find`."""
        return self._choose(self._by_stem.get(fold_name(stem), []), (), stem)

    def split_paths(self) -> tuple[PurePosixPath, ...]:
        """Return the pictures that may be of the split."""
        return tuple(path for path in self._paths if self._eligible(path, ()))

    def _choose(self, named: Sequence[PurePosixPath], parts: tuple[str, ...], name: str) -> Path:
        folders = tuple(fold_name(part) for part in parts[:-1])
        candidates = [path for path in named if self._eligible(path, folders)]
        if not candidates:
            raise PictureError("picture_missing", f"there is no picture {name!r} in {self.root}")
        if len(candidates) > 1:
            ranks = [self._rank(path, folders, parts) for path in candidates]
            best = max(ranks)
            candidates = [p for p, rank in zip(candidates, ranks, strict=True) if rank == best]
        if len(candidates) > 1:
            listed = ", ".join(str(path) for path in candidates[:3])
            raise PictureError(
                "picture_ambiguous", f"{name!r} may be any of {len(candidates)} files: {listed}"
            )
        return self.root / candidates[0]

    def _eligible(self, path: PurePosixPath, label_folders: tuple[str, ...]) -> bool:
        named = self._named_splits[path.parent]
        if not named:
            return True
        asked = _split_words(label_folders)
        if asked and not named & asked:
            return False
        if not self._has_split_folder or path.parent in self._split_folders:
            return True
        return "trainval" in named and self._split in ("train", "val")

    def _rank(
        self, path: PurePosixPath, label_folders: tuple[str, ...], parts: tuple[str, ...]
    ) -> tuple[bool, int, bool, bool]:
        """Say how well a picture fits a label's path; the first difference decides."""
        folders = tuple(fold_name(part) for part in path.parts[:-1])
        return (
            folders == label_folders,
            _common_tail(folders, label_folders),
            path.parent in self._split_folders,
            path.name == parts[-1] if parts else False,
        )

    def _in_split_folder(self, folder: PurePosixPath) -> bool:
        return any(names_split(part, self._split) for part in folder.parts)


def _common_tail(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    length = 0
    for one, other in zip(reversed(first), reversed(second), strict=False):
        if one != other:
            break
        length += 1
    return length


@dataclass(frozen=True, slots=True)
class LabelFile:
    """One JSON label file and the listed folder that it was found in.

    Attributes:
        path: The label file.
        files: The listed folder; None where the user named the label file itself.
    """

    path: Path
    files: Files | None


def find_json(
    root: Path,
    split: str,
    *,
    source: str,
    layout: str,
    prefer_name: str = "",
    by_folder: bool = False,
) -> LabelFile:
    """Find the one JSON label file of a split.

    Args:
        root: The dataset's folder, the folder above, a folder in it, or the JSON file itself.
        split: Name of the split, a word of the wanted file's name.
        source: Name of the source; where several files fit, folders that have it decide.
        layout: The usual place of the file, for messages.
        prefer_name: Where several files fit, a word of the file name that decides.
        by_folder: Whether a file whose own name says no split may be chosen by its folders.

    Returns:
        The file, and the listing it was found in.

    Raises:
        FormatError: If nothing fits, or several files do.
    """
    if root.is_file():
        return LabelFile(root, None)
    looked: list[Path] = []
    for folder in folder_and_up(root, split):
        looked.append(folder)
        files = Files.below(folder)
        present = files.with_suffix({".json"})
        fitting = [path for path in present if _fits(path, folder, split, by_folder=by_folder)]
        fitting = _prefer_source(fitting, source)
        if len(fitting) > 1 and prefer_name:
            fitting = [p for p in fitting if prefer_name in name_words(p.stem)] or fitting
        if len(fitting) > 1:
            raise FormatError(
                f"{folder}: {len(fitting)} JSON files fit the split {split!r} of {source}: "
                f"{listed(fitting)}. Pass the path of the JSON file itself."
            )
        if fitting:
            return LabelFile(folder / fitting[0], files)
    found = listed(present) if present else "no JSON file"
    raise SplitError(
        f"{source}: expected a JSON file of the split {split!r} (usually {layout}) below "
        f"{' or '.join(map(str, looked))}, found {found}. Check the folder and the split, or pass "
        "the path of the JSON file itself."
    )


def folder_and_up(root: Path, split: str) -> Iterator[Path]:
    """Give the folder, and those above for as long as their names say part of a dataset."""
    if not root.is_dir():
        found = "a file is there" if root.exists() else "there is no such file or folder"
        raise FormatError(f"{root}: expected the dataset's folder, but {found}")
    folder = root.resolve() if root.name in ("", "..") else root
    yield folder
    while folder.parent != folder and (
        folder.name.casefold() in _ROLE_FOLDERS or _is_split(folder.name, split)
    ):
        folder = folder.parent
        yield folder


def _fits(path: PurePosixPath, folder: Path, split: str, *, by_folder: bool) -> bool:
    if names_split(path.stem, split):
        return True
    if not by_folder or set(name_words(path.stem)) & _SPLIT_WORDS:
        return False
    inside = any(names_split(part, split) for part in path.parts[:-1])
    return inside or _ends_with_split(folder.name, split)


def _prefer_source(
    paths: list[PurePosixPath], source: str, *, with_last: bool = False
) -> list[PurePosixPath]:
    """Of several paths keep those in a folder named after the source, if there are any."""
    word = _squash(source)
    own = [
        path
        for path in paths
        if any(word in _squash(part) for part in (path.parts if with_last else path.parts[:-1]))
    ]
    return own if len(paths) > 1 and own else paths


def _squash(text: str) -> str:
    return "".join(re.findall(r"[a-z0-9]+", text.casefold()))


def listed(paths: Sequence[PurePosixPath]) -> str:
    """Name the first 3 and last 3 of a list of paths."""
    shown = [str(path) for path in paths]
    if len(shown) > 6:
        shown = [*shown[:3], f"… {len(shown) - 6} more …", *shown[-3:]]
    return ", ".join(shown)


def locate_pictures(
    label: LabelFile, names: Sequence[str], split: str, report: ReadReport
) -> list[Path | None]:
    """Find the pictures that a label file names, near the label file.

    The folder of the label file is searched, then those above it up to the folder that the user
    gave, until all are found; one level further up where no picture lies below that, and the
    folder's name says that it is one of label files or a split.

    Args:
        label: The label file.
        names: File names out of the label file.
        split: The split, whose folder is preferred.
        report: Counts what is missing or ambiguous, by name.

    Returns:
        One path for each name, None where no picture can be told.

    Raises:
        FormatError: If there are names, and no picture at all is found.
    """
    best: list[Path | PictureError] = []
    looked: list[Path] = []
    for files in _places(label):
        index = PictureIndex(files, split)
        looked.append(files.root)
        found = [_try_find(index, name) for name in names]
        if not best or _found(found) > _found(best):
            best = found
        if _found(best) == len(names) or (label.files is None and _found(best)):
            break
    if names and not _found(best):
        raise FormatError(
            f"{label.path.name} names {len(names)} picture(s), first {names[0]!r}, and none was "
            f"found below {' or '.join(map(str, looked))}. Put the pictures, or a link to "
            "their folder, beside the label files."
        )
    for name, result in zip(names, best, strict=True):
        if isinstance(result, PictureError):
            report.drop(result.reason, repr(name))
    return [result if isinstance(result, Path) else None for result in best]


def _places(label: LabelFile) -> Iterator[Files]:
    if label.files is None:
        beside = label.path.absolute().parent
        # Never the whole disk.
        if beside.parent != beside:
            yield Files.below(beside)
            yield from _above(beside)
        return
    folder_in_root = PurePosixPath(label.path.relative_to(label.files.root).parent.as_posix())
    for folder in (folder_in_root, *folder_in_root.parents):
        yield label.files.inside(folder)
    if not label.files.with_suffix(PICTURE_SUFFIXES):
        yield from _above(label.files.root.absolute())


def _above(folder: Path) -> Iterator[Files]:
    """List what lies beside a folder of label files: any other one is a dataset of its own.

    Its siblings may be other datasets, with pictures of the same names.
    """
    words = set(name_words(folder.name))
    if words & (_LABEL_WORDS | _SPLIT_WORDS) and folder.parent.parent != folder.parent:
        yield Files.below(folder.parent)


def _try_find(index: PictureIndex, name: str) -> Path | PictureError:
    try:
        return index.find(name)
    except PictureError as error:
        return error


def _found(results: Sequence[Path | PictureError]) -> int:
    return sum(isinstance(result, Path) for result in results)


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A label file and its picture, paired by stem."""

    label: Path
    picture: Path


def pair_by_stem(
    root: Path,
    split: str,
    *,
    suffix: str,
    source: str,
    layout: str,
    report: ReadReport,
    label_folders: Sequence[str] = ("annotations",),
) -> list[LabelledPair]:
    """Pair the label files of a split with its pictures, for sources with one label a picture.

    The pictures lie in ``images`` in the place of the label folder, or anywhere beside it.

    Args:
        root: The dataset's folder, the folder above, or the split's folder.
        split: Name of the split, a word of a folder's name.
        suffix: Suffix of the label files, lower case.
        source: Name of the source, for messages and to choose among several folders.
        layout: The usual place of the label files, for messages.
        report: Counts pictures and label files that have no partner.
        label_folders: What the label folder may be called, in lower case; any case is found.

    Returns:
        Pairs in the order of the pictures' stems.

    Raises:
        FormatError: If no label folder or several fit, or no label has its picture.
    """
    files, folder = _find_label_folder(
        root, split, suffix=suffix, source=source, layout=layout, names=label_folders
    )
    labels = [path for path in files.with_suffix({suffix}) if path.parent == folder]
    index = PictureIndex(_picture_files(files, folder, label_folders), split)
    pairs: list[LabelledPair] = []
    for label in labels:
        try:
            pairs.append(LabelledPair(files.root / label, index.find_stem(label.stem)))
        except PictureError as error:
            report.drop(error.reason, label.stem)
    if not pairs:
        raise FormatError(
            f"{files.root / folder} holds {len(labels)} label file(s) and none of their pictures "
            f"was found below {index.root}. Put the pictures, or a link to their folder, beside "
            "the label files."
        )
    labelled = {fold_name(label.stem) for label in labels}
    for picture in index.split_paths():
        if fold_name(picture.stem) not in labelled:
            report.drop("label_missing", picture.name)
    return sorted(pairs, key=lambda pair: (pair.picture.stem, pair.picture.name))


def _find_label_folder(
    root: Path, split: str, *, suffix: str, source: str, layout: str, names: Sequence[str]
) -> tuple[Files, PurePosixPath]:
    looked: list[Path] = []
    for folder in folder_and_up(root, split):
        looked.append(folder)
        files = Files.below(folder)
        holders = sorted(
            {
                path.parent
                for path in files.with_suffix({suffix})
                if any(part.casefold() in names for part in (folder.name, *path.parts[:-1]))
            }
        )
        # The folder that the user points at may have a name with other words in it.
        is_own = _ends_with_split(folder.name, split)
        fitting = [
            holder
            for holder in holders
            if is_own or any(names_split(part, split) for part in holder.parts)
        ]
        fitting = _prefer_source(fitting, source, with_last=True)
        if not fitting and len(holders) == 1:
            # A split folder that the user renamed says no split at all.
            last_words = [word for word in name_words(folder.name) if not word.isdigit()][-1:]
            fitting = [h for h in holders if not _split_words((*last_words, *h.parts))]
        if len(fitting) > 1:
            raise FormatError(
                f"{folder}: {len(fitting)} label folders fit the split {split!r} of {source}: "
                f"{listed(fitting)}. Pass the folder of the split itself."
            )
        # Pointed at the label folder itself: the pictures lie beside it, one step up.
        if fitting and folder.name.casefold() not in names:
            return files, fitting[0]
    found = f"label folders {listed(holders)}" if holders else "no such folder"
    raise SplitError(
        f"{source}: expected a folder {names[0]!r} with {suffix} files of the split {split!r} "
        f"(usually {layout}) below {' or '.join(map(str, looked))}, found {found}. Check the "
        "folder and the split."
    )


def _picture_files(files: Files, label_folder: PurePosixPath, names: Collection[str]) -> Files:
    """List the folder ``images`` that mirrors a label folder, or the nearest with pictures."""
    mirrored = tuple(
        "images" if part.casefold() in names else part.casefold() for part in label_folder.parts
    )
    for folder in sorted({path.parent for path in files.with_suffix(PICTURE_SUFFIXES)}):
        if tuple(part.casefold() for part in folder.parts) == mirrored:
            return files.inside(folder)
    parts = label_folder.parts
    depth = next((i for i, part in enumerate(parts) if part.casefold() in names), 0)
    for end in range(depth, -1, -1):
        beside = files.inside(PurePosixPath(*parts[:end]))
        if beside.with_suffix(PICTURE_SUFFIXES):
            return beside
    above = files.root.absolute().parent
    if files.root.name.casefold().startswith(tuple(names)) and above.parent != above:
        # Pointed at one version of the labels, as ``labelTxt-v1.5``: the pictures lie beside it.
        return Files.below(above)
    return files
