"""Metrics that were installed load by name, from any folder and without a network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from soubench.builders.errors import PublishError
from soubench.builders.publishing import metric_cache
from soubench.builders.publishing.metric_cache import install_metrics, metric_folders
from tests.light import LIGHT

LOAD = (
    f"{LIGHT}import evaluate; metric = evaluate.load('option_match')\n"
    "rows = {'predictions': ['B'], 'references': ['B'], 'options': [['x', 'y']]}\n"
    "print(metric.compute(**rows)['accuracy'])"
)
INSTALL = (
    f"{LIGHT}from soubench.builders.publishing.metric_cache import install_metrics\n"
    "print(install_metrics(['option_match'])[0])"
)


def _python(program, cwd, cache, **env):
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=cwd,
        env={**os.environ, "HF_MODULES_CACHE": str(cache), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _output(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


def _versions(cache):
    home = cache / "evaluate_modules" / "metrics" / "evaluate-metric--option_match"
    return [path for path in home.iterdir() if path.is_dir() and path.name != "__pycache__"]


@pytest.fixture
def own_metric(tmp_path, monkeypatch):
    """A copy of the metric that a test may change."""
    folder = tmp_path / "source" / "option_match"
    shutil.copytree(metric_folders()["option_match"], folder)
    monkeypatch.setattr(metric_cache, "metric_folders", lambda: {"option_match": folder})
    return folder


@pytest.mark.parametrize(
    "offline", [{"HF_HUB_OFFLINE": "1"}, {"HF_EVALUATE_OFFLINE": "1"}], ids=["hub", "evaluate"]
)
def test_installed_metric_loads_by_name_from_another_folder(tmp_path, offline):
    cache, elsewhere = tmp_path / "modules", tmp_path / "elsewhere"
    elsewhere.mkdir()
    installed = Path(_output(_python(INSTALL, tmp_path, cache)))
    assert installed.is_relative_to(cache), "install and evaluate must mean the same cache"
    assert len(installed.name) == 64
    # Port 9 discards: whatever the machine's network is, the Hub is out of reach.
    unreachable = {"HF_ENDPOINT": "http://127.0.0.1:9", **offline}
    assert _output(_python(LOAD, elsewhere, cache, **unreachable)) == "1.0"


def test_hf_home_alone_moves_the_cache(tmp_path):
    env = {key: value for key, value in os.environ.items() if key != "HF_MODULES_CACHE"}
    done = subprocess.run(
        [sys.executable, "-c", INSTALL],
        env={**env, "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "modules")


def test_two_installs_at_once_leave_one_whole_copy(tmp_path):
    cache = tmp_path / "modules"
    running = [_python(INSTALL, tmp_path, cache) for _ in range(3)]
    folders = {_output(process) for process in running}
    assert folders == {str(path) for path in _versions(cache)}
    assert _output(_python(LOAD, tmp_path, cache, HF_EVALUATE_OFFLINE="1")) == "1.0"


def test_all_metrics_are_installed_by_default(tmp_path):
    installed = install_metrics(modules_cache=tmp_path)
    assert [path.parent.name for path in installed] == [
        f"evaluate-metric--{name}" for name in sorted(metric_folders())
    ]
    for path, name in zip(installed, sorted(metric_folders()), strict=True):
        assert (path / f"{name}.py").is_file()
        assert (path / "README.md").is_file()
        assert not list(path.rglob("__pycache__"))


def test_identical_copy_is_kept_and_becomes_the_newest(tmp_path):
    (first,) = install_metrics(["option_match"], modules_cache=tmp_path)
    script = first / "option_match.py"
    inode = script.stat().st_ino
    os.utime(script, (1, 1))
    before = tmp_path / "before"
    before.touch()
    assert install_metrics(["option_match"], modules_cache=tmp_path) == [first]
    assert script.stat().st_ino == inode
    assert script.stat().st_mtime >= before.stat().st_mtime


def test_changed_metric_replaces_the_older_copy(tmp_path, own_metric):
    cache = tmp_path / "modules"
    (first,) = install_metrics(modules_cache=cache)
    (own_metric / "README.md").write_text("changed")
    (second,) = install_metrics(modules_cache=cache)
    assert second != first
    assert _versions(cache) == [second]
    assert (second / "README.md").read_text() == "changed"


def test_damaged_copy_is_repaired(tmp_path):
    (path,) = install_metrics(["option_match"], modules_cache=tmp_path)
    (path / "letters.py").unlink()
    assert install_metrics(["option_match"], modules_cache=tmp_path) == [path]
    assert (path / "letters.py").is_file()


def test_failed_copy_leaves_nothing_behind(tmp_path, own_metric, monkeypatch):
    cache = tmp_path / "modules"

    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(shutil, "copyfile", fail)
    with pytest.raises(PublishError, match="disk full"):
        install_metrics(modules_cache=cache)
    assert _versions(cache) == []


def test_unknown_name_is_an_error_that_lists_the_known(tmp_path):
    with pytest.raises(PublishError, match=r"got \['nonsense'\].*option_match"):
        install_metrics(["option_match", "nonsense"], modules_cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_names_asked_twice_are_installed_once(tmp_path):
    assert len(install_metrics(["option_match", "option_match"], modules_cache=tmp_path)) == 1


def test_cache_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "modules").write_text("")
    with pytest.raises(PublishError, match="HF_MODULES_CACHE"):
        install_metrics(modules_cache=tmp_path / "modules")


def _refuse(*args, **kwargs):
    raise PermissionError(30, "Read-only file system")


def test_up_to_date_cache_may_be_read_only(tmp_path, own_metric, monkeypatch):
    cache = tmp_path / "modules"
    (installed,) = install_metrics(modules_cache=cache)
    monkeypatch.setattr(metric_cache, "FileLock", _refuse)
    assert install_metrics(modules_cache=cache) == [installed]
    monkeypatch.undo()
    monkeypatch.setattr(metric_cache, "metric_folders", lambda: {"option_match": own_metric})
    monkeypatch.setattr(Path, "touch", _refuse)
    assert install_metrics(modules_cache=cache) == [installed]


@pytest.mark.parametrize("stale", ["changed", "damaged", "absent"])
def test_read_only_cache_that_is_not_up_to_date_is_an_error(
    tmp_path, own_metric, monkeypatch, stale
):
    cache = tmp_path / "modules"
    if stale != "absent":
        (installed,) = install_metrics(modules_cache=cache)
        changed = own_metric if stale == "changed" else installed
        (changed / "README.md").write_text("other")
    monkeypatch.setattr(metric_cache, "FileLock", _refuse)
    with pytest.raises(PublishError, match="Read-only"):
        install_metrics(modules_cache=cache)
