"""What several builds share: flags, and the last words."""

import argparse
from pathlib import Path
from typing import Any

from soubench.commands import add_workers, positive


def add_common(build: argparse.ArgumentParser) -> None:
    """Add seed, prompt file and workers."""
    build.add_argument("--seed", type=int, default=0, help="seed of every draw (default: 0)")
    build.add_argument("--prompt", metavar="FILE", type=Path, help="a prompt file of your own")
    add_workers(build)


def add_max_pixels(build: argparse.ArgumentParser) -> None:
    """Add ``--max-pixels``."""
    build.add_argument(
        "--max-pixels", metavar="N", type=positive, help="refuse larger pictures (100000000)"
    )


def print_built(report: dict[str, Any]) -> None:
    """Say where the card lies."""
    print(f"\nCard with contact sheets: {report['folder']}/README.md")
