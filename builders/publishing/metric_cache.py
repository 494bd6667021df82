"""Install the metrics where ``evaluate.load("<name>")`` finds them.

`evaluate` first asks the Hub for ``evaluate-metric/<name>`` and then looks in its modules cache,
``<HF_MODULES_CACHE>/evaluate_modules/metrics/evaluate-metric--<name>/<64 characters>/<name>.py``,
where the newest script wins.
"""

import hashlib
import importlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from soubench.builders.errors import PublishError

METRICS_PACKAGE = "soubench.metrics"
_SKIPPED = ("__pycache__",)


def install_metrics(
    names: Sequence[str] | None = None, *, modules_cache: Path | None = None
) -> list[Path]:
    """Copy metrics into the modules cache of `evaluate`, so that they load by name from anywhere.

    An identical copy is kept, and made the newest; copies of other versions are removed. Several
    processes may install at once: each copy is staged and renamed, under a lock per metric. A cache
    that cannot be written will do if all copies in it are up to date.

    Args:
        names: Metrics to install; all if None.
        modules_cache: The cache folder; where `evaluate` itself looks if None.

    Returns:
        One folder per metric, in the order of the names.

    Raises:
        PublishError: A name is not one of our metrics, or the cache cannot be written.
    """
    folders = metric_folders()
    wanted = sorted(folders) if names is None else list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in folders]
    if unknown:
        msg = (
            f"expected names of metrics to install, got {unknown} (looked in "
            f"{METRICS_PACKAGE}); choose among {sorted(folders)}"
        )
        raise PublishError(msg)
    cache = modules_cache if modules_cache is not None else _evaluate_cache()
    try:
        root = _importable_root(cache)
        return [_install_folder(name, folders[name], root) for name in wanted]
    except OSError as error:
        installed = [_up_to_date(name, folders[name], cache) for name in wanted]
        if all(installed):
            return [target for target in installed if target is not None]
        msg = (
            f"expected to write metrics into {cache}, got {error}; make the folder writable or set "
            "HF_MODULES_CACHE"
        )
        raise PublishError(msg) from error


def metric_folders() -> dict[str, Path]:
    """Return the folder of each metric by name, from a wheel and a checkout alike."""
    package = importlib.import_module(METRICS_PACKAGE)
    return {
        folder.name: folder
        for root in package.__path__
        for folder in sorted(Path(root).iterdir())
        if (folder / f"{folder.name}.py").is_file()
    }


def _evaluate_cache() -> Path:
    # Read when called: evaluate takes HF_MODULES_CACHE or HF_HOME at its own import.
    return Path(importlib.import_module("evaluate").config.HF_MODULES_CACHE)


def _metrics_root(cache: Path) -> Path:
    return cache / "evaluate_modules" / "metrics"


def _up_to_date(name: str, source: Path, cache: Path) -> Path | None:
    """Return the copy that `evaluate` would load if it equals the source, else None."""
    root = _metrics_root(cache)
    scripts = list((root / f"evaluate-metric--{name}").glob(f"*/{name}.py"))
    newest = max(scripts, key=lambda script: script.stat().st_mtime, default=None)
    version = _folder_hash(source)
    is_current = (
        newest is not None
        and newest.parent.name == version
        and _folder_hash(newest.parent) == version
        and all((folder / "__init__.py").is_file() for folder in (cache, root.parent, root))
    )
    return newest.parent if newest is not None and is_current else None


def _importable_root(cache: Path) -> Path:
    """Make the package folders that the import of a cached metric passes through."""
    root = _metrics_root(cache)
    root.mkdir(parents=True, exist_ok=True)
    for folder in (cache, root.parent, root):
        (folder / "__init__.py").touch(exist_ok=True)
    return root


def _files(folder: Path) -> list[Path]:
    return sorted(
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and not any(part in _SKIPPED for part in path.parts)
    )


def _folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in _files(folder):
        content = (folder / name).read_bytes()
        digest.update(f"{name.as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _install_folder(name: str, source: Path, root: Path) -> Path:
    home = root / f"evaluate-metric--{name}"
    # The lock is the one that evaluate takes when it writes here.
    with FileLock(f"{home}.lock"):
        home.mkdir(exist_ok=True)
        (home / "__init__.py").touch(exist_ok=True)
        version = _folder_hash(source)
        target = home / version
        if not target.is_dir() or _folder_hash(target) != version:
            _place(source, target)
        for other in home.iterdir():
            if other.is_dir() and other != target:
                shutil.rmtree(other, ignore_errors=True)
        os.utime(target / f"{name}.py")
    return target


def _place(source: Path, target: Path) -> None:
    """Copy ``source`` beside ``target`` and rename it in, so that no reader meets half a copy."""
    staged = Path(tempfile.mkdtemp(prefix="staging-", dir=target.parent))
    try:
        for name in _files(source):
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, staged / name)
        staged.chmod(0o755)
        if target.is_dir():
            shutil.rmtree(target)
        staged.rename(target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
