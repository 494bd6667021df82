"""The local cache that ``load_dataset("<name>", "<config>")`` falls back to.

``datasets`` runs no loading scripts, but finds prepared data by name in
``<cache>/<dataset>/<config>/<version>/<hash>``, where the newest folder wins. Measured traps: a
folder that is still being written (or was left behind) there breaks the load of a good older one,
and a ``.map()`` on an older one makes it the newest, or makes its folder anew if it is gone. So
data is prepared in a staging folder on the same disk and renamed in, and of older folders a stub
stays whose ``dataset_info.json`` names no config of ours: ``datasets`` passes it over whatever its
age, and what a ``.map()`` on an old object writes into it does no harm.

Layout beside the datasets' own folders::

    <cache>/soubench/lock                     held while folders are moved
    <cache>/soubench/staging/<id>/            one running build; its lock is <id>.lock
    <cache>/soubench/<dataset>/<hash>/        pictures and report of a build
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
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
        raise _unwritable(cache, error) from error
    folder = home / uuid4().hex
    own_lock = FileLock(folder.with_suffix(".lock"))
    try:
        with _lock(cache):
            for path in sorted(home.glob("*.lock")):
                _remove_if_dead(path)
            own_lock.acquire()
            folder.mkdir()
    except OSError as error:
        raise _unwritable(cache, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        own_lock.release()
        own_lock_path = Path(own_lock.lock_file)
        own_lock_path.unlink(missing_ok=True)


def _unwritable(cache: Path, error: OSError) -> PublishError:
    return PublishError(
        f"{cache}: the datasets cache cannot be written ({error.strerror}). "
        "Set HF_DATASETS_CACHE to a folder that can."
    )


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
    *,
    replaced: Iterable[str] = (),
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
        replaced: Names of further configs that this build speaks for: it has no rows for them, and
            what an older build left of them is retired too.

    Returns:
        The folders of the configs.
    """
    trash = staged / "trash"
    trash.mkdir()
    placed: list[Path] = []
    with _lock(cache):
        # Even where one with this fingerprint lies there: its paths may lead to where the sources
        # once were, and its pictures may be damaged.
        _replace(staged / "build", build_folder(cache, dataset, fingerprint), trash)
        for config in configs:
            relative = Path(dataset, config, version, fingerprint)
            folder = cache / relative
            _replace(staged / "cache" / relative, folder, trash)
            os.utime(folder)
            placed.append(folder)
        for config in dict.fromkeys((*configs, *replaced)):
            for older in sorted((cache / dataset / config).glob("*/*")):
                if older not in placed and is_live(older):
                    _retire(older, trash)
        _retire_builds(cache, dataset, trash)
    return placed


def _replace(new: Path, place: Path, trash: Path) -> None:
    if place.is_dir():
        place.rename(trash / uuid4().hex)
    place.parent.mkdir(parents=True, exist_ok=True)
    new.rename(place)


def is_live(folder: Path) -> bool:
    """Say whether ``datasets`` would load a folder of its cache, as it finds that out itself."""
    try:
        info = json.loads((folder / "dataset_info.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(info, dict) and info.get("config_name") == folder.parts[-3]


def builds_in(cache: Path, dataset: str) -> dict[str, dict[str, Path]]:
    """Return the builds that the cache holds: fingerprint -> config -> the folder of its rows.

    A folder that has the dataset's name and was loaded by its path lies there, too; it is not ours,
    unless nothing else is there.
    """
    live: dict[str, dict[str, Path]] = {}
    for path in sorted((cache / quote(dataset, safe="")).glob("*/*/*/dataset_info.json")):
        if is_live(path.parent) and not path.parent.name.endswith(".incomplete"):
            live.setdefault(path.parent.name, {})[path.parts[-4]] = path.parent
    ours = {h: configs for h, configs in live.items() if build_folder(cache, dataset, h).is_dir()}
    return ours or live


def _retire(folder: Path, trash: Path) -> None:
    """Take the data out of a folder and leave a stub that is passed over."""
    stub = trash / uuid4().hex
    stub.mkdir()
    (stub / "dataset_info.json").write_text('{"config_name": "retired"}\n', encoding="utf-8")
    folder.rename(trash / uuid4().hex)
    stub.rename(folder)


def _retire_builds(cache: Path, dataset: str, trash: Path) -> None:
    """Remove pictures that no prepared config refers to any more."""
    used = {folder.name for folder in (cache / dataset).glob("*/*/*") if is_live(folder)}
    for folder in sorted((cache / HOME / dataset).iterdir()):
        if folder.name not in used:
            folder.rename(trash / uuid4().hex)
