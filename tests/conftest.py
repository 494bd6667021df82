"""Every test process gets Hugging Face caches of its own, before the libraries are imported."""

import os
import tempfile

_home = tempfile.mkdtemp(prefix="soubench-tests-")
os.environ["HF_HOME"] = _home
for name in ("HF_DATASETS_CACHE", "HF_MODULES_CACHE", "HF_EVALUATE_CACHE", "HF_HUB_CACHE"):
    os.environ.pop(name, None)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["HF_UPDATE_DOWNLOAD_COUNTS"] = "0"

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# The same examples in every run: a failure is a fault of the change at hand, never of chance.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def installed_metrics():
    """All metrics, installed by name in this process's modules cache."""
    from soubench.builders.publishing.metric_cache import install_metrics

    return install_metrics()


@pytest.fixture
def empty_cache(tmp_path):
    """A datasets cache of one test's own, as HF_DATASETS_CACHE sets it at start."""
    import datasets

    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = tmp_path / "datasets-cache"
    yield tmp_path / "datasets-cache"
    datasets.config.HF_DATASETS_CACHE = before
