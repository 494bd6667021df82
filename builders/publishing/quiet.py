"""Keep `datasets` from printing bars and notes where a command says itself what happens."""

from collections.abc import Iterator
from contextlib import contextmanager

import datasets


@contextmanager
def quiet_datasets() -> Iterator[None]:
    """Print neither progress bars nor notes meanwhile."""
    level = datasets.utils.logging.get_verbosity()
    shown = not datasets.are_progress_bars_disabled()
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.utils.logging.set_verbosity(level)
        if shown:
            datasets.enable_progress_bars()
