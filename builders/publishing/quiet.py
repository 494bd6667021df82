"""Keep `datasets` from printing bars and notes where a command says itself what happens."""

from collections.abc import Iterator
from contextlib import contextmanager

import datasets


@contextmanager
def quiet_datasets(*, bars: bool = False) -> Iterator[None]:
    """Print no notes meanwhile, and no progress bars unless ``bars``."""
    level = datasets.utils.logging.get_verbosity()
    shown = not datasets.are_progress_bars_disabled()
    datasets.utils.logging.set_verbosity_error()
    if not bars:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.utils.logging.set_verbosity(level)
        if shown and not bars:
            datasets.enable_progress_bars()
