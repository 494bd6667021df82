"""The local cache that ``load_dataset("<name>", "<config>")`` falls back to.

``datasets`` runs no loading scripts, but finds prepared data by name in
``<cache>/<dataset>/<config>/<version>/<hash>``, where the newest folder wins. Measured traps: a
folder that is still being written (or was left behind) there breaks the load of a good older one,
and a ``.map()`` on an older one makes it the newest. So data is prepared in a staging folder on
the same disk and renamed in, and older folders are retired.

Layout beside the datasets' own folders::

    <cache>/soubench/lock                     held while folders are moved
    <cache>/soubench/staging/<id>/            one running build; its lock is <id>.lock
    <cache>/soubench/<dataset>/<hash>/        pictures and report of a build
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from soubench.builders.errors import PublishError

HOME = "soubench"


def build_folder(cache: Path, dataset: str, fingerprint: str) -> Path:
    """Return where the pictures and the report of a build lie for good."""
    return cache / HOME / dataset / fingerprint


@contextmanager
def staging(cache: Path) -> Iterator[Path]:
    """Provide an empty folder on the cache's disk, removed afterwards.

    Folders that killed builds left behind are removed first: the system has let go of their locks.

    Raises:
        PublishError: The cache cannot be written.
    """
    home = cache / HOME / "staging"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PublishError(
            f"{cache}: the datasets cache cannot be written ({error.strerror}). "
            "Set HF_DATASETS_CACHE to a folder that can."
        ) from error
    folder = home / uuid4().hex
    own_lock = FileLock(folder.with_suffix(".lock"))
    with _lock(cache):
        for path in sorted(home.glob("*.lock")):
            _remove_if_dead(path)
        own_lock.acquire()
        folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        own_lock.release()
        own_lock_path = Path(own_lock.lock_file)
        own_lock_path.unlink(missing_ok=True)


def _lock(cache: Path) -> FileLock:
    return FileLock(cache / HOME / "lock")


def _remove_if_dead(lock_path: Path) -> None:
    lock = FileLock(lock_path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return
    shutil.rmtree(lock_path.with_suffix(""), ignore_errors=True)
    lock.release()
    lock_path.unlink(missing_ok=True)


def publish(
    cache: Path,
    staged: Path,
    dataset: str,
    configs: Iterable[str],
    version: str,
    fingerprint: str,
) -> list[Path]:
    """Move a staged build into the cache and retire what it replaces.

    Args:
        cache: The datasets cache.
        staged: A staging folder that holds ``build/`` (pictures and report) and
            ``cache/<dataset>/<config>/<version>/<fingerprint>/`` for each config.
        dataset: Name of the dataset.
        configs: Names of the configs that were prepared.
        version: Version of the dataset.
        fingerprint: Hash of the build.

    Returns:
        The folders of the configs.
    """
    trash = staged / "trash"
    trash.mkdir()
    placed: list[Path] = []
    with _lock(cache):
        _replace(staged / "build", build_folder(cache, dataset, fingerprint), trash)
        for config in configs:
            relative = Path(dataset, config, version, fingerprint)
            folder = cache / relative
            _replace(staged / "cache" / relative, folder, trash)
            os.utime(folder)
            for older in sorted((cache / dataset / config).glob("*/*")):
                if older != folder and older.is_dir():
                    older.rename(trash / uuid4().hex)
            placed.append(folder)
        _retire_builds(cache, dataset, trash)
    return placed


def _replace(new: Path, place: Path, trash: Path) -> None:
    """Put ``new`` at ``place``; an identical build that lies there already is kept."""
    if place.is_dir():
        if _files(new) == _files(place):
            return
        place.rename(trash / uuid4().hex)
    place.parent.mkdir(parents=True, exist_ok=True)
    new.rename(place)


def _files(folder: Path) -> list[tuple[str, int]]:
    return sorted(
        (path.relative_to(folder).as_posix(), path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file()
    )


def _retire_builds(cache: Path, dataset: str, trash: Path) -> None:
    """Remove pictures that no prepared config refers to any more."""
    used = {folder.name for folder in (cache / dataset).glob("*/*/*")}
    home = cache / HOME / dataset
    for folder in sorted(home.iterdir()):
        if folder.name not in used:
            folder.rename(trash / uuid4().hex)
